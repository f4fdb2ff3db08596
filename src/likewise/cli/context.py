"""`likewise context`: the pipeline of 'Sentence Similarity Based on Contexts', a command for each stage."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

import likewise
import likewise.context as stages
from likewise.cli.from_function import with_function
from likewise.cli.groups import CommandTable, group, typed
from likewise.cli.shared_options import ReplaceOption, with_config, with_options
from likewise.cli.training_commands import show_outcome, summary
from likewise.context.stage_options import SURROGATE
from likewise.corpus.encodings import AUTO
from likewise.errors import counted
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    import numpy as np

    from likewise.context.origin import Deciding

Work = Annotated[Path, typer.Option(help="The workspace: the folder of all stages.")]
Config = Annotated[Optional[Path], typer.Option(help="A TOML file with a section for each stage.")]
KindOfModels = Annotated[
    Literal["frozen", "pretrained", "paper"],
    typer.Option(
        help="frozen: models on the states of a frozen encoder. pretrained: with a pretrained language model as "
        "generators. paper: the models of the paper, from scratch."
    ),
]
Set = Annotated[
    Optional[list[str]],
    typer.Option("--set", help="One option as section.name=value; repeatable, and takes precedence over the file."),
]
_SHOWN = 3
"""Contexts that --explain prints of those that add to a similarity, and of those that take off."""
_SIDE = 160
"""Characters of either side of a gap that --explain prints."""
_GIVEN = {"right": "with its own context", "shuffled": "with another context", "none": "without context"}
ReplaceStage = Annotated[bool, typer.Option("--overwrite", help="Replace a result of other options.")]


@group("Sentence similarity based on contexts: index, train, and what is built on them.")
def context() -> CommandTable:
    """Return the commands of `likewise context`."""
    return {
        "index": (index, "Cut documents into chunks and index their words and bigrams."),
        "train": (train, "Train the coherence discriminator or the generators."),
        "score": (score, "Print the Origin similarity of sentences."),
        "harvest": (harvest, "Score pairs of the corpus into Parquet shards."),
        "distill": (typed(_distill), "Train a surrogate on a harvest, or on the contexts of a workspace."),
    }


@typed
def index(
    work: Work,
    corpus: Annotated[
        list[str], typer.Option(help="Articles, a MediaWiki dump or plain text: a file or a glob; may be repeated.")
    ],
    preset: KindOfModels = "frozen",
    config: Config = None,
    assignments: Set = None,
    overwrite: ReplaceStage = False,
) -> None:
    """Cut documents into chunks and index their words and bigrams."""
    options = stages.read_sections(config, assignments or (), preset)["index"]
    record = stages.build_index(work, corpus, options, overwrite=overwrite).record
    names = "documents", "chunks", "sentences", "contexts"
    typer.echo(f"{work / 'index'}: " + ", ".join(f"{record[name]:,} {name}" for name in names))


@typed
def train(
    what: Annotated[
        Literal["states", "discriminator", "generators", "all"],
        typer.Argument(
            help="The models to train; states reads the index with the frozen encoder, which is no training."
        ),
    ],
    work: Work,
    preset: KindOfModels = "frozen",
    config: Config = None,
    assignments: Set = None,
    overwrite: ReplaceStage = False,
) -> None:
    """Train the coherence discriminator or the generators on the index; a stopped run is resumed."""
    options = stages.read_sections(config, assignments or (), preset)
    if what in ("states", "all"):
        stage = stages.read_states(work, options["states"], overwrite=overwrite)
        typer.echo(f"{stage.folder}: {counted(stage.record['sentences'], 'sentence')} read")
    if what in ("discriminator", "all"):
        stage = stages.train_discriminator(work, options["discriminator"], overwrite=overwrite)
        held_out = stage.record["held_out"]
        kinds = {"own sentence": "positive", "same document": "same_document", "other document": "other_document"}
        shares = [f"{name} {held_out[kind]:.1%}" for name, kind in kinds.items() if held_out[kind] is not None]
        accuracy = f"{held_out['accuracy']:.1%} on {counted(held_out['contexts'], 'context')}"
        typer.echo(f"{stage.folder}: held-out accuracy {accuracy} ({', '.join(shares)})")
    if what in ("generators", "all"):
        stage = stages.train_generators(work, options["generators"], overwrite=overwrite)
        for sources, by_task in stage.record["perplexity"].items():
            shares = [f"{task} {value:.1f}" for task, value in by_task.items()]
            typer.echo(f"{stage.folder}: held-out perplexity of a word {_GIVEN[sources]}: {', '.join(shares)}")


@typed
def score(
    work: Work,
    sentences: Annotated[
        Optional[list[str]], typer.Argument(metavar="[A B]", help="Two sentences; or none, with --pairs or --task.")
    ] = None,
    pairs: Annotated[
        Optional[Path], typer.Option(help="A file with a pair on each line, a tab between its two sentences.")
    ] = None,
    task: Annotated[Optional[str], typer.Option(help="A task of rated pairs, such as sts-b or sts-b-dev.")] = None,
    data: Annotated[Optional[Path], typer.Option(help="Folder in SentEval's layout, for --task.")] = None,
    limit: Annotated[
        int, typer.Option(help="Number of pairs of the task to draw (with seed 1); 0 takes all.", min=0)
    ] = 0,
    choose: Annotated[bool, typer.Option("--choose", help="Choose the weights on the task, and record them.")] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Print the contexts that decided, for two sentences.")
    ] = False,
    out: Annotated[
        Optional[Path], typer.Option(help="A TSV file to write: similarity, both sentences, and the encoder's cosine.")
    ] = None,
    overwrite: ReplaceOption = False,
    preset: KindOfModels = "frozen",
    config: Config = None,
    assignments: Set = None,
) -> None:
    """Print the similarity by contexts (Origin) of two sentences, of pairs, or its agreement with human ratings.

    The cosine of the encoder alone stands beside it. --set score.terms=cosine,words scores by the encoder alone.
    """
    from likewise.context.origin import WEIGHTS
    from likewise.runs.results import check_results, written_result

    asked_for = sum((bool(sentences), pairs is not None, task is not None))
    if asked_for != 1 or (sentences and len(sentences) != 2):
        raise stages.ContextError("give two sentences, or --pairs FILE, or --task NAME")
    if choose and task is None:
        raise stages.ContextError("--choose needs rated pairs: give --task sts-b-dev")
    if explain and not sentences:
        raise stages.ContextError("--explain needs two sentences")
    check_results(out, overwrite=overwrite)
    options, progress = stages.read_sections(config, assignments or (), preset), Progress()
    gold = None
    if task is not None:
        asked, gold = _rated(task, data, limit)
    else:
        asked = _read_pairs(pairs) if pairs is not None else [(sentences[0], sentences[1])]  # type: ignore[index]
        if not all(sentence.strip() for pair in asked for sentence in pair):
            raise stages.ContextError("a sentence is empty: write it, or remove the pair")
    progress.tell("opening the workspace")
    origin = stages.open_origin(work, options["score"], options["selection"], progress)
    progress.tell(f"scored by {origin.about}")
    if explain and not origin.reads_contexts:
        origin.explain(*asked[0])  # says so, and how it would
    if choose and gold is not None:
        chosen, values = origin.choose(asked, gold, f"{task}, {counted(len(gold), 'pair')}")
        chosen.save(work / WEIGHTS)
        typer.echo(f"{work / WEIGHTS}: weights {chosen.values}")
    else:
        values = origin(asked)
    beside = origin.cosines(asked) if origin.reads_contexts else None
    if gold is not None:
        from likewise.evaluation.pairs import correlations

        for name, scores in {f"{task}": values, "cosine of the encoder alone": beside}.items():
            if scores is not None:
                spearman, pearson = correlations(scores, gold)
                typer.echo(f"{name}: Spearman {spearman:.2f}, Pearson {pearson:.2f} on {counted(len(gold), 'pair')}")
    if out is not None:
        with written_result(out, overwrite) as path, path.open("w", encoding="utf-8", newline="") as file:
            for i, (value, (first, second)) in enumerate(zip(values, asked, strict=True)):
                cosine = "" if beside is None else f"\t{beside[i]:.6f}"
                file.write(f"{value:.6f}\t{first}\t{second}{cosine}\n")
        typer.echo(f"written: {out}")
    elif gold is None:
        for i, value in enumerate(values):
            typer.echo(f"{value:.4f}" if beside is None else f"{value:.4f}  (cosine of the encoder: {beside[i]:.4f})")
    if explain:
        _show_deciding(origin.explain(*asked[0]))


def _show_deciding(contexts: list[Deciding]) -> None:
    """Print the contexts that add most to a similarity, and those that take off most."""
    shown = contexts[:_SHOWN] + [context for context in contexts[_SHOWN:][-_SHOWN:] if context.part < 0]
    typer.echo("adds     first   second  fit this context, [...] is the gap")
    for context in shown:
        # The ends that are far from the gap are cut off.
        left = textwrap.shorten(context.left[::-1], _SIDE, placeholder="...")[::-1]
        right = textwrap.shorten(context.right, _SIDE, placeholder="...")
        typer.echo(f"{context.part:+.4f}  {context.fits[0]:+.2f}   {context.fits[1]:+.2f}   {left} [...] {right}")
    if len(contexts) > len(shown):
        typer.echo(f"and {counted(len(contexts) - len(shown), 'other context')}")


@typed
def harvest(
    work: Work,
    out: Annotated[Optional[Path], typer.Option(help="Folder of the shards; by default in the workspace.")] = None,
    shard: Annotated[str, typer.Option(help="The share of this machine, as NUMBER/MACHINES.")] = "1/1",
    preset: KindOfModels = "frozen",
    config: Config = None,
    assignments: Set = None,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Start again and replace earlier work.")] = False,
) -> None:
    """Score pairs of the corpus and write them as Parquet shards; a stopped run is resumed."""
    sections = stages.read_sections(config, assignments or (), preset)
    result = likewise.harvest(
        work,
        sections["harvest"],
        score=sections["score"],
        selection=sections["selection"],
        out=out,
        shard=shard,
        overwrite=overwrite,
    )
    counts = result.summary
    if counts is None:
        typer.echo(f"{result.path}: the shards of part {shard} are done; those of other machines are missing")
        return
    splits = ", ".join(f"{count:,} {name}" for name, count in counts["splits"].items())
    typer.echo(f"{result.path}: {counted(counts['pairs'], 'pair')} ({splits})")
    for kind, spread in counts["scores"].items():
        typer.echo(
            f"  {kind}: {counted(spread['pairs'], 'pair')}, similarity {spread['mean']:.3f} "
            f"({spread['5%']:.3f} to {spread['95%']:.3f})"
        )


@with_config
@with_options("options", SURROGATE.options())
@with_function(
    "context/surrogate.py:distill",
    texts={
        "harvest": "The folder that `likewise context harvest` wrote.",
        "work": "In place of a harvest, the workspace whose profiles are learnt (--preset profiles).",
        "base": 'A Hugging Face name, a folder, or bundled:NAME; with pooling "own" any saved encoder.',
    },
)
def _distill(arguments: Record) -> None:
    result = likewise.distill(**arguments)
    show_outcome(result, arguments["quiet"])
    if not arguments["quiet"] and (test := result.record.get("test")):
        typer.echo(f"test_mse: {test['test_mse']:.4g} ({test['test_mse_harvest']:.4g} on the harvest's own scale)")


_distill.__doc__ = summary(SURROGATE)


def _rated(task: str, data: Path | None, limit: int) -> tuple[list[tuple[str, str]], np.ndarray]:
    """Return the pairs of a task of rated pairs, and their ratings."""
    import numpy as np

    from likewise.evaluation.registry import rated_task

    rated = rated_task(task).pairs(data)
    rows = np.arange(len(rated.gold))
    if limit and limit < len(rows):
        rows = np.sort(np.random.default_rng(1).choice(rows, limit, replace=False))
    return [(rated.first[i], rated.second[i]) for i in rows], rated.gold[rows]


def _read_pairs(path: Path) -> list[tuple[str, str]]:
    """Return the pairs of a file."""
    from likewise.evaluation.data_folder import read_lines

    if not path.is_file():
        raise stages.ContextError(f"there is no file '{path}'")
    rows = [line.split("\t") for line in read_lines(path, AUTO)]
    for number, row in enumerate(rows, start=1):
        if len(row) != 2 or not all(text.strip() for text in row):
            raise stages.ContextError(f"{path}:{number}: a line needs two sentences with a tab between them")
    if not rows:
        raise stages.ContextError(
            f"{path}:1: the file holds no pair: write two sentences on a line, with a tab between them"
        )
    return [(first, second) for first, second in rows]
