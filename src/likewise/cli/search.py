"""`likewise index`, `search` and `serve`: indexes of your own text, and models over HTTP."""

from __future__ import annotations

import json as plain_json
from typing import Annotated, Any

import typer

from likewise.cli.commands import calls
from likewise.errors import counted, printable

_TOLD = 3


@calls(
    "likewise:index",
    arguments=("texts",),
    texts={
        "model": "A model's folder, its hub name, bundled:minilm or bundled:mpnet; by default the model of the index."
    },
    leave_out=("min_words", "max_words", "deduplicate"),
)
def index(found: Any) -> None:
    """Print what the index holds, and the first files that were skipped."""
    there = f"{counted(found.passages, 'passage')} of {counted(found.files, 'file')}"
    if found.encoded or found.added or found.removed:
        there += f": {found.encoded:,} encoded now, {counted(found.added, 'file')} added, {found.removed:,} removed"
    else:
        there += ": already finished, nothing done"
    typer.echo(there)
    if found.chosen:
        typer.echo(f"weights of the search: {found.chosen}")
    for reason in found.skipped[:_TOLD]:
        typer.echo(f"skipped: {printable(reason)}", err=True)
    if len(found.skipped) > _TOLD:
        typer.echo(f"skipped: {counted(len(found.skipped) - _TOLD, 'more file')}", err=True)


@calls(
    "likewise:search",
    arguments=("index", "query"),
    types={"index": str},
    texts={
        "index": "The folder of the index.",
        "model": "A model to use instead of the index's own, for example if that has moved.",
    },
)
def search(
    hits: Any,
    json: Annotated[
        bool, typer.Option("--json", help="Print the hits as a JSON array, with all their fields.")
    ] = False,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show what each part of the search gave each hit.")
    ] = False,
) -> None:
    """Print hits."""
    if json:
        typer.echo(plain_json.dumps([hit.to_dict() for hit in hits], ensure_ascii=False, indent=2))
    else:
        print_hits(hits, explain)


@calls("likewise:serve", arguments=("models",), options="likewise.serving:ServeOptions")
def serve(stopped: None) -> None:
    """Print nothing: the service has stopped."""


def print_hits(hits: Any, explain: bool = False) -> None:
    """Print hits with their places, their best sentences in bold, and with the parts of their scores if asked to."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    if not hits:
        console.print("Nothing found.")
    for rank, hit in enumerate(hits, start=1):
        head = Text.assemble(
            (f"{rank:>2}. ", "dim"),
            (printable(hit.place), "cyan"),
            (f"  {printable(hit.title)}" if hit.title else "", ""),
        )
        console.print(
            head.append(f"  score {hit.score:.2f}" if hit.scores else f"  score {hit.score:.4f}", "dim"), soft_wrap=True
        )
        if explain:
            console.print(Padding(Text(hit.explanation, "dim"), (0, 0, 0, 4)))
        before, sentence, after = map(printable, hit.parts)
        console.print(Padding(Text.assemble(before, (sentence, "bold"), after), (0, 0, 1, 4)))
    if hits:
        console.print(Text(_scale(hits[0], explain), "dim"))


def _scale(hit: Any, explained: bool) -> str:
    """Explain the scores of hits like this one."""
    if hit.scores:
        told = "Scores: standard deviations above the average passage, all parts of the search together"
        return f"{told}." if explained else f"{told}; --explain shows each part."
    return (
        "Scores: cosines of query and passage."
        if hit.similarity is not None
        else "Scores: BM25, of the words in common."
    )
