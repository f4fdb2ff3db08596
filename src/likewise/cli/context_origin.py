"""`likewise context score` and `likewise context harvest`."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from likewise.cli.messages import clean_errors

Work = Annotated[Path, typer.Option(help="The workspace: a folder that holds every stage.")]
Config = Annotated[Optional[Path], typer.Option(help="A TOML file with a section a stage.")]
Set = Annotated[
    Optional[list[str]],
    typer.Option("--set", help="One option, section.key=value; may be repeated, and goes before the file."),
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
    from likewise.context.errors import ContextError
    from likewise.context.options import Configuration
    from likewise.context.origin import choose_weights, similarities
    from likewise.context.origin_stages import WEIGHTS, open_origin, with_chosen_weights

    given = sum((bool(sentences), pairs is not None, task is not None))
    if given != 1 or (sentences and len(sentences) != 2):
        raise ContextError("give two sentences, or --pairs FILE, or --task NAME")
    if choose and task is None:
        raise ContextError("--choose needs rated pairs: give --task sts-b-dev")
    configuration = Configuration(config, assignments or ())
    options, selection = configuration.section("score"), configuration.section("selection")
    gold = None
    if task is not None:
        asked, gold = _rated(task, data, limit)
    else:
        asked = _read_pairs(pairs) if pairs is not None else [(sentences[0], sentences[1])]  # type: ignore[index]
    with _bar("contexts found for") as found, _bar("cells scored") as scored:
        origin = open_origin(work, options, selection, found)
        # All terms where weights are to be chosen, else those that weigh.
        wanted = [True] * 4 if choose else origin.scorer.weights > 0
        terms = origin.terms(asked, wanted, scored)
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
) -> None:
    """Score pairs of the corpus into Parquet shards; goes on where it was stopped."""
    from likewise.context.harvest import Forecast, Part
    from likewise.context.options import Configuration
    from likewise.context.origin_stages import HARVEST, harvest_workspace

    part, configuration = Part.parse(shard), Configuration(config, assignments or ())

    def tell(now: Forecast) -> None:
        if now.seconds_left is None:
            typer.echo(f"{now.shards:,} shards to do", err=True)
        elif sys.stderr.isatty() or now.done in (1, now.shards) or now.done % 100 == 0:
            end = "" if sys.stderr.isatty() and now.done < now.shards else "\n"
            typer.echo(
                f"\r{now.done:,} of {now.shards:,} shards, {now.pairs:,} pairs, {now.pairs_a_minute:,.0f} a minute, "
                f"{_duration(now.seconds_left)} left   {end}",
                err=True,
                nl=False,
            )

    try:
        found = harvest_workspace(
            work,
            configuration.section("harvest"),
            configuration.section("score"),
            configuration.section("selection"),
            out=out,
            part=part,
            processes=processes,
            progress=tell,
        )
    except KeyboardInterrupt:
        typer.echo("\nStopped. Go on with the same command.", err=True)
        raise typer.Exit(130) from None
    folder = out or work / HARVEST
    if found is None:
        typer.echo(f"{folder}: the shards of part {shard} are done; those of other machines are missing")
        return
    splits = ", ".join(f"{count:,} {name}" for name, count in found["splits"].items())
    typer.echo(f"{folder}: {found['pairs']:,} pairs ({splits})")
    for kind, spread in found["scores"].items():
        typer.echo(
            f"  {kind}: {spread['pairs']:,} pairs, similarity {spread['mean']:.3f} "
            f"({spread['5%']:.3f} to {spread['95%']:.3f})"
        )


def _duration(seconds: float) -> str:
    """A time in the two largest units that it has.

    >>> _duration(59), _duration(125), _duration(7322), _duration(200_000)
    ('59 s', '2 min 5 s', '2 h 2 min', '2 d 7 h')
    """
    minutes, s = divmod(round(seconds), 60)
    hours, m = divmod(minutes, 60)
    days, h = divmod(hours, 24)
    if days:
        return f"{days} d {h} h"
    return f"{h} h {m} min" if h else f"{m} min {s} s" if m else f"{s} s"


def _rated(task: str, data: Path | None, limit: int) -> tuple[list[tuple[str, str]], Any]:
    """Pairs of a task of rated pairs, and their ratings."""
    import numpy as np

    from likewise.context.errors import ContextError
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
    from likewise.context.errors import ContextError

    if not path.is_file():
        raise FileNotFoundError(f"There is no file '{path}'.")
    found = []
    with path.open(encoding="utf-8", newline="") as file:
        for number, row in enumerate(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE), start=1):
            if len(row) != 2 or not all(text.strip() for text in row):
                raise ContextError(f"{path}:{number}: not two sentences with a tab between them")
            found.append((row[0], row[1]))
    if not found:
        raise ContextError(f"{path}:1: there is no pair in it")
    return found


def _bar(what: str) -> Any:
    from contextlib import contextmanager

    from rich.console import Console
    from rich.progress import Progress, TextColumn, TimeElapsedColumn

    @contextmanager
    def counting() -> Any:
        console = Console(stderr=True)
        columns = (TextColumn(what), TextColumn("{task.completed:,.0f}"), TimeElapsedColumn())
        with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
            task = bar.add_task("", total=None)
            yield lambda done: bar.advance(task, done)

    return counting()
