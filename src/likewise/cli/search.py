"""`likewise index`, `search` and `serve`: indexes of your own text, and models over HTTP."""

import json as plain_json
import sys
import unicodedata
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer import Argument, Option

import likewise
from likewise.cli.groups import typed
from likewise.cli.shared_options import (
    WHOLE_TEXTS,
    EngineOption,
    LanguageOption,
    OverwriteOption,
    PrecisionOption,
    Precisions,
    QuietOption,
    ResumeOption,
    WorkersOption,
    end_partial,
    flag,
    given,
    with_corpus,
    with_options,
)
from likewise.errors import counted, printable
from likewise.serving.serve_options import ServeOptions

_TOLD = 5


@typed
@with_corpus(without=WHOLE_TEXTS)
def index(
    *,
    texts: Annotated[
        list[Path],
        Argument(
            help="Files, folders, or patterns: text, Markdown, JSONL, CSV, Parquet, articles, MediaWiki dumps. Of a "
            "folder, hidden files and other formats are left out."
        ),
    ],
    model: Annotated[
        Optional[str],
        Option(
            help="A model's folder, its hub name, bundled:minilm or bundled:mpnet; by default the model of the index."
        ),
    ] = None,
    out: Annotated[str, Option(help="The folder of the index.")],
    words: Annotated[
        Optional[int], Option(help="Most words in a passage; by default 180, or fewer if the model reads less.")
    ] = None,
    metadata: Annotated[
        Optional[list[str]],
        Option(
            help="Fields of rows to keep with their passages, for filters; by default all whose values are numbers, "
            "short texts, or true or false."
        ),
    ] = None,
    language: LanguageOption = "English",
    keep: Annotated[bool, flag("--keep", "Keep the passages of files and texts that are not named.")] = False,
    approximate: Annotated[
        int, Option(help="With this many passages or more, the index of the vectors is an approximate one.")
    ] = 200_000,
    pipeline: Annotated[
        Optional[str],
        Option(
            help="What a search does: options of a Pipeline, or a TOML file with them; by default that of the index, "
            "or the weights measured in docs/guides/search.md."
        ),
    ] = None,
    vectors_from: Annotated[
        Optional[str],
        Option(
            help="Another index by the same model, such as one that choose has made: the vectors of texts that it "
            "holds are taken from it."
        ),
    ] = None,
    engine: EngineOption = "auto",
    precision: Annotated[
        Optional[Precisions],
        Option(
            help="Precision of the passages' vectors; by default that of the index, and fp32 for a new index. close "
            "takes bfloat16 if the cosine of each vector with that in float32 stays above 0.999."
        ),
    ] = None,
    on: Annotated[
        Optional[str],
        Option(help="'ray', or the address of a Ray cluster, whose workers encode; this process reads and writes."),
    ] = None,
    workers: WorkersOption = None,
    quiet: QuietOption = False,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    corpus_options: Any,
) -> None:
    """Index your own text for search, or bring an index up to date."""
    found = likewise.index(**given(locals()))
    if not quiet:
        _show_indexed(found)
    end_partial(bool(found.unread))


def _show_indexed(found: Any) -> None:
    """Print what was done, and the first lines on what was left out."""
    there = f"{counted(found.passages, 'passage')} of {counted(found.files, 'file')}"
    if found.encoded or found.added or found.removed:
        there += f": {found.encoded:,} encoded now, {counted(found.added, 'file')} added, {found.removed:,} removed"
    else:
        there += ": already finished, nothing done"
    typer.echo(there)
    reasons = [*found.unread, *(reason for reason in found.skipped if reason not in found.unread)]
    for reason in reasons[:_TOLD]:
        what = "reading" if ": read as " in reason or ", and read as " in reason else "skipped"
        typer.echo(f"{what}: {printable(reason)}", err=True)
    if len(reasons) > _TOLD:
        typer.echo(f"skipped: {counted(len(reasons) - _TOLD, 'more line')} of this kind", err=True)


@typed
def search(
    *,
    index: Annotated[str, Argument(help="The folder of the index.")],
    query: Annotated[
        str,
        Argument(
            help="A question, a sentence, or words. A phrase in quotes must stand in a passage, and a word behind a "
            "hyphen, as in 'pump -gas', must not."
        ),
    ],
    k: Annotated[int, Option("-k", help="The number of passages, or documents, to find.")] = 10,
    offset: Annotated[int, Option(help="How many of the best are passed over, for further pages.")] = 0,
    by: Annotated[
        str, Option(help="'document' shows each document once, with its best passage: a row, an article or a file.")
    ] = "passage",
    vectors_only: Annotated[bool, flag("--vectors-only", "Search by meaning alone, not also by words.")] = False,
    words_only: Annotated[bool, flag("--words-only", "Search by words alone (BM25); the model is not loaded.")] = False,
    where: Annotated[
        Optional[str],
        Option(
            help='A condition on id, file, line, title, text and the fields of rows, as in SQL: "year >= 2020 AND '
            "file LIKE '%.md'\". A date is the whole day: \"day <= '2024-05-01'\"; a list has a member: \"tags = 'a'\"."
        ),
    ] = None,
    model: Annotated[
        Optional[str],
        Option(help="A model to use instead of the index's own, for example if that has moved."),
    ] = None,
    pipeline: Annotated[
        Optional[str],
        Option(
            help='Options of a Pipeline in place of the index\'s, such as {"neighbours": 0}, or a TOML file with them.'
        ),
    ] = None,
    reranker: Annotated[
        Optional[str],
        Option(help="A cross-encoder, by its folder or hub name, that puts the first passages in order."),
    ] = None,
    json: Annotated[
        bool, flag("--json", "Print the hits with all their fields, and what was made of the query.")
    ] = False,
    explain: Annotated[bool, flag("--explain", "Show what each part of the search gave each hit.")] = False,
) -> None:
    """Find the passages of an index that fit a query best."""
    hits = likewise.search(
        index,
        query,
        k,
        offset=offset,
        by=by,  # type: ignore[arg-type]  # checked there
        vectors_only=vectors_only,
        words_only=words_only,
        where=where,
        model=model,
        pipeline=pipeline,
        reranker=reranker,
    )
    if json:
        print_json(hits.to_dict())
    else:
        print_hits(hits, explain, offset)


@typed
@with_options("options", ServeOptions())
def serve(
    *,
    models: Annotated[
        list[str],
        Argument(
            help="Folders, hub names or bundled:minilm; NAME=MODEL gives a name, otherwise it is that of the folder."
        ),
    ],
    index: Annotated[
        Optional[list[str]],
        Option(
            help="Indexes to search; each was made by one of the models. NAME=FOLDER gives a name, otherwise it is "
            "that of the folder."
        ),
    ] = None,
    reranker: Annotated[
        Optional[str],
        Option(
            help="A cross-encoder, by its folder or hub name, for the requests to rerank; without one, they are "
            "answered by the tokens of a model."
        ),
    ] = None,
    host: Annotated[
        str, Option(help="The address to listen on; 0.0.0.0 is every address of this machine.")
    ] = "127.0.0.1",
    port: Annotated[int, Option(help="The port to listen on; 0 takes a free one.")] = 8080,
    api_key_file: Annotated[
        Optional[str], Option(help="A file with an API key on each line; a request must come with one of them.")
    ] = None,
    cors: Annotated[
        Optional[list[str]],
        Option(help="Origins whose pages may call the service, such as https://example.org."),
    ] = None,
    allowed_host: Annotated[
        Optional[list[str]],
        Option(
            help="Host names that requests may use for the service, besides host, localhost and IP addresses; * for "
            "any. Other names are refused, so that no web page can reach the service through a name of its own."
        ),
    ] = None,
    engine: EngineOption = "auto",
    precision: PrecisionOption = "fp32",
    quiet: QuietOption = False,
    options: Any,
) -> None:
    """Serve models and indexes over HTTP, with OpenAI's API for embeddings, until the process is stopped."""
    arguments = given(locals())
    likewise.serve(**arguments.pop("options"), **arguments)


def print_json(value: Any) -> None:
    """Print a value as JSON, with escapes for signs that a terminal obeys or the output's encoding does not have."""
    text = plain_json.dumps(value, ensure_ascii=False, indent=2)
    encoding = sys.stdout.encoding or "utf-8"
    typer.echo("".join(sign if sign == "\n" or _is_shown(sign, encoding) else _escaped(sign) for sign in text))


def _is_shown(sign: str, encoding: str) -> bool:
    if sign.isascii():
        return True
    try:
        sign.encode(encoding)
    except UnicodeEncodeError:
        return False
    return unicodedata.category(sign) != "Cc"


def _escaped(sign: str) -> str:
    return plain_json.dumps(sign)[1:-1]


def print_hits(hits: Any, explain: bool = False, offset: int = 0) -> None:
    """Print hits with their places, their best sentences in bold, and with the parts of their scores if asked to."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    with suppress(AttributeError, ValueError, OSError):  # no such stream, as in a test
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    console = Console(highlight=False)
    for line in hits.told:
        console.print(Text(printable(line), "yellow"))
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
            console.print(Padding(Text(hit.explanation, "dim"), (0, 0, 0, 4)))
        if hit.also:
            more = f" and {len(hit.also) - _TOLD:,} more" if len(hit.also) > _TOLD else ""
            also = f"also: {', '.join(map(printable, hit.also[:_TOLD]))}{more}"
            console.print(Padding(Text(also, "dim"), (0, 0, 0, 4)))
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
