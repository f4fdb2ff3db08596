"""`likewise context`: the pipeline of 'Sentence Similarity Based on Contexts', a verb a stage."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from likewise.cli.context_distill import DistillCommand, distill
from likewise.cli.context_origin import harvest, score
from likewise.cli.messages import clean_errors

context_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Sentence similarity based on contexts: index, train, and what is built on them.",
)

Work = Annotated[Path, typer.Option(help="The workspace: a folder that holds every stage.")]
Config = Annotated[Optional[Path], typer.Option(help="A TOML file with a section a stage.")]
Set = Annotated[
    Optional[list[str]],
    typer.Option("--set", help="One option, section.name=value; may be repeated, and outranks the file."),
]
Overwrite = Annotated[bool, typer.Option("--overwrite", help="Make anew what was made or begun with other options.")]


@context_app.callback()
def _context() -> None:
    """Sentence similarity based on contexts."""


@context_app.command("index")
@clean_errors
def index(
    work: Work,
    corpus: Annotated[
        list[str], typer.Option(help="Articles, a MediaWiki dump or plain text: a file or a glob; may be repeated.")
    ],
    config: Config = None,
    assignments: Set = None,
    overwrite: Overwrite = False,
) -> None:
    """Cut documents into chunks and index their words and bigrams."""
    from likewise.context.indexing import build_index
    from likewise.context.options import read_sections

    options = read_sections(config, assignments or ())["index"]
    record = build_index(work, corpus, options, overwrite=overwrite).record
    names = "documents", "chunks", "sentences", "contexts"
    typer.echo(f"{work / 'index'}: " + ", ".join(f"{record[name]:,} {name}" for name in names))


@context_app.command("train")
@clean_errors
def train(
    what: Annotated[Literal["discriminator", "generators", "all"], typer.Argument(help="Which models.")],
    work: Work,
    config: Config = None,
    assignments: Set = None,
    overwrite: Overwrite = False,
) -> None:
    """Train the coherence discriminator or the generators on the index; what was stopped goes on."""
    from likewise.context.discriminator_training import train_discriminator
    from likewise.context.generator_training import train_generators
    from likewise.context.options import read_sections

    options = read_sections(config, assignments or ())
    if what in ("discriminator", "all"):
        stage = train_discriminator(work, options["discriminator"], overwrite=overwrite)
        found = stage.record["held_out"]
        kinds = {"own sentence": "positive", "same document": "same_document", "other document": "other_document"}
        shares = [f"{name} {found[kind]:.1%}" for name, kind in kinds.items() if found[kind] is not None]
        accuracy = f"{found['accuracy']:.1%} on {found['examples']:,} examples"
        typer.echo(f"{stage.folder}: held-out accuracy {accuracy} ({', '.join(shares)})")
    if what in ("generators", "all"):
        stage = train_generators(work, options["generators"], overwrite=overwrite)
        shares = [f"{task} {value:.1f}" for task, value in stage.record["perplexity"].items()]
        typer.echo(f"{stage.folder}: held-out perplexity of a token: {', '.join(shares)}")


context_app.command("score")(score)
context_app.command("harvest")(harvest)
context_app.command("distill", cls=DistillCommand)(distill)
