"""The files of a corpus, and how each is read."""

import glob
import hashlib
import os
import shutil
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from likewise.corpus.corpus_options import TEXT, CorpusError, CorpusOptions, Spec
from likewise.corpus.counts import CorpusReport, shortened
from likewise.corpus.files import COMPRESSED, check_ends, format_suffix, is_folder
from likewise.corpus.folders import Listing, list_folder, nothing_in
from likewise.corpus.formats import Source
from likewise.corpus.hub_rows import HUB, hub_rows
from likewise.corpus.known_formats import format_named, format_of, readable
from likewise.corpus.rows import json_type, read_rows
from likewise.data.bundled import wiki_sample_path
from likewise.errors import is_utf8, not_utf8
from likewise.runs.cache import cached, made_in_cache
from likewise.runs.progress import Progress

_NAMES = 30
"""Number of fields that a message names."""
_CONTROL = bytes({*range(32), 127} - {*b"\t\n\v\f\r\x1b\b"})
_BINARY = {
    b"PK\x03\x04": "a zip file",
    b"ARROW1": "an Arrow file",
    b"7z\xbc\xaf": "a 7z file",
    b"\xd0\xcf\x11\xe0": "an Office file from before 2007, which must be saved as .docx or .pptx",
    b"{\\rtf": "Rich Text, which must be saved as .docx or .odt",
}
_PIPES: dict[tuple[int, int], Path] = {}
"""The files of the pipes that this process has read, by device and inode: a pipe can be read only once."""


def find_files(spec: Spec, exclude: Sequence[str] = (), listings: list[Listing] | None = None) -> list[Path]:
    """Return the files that a spec names, sorted by path and without duplicates.

    Args:
        exclude: Patterns of excluded files in folders.
        listings: List that receives the listing of each folder.
    """
    entries = [spec] if isinstance(spec, str | PathLike) else list(spec)
    if not entries:
        raise CorpusError("no corpus was given: give a path, a glob pattern, or a list of these")
    files: dict[Path, Path] = {}
    for entry in entries:
        for path in _expand(str(entry), exclude, listings if listings is not None else []):
            files.setdefault(path.resolve(), path)
    return sorted(files.values())


def find_sources(
    spec: Spec, options: CorpusOptions, progress: Progress | None = None, report: CorpusReport | None = None
) -> list[Source]:
    """Return the files of a spec with their formats, detected from the beginning of each file.

    Args:
        progress: Progress of converted documents, with a line about skipped files of a folder. Without it, skipped
            files are errors, as are unreadable files that were named.
        report: Report of these lines and of notes about the files.
    """
    report = report if report is not None else CorpusReport()
    listings, sources, errors = list[Listing](), list[Source](), list[str]()
    files = find_files(spec, options.exclude, listings)
    sizes = {path: path.stat().st_size for path in files if (named := format_named(path)) and named.holds == "pages"}
    display, done = progress if progress is not None and sizes else Progress(quiet=True), 0
    with display.bar("reading documents", sum(sizes.values()), unit="bytes") as bar:
        for path in files:
            try:
                sources.append(open_source(path, options, report))
            except CorpusError as reason:
                if progress is None or not any(path.is_relative_to(listing.folder) for listing in listings):
                    raise
                errors.append(str(reason))
            done += sizes.get(path, 0)
            bar.update(done)
    if not sources:
        raise CorpusError(errors[0])
    report.failed += len(errors) + sum(len(listing.unread) for listing in listings)
    for sentence in [
        *errors,
        *(line for listing in listings for line in (*listing.unread.values(), *listing.left_out)),
    ]:
        report.note(sentence)
    if progress is not None:
        tell(report, progress, what="skipped")
    if options.field is not None and not any(source.holds == "rows" for source in sources):
        raise CorpusError(
            f"{sources[0].path}: field {options.field!r} was given, but no file is JSONL, CSV or Parquet: omit it"
        )
    return sources


def tell(report: CorpusReport, progress: Progress, since: int = 0, what: str = "reading") -> None:
    """Show the first notes of a report, and how many more there are.

    Args:
        since: Number of notes that have been shown before.
        what: Word before each note.
    """
    for sentence in shortened(report.messages[since:]):
        progress.tell(f"{what}: {sentence}")


def check_name(path: Path) -> None:
    """Raise a CorpusError for a file whose name is not UTF-8: no record could name it."""
    if not is_utf8(str(path)):
        readable_name = os.fsencode(path).decode("utf-8", "replace")
        raise CorpusError(f"{readable_name}: the name of this file or its folder {not_utf8(str(path))}")


def open_source(path: Path, options: CorpusOptions, report: CorpusReport | None = None) -> Source:
    """Return a file with its format, detected from its beginning; a document is converted, if the cache has no text.

    Args:
        path: Path to the file.
        options: Options of the corpus.
        report: Report of the source.

    Raises:
        CorpusError: If the file cannot be read with these options; the message names the cure.
    """
    check_name(path)
    if options.field is None and path.suffix == ".jsonl" and path.parent.parent.name == "hub":  # made by `hub_rows`
        options = options.updated(field=path.stem)
    source = Source(path, options)
    format = format_of(source)
    if format.holds == "pages" and path.suffix.lower() in COMPRESSED and format_suffix(path) in format.suffixes:
        raise CorpusError(
            f"{path}: a {format_suffix(path)} file cannot be read while it is compressed: unpack it first"
        )
    if format.is_text:
        refuse_binary(path, source.head)
    source = replace(source, format=format)
    if options.split == "line" and format.holds == "pages":
        raise CorpusError(f"{path}: split 'line' applies to plain text, and this file is a {path.suffix.lower()} file")
    format.prepare(source)
    if format.holds == "rows" or (format.has_rows and options.field is not None):
        source = _of_rows(source)
    if options.split == "line" and source.holds != "text":
        kind = source.kind
        raise CorpusError(f"{path}: split 'line' applies to plain text, and this file is {kind}, which is always prose")
    return replace(source, report=report if report is not None else CorpusReport())


def refuse_packed(path: Path, head: bytes) -> None:
    """Raise a CorpusError for a file whose first bytes are an archive's or a document's; the message names its kind."""
    for magic, what in _BINARY.items():
        if head.startswith(magic):
            raise CorpusError(f"{path}:1: this is {what}: give {readable()}")


def refuse_binary(path: Path, head: bytes) -> None:
    """Check that the beginning of a file is text.

    Raises:
        CorpusError: If it is not; the message names its kind and the supported formats.
    """
    refuse_packed(path, head)
    control = len(head) - len(head.translate(None, _CONTROL))
    if b"\0" in head or control > 0.1 * len(head):
        line = head[: max(0, head.find(0))].count(b"\n") + 1
        what = "a null byte" if b"\0" in head else "control characters"
        raise CorpusError(f"{path}:{line}: this is a binary file, which contains {what}: give {readable()}")


def _expand(entry: str, exclude: Sequence[str], listings: list[Listing]) -> list[Path]:
    if entry.startswith("bundled:"):
        if entry != "bundled:wiki-sample":
            raise CorpusError(f"unknown corpus {entry!r}: the only bundled corpus is bundled:wiki-sample")
        return [wiki_sample_path()]
    if entry.startswith(HUB):
        return [hub_rows(entry)]
    path = Path(entry).expanduser()
    if is_folder(path):
        listing = list_folder(path, exclude)
        if not listing.files:
            raise CorpusError(nothing_in(path, listing))
        listings.append(listing)
        return listing.files
    if path.is_fifo():
        return [_read_pipe(path)]
    if path.exists():
        check_ends(path)
        return [path]
    if not glob.has_magic(entry):
        raise CorpusError(f"{entry}: no such file: check the path (it is relative to {Path.cwd()})")
    # Not Path.glob: it refuses an absolute pattern.
    matches = [Path(name) for name in glob.glob(str(path), recursive=True)]  # noqa: PTH207
    files = [match for match in matches if match.is_file()]
    if not files:
        raise CorpusError(f"{entry}: no file matches this pattern: check it (it is relative to {Path.cwd()})")
    return files


def _read_pipe(path: Path) -> Path:
    """Copy a pipe, as of a shell's <(...), into the cache, and return the file: its name is its content's hash."""
    key = path.stat().st_dev, path.stat().st_ino
    if key not in _PIPES:
        digest = hashlib.blake2b(digest_size=16)
        with tempfile.NamedTemporaryFile(dir=made_in_cache("pipes")) as copy, path.open("rb") as pipe:
            while piece := pipe.read(1 << 20):
                digest.update(piece)
                copy.write(piece)
            copy.flush()
            # The same text again keeps its time, and so its prepared corpus.
            folder = cached("pipes", digest.hexdigest(), lambda made: shutil.copyfile(copy.name, made / "text"))
            _PIPES[key] = folder / "text"
    return _PIPES[key]


def _of_rows(source: Source) -> Source:
    """Return a source of rows with the field that contains their texts.

    Raises:
        CorpusError: It is not clear which field that is, or there is no row.
    """
    source = replace(source, contents="rows")
    number, row = next(read_rows(source), (0, None))
    if row is None:
        if source.report.notes:
            raise CorpusError(source.report.notes[0])
        return replace(source, options=source.options.updated(field=source.options.field or TEXT))
    if source.options.field is not None:
        return source
    if isinstance(row.get("sections"), list):
        return replace(source, contents="articles")
    if isinstance(row.get(TEXT), str):
        return replace(source, options=source.options.updated(field=TEXT))
    names = [name for name, value in row.items() if isinstance(value, str)]
    if len(names) == 1:
        reason = f"no field is called {TEXT}: if {names[0]} contains the text, give --field {names[0]}"
    elif names:
        reason = f"the field with the text is ambiguous: give --field NAME, one of {_listed(names)}"
    else:
        fields = _listed(f"{name} ({json_type(value)})" for name, value in row.items()) or "none"
        reason = f"no field of this row is a string (its fields: {fields}): give a file with one text per row"
    raise CorpusError(f"{source.path}:{number}: {reason}")


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    return ", ".join(every[:_NAMES] + [f"{len(every) - _NAMES:,} more"] * (len(every) > _NAMES))
