"""`likewise choose`: which base and which search for your own text."""

import json as plain_json
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer import Argument, Option

import likewise
from likewise.cli.groups import typed
from likewise.cli.messages import table_of
from likewise.cli.shared_options import (
    WHOLE_TEXTS,
    LanguageOption,
    OverwriteOption,
    QuietOption,
    ResumeOption,
    flag,
    given,
    with_corpus,
)

_BASES = ["bundled:minilm"]
_WIDE = 110
_SPEEDS_AND_SIZES = ("Passages/s", "Index MB", "Model MB")


@typed
@with_corpus(without=WHOLE_TEXTS)
def choose(
    *,
    texts: Annotated[list[Path], Argument(help="Files, folders, or patterns, as `index` takes them.")],
    bases: Annotated[
        list[str],
        Option("--base", help="An encoder: a folder, a hub name, bundled:minilm; repeatable."),
    ] = _BASES,
    adapt: Annotated[
        bool,
        flag(
            "--adapt",
            "Also adapt each base to the text, as `likewise adapt` does, without what was taken out of it.",
        ),
    ] = False,
    reranker: Annotated[
        Optional[str],
        Option(
            help="A cross-encoder of sentence-transformers, a folder or a hub name: each pipeline is also measured "
            "with its first passages in the order that the cross-encoder gives them."
        ),
    ] = None,
    queries: Annotated[
        Optional[str],
        Option(
            help="JSONL with the fields query and passage: further queries, each with the id of its passage (the "
            "field _id of its row, or its file and line, notes.md:12). Or what writes some: the address of a server "
            "that speaks OpenAI's protocol, such as http://localhost:11434/v1, to which the passages are then sent; "
            "bundled:smollm2; or a folder or hub name of a causal model."
        ),
    ] = None,
    queries_model: Annotated[
        Optional[str],
        Option(help="The name of the model on that server; it may be left out if the server has only one."),
    ] = None,
    queries_for: Annotated[int, Option(help="The most passages that queries are written for.")] = 200,
    judgements: Annotated[
        Optional[str],
        Option(
            help="Your own judgements: a line for each with the query's id, the document's id and a grade, with tabs "
            "between them. A "
            "document is called by the field _id of its row, or by its file."
        ),
    ] = None,
    queries_file: Annotated[
        Optional[str], Option(help="The queries that were judged: JSONL with the fields _id and text.")
    ] = None,
    out: Annotated[
        Optional[str], Option(help="The folder for the page and the indexes; without one nothing is kept.")
    ] = None,
    language: LanguageOption = "English",
    passages: Annotated[
        int,
        Option(help="The most passages that are searched; of a longer text, parts are drawn at random."),
    ] = 3000,
    minutes: Annotated[float, Option(help="About how many minutes each adaptation may take.")] = 15.0,
    seed: Annotated[int, Option(help="Fixes the queries and passages that are drawn.")] = 1,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
    json: Annotated[bool, flag("--json", "Print all figures as JSON.")] = False,
    corpus_options: Any,
) -> None:
    """Find the base and the search that are best for your own text, without labels."""
    arguments = given(locals())
    del arguments["json"]
    choice = likewise.choose(**arguments)
    if quiet:
        return
    if json:
        typer.echo(plain_json.dumps(choice.to_dict(), ensure_ascii=False, indent=2))
    else:
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
