"""The texts to encode, in pieces: windows of a stream of lines, or parts of files that a worker reads by itself.

Every line is one text, and an empty line is an empty text, so that row i belongs to line i. Only the line break and a
byte order mark are removed, and only '\\n' and '\\r\\n' end a line, as `wc -l` counts. With a `field` in the options,
and in JSONL, each line is a JSON object, and the text is this field, by default `text`.
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path, PurePosixPath

import pyarrow as pa
from pyarrow import fs, parquet

from likewise.corpus import CorpusOptions
from likewise.corpus.clean_text import digest_of, without_surrogates
from likewise.corpus.corpus_options import TEXT
from likewise.corpus.encodings import AUTO, BINARY, named_encoding
from likewise.corpus.files import (
    COMPRESSED,
    HEAD,
    STANDARD_INPUT,
    check_ends,
    decoded,
    format_suffix,
    numbered_lines,
    read_head,
)
from likewise.corpus.json_rows import JsonLines, json_object
from likewise.corpus.known_formats import format_named
from likewise.corpus.rows import field_text
from likewise.corpus.sources import refuse_packed
from likewise.errors import LikewiseError, counted, unread
from likewise.runs.results import RECORD

WINDOW = 8192
"""The number of texts that are held, encoded and written at a time."""
STREAM = "-"
"""Standard input or output, instead of a file."""
_WINDOW_CHARACTERS = 1 << 24
_COMPRESSED = (*COMPRESSED, ".zstd")
_USUAL = ("sentence", "text")
"""Columns of a Parquet file that are taken if no field is named."""
_UNKNOWN_TOTAL = 16  # windows that a stream is taken to have if it has more than one


@dataclass(frozen=True)
class Piece:
    """Texts that are encoded and written as one part.

    Attributes:
        name: Name of the part.
        path: Path to the file of the texts, or its URL in an object store (s3://, gs://, abfs://), which pyarrow reads.
        texts: Function that returns the texts; it can be pickled, so that a worker reads them itself.
        start: Line or row of the first text in its file, from 0.
        rows: Number of texts; None if they were not counted.
        digest: Fingerprint of the texts of a stream; "" for a file, which is identified by its state.
    """

    name: str
    path: str
    texts: Callable[[], Iterable[str]]
    start: int = 0
    rows: int | None = None
    digest: str = ""

    def windows(self) -> Iterator[list[str]]:
        """Yield the texts in windows."""
        with _readable(self.path):
            yield from _windows(self.texts())


def lines_of(
    path: str,
    options: CorpusOptions | None = None,
    read: Callable[[int], None] | None = None,
    tell: Callable[[str], None] = lambda sentence: None,
) -> Iterator[str]:
    """Yield the texts of the lines of a file: plain, .gz, .bz2, .zst, .xz, a pipe, or '-' for standard input.

    Args:
        read: Function that is called regularly with the number of bytes read from disk.
        tell: Function that is called with the encoding, if it is not UTF-8 and was not given.
    """
    options = options or CorpusOptions()
    check_source(path)
    file = STANDARD_INPUT if path == STREAM else Path(path)

    def opened(encoding: str) -> None:
        if options.encoding == AUTO and encoding not in ("utf-8", BINARY):
            tell(f"{path}: read as {encoding}, since it is not UTF-8")

    lines = numbered_lines(file, options, read, sys.maxsize, opened, mend_ends=False)
    return _texts(lines, str(file), options)


def check_source(path: str) -> None:
    """Raise a LikewiseError if the file does not exist, before long work starts."""
    if path != STREAM:
        file = Path(path)
        if file.is_dir():
            raise LikewiseError(f"{path}: this is a folder: give a file")
        if not file.exists():
            raise LikewiseError(f"{path}: no such file: check the path")
        _field(path, CorpusOptions())
        check_ends(file)
        if file.is_file():  # a pipe can be read only once
            refuse_packed(file, read_head(file))


def _field(path: str, options: CorpusOptions) -> str | None:
    """Return the field of each line that contains its text, or None if that is the line itself."""
    suffix = format_suffix(Path(path))
    format = format_named(Path(path))
    is_jsonl = isinstance(format, JsonLines)
    if format is not None and format.holds in ("rows", "pages") and not is_jsonl:
        raise LikewiseError(
            f"{path}: a {suffix} file cannot be read line by line: write one text per line, or JSONL; with a folder "
            f"as --out, Parquet files are read, too, and in Python an encoder accepts a list of texts"
        )
    return options.field or (TEXT if is_jsonl else None)


def stream_pieces(
    path: str, options: CorpusOptions, tell: Callable[[str], None] = lambda sentence: None
) -> Iterator[tuple[Piece, int]]:
    """Yield the windows of a file or a stream as pieces, and the expected number of texts in all."""
    size = Path(path).stat().st_size if Path(path).is_file() else 0
    done, start = 0, 0

    def read(position: int) -> None:
        nonlocal done
        done = position

    lines = lines_of(path, options, read if size else None, tell)  # a pipe has no position
    for number, window in enumerate(_windows(lines)):
        digest = digest_of("\n".join(window)).hex()
        piece = Piece(f"{number:06d}.arrow", path, partial(iter, window), start, len(window), digest)
        start += len(window)
        if len(window) < WINDOW and sum(map(len, window)) < _WINDOW_CHARACTERS:  # the last one
            total = start
        else:
            total = max(start, round(start * size / done) if size and done else _UNKNOWN_TOTAL * WINDOW)
        yield piece, total


def list_pieces(
    source: str, options: CorpusOptions, ending: str = ".parquet", tell: Callable[[str], object] = str
) -> list[Piece]:
    """Return the pieces of a file, of all files of a folder (by name), or of a pattern of files.

    A piece is a range of lines, a group of rows, or a whole file that cannot be cut, such as a compressed one. The
    rows of each file are numbered by themselves.

    Args:
        ending: Suffix of the name of a piece.
        tell: Function that is called with a line on the skipped files of a folder.
    """
    pieces: list[Piece] = []
    for number, path in enumerate(_paths(source, tell)):
        with _readable(path):
            cut = _row_groups(path, options) if path.endswith(".parquet") else _ranges(path, options)
            pieces += [replace(piece, name=f"{number:05d}-{i:06d}{ending}") for i, piece in enumerate(cut)]
    return pieces


def state_of(pieces: Sequence[Piece]) -> str:
    """Return a fingerprint of the files' names, cuts, sizes and times."""
    stats = [Path(piece.path).stat() if "://" not in piece.path else None for piece in pieces]
    states = [
        (piece.name, piece.path, piece.start, piece.rows, stat and (stat.st_size, stat.st_mtime_ns))
        for piece, stat in zip(pieces, stats, strict=True)
    ]
    return digest_of(repr(states)).hex()


def _windows(texts: Iterable[str]) -> Iterator[list[str]]:
    """Yield windows of texts: `WINDOW` of them, or 16 million characters of longer ones."""
    window: list[str] = []
    characters = 0
    for text in texts:
        window.append(text)
        characters += len(text)
        if len(window) >= WINDOW or characters >= _WINDOW_CHARACTERS:
            yield window
            window, characters = [], 0
    if window:
        yield window


def _texts(lines: Iterable[tuple[int, bytes]], path: str, options: CorpusOptions) -> Iterator[str]:
    field = _field(path, options)
    for number, line in decoded(lines, Path(path), options.encoding):
        text = line.removesuffix("\n").removesuffix("\r")
        if field and text:
            row = json_object(text, f"{path}:{number}")
            text = without_surrogates(field_text(Path(path), number, row, field))
        yield text


def _paths(source: str, tell: Callable[[str], object]) -> list[str]:
    here, scheme = Path(source), source.partition("://")[0] if "://" in source else ""
    if source == STREAM or here.is_fifo():
        raise LikewiseError(
            f"{source} is a pipe, which cannot be read in pieces: save the text, or give --out NAME.npy"
        )
    if not scheme and "*" in here.name and not here.exists():
        paths = [str(path.resolve()) for path in sorted(here.parent.glob(here.name))]
    else:
        with _readable(source):
            files, inside = fs.FileSystem.from_uri(source if scheme else str(here.resolve()))
            entries = [files.get_file_info(inside)]
            if entries[0].type == fs.FileType.Directory:
                entries = files.get_file_info(fs.FileSelector(inside, recursive=True))
                made = {PurePosixPath(entry.path).parent for entry in entries if entry.base_name == RECORD}
                files_there = [entry for entry in entries if entry.is_file]
                entries = [entry for entry in files_there if _is_text_of(PurePosixPath(entry.path), inside, made)]
                if left_out := len(files_there) - len(entries):
                    tell(f"{counted(left_out, 'file')} skipped, which are hidden or created by likewise")
            names = sorted((entry.path for entry in entries if entry.is_file), key=lambda name: name.split("/"))
            paths = [f"{scheme}://{name}" if scheme else name for name in names]
    if not paths:
        raise LikewiseError(f"{source}: no such file: check the path")
    return paths


def _is_text_of(path: PurePosixPath, folder: str, made: Container[PurePosixPath]) -> bool:
    """Return whether a path in a folder is text of its user: neither hidden, nor in what likewise made."""
    within = path.relative_to(folder)
    folders = [PurePosixPath(folder, parent) for parent in within.parents][:-1]
    return not any(part[0] in "._" for part in within.parts) and not any(parent in made for parent in folders)


def _parquet(path: str) -> parquet.ParquetFile:
    files, inside = fs.FileSystem.from_uri(path)
    return parquet.ParquetFile(inside, filesystem=files)


def _row_groups(path: str, options: CorpusOptions) -> Iterator[Piece]:
    file = _parquet(path)
    names = file.schema_arrow.names
    column = options.field or next((name for name in _USUAL if name in names), "text")
    if column not in names:
        raise LikewiseError(f"{path} has no column {column!r}: name one of {', '.join(names)} with --field")
    start = 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        yield Piece("", path, partial(_texts_of_group, path, group, column, start), start, rows)
        start += rows


def _texts_of_group(path: str, group: int, column: str, start: int) -> Iterator[str]:
    rows = _parquet(path).read_row_group(group, columns=[column]).column(0).to_pylist()
    for row, text in enumerate(rows, start=start + 1):
        if text is not None and not isinstance(text, str):
            raise LikewiseError(f"{path}:{row}: {column} is not a string: name the column with --field")
        yield text or ""


def _ranges(path: str, options: CorpusOptions) -> Iterator[Piece]:
    """Yield ranges of bytes that hold a window of lines each, or the whole of a file that cannot be cut."""
    files, inside = fs.FileSystem.from_uri(path)
    with files.open_input_stream(inside) as stream:
        head = b"" if path.endswith(_COMPRESSED) else stream.read(HEAD)
    if not head or named_encoding(options.encoding, head, len(head) < HEAD) != "utf-8":
        yield Piece("", path, partial(_texts_of_file, path, options))
        return
    with files.open_input_stream(inside) as stream:
        lines, begin, start = io.BufferedReader(stream), 0, 0
        while sizes := [len(line) for line in islice(lines, WINDOW)]:
            texts = partial(_texts_of_range, path, options, begin, sum(sizes), start)
            yield Piece("", path, texts, start, len(sizes))
            begin, start = begin + sum(sizes), start + len(sizes)


def _texts_of_range(path: str, options: CorpusOptions, begin: int, size: int, start: int) -> Iterator[str]:
    files, inside = fs.FileSystem.from_uri(path)
    with files.open_input_file(inside) as file:
        file.seek(begin)
        lines = io.BytesIO(file.read(size)).readlines()
    return _texts(enumerate(lines, start + 1), path, options)


def _texts_of_file(path: str, options: CorpusOptions) -> Iterator[str]:
    if "://" not in path:
        yield from lines_of(path, options)
        return
    with tempfile.TemporaryDirectory(prefix="likewise-") as folder:
        copy = str(Path(folder, Path(path).name))
        files, inside = fs.FileSystem.from_uri(path)
        fs.copy_files(inside, copy, files, fs.LocalFileSystem())
        yield from lines_of(copy, options)


@contextmanager
def _readable(path: str) -> Iterator[None]:
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise LikewiseError(unread(path, error, "copy it again, or exclude it")) from None
