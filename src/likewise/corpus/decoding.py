"""Bytes to text, line by line: what cannot be decoded is counted, and a file full of it is refused."""

import re
from collections.abc import Iterator
from pathlib import Path

from likewise.corpus.errors import CorpusError
from likewise.corpus.files import Tick, is_wide, numbered_lines
from likewise.corpus.report import CorpusReport

_INVISIBLE = re.compile("[\u0000-\u0008\u000e-\u001f\u007f\u00ad\u200b\u200e\u200f\u2060\ufeff\ud800-\udfff]")


def without_invisible(text: str) -> str:
    """Take out control signs, soft hyphens, marks of direction and byte order, and halves of characters.

    Joiners stay: they spell.
    """
    return _INVISIBLE.sub("", text)


class Undecodable:
    """Counts lines that are no text in the encoding, and gives up on a file where they are half or more."""

    def __init__(self, path: Path, encoding: str, report: CorpusReport) -> None:
        self._path, self._encoding, self._report = path, encoding, report
        self._good = self._bad = self._first = 0
        self._check_at = 1000

    def seen(self, line: int, good: bool) -> bool:
        """Count a line; gives True for one that is to be left out."""
        if good:
            self._good += 1
        else:
            self._bad += 1
            self._first = self._first or line
            self._report.read += 1
            self._report.drop("undecodable", str(self._path), line)
        if self._good + self._bad == self._check_at:
            self._check_at *= 10  # a big file is refused early
            self.end()
        return not good

    def end(self) -> None:
        """Raise a CorpusError where half of the lines or more could not be decoded."""
        if self._bad and self._bad >= self._good:
            is_default = self._encoding.lower().replace("-", "") in ("utf8", "ascii")
            raise CorpusError(
                f"{self._path}:{self._first}: unreadable encoding: {self._bad} of "
                f"{self._good + self._bad} lines are not {self._encoding}: give the right one, "
                "for example --encoding "
                f"{'latin-1' if is_default else 'utf-8'}"
            )


def text_lines(path: Path, encoding: str, report: CorpusReport, tick: Tick | None = None) -> Iterator[tuple[int, str]]:
    """Give (line number, text) of each line, blank ones too; a very long line comes in several pieces.

    Undecodable lines are counted in the report and left out.

    Raises:
        CorpusError: half of the lines or more cannot be decoded.
    """
    codec = "utf-8" if is_wide(encoding) else encoding
    watch = Undecodable(path, encoding, report)
    for number, raw in numbered_lines(path, encoding, tick):
        try:
            text = raw.decode(codec)
        except UnicodeDecodeError:
            watch.seen(number, good=False)
            continue
        if not text.isspace():
            watch.seen(number, good=True)
        yield number, without_invisible(text)
    watch.end()
