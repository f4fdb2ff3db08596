"""Streaming of sentences from a text file, one per line."""

import sys
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from likewise.corpus import CorpusOptions
from likewise.corpus.decoding import field_text, json_type, without_surrogates
from likewise.corpus.files import reading
from likewise.errors import LikewiseError
from likewise.runs.whole_files import parse_json

WINDOW = 8192
"""Lines of a part or piece, and rows of a table that are written at a time."""
STREAM = "-"
"""Standard input or output, in the place of a file."""


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

    def window(self, count: int, characters: int) -> list[str]:
        """Return up to `count` next lines, fewer if `characters` are reached first."""
        found: list[str] = []
        for line in islice(self.lines, count):
            found.append(line)
            characters -= len(line)
            if characters <= 0:
                break
        return found

    def expected(self, read: int, of_stream: int) -> int:
        """Return the estimated number of lines, after `read` lines; `of_stream` if the size is unknown."""
        if self.size is None:
            return of_stream
        return max(read, round(read * self.size / max(1, self.position())))


@contextmanager
def open_lines(path: str, options: CorpusOptions | None = None) -> Iterator[Lines]:
    """Open a text file (plain, .gz, .bz2, .zst, a pipe, or '-' for standard input) and give its lines.

    Every line gives one string, an empty line the empty string, so that row i belongs to line i; the line
    break and a byte order mark are taken off, nothing else is. Only '\\n' and '\\r\\n' end a line, as `wc -l`
    counts. With a `field` in the options, each line is a JSON object and gives the text of that field.
    """
    options = options or CorpusOptions()
    if path == STREAM:
        if options.is_wide:
            raise LikewiseError(f"standard input is not read as {options.encoding}: convert it with iconv")
        yield Lines(decoded(sys.stdin.buffer, Path("standard input"), options), None, lambda: 0)
        return
    check_lines(path)
    with reading(Path(path), options) as (stream, position):
        size = Path(path).stat().st_size if Path(path).is_file() else None
        yield Lines(decoded(stream, Path(path), options), size, position)


def check_lines(path: str) -> None:
    """Raise a LikewiseError if there is no such file, before anything else takes time."""
    if path != STREAM and (not Path(path).exists() or Path(path).is_dir()):
        raise LikewiseError(f"There is no file '{path}'.")


def decoded(raw: IO[bytes], path: Path, options: CorpusOptions, first: int = 1) -> Iterator[str]:
    """Yield the texts of the lines of a stream, as `open_lines`; `first` is the number of its first line."""
    lines = _decode(raw, path, options, first)
    if options.field is None:
        yield from lines
        return
    for number, line in enumerate(lines, start=first):
        try:
            row = parse_json(line or "{}")
            if not isinstance(row, dict):
                raise ValueError(f"it is {json_type(row)}")
        except ValueError as error:
            raise LikewiseError(f"{path}, line {number}: not a JSON object ({error}).") from None
        yield without_surrogates(field_text(path, number, row, options.field)) if line else ""


def _decode(raw: IO[bytes], path: Path, options: CorpusOptions, first: int) -> Iterator[str]:
    number = first - 1
    try:
        for number, line in enumerate(raw, start=first):
            text = line.removeprefix(BOM_UTF8 if number == 1 else b"").decode(options.codec)
            yield text.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise LikewiseError(
            f"{path}, line {number}: not {options.encoding.upper()} ({error.reason}). Name its encoding, as --encoding "
            "latin-1, or convert it with iconv."
        ) from None
    except (EOFError, OSError, zlib.error) as error:
        raise LikewiseError(f"{path}, after line {number}: the archive is broken ({error}). Copy it again.") from None
