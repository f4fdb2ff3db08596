"""`likewise context`: the pipeline of 'Sentence Similarity Based on Contexts', a command for each stage."""

from __future__ import annotations

import textwrap
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, Optional

import typer

import likewise
import likewise.context as stages
from likewise.cli.from_function import with_function
from likewise.cli.groups import CommandTable, group, typed
from likewise.cli.training_commands import command_of, show_outcome
from likewise.context.stage_options import SURROGATE
from likewise.errors import counted
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from likewise.context.origin import Deciding
    from likewise.evaluation.pairs import RatedPairs

Work = Annotated[Path, typer.Option(help="Path to the workspace, the folder of all stages.")]
KindOfModels = Annotated[
    Literal["frozen", "pretrained", "paper"],
    typer.Option(
        help="Name of the set of models. frozen: small models on the states of a frozen encoder. pretrained: a "
        "pretrained language model as generators. paper: the models of the paper, from scratch."
    ),
]
Set = Annotated[
    Optional[list[str]],
    typer.Option("--set", help="Option of a stage, as section.name=value; repeatable."),
]
_LISTED = 3
"""Number of contexts printed by --explain that raise a similarity, and of contexts that lower it."""
_SIDE = 160
"""Characters of either side of a gap that --explain prints."""
_GIVEN = {"right": "with its own context", "shuffled": "with another context", "none": "without context"}
ReplaceStage = Annotated[
    bool, typer.Option("--overwrite", help="Whether to replace a result that was built with other options.")
]


@group("Sentence similarity based on contexts: index, train, and what is built on them.")
def context() -> CommandTable:
    """Return the commands of `likewise context`."""
    return {
        "index": (index, "Cut documents into chunks and index their words and bigrams."),
        "train": (train, "Train the coherence discriminator or the generators."),
        "score": (score, "Print the Origin similarity of sentences."),
        "harvest": (harvest, "Score pairs of the corpus into Parquet shards."),
        "distill": (
            partial(command_of, _distill, SURROGATE),
            "Train a surrogate on a harvest, or on the contexts of a workspace.",
        ),
    }


@typed
def index(
    work: Work,
    corpus: Annotated[
        list[str],
        typer.Option(
            help="Path to the text: articles, a MediaWiki dump or plain text, as a file or a glob pattern; repeatable."
        ),
    ],
    preset: KindOfModels = "frozen",
    assignments: Set = None,
    overwrite: ReplaceStage = False,
) -> None:
    """Cut documents into chunks and index their words and bigrams."""
    options = stages.read_sections(assignments or (), preset)["index"]
    record = stages.build_index(work, corpus, options, overwrite=overwrite).record
    names = "documents", "chunks", "sentences", "contexts"
    typer.echo(f"{work / 'index'}: " + ", ".join(f"{record[name]:,} {name}" for name in names))


@typed
def train(
    what: Annotated[
        Literal["states", "discriminator", "generators", "all"],
        typer.Argument(
            help="Name of the models to train; states encodes the index with the frozen encoder, without training."
        ),
    ],
    work: Work,
    preset: KindOfModels = "frozen",
    assignments: Set = None,
    overwrite: ReplaceStage = False,
) -> None:
    """Train the coherence discriminator or the generators on the index; a stopped run is resumed."""
    options = stages.read_sections(assignments or (), preset)
    if what in ("states", "all"):
        stage = stages.read_states(work, options["states"], overwrite=overwrite)
        typer.echo(f"{stage.folder}: {counted(stage.record['sentences'], 'sentence')} encoded")
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
        Optional[list[str]], typer.Argument(metavar="[A B]", help="Pair of sentences; omit it with --task.")
    ] = None,
    task: Annotated[
        Optional[str], typer.Option(help="Name of a task with rated pairs, such as sts-b or sts-b-dev.")
    ] = None,
    data: Annotated[Optional[Path], typer.Option(help="Path to a folder in SentEval's layout, for --task.")] = None,
    choose: Annotated[
        bool, typer.Option("--choose", help="Whether to choose the weights on the task, and to record them.")
    ] = False,
    explain: Annotated[
        bool,
        typer.Option("--explain", help="Whether to print the contexts that determine the similarity of two sentences."),
    ] = False,
    preset: KindOfModels = "frozen",
    assignments: Set = None,
) -> None:
    """Print the similarity of two sentences by their contexts (Origin), or its correlation with human ratings.

    The cosine of the encoder is printed next to it. --set score.terms=cosine,words uses the encoder alone.
    """
    if bool(sentences) == (task is not None) or (sentences and len(sentences) != 2):
        raise stages.ContextError("give two sentences, or --task NAME")
    if choose and task is None:
        raise stages.ContextError("--choose needs rated pairs: give --task sts-b-dev")
    if explain and not sentences:
        raise stages.ContextError("--explain needs two sentences")
    if not all(sentence.strip() for sentence in sentences or ()):
        raise stages.ContextError("a sentence is empty: give two sentences")
    from likewise.evaluation.registry import rated_task

    options, progress = stages.read_sections(assignments or (), preset), Progress()
    rated = rated_task(task).pairs(data) if task is not None else None
    progress.tell("opening the workspace")
    origin = stages.open_origin(work, options["score"], options["selection"], progress)
    progress.tell(f"scored by {origin.about}")
    if rated is not None:
        _score_task(rated, str(task), origin, work if choose else None)
    elif sentences:
        _score_pair(sentences[0], sentences[1], origin, explain)


def _score_task(rated: RatedPairs, task: str, origin: stages.Origin, chosen_for: Path | None) -> None:
    """Print the agreement with ratings; with a workspace, choose its weights by them and record them there."""
    from likewise.context.weights import WEIGHTS
    from likewise.evaluation.pairs import correlations

    pairs, count = list(zip(rated.first, rated.second, strict=True)), counted(len(rated.gold), "pair")
    if chosen_for is not None:
        chosen, values = origin.choose(pairs, rated.gold, f"{task}, {count}")
        chosen.save(chosen_for / WEIGHTS)
        typer.echo(f"{chosen_for / WEIGHTS}: weights {chosen.values}")
    else:
        values = origin(pairs)
    cosines = origin.cosines(pairs) if origin.reads_contexts else None
    for name, scores in {task: values, "cosine of the encoder alone": cosines}.items():
        if scores is not None:
            spearman, pearson = correlations(scores, rated.gold)
            typer.echo(f"{name}: Spearman {spearman:.2f}, Pearson {pearson:.2f} on {count}")


def _score_pair(first: str, second: str, origin: stages.Origin, explain: bool) -> None:
    """Print the similarity of two sentences, and the contexts that decided if asked to."""
    deciding = origin.explain(first, second) if explain else []  # or how it could be explained
    cosines = origin.cosines([(first, second)]) if origin.reads_contexts else None
    cosine = "" if cosines is None else f"  (cosine of the encoder: {cosines[0]:.4f})"
    typer.echo(f"{origin([(first, second)])[0]:.4f}{cosine}")
    if explain:
        _show_deciding(deciding)


def _show_deciding(contexts: list[Deciding]) -> None:
    """Print the contexts that raise a similarity most, and the contexts that lower it most."""
    listed = contexts[:_LISTED] + [context for context in contexts[_LISTED:][-_LISTED:] if context.part < 0]
    typer.echo("adds     first   second  fit to this context ([...] marks the gap)")
    for context in listed:
        # The ends that are far from the gap are cut off.
        left = textwrap.shorten(context.left[::-1], _SIDE, placeholder="...")[::-1]
        right = textwrap.shorten(context.right, _SIDE, placeholder="...")
        typer.echo(f"{context.part:+.4f}  {context.fits[0]:+.2f}   {context.fits[1]:+.2f}   {left} [...] {right}")
    if len(contexts) > len(listed):
        typer.echo(f"({counted(len(contexts) - len(listed), 'other context')} not shown)")


@typed
def harvest(
    work: Work,
    out: Annotated[
        Optional[Path], typer.Option(help="Path to the folder of the shards; by default it is inside the workspace.")
    ] = None,
    shard: Annotated[str, typer.Option(help="Share of this machine, as NUMBER/MACHINES.")] = "1/1",
    preset: KindOfModels = "frozen",
    assignments: Set = None,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Whether to start again and replace earlier work.")
    ] = False,
) -> None:
    """Score pairs of the corpus and write them as Parquet shards; a stopped run is resumed."""
    sections = stages.read_sections(assignments or (), preset)
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
        typer.echo(f"{result.path}: the shards of part {shard} are complete; the shards of other machines are missing")
        return
    splits = ", ".join(f"{count:,} {name}" for name, count in counts["splits"].items())
    typer.echo(f"{result.path}: {counted(counts['pairs'], 'pair')} ({splits})")
    for kind, spread in counts["scores"].items():
        typer.echo(
            f"  {kind}: {counted(spread['pairs'], 'pair')}, similarity {spread['mean']:.3f} "
            f"({spread['5%']:.3f} to {spread['95%']:.3f})"
        )


@with_function(
    "context/surrogate.py:distill",
    options=SURROGATE.options(),
    config=True,
    texts={
        "harvest": "Path to the output of `likewise context harvest`.",
        "work": "Path to the workspace whose profiles are learnt instead of a harvest (--preset profiles).",
        "base": "Name or path of the base: a Hugging Face name, a folder, or bundled:NAME; with --pooling own, any "
        "saved encoder.",
    },
)
def _distill(arguments: Record) -> None:
    result = likewise.distill(**arguments)
    show_outcome(result, arguments["quiet"])
    if not arguments["quiet"] and (test := result.record.get("test")):
        typer.echo(f"test_mse: {test['test_mse']:.4g} ({test['test_mse_harvest']:.4g} on the scale of the harvest)")
