"""Sentences of text files: streamed, one per line, or in pieces that a worker can read by itself.

A piece is a range of lines, a group of rows, or a whole file. Its file is named by a path or by the URL of an object
store (s3://, gs://, abfs://), which pyarrow reads.
"""

import io
import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count, islice
from pathlib import Path
from typing import IO, Any

import numpy as np

from likewise.corpus import CorpusOptions
from likewise.corpus.encodings import AUTO, BINARY, LineDecoder, named_encoding
from likewise.corpus.files import HEAD, as_utf8, check_ends, reading
from likewise.corpus.lines_and_rows import digest_of, field_text, json_object, without_surrogates
from likewise.errors import LikewiseError, first_line
from likewise.runs.on_ray import Piece

WINDOW = 8192
"""Lines of a part or piece, and rows of a table that are written at a time."""
STREAM = "-"
"""Standard input or output, in the place of a file."""
_BLOCK = 1 << 24
_COMPRESSED = (".gz", ".bz2", ".zst", ".zstd", ".xz")
_USUAL = ("sentence", "text")
"""Columns of a Parquet file that are taken where no field is named."""
_UNKNOWN_TOTAL = 16  # windows that a stream is taken to have when it has more than one


@dataclass(frozen=True)
class Lines:
    """The lines of an open file, read once.

    Attributes:
        size: bytes of the file on disk; None for a stream.
        position: gives how many of them are read.
    """

    lines: Iterator[str]
    size: int | None
    position: Callable[[], int]

    def __iter__(self) -> Iterator[str]:
        return self.lines

    def windows(self, lines: int, characters: int) -> Iterator[tuple[list[str], int]]:
        """Yield windows of so many lines, or of fewer with so many characters, and the expected number of all lines."""
        read = first = 0
        while window := self._window(lines, characters):
            read += len(window)
            whole = len(window) < lines and sum(map(len, window)) < characters
            first = first or len(window) * (1 if whole else _UNKNOWN_TOTAL)
            yield window, first if self.size is None else max(read, round(read * self.size / max(1, self.position())))

    def _window(self, lines: int, characters: int) -> list[str]:
        found: list[str] = []
        for line in islice(self.lines, lines):
            found.append(line)
            characters -= len(line)
            if characters <= 0:
                break
        return found


@contextmanager
def open_lines(
    path: str, options: CorpusOptions | None = None, tell: Callable[[str], None] = lambda sentence: None
) -> Iterator[Lines]:
    """Open a text file (plain, .gz, .bz2, .zst, a pipe, or '-' for standard input) and give its lines.

    Every line gives one string, an empty line the empty string, so that row i belongs to line i; the line
    break and a byte order mark are taken off, nothing else is. Only '\\n' and '\\r\\n' end a line, as `wc -l`
    counts. With a `field` in the options, each line is a JSON object and gives the text of that field.

    Args:
        tell: is told the encoding, if it is not UTF-8 and was not named.
    """
    options = options or CorpusOptions()
    if path == STREAM:
        yield Lines(decoded(as_utf8(sys.stdin.buffer, options), Path("standard input"), options), None, lambda: 0)
        return
    check_lines(path)
    with reading(Path(path), options) as opened:
        size = Path(path).stat().st_size if Path(path).is_file() else None
        if options.encoding == AUTO and opened.encoding not in ("utf-8", BINARY):
            tell(f"{path}: read as {opened.encoding}, since it is not UTF-8")
        yield Lines(decoded(opened.stream, Path(path), options), size, opened.position)


def check_lines(path: str) -> None:
    """Raise a LikewiseError if there is no such file, before anything else takes time."""
    if path != STREAM and (not Path(path).exists() or Path(path).is_dir()):
        raise LikewiseError(f"There is no file '{path}'.")
    if path != STREAM:
        check_ends(Path(path))


def decoded(raw: IO[bytes], path: Path, options: CorpusOptions, first: int = 1) -> Iterator[str]:
    """Yield the texts of the lines of a stream, as `open_lines`; `first` is the number of its first line."""
    number = first - 1
    decode = LineDecoder(options.encoding)
    try:
        for number, line in enumerate(raw, start=first):
            text = decode(line.removeprefix(BOM_UTF8 if number == 1 else b""))
            text = text.removesuffix("\n").removesuffix("\r")
            if options.field and text:
                row = json_object(text, f"{path}, line {number}")
                text = without_surrogates(field_text(path, number, row, options.field))
            yield text
    except UnicodeDecodeError as error:
        raise LikewiseError(
            f"{path}, line {number}: not {options.encoding.upper()} ({error.reason}). Name its encoding, such as "
            "--encoding "
            "latin-1, or convert it with iconv."
        ) from None
    except (EOFError, OSError, zlib.error) as error:
        raise LikewiseError(f"{path}, after line {number}: the archive is broken ({error}). Copy it again.") from None


def list_pieces(source: str, options: CorpusOptions, form: str = ".parquet") -> list[Piece]:
    """Return the pieces of a file, of all files of a folder (by name), or of a pattern of files.

    Each piece has the 'name' of its shard, which ends with `form`, the 'path', 'start' (the row of its first text, from
    0; the rows of a file are numbered by themselves) and 'rows' (None where nobody has counted them: compressed files
    are not cut).
    """
    found: list[Piece] = []
    for number, path in enumerate(_paths(source)):
        with _readable(path):
            places = _row_groups(path, options) if path.endswith(".parquet") else _ranges(path, options)
            for position, place in enumerate(places):
                found.append({"name": f"{number:05d}-{position:06d}{form}", "path": path, **place})
    return found


def read_piece(piece: Piece, options: CorpusOptions) -> Iterator[list[str]]:
    """Yield the texts of a piece in windows."""
    with _readable(piece["path"]):
        texts = _texts(piece, options)
        while window := list(islice(texts, WINDOW)):
            yield window


def state_of(pieces: Sequence[Piece]) -> str:
    """Return a fingerprint of the files' names, cuts, sizes and times."""
    stats = [Path(piece["path"]).stat() if "://" not in piece["path"] else None for piece in pieces]
    states = [stat and (stat.st_size, stat.st_mtime_ns) for stat in stats]
    return digest_of(repr([*zip(pieces, states, strict=True)])).hex()


def _texts(piece: Piece, options: CorpusOptions) -> Iterator[str]:
    path = piece["path"]
    if "group" in piece:
        rows = _parquet(path).read_row_group(piece["group"], columns=[piece["column"]]).column(0).to_pylist()
        for row, text in enumerate(rows, start=piece["start"]):
            if text is not None and not isinstance(text, str):
                raise LikewiseError(
                    f"{path}, row {row + 1}: {piece['column']} is not a text: name the column with --field"
                )
            yield text or ""
    elif "bytes" in piece:
        files, inside = _files(path)
        with files.open_input_file(inside) as file:
            file.seek(piece["from"])
            raw = io.BytesIO(file.read(piece["bytes"]))
        yield from decoded(raw, Path(path), options, first=piece["start"] + 1)
    elif "://" not in path:
        with open_lines(path, options) as lines:
            yield from lines
    else:
        files, inside = _files(path)
        with files.open_input_stream(inside, compression="detect") as stream:
            yield from decoded(as_utf8(io.BufferedReader(stream), options), Path(path), options)


def _paths(source: str) -> list[str]:
    from pyarrow import fs

    here, scheme = Path(source), source.partition("://")[0] if "://" in source else ""
    if source == STREAM or here.is_fifo():
        raise LikewiseError(f"{source} is a pipe, which is not read in pieces: save the text, or give --out NAME.npy")
    if not scheme and "*" in here.name and not here.exists():
        paths = [str(path.resolve()) for path in sorted(here.parent.glob(here.name))]
    else:
        with _readable(source):
            files, inside = _files(source if scheme else str(here.resolve()))
            found = [files.get_file_info(inside)]
            if found[0].type == fs.FileType.Directory:
                found = files.get_file_info(fs.FileSelector(inside, recursive=True))
                found = [one for one in found if one.base_name[0] not in "._"]
            names = sorted((one.path for one in found if one.is_file), key=lambda name: name.split("/"))
            paths = [f"{scheme}://{name}" if scheme else name for name in names]
    if not paths:
        raise LikewiseError(f"There is no file '{source}'.")
    return paths


def _files(path: str) -> tuple[Any, str]:
    """Return the file system of an absolute path or a URL, and the path in it."""
    from pyarrow import fs

    found: tuple[Any, str] = fs.FileSystem.from_uri(path)
    return found


def _parquet(path: str) -> Any:
    from pyarrow import parquet

    files, inside = _files(path)
    return parquet.ParquetFile(inside, filesystem=files)


def _row_groups(path: str, options: CorpusOptions) -> Iterator[dict[str, Any]]:
    file = _parquet(path)
    names = file.schema_arrow.names
    column = options.field or next((name for name in _USUAL if name in names), None)
    if column not in names:
        raise LikewiseError(f"{path} has no column {column or 'text'!r}: name one of {', '.join(names)} with --field")
    start = 0
    for group in range(file.num_row_groups):
        rows = file.metadata.row_group(group).num_rows
        yield {"group": group, "column": column, "start": start, "rows": rows}
        start += rows


def _ranges(path: str, options: CorpusOptions) -> Iterator[dict[str, Any]]:
    """Yield ranges of bytes that hold a window of lines each, or the whole of a file that cannot be cut."""
    files, inside = _files(path)
    with files.open_input_stream(inside) as stream:
        head = b"" if path.endswith(_COMPRESSED) else stream.read(HEAD)
    if not head or named_encoding(options.encoding, head, len(head) < HEAD) != "utf-8":
        yield {"start": 0, "rows": None}
        return
    begin = position = lines = start = 0
    with files.open_input_stream(inside) as stream:
        while block := stream.read(_BLOCK):
            ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")) + position + 1
            for place in count(WINDOW - lines - 1, WINDOW):
                if place >= len(ends):
                    break
                end = int(ends[place])
                yield {"from": begin, "bytes": end - begin, "start": start, "rows": WINDOW}
                begin, start = end, start + WINDOW
            lines = (lines + len(ends)) % WINDOW
            position += len(block)
            unfinished = not block.endswith(b"\n")
    if position > begin:
        yield {"from": begin, "bytes": position - begin, "start": start, "rows": lines + unfinished}


@contextmanager
def _readable(path: str) -> Iterator[None]:
    import pyarrow as pa

    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise LikewiseError(f"{path} cannot be read ({first_line(error)}): copy it again, or leave it out") from None
