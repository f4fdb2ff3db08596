"""`likewise choose`: which base and which search for your own text."""

import json as plain_json
from typing import TYPE_CHECKING, Annotated

import typer

import likewise
from likewise.cli.from_function import with_function
from likewise.cli.groups import typed
from likewise.cli.messages import table_of
from likewise.cli.shared_options import WHOLE_TEXTS, flag, with_corpus
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from likewise.choice import Choice

_WIDE = 110
_SPEEDS_AND_SIZES = ("Passages/s", "Index MB", "Model MB")


@typed
@with_corpus(without=WHOLE_TEXTS)
@with_function(
    "choice/choice_flow.py:choose",
    arguments=["texts"],
    names={"bases": "--base"},
    texts={
        "texts": "Files, folders, or patterns, as `index` takes them.",
        "bases": "An encoder: a folder, a hub name, bundled:minilm; repeatable.",
    },
)
def choose(arguments: Record, *, json: Annotated[bool, flag("--json", "Print all figures as JSON.")] = False) -> None:
    """Find the base and the search that are best for your own text, without labels."""
    choice = likewise.choose(**arguments)
    if json and not arguments["quiet"]:
        typer.echo(plain_json.dumps(choice.to_dict(), ensure_ascii=False, indent=2))
    elif not arguments["quiet"]:
        show_choice(choice)


def show_choice(choice: "Choice") -> None:
    """Print the table, the verdict, and where the page is."""
    from rich.console import Console

    chosen = next(i for i, system in enumerate(choice.ranked) if system.name == choice.chosen.name)
    console, columns, rows = Console(highlight=False, emoji=False), choice.columns, choice.rows
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
