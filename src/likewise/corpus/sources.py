"""The files of a corpus, and the format of each."""

import glob
import hashlib
import os
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from functools import partial
from os import PathLike
from pathlib import Path

from likewise.corpus.bundled import wiki_sample_path
from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.files import Tick, check_ends, format_suffix, read_head
from likewise.corpus.foreign import CONVERTED, DOCUMENTS, can_convert, converted, uninstalled
from likewise.corpus.lines_and_rows import MARKDOWN, READERS, Source, SourceKind
from likewise.errors import counted
from likewise.runs.cache import cache_folder, cached, made_in_cache
from likewise.runs.progress import Progress

Spec = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A path, a folder, a glob, `bundled:wiki-sample`, or a list of these."""

_JSON_SUFFIXES = (".jsonl", ".ndjson", ".json")
_FOLDER_SUFFIXES = (".txt", *MARKDOWN, ".text", ".rst", ".jsonl", ".ndjson", ".csv", ".tsv", ".parquet", ".xml")
"""Formats that are read of a folder, beside `DOCUMENTS`; code is text too, but not prose."""

_NO_PROSE = ("makefile", "dockerfile", "containerfile", "jenkinsfile", "vagrantfile", "gemfile", "procfile")
_CODE_BEGINS = (b"#!", b"<", b"{", b"[")
_TOLD = 3  # files that are left out, by name
_KINDS = 5  # endings of files that are left out
_READ = "plain text, Markdown, JSONL, CSV, Parquet, MediaWiki XML, HTML, a notebook, .docx, .pptx or .pdf"
_PARQUET = b"PAR1"
_BINARY = {
    b"PK\x03\x04": "a zip file",
    b"ARROW1": "an Arrow file",
    b"7z\xbc\xaf": "a 7z file",
    b"\xfd7zXZ": "an xz file",
    b"\xd0\xcf\x11\xe0": "an Office file of before 2007, which has to be saved as .docx or .pptx",
}


def find_files(spec: Spec) -> list[Path]:
    """Return the files that a spec names, sorted by path and without duplicates."""
    found: dict[Path, Path] = {}
    for entry in _entries(spec):
        for path in _expand(entry):
            found.setdefault(path.resolve(), path)
    return sorted(found.values())


def files_in(folder: Path, leave_out: Path | None = None) -> list[Path]:
    """Return the files in a folder and its subfolders, except hidden ones and those in the folder `leave_out`."""
    found: list[Path] = []
    for place, folders, names in os.walk(folder):
        here = Path(place)
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and (leave_out is None or (here / name).resolve() != leave_out.resolve())
        )
        found += (here / name for name in sorted(names) if not name.startswith("."))
    return found


def prose_of(files: Iterable[Path]) -> tuple[list[Path], str]:
    """Divide the files of a folder: those that are read, and a line that counts the others, "" if there are none.

    Text, Markdown, JSONL, CSV, TSV, Parquet and MediaWiki dumps are read, compressed or not, and text without an
    ending, such as README; notebooks, and with the extra `files` web pages, Word, PowerPoint and PDF files. JSON and
    code must be named to be read.
    """
    read: list[Path] = []
    others: Counter[str] = Counter()
    lacking: Counter[str] = Counter()
    converts = can_convert()
    for path in files:
        if not _is_prose(path):
            others[format_suffix(path) or path.name] += 1
        elif not converts and path.suffix.lower() in CONVERTED:
            lacking[path.suffix.lower()] += 1
        else:
            read.append(path)
    return read, "; ".join(filter(None, (uninstalled(lacking) if lacking else "", _counted(others))))


def _counted(others: Counter[str]) -> str:
    """Return the line that counts files in other formats, by their endings."""
    if not others:
        return ""
    most = sorted(others.items(), key=lambda item: (-item[1], item[0]))[:_KINDS]
    kinds = [f"{count:,} {ending}" for ending, count in most]
    more = others.total() - sum(count for _, count in most)
    listed = ", ".join([*kinds, *([f"{more:,} more"] if more else [])])
    return f"{counted(others.total(), 'file')} in other formats ({listed}); a text file that is named is read"


def nothing_in(folder: str | PathLike[str], others: str) -> str:
    """Return the error of a folder without files that are read; `others` is the line of `prose_of`."""
    there = f": there {'is' if others.startswith('1 file ') else 'are'} {others}" if others else ": name its files"
    return f"{folder}: no file in this folder ends in {', '.join((*_FOLDER_SUFFIXES, *DOCUMENTS))}{there}"


def _is_prose(path: Path) -> bool:
    if not path.is_file():
        return False
    if suffix := format_suffix(path):
        if path.suffix.lower() in DOCUMENTS:
            return True
        return suffix in _FOLDER_SUFFIXES or suffix.startswith(".xml-p")  # a part of a dump, of pages
    if path.name.lower() in _NO_PROSE:
        return False
    try:
        head = read_head(path)
    except CorpusError:
        return False
    return b"\0" not in head and not head.lstrip().startswith(_CODE_BEGINS)


def _entries(spec: Spec) -> list[str]:
    entries = [spec] if isinstance(spec, str | PathLike) else list(spec)
    if not entries:
        raise CorpusError("no corpus file was named: give a path, a glob, or a list of these")
    return [str(entry) for entry in entries]


def _expand(entry: str) -> list[Path]:
    if entry.startswith("bundled:"):
        if entry != "bundled:wiki-sample":
            raise CorpusError(f"unknown corpus {entry!r}: the one that is bundled is bundled:wiki-sample")
        return [wiki_sample_path()]
    path = Path(entry).expanduser()
    if path.is_dir():
        files, others = prose_of(files_in(path))
        if not files:
            raise CorpusError(nothing_in(path, others))
        return files
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


_PIPES: dict[tuple[int, int], Path] = {}
"""The files of the pipes that this process has read, by device and inode: a pipe can be read only once."""


def _read_pipe(path: Path) -> Path:
    """Copy a pipe, as of a shell's <(...), into the cache, and return the file: its name is its content's hash."""
    key = path.stat().st_dev, path.stat().st_ino
    if key not in _PIPES:
        digest = hashlib.blake2b(digest_size=16)
        with tempfile.NamedTemporaryFile(dir=made_in_cache(cache_folder() / "pipes")) as kept, path.open("rb") as pipe:
            while piece := pipe.read(1 << 20):
                digest.update(piece)
                kept.write(piece)
            kept.flush()
            # The same text again keeps its time, and so its prepared corpus.
            folder = cached("pipes", digest.hexdigest(), lambda made: shutil.copyfile(kept.name, made / "text"))
            _PIPES[key] = folder / "text"
    return _PIPES[key]


def find_sources(spec: Spec, options: CorpusOptions, progress: Progress | None = None) -> list[Source]:
    """Return the files of a spec with their formats, detected from the beginning of each file.

    Args:
        progress: shows the documents that are converted, and a line about files of a folder that cannot be read as
            asked, and are left out. Without it they are an error, as is any file that was named.
    """
    folders = [path for entry in _entries(spec) if (path := Path(entry).expanduser()).is_dir()]
    sources, left_out = [], []
    files = find_files(spec)
    sizes = {path: path.stat().st_size for path in files if path.suffix.lower() in CONVERTED}
    with ExitStack() as stack:
        shown = progress if progress is not None and sizes else Progress(quiet=True)
        bar = stack.enter_context(shown.bar("reading documents", sum(sizes.values()), unit="bytes"))
        before = 0

        def advance(before: int, done: int) -> None:
            bar.update(before + done)

        for path in files:
            try:
                sources.append(open_source(path, options, partial(advance, before)))
            except CorpusError as reason:
                if progress is None or not any(path.is_relative_to(folder) for folder in folders):
                    raise
                left_out.append(reason)
            bar.update(before := before + sizes.get(path, 0))
    if not sources:
        raise left_out[0]
    if progress is not None:
        for folder in folders:
            if others := prose_of(files_in(folder))[1]:
                progress.tell(f"left out: {others}")
        for error in left_out[:_TOLD]:
            progress.tell(f"left out: {error}")
        if len(left_out) > _TOLD:
            progress.tell(f"left out: {counted(len(left_out) - _TOLD, 'more file')}")
    if options.field is not None and not any(source.kind in READERS for source in sources):
        raise CorpusError(
            f"{sources[0].path}: field {options.field!r} was given, but no file here is JSONL, CSV or Parquet: leave "
            "it out"
        )
    return sources


def open_source(path: Path, options: CorpusOptions, tick: Tick | None = None) -> Source:
    """Return a file with its format, detected from its beginning; a document is converted, if the cache has no text.

    Args:
        tick: called with the bytes that are converted.
    """
    source = Source(path, options, _kind(Source(path, options)))
    if source.kind == "document" and source.document in CONVERTED:
        converted(path, source.document, options, tick)
    return source


def _kind(source: Source) -> SourceKind:
    path = source.path
    if source.document:
        if source.options.split == "line":
            raise CorpusError(f"{path}: split 'line' is for plain text, and this file is a {source.document} file")
        return "document"
    head = read_head(path, source.options)
    if not head.startswith(_PARQUET):
        _refuse_binary(path, head, source.options)
    text = head.removeprefix(b"\xef\xbb\xbf").lstrip()
    suffix = format_suffix(path)
    kind: SourceKind = "text"
    if head.startswith(_PARQUET):
        kind = _kind_of_rows(source, "parquet", named=True)
    elif suffix in (".csv", ".tsv"):
        kind = _kind_of_rows(source, "csv", named=True)
    elif text.startswith(b"<mediawiki") or (text.startswith(b"<?xml") and b"<mediawiki" in text):
        kind = "wiki"
    elif suffix == ".xml":
        raise CorpusError(f"{path}:1: this XML is not a MediaWiki dump (no <mediawiki> at the top): convert it to text")
    elif text.startswith(b"{") or (text and suffix in _JSON_SUFFIXES):
        kind = _kind_of_rows(source, "jsonl", named=suffix in _JSON_SUFFIXES)
    if source.options.split == "line" and kind != "text":
        raise CorpusError(f"{path}: split 'line' is for plain text, and this file is {kind}, which is always prose")
    return kind


def _refuse_binary(path: Path, head: bytes, options: CorpusOptions) -> None:
    for magic, what in _BINARY.items():
        if head.startswith(magic):
            raise CorpusError(f"{path}:1: unreadable encoding: this is {what}: give {_READ}")
    if options.is_wide:
        return
    nulls = head.count(0)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or nulls > 0.2 * len(head):
        raise CorpusError(
            f"{path}:1: unreadable encoding: this looks like UTF-16, not {options.encoding}: give --encoding utf-16"
        )
    if nulls:
        line = head[: head.index(0)].count(b"\n") + 1
        raise CorpusError(f"{path}:{line}: unreadable encoding: a zero byte, so this is binary: give {_READ}")


def _kind_of_rows(source: Source, kind: SourceKind, named: bool) -> SourceKind:
    try:
        number, row = next(READERS[kind](source))
    except StopIteration:
        return "text" if kind == "jsonl" else kind
    except CorpusError:
        if named:
            raise
        return "text"  # a text may well begin with a brace
    if source.options.field is not None:
        return kind
    if kind == "jsonl" and isinstance(row.get("sections"), list):
        return "articles"
    names = ", ".join(name for name, value in row.items() if isinstance(value, str)) or "none"
    raise CorpusError(
        f"{source.path}:{number}: it is not clear which field holds the text: give --field NAME, one of {names}"
    )
