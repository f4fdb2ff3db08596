"""Streaming of sentences from a text file, one per line."""

from __future__ import annotations

import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO

from likewise.corpus.files import reading
from likewise.errors import LikewiseError

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
def open_lines(path: str) -> Iterator[Lines]:
    """Open a text file (plain, .gz, .bz2, .zst, or '-' for standard input) and give its lines.

    Every line gives one string, an empty line the empty string, so that row i belongs to line i; the line
    break and a byte order mark are taken off, nothing else is. Only '\\n' and '\\r\\n' end a line, as `wc -l`
    counts.
    """
    if path == STREAM:
        yield Lines(_decode(sys.stdin.buffer, "standard input"), None, lambda: 0)
        return
    check_lines(path)
    with reading(Path(path)) as (stream, position):
        yield Lines(_decode(stream, path), Path(path).stat().st_size, position)


def check_lines(path: str) -> None:
    """Raise a LikewiseError if there is no such file, before anything else takes time."""
    if path != STREAM and (not Path(path).exists() or Path(path).is_dir()):
        raise LikewiseError(f"There is no file '{path}'.")


def _decode(raw: IO[bytes], name: str) -> Iterator[str]:
    number = 0
    try:
        for number, line in enumerate(raw, start=1):
            text = line.decode("utf-8-sig" if number == 1 else "utf-8")
            yield text.removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError as error:
        raise LikewiseError(
            f"{name}, line {number}: not UTF-8 ({error.reason}). Convert it first, e.g. iconv -f latin1 -t utf-8 FILE."
        ) from None
    except (EOFError, OSError, zlib.error) as error:
        raise LikewiseError(f"{name}, after line {number}: the archive is broken ({error}). Copy it again.") from None
