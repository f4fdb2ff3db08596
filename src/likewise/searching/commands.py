"""`likewise index`, `search`, `choose`, `duplicates` and `serve`: search of your own text, and models over HTTP."""

import json as plain_json
import sys
import unicodedata
from typing import TYPE_CHECKING, Annotated

import typer
from typer import Option

import likewise
from likewise.cli.from_function import with_function
from likewise.cli.groups import typed
from likewise.cli.messages import table_of
from likewise.cli.shared_options import Precisions, ReplaceOption, end_partial, keep_export
from likewise.errors import counted, printable
from likewise.runs.whole_files import Record
from likewise.searching.serve.serve_options import ServeOptions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from likewise.searching.choose import Choice
    from likewise.searching.duplicates.duplicates import Duplicates, NearPair
    from likewise.searching.index.index_update import Indexed
    from likewise.searching.query.hit import Hits

_SPEEDS_AND_SIZES = ("Passages/s", "Index MB", "Model MB")
_NAMED = 5  # copies of a hit that are named
_REASONS = {
    "negation": "a negation",
    "numbers": "a number",
    "opposites": "opposite words",
    "names": "another name",
    "order": "the order of their words",
    "the rest": "the text without their common sentences",
    "other words": "too few words in common",
}
_INDENT = 10
_ENOUGH = 30
"""Texts; pairs of fewer tell nothing."""
_USUAL = 0.1
"""A threshold that is no further above the cosines of any two texts tells nothing."""


@typed
@with_function(
    "searching/index/index_update.py:index",
    arguments=["texts"],
    kinds={"precision": Precisions},
    texts={
        "model": "Path or name of the model: a folder, a hub name, bundled:minilm or bundled:mpnet; by default the "
        "model of the index.",
        "metadata": "Names of the fields of rows to store with the passages for filters; by default every field whose "
        "values are numbers, short texts or Booleans.",
        "approximate": "Minimum number of passages for which an approximate index of the vectors is built.",
        "pipeline": "Options of a search's Pipeline, as JSON or as a path to a TOML file; by default the index's own, "
        "or the weights measured in docs/guides/search.md.",
        "precision": "Precision of the passages' vectors; by default the index's precision, or fp32 for a new index. "
        "close selects bfloat16 if the cosine of each vector with its float32 version stays above 0.999.",
    },
)
def index(arguments: Record) -> None:
    """Index your own text for search, or bring an index up to date."""
    indexed = likewise.index(**arguments)
    if not arguments["quiet"]:
        _show_indexed(indexed)
    if arguments.get("model"):
        keep_export(arguments["model"], arguments["quiet"])
    end_partial(bool(indexed.unread))


def _show_indexed(indexed: "Indexed") -> None:
    there = f"{counted(indexed.passages, 'passage')} of {counted(indexed.files, 'file')}"
    if indexed.encoded or indexed.added or indexed.removed:
        there += (
            f": {indexed.encoded:,} encoded now, {counted(indexed.added, 'file')} added, {indexed.removed:,} removed"
        )
    else:
        there += ": up to date"
    typer.echo(there)


@typed
@with_function(
    "searching/search_index.py:search",
    arguments=["index", "query"],
    names={"k": "-k"},
    texts={
        "index": "Path to the index.",
        "query": "Text of the query: a question, a sentence, or words. In a query of a few words, passages with a "
        "quoted phrase come first, and a word preceded by a hyphen, as in 'pump -gas', excludes passages.",
        "by": "Unit of the results; 'document' lists each document (a row, an article or a file) once, with its best "
        "passage.",
        "where": 'Condition on id, file, line, title, text and the fields of rows, as in SQL: "year >= 2020 AND '
        "file LIKE '%.md'\". A date covers the whole day: \"day <= '2024-05-01'\"; a list matches if it contains the "
        "value: \"tags = 'a'\".",
        "model": "Path or name of a model to use instead of the index's own, for example if the model has been moved.",
        "pipeline": 'Options of a Pipeline, such as {"neighbours": 0}, or a path to a TOML file, which override '
        "the options of the index.",
    },
)
def search(
    arguments: Record,
    *,
    json: Annotated[
        bool,
        Option(
            "--json",
            help="Whether to print the hits as JSON with all their fields, and the interpretation of the query.",
        ),
    ] = False,
    explain: Annotated[
        bool, Option("--explain", help="Whether to show the contribution of each part of the search to each hit.")
    ] = False,
) -> None:
    """Find the passages of an index that best match a query."""
    hits = likewise.search(**arguments)
    if json:
        print_json(hits.to_dict())
    else:
        print_hits(hits, explain, arguments["offset"])


@typed
@with_function(
    "searching/choose/choice_flow.py:choose",
    arguments=["texts"],
    names={"bases": "--base"},
    texts={
        "texts": "Paths to the text: files, folders, or patterns, as in `index`.",
        "bases": "Path or name of a base: a folder, a hub name, or bundled:minilm; repeatable.",
    },
)
def choose(
    arguments: Record, *, json: Annotated[bool, Option("--json", help="Whether to print all figures as JSON.")] = False
) -> None:
    """Find the best base and the best search for your own text, without labels."""
    choice = likewise.choose(**arguments)
    if json and not arguments["quiet"]:
        print_json(choice.to_dict())
    elif not arguments["quiet"]:
        show_choice(choice)


def show_choice(choice: "Choice") -> None:
    """Print the table, the verdict, and where the page is."""
    from rich.console import Console

    chosen = next(i for i, system in enumerate(choice.ranked) if system.name == choice.chosen.name)
    # With all of them, the names of systems would be broken.
    left = [place for place, name in enumerate(choice.columns) if name not in _SPEEDS_AND_SIZES]
    columns, *rows = ([row[place] for place in left] for row in (choice.columns, *choice.rows))
    Console(highlight=False, emoji=False).print(table_of(columns, rows, bold=chosen))
    typer.echo("Speeds and sizes: with --json, or on the page.")
    typer.echo(f"Verdict: {choice.reason}.")
    if choice.judgement:
        typer.echo(f"{choice.judgement}.")
    if choice.folder:
        typer.echo(f"page: {choice.folder / 'report.html'}")


@typed
@with_function(
    "searching/duplicates/duplicates.py:duplicates",
    arguments=["texts"],
    kinds={"overwrite": ReplaceOption},
    texts={"model": "Path or name of a model: a folder, a hub name, or bundled:minilm."},
)
def duplicates(arguments: Record) -> None:
    """Find texts with the same meaning as an earlier text."""
    from likewise.searching.duplicates.duplicates import duplicates as find_duplicates
    from likewise.searching.duplicates.duplicates import left_out_path

    result = find_duplicates(**arguments)
    if not arguments["quiet"]:
        _show_duplicates(result)
        if (keep_one := arguments.get("keep_one")) is not None:
            left_out = f"{counted(result.texts - result.kept, 'duplicate')} in {left_out_path(keep_one)}"
            typer.echo(f"Written: {result.kept:,} in {keep_one}, {left_out}")
    end_partial(result.is_partial)


@typed
@with_function("searching/serve/start.py:serve", options=ServeOptions(), arguments=["models"])
def serve(arguments: Record) -> None:
    """Serve models and indexes over HTTP, with an OpenAI-compatible API for embeddings."""
    import logging

    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    likewise.serve(**arguments)


def print_json(value: object) -> None:
    """Print a value as JSON, with escapes for control characters and characters outside the output's encoding."""
    encoding = sys.stdout.encoding or "utf-8"

    def escaped(char: str) -> str:
        if char.isascii() or (unicodedata.category(char) != "Cc" and char.encode(encoding, "ignore")):
            return char
        return plain_json.dumps(char)[1:-1]

    typer.echo("".join(map(escaped, plain_json.dumps(value, ensure_ascii=False, indent=2))))


def print_hits(hits: "Hits", explain: bool = False, offset: int = 0) -> None:
    """Print hits with their places, their best sentences in bold, and with the parts of their scores if asked to."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False, emoji=False)

    def indented(text: Text, below: int = 0) -> None:
        if console.is_terminal:
            console.print(Padding(text, (0, 0, below, 4)))
        else:  # for another program: lines as they are
            console.print(
                *(Text("    ") + line for line in text.split()), sep="\n", end="\n" * (1 + below), soft_wrap=True
            )

    for line in hits.told:
        console.print(Text(printable(line), "yellow"), soft_wrap=True)
    if not hits:
        console.print("Nothing found.")
    for rank, hit in enumerate(hits, start=offset + 1):
        head = Text.assemble(
            (f"{rank:>2}. ", "dim"),
            (printable(hit.place), "cyan"),
            (f"  {printable(hit.title)}" if hit.title else "", ""),
        )
        console.print(
            head.append(f"  score {hit.score:.2f}" if hit.scores else f"  score {hit.score:.4f}", "dim"), soft_wrap=True
        )
        if explain:
            indented(Text(hit.explanation, "dim"))
        if hit.also:
            more = f" and {len(hit.also) - _NAMED:,} more" if len(hit.also) > _NAMED else ""
            also = f"also: {', '.join(map(printable, hit.also[:_NAMED]))}{more}"
            indented(Text(also, "dim"))
        before, sentence, after = map(printable, hit.parts)
        indented(Text.assemble(before, (sentence, "bold"), after), below=1)
    if hits:
        console.print(Text(_scale(hits[0], explain), "dim"), soft_wrap=True)


def _scale(hit: "likewise.Hit", explained: bool) -> str:
    """Explain the scores of hits like this one."""
    if hit.scores:
        text = "Scores are z-scores, summed over all parts of the search"
        return f"{text}." if explained else f"{text}; --explain shows each part."
    return (
        "Scores are cosines of query and passage."
        if hit.similarity is not None
        else "Scores are BM25 scores of the common words."
    )


def _show_duplicates(result: "Duplicates") -> None:
    """Print counts, and pairs near the threshold to judge it by."""
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, emoji=False)

    def show(heading: str, pairs: "Sequence[NearPair]") -> None:
        if not pairs:
            return
        console.print(Text(f"\n{heading}", "bold"))
        for pair in pairs:
            why = f"({_REASONS[pair.reason]})  " if pair.reason else ""
            console.print(Text.assemble((f"  {pair.cosine:.3f}  ", "cyan"), _shortened(pair.kept, console)))
            console.print(Text.assemble((f"         {why}", "dim"), _shortened(pair.text, console, len(why))))

    repeated = f"{counted(result.exact, 'exact duplicate')}, {counted(result.near, 'near duplicate')}"
    if result.empty:
        repeated += f", {result.empty:,} are empty"
    console.print(f"{counted(result.texts, 'text')}: {repeated}; {result.kept:,} remain", soft_wrap=True)
    show(f"Just above the threshold of {result.threshold:g}: duplicates", result.above)
    show("Just below the threshold: no duplicates", result.below)
    show("Above the threshold, but distinguished by their words", result.apart)
    if result.reasons:
        reasons = ", ".join(f"{count:,} by {_REASONS[reason]}" for reason, count in result.reasons.items())
        console.print(f"\nDistinguished by their words: {reasons}")
    usual = f"one in a hundred random pairs has a cosine of {result.at_random:.2f} or more"
    if result.texts >= _ENOUGH:
        low = result.at_random >= result.threshold - _USUAL
        console.print(
            f"\nWith this encoder, {usual}: the threshold is too low" if low else f"\nFor comparison: {usual}"
        )
    if result.language != "English":
        what = f"Most texts are {result.language}" if result.language else "The language of the texts is not known"
        console.print(
            f"{what}: without a list of its antonyms, only texts with the same words, except for misspellings, are "
            f"duplicates"
        )


def _shortened(text: str, console: "Console", taken: int = 0) -> str:
    """Return the beginning of a text that fits on a line of the terminal."""
    width = max(30, console.width - _INDENT - taken)
    return printable(text if len(text) <= width else f"{text[: width - 1]}…")
