"""`likewise index`, `search` and `serve`: indexes of your own text, and models over HTTP."""

from __future__ import annotations

import json as plain_json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from likewise.cli.commands import command_of
from likewise.errors import counted

if TYPE_CHECKING:
    from likewise.searching import Hit, Indexed

_TOLD = 3


def index_command() -> Any:
    """Return `likewise index`."""
    import likewise

    def show(found: Indexed) -> None:
        typer.echo(
            f"{counted(found.passages, 'passage')} of {counted(found.files, 'file')}: {found.encoded:,} encoded now, "
            f"{counted(found.added, 'file')} added, {found.removed:,} removed"
        )
        for reason in found.skipped[:_TOLD]:
            typer.echo(f"skipped: {reason}", err=True)
        if len(found.skipped) > _TOLD:
            typer.echo(f"skipped: {counted(len(found.skipped) - _TOLD, 'more file')}", err=True)

    return command_of(
        likewise.index,
        show,
        arguments=("texts",),
        texts={
            "out": "The folder of the index.",
            "model": "A model's folder, its hub name, or bundled:minilm; by default the model of the index.",
            "words": "Most words in a passage; by default 100, or fewer if the model reads less.",
        },
        leave_out=("min_words", "max_words", "deduplicate"),
        types={"out": Path, "model": str, "metadata": list[str]},
    )


def search_command() -> Any:
    """Return `likewise search`."""
    import likewise

    def show(hits: Sequence[Hit], json: bool) -> None:
        if json:
            typer.echo(plain_json.dumps([hit.to_dict() for hit in hits], ensure_ascii=False, indent=2))
        else:
            print_hits(hits)

    return command_of(
        likewise.search,
        show,
        arguments=("index", "query"),
        texts={
            "index": "The folder of the index.",
            "model": "A model to use instead of the index's own, for example if that has moved.",
        },
        types={"index": str, "model": str},
        added={"json": (bool, False, "Print the hits as a JSON array, with all their fields.")},
    )


def serve_command() -> Any:
    """Return `likewise serve`."""
    import likewise
    from likewise.serving import ServeOptions

    return command_of(
        likewise.serve,
        lambda _: None,
        arguments=("models",),
        types={"models": list[str], "index": list[str], "cors": list[str], "api_key_file": Path},
        options=ServeOptions(),
    )


def print_hits(hits: Sequence[Hit]) -> None:
    """Print hits with their places, and their best sentences in bold."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    if not hits:
        console.print("Nothing found.")
    for rank, hit in enumerate(hits, start=1):
        head = Text.assemble((f"{rank:>2}. ", "dim"), (hit.place, "cyan"), (f"  {hit.title}" if hit.title else "", ""))
        console.print(head.append(f"  {hit.score:.4f}", "dim"), soft_wrap=True)
        before, sentence, after = hit.parts
        console.print(Padding(Text.assemble(before, (sentence, "bold"), after), (0, 0, 1, 4)))
