"""`likewise choose`: which base and which search for your own text."""

from __future__ import annotations

import json as plain_json
from typing import Annotated, Any

import typer

from likewise.cli.commands import calls
from likewise.cli.messages import table_of

_WIDE = 110
_SPEEDS_AND_SIZES = ("Passages/s", "Index MB", "Model MB")


@calls(
    "likewise:choose",
    arguments=("texts",),
    names={"bases": "base"},
    types={"queries": str},
    texts={
        "bases": "An encoder: a folder, a hub name, bundled:minilm; repeatable.",
        "queries": "JSONL with the fields query and passage: further queries, each with the id of its passage (the "
        "field _id of its row, or its file and line, notes.md:12). Or what writes some: the address of a server that "
        "speaks OpenAI's protocol, such as http://localhost:11434/v1, to which the passages are then sent; "
        "bundled:smollm2; or a folder or hub name of a causal model.",
    },
    leave_out=("min_words", "max_words", "deduplicate"),
)
def choose(
    choice: Any,
    json: Annotated[bool, typer.Option("--json", help="Print all figures as JSON.")] = False,
) -> None:
    """Print all systems, the best first, and the verdict."""
    if json:
        typer.echo(plain_json.dumps(choice.to_dict(), ensure_ascii=False, indent=2))
        return
    show_choice(choice)


def show_choice(choice: Any) -> None:
    """Print the table, the verdict, and where the page is."""
    from rich.console import Console

    chosen = next(i for i, one in enumerate(choice.ranked) if one.name == choice.chosen.name)
    console, columns, rows = Console(highlight=False), choice.columns, choice.rows
    if narrow := console.width < _WIDE:  # the names of systems would be broken
        left = [place for place, name in enumerate(columns) if name not in _SPEEDS_AND_SIZES]
        columns, *rows = ([row[place] for place in left] for row in (columns, *rows))
    console.print(table_of(columns, rows, bold=chosen))
    if narrow:
        typer.echo("Speeds and sizes: with --json, on the page, or on a wider screen.")
    typer.echo(f"Verdict: {choice.reason}.")
    if choice.judgement:
        typer.echo(f"{choice.judgement}.")
    if choice.folder:
        typer.echo(f"page: {choice.folder / 'report.html'}")
