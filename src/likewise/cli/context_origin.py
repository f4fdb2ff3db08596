"""`likewise context score` and `likewise context harvest`."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from likewise.cli.messages import clean_errors

Work = Annotated[Path, typer.Option(help="The workspace: a folder that holds every stage.")]
Config = Annotated[Optional[Path], typer.Option(help="A TOML file with a section a stage.")]
Set = Annotated[
    Optional[list[str]],
    typer.Option("--set", help="One option, section.name=value; may be repeated, and outranks the file."),
]


@clean_errors
def score(
    work: Work,
    sentences: Annotated[
        Optional[list[str]], typer.Argument(metavar="[A B]", help="Two sentences; or none, with --pairs or --task.")
    ] = None,
    pairs: Annotated[Optional[Path], typer.Option(help="A file of pairs, a tab between two sentences.")] = None,
    task: Annotated[Optional[str], typer.Option(help="A task of rated pairs, as sts-b or sts-b-dev.")] = None,
    data: Annotated[Optional[Path], typer.Option(help="Folder in SentEval's layout, for --task.")] = None,
    limit: Annotated[int, typer.Option(help="So many pairs of the task, drawn with seed 1; 0: all.", min=0)] = 0,
    choose: Annotated[bool, typer.Option("--choose", help="Choose the weights on the task, and record them.")] = False,
    out: Annotated[Optional[Path], typer.Option(help="A TSV file to write: similarity and sentences.")] = None,
    config: Config = None,
    assignments: Set = None,
) -> None:
    """Print the Origin similarity of two sentences, of a file of pairs, or its agreement with human ratings."""
    from likewise.context.options import read_sections
    from likewise.context.origin import WEIGHTS, choose_weights, open_origin, similarities, with_chosen_weights
    from likewise.context.workspace import ContextError
    from likewise.runs.progress import Progress

    given = sum((bool(sentences), pairs is not None, task is not None))
    if given != 1 or (sentences and len(sentences) != 2):
        raise ContextError("give two sentences, or --pairs FILE, or --task NAME")
    if choose and task is None:
        raise ContextError("--choose needs rated pairs: give --task sts-b-dev")
    sections = read_sections(config, assignments or ())
    options = sections["score"]
    gold = None
    if task is not None:
        asked, gold = _rated(task, data, limit)
    else:
        asked = _read_pairs(pairs) if pairs is not None else [(sentences[0], sentences[1])]  # type: ignore[index]
    progress = Progress()
    progress.tell("opening index, discriminator and generators")
    origin = open_origin(work, options, sections["selection"], progress)
    progress.tell("finding contexts and scoring them (faster with --set score.contexts_by=discriminator)")
    # All terms where weights are to be chosen, else those that weigh.
    terms = origin.terms(asked, [True] * 4 if choose else origin.scorer.weights > 0)
    if bare := sum(not len(pair.first) for pair in terms):
        typer.echo(f"{bare:,} pairs have no context in this index, and the similarity 0", err=True)
    if choose:
        assert gold is not None
        chosen = choose_weights(terms, gold, metric=options.metric, source=f"{task}, {len(gold)} pairs")
        chosen.save(work / WEIGHTS)
        typer.echo(f"{work / WEIGHTS}: weights {chosen.values}")
        weights: Any = chosen.values
    else:
        weights = origin.scorer.weights
    values = similarities(terms, weights, with_chosen_weights(work, options).metric)
    if gold is not None:
        from likewise.evaluation.pairs import correlations

        spearman, pearson = correlations(values, gold)
        typer.echo(f"{task}: Spearman {spearman:.2f}, Pearson {pearson:.2f} on {len(gold):,} pairs")
    if out is not None:
        with out.open("w", encoding="utf-8", newline="") as file:
            for value, (one, other) in zip(values, asked, strict=True):
                file.write(f"{value:.6f}\t{one}\t{other}\n")
        typer.echo(f"written: {out}")
    elif gold is None:
        for value in values:
            typer.echo(f"{value:.4f}")


@clean_errors
def harvest(
    work: Work,
    out: Annotated[Optional[Path], typer.Option(help="Folder of the shards; 'harvest' in the workspace.")] = None,
    shard: Annotated[str, typer.Option(help="This machine's share, number/machines.")] = "1/1",
    processes: Annotated[int, typer.Option(help="Processes that score at the same time.", min=1)] = 1,
    config: Config = None,
    assignments: Set = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Make anew what was made or begun.")] = False,
) -> None:
    """Score pairs of the corpus into Parquet shards; what was stopped goes on."""
    from likewise.context.harvesting import harvest as make
    from likewise.context.options import read_sections

    sections = read_sections(config, assignments or ())
    result = make(
        work,
        sections["harvest"],
        score=sections["score"],
        selection=sections["selection"],
        out=out,
        shard=shard,
        processes=processes,
        overwrite=overwrite,
    )
    found = result.summary
    if found is None:
        typer.echo(f"{result.path}: the shards of part {shard} are done; those of other machines are missing")
        return
    splits = ", ".join(f"{count:,} {name}" for name, count in found["splits"].items())
    typer.echo(f"{result.path}: {found['pairs']:,} pairs ({splits})")
    for kind, spread in found["scores"].items():
        typer.echo(
            f"  {kind}: {spread['pairs']:,} pairs, similarity {spread['mean']:.3f} "
            f"({spread['5%']:.3f} to {spread['95%']:.3f})"
        )


def _rated(task: str, data: Path | None, limit: int) -> tuple[list[tuple[str, str]], Any]:
    """Pairs of a task of rated pairs, and their ratings."""
    import numpy as np

    from likewise.context.workspace import ContextError
    from likewise.evaluation.registry import TASKS
    from likewise.evaluation.tasks.sts import StsTask

    found = TASKS.get(task)
    if not isinstance(found, StsTask):
        known = ", ".join(name for name, one in TASKS.items() if isinstance(one, StsTask))
        raise ContextError(f"--task {task} is no task of rated pairs; there are {known}")
    rated = found.pairs(data)
    rows = np.arange(len(rated.gold))
    if limit and limit < len(rows):
        rows = np.sort(np.random.default_rng(1).choice(rows, limit, replace=False))
    return [(rated.first[i], rated.second[i]) for i in rows], rated.gold[rows]


def _read_pairs(path: Path) -> list[tuple[str, str]]:
    """The pairs of a file.

    Raises:
        ContextError: a line is no pair.
    """
    from likewise.context.workspace import ContextError

    if not path.is_file():
        raise ContextError(f"there is no file '{path}'")
    found = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), start=1):
            if len(row) != 2 or not all(text.strip() for text in row):
                raise ContextError(f"{path}:{number}: not two sentences with a tab between them")
            found.append((row[0], row[1]))
    if not found:
        raise ContextError(f"{path}:1: there is no pair in it")
    return found
