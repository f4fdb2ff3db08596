"""Decoding of lines to text, JSON rows and articles, with a limit on lines that cannot be decoded."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from likewise.corpus.files import Tick, numbered_lines
from likewise.corpus.options import CorpusError, CorpusOptions
from likewise.corpus.report import CorpusReport
from likewise.corpus.wiki import Sections, clean_markup
from likewise.runs.whole_files import parse_json

JSON_LIMIT = 1 << 26
"""Longest JSON line read, in bytes: a row must be held whole."""

_JSON_TYPES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}

_INVISIBLE = re.compile("[\u0000-\u0008\u000e-\u001f\u007f\u00ad\u200b\u200e\u200f\u2060\ufeff\ud800-\udfff]")


def without_invisible(text: str) -> str:
    """Remove control characters, soft hyphens, direction and byte order marks, and lone surrogates.

    Joiners stay: they spell.
    """
    return _INVISIBLE.sub("", text)


def without_surrogates(text: str) -> str:
    """Return a text with '?' for each lone surrogate, which no tokenizer takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


class Undecodable:
    """A counter of lines that cannot be decoded, which rejects a file if they are half or more."""

    def __init__(self, path: Path, encoding: str, report: CorpusReport) -> None:
        self._path, self._encoding, self._report = path, encoding, report
        self._good = self._bad = self._first = 0
        self._check_at = 1000

    def seen(self, line: int, good: bool) -> None:
        """Count a line."""
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

    def end(self) -> None:
        """Raise a CorpusError if half of the lines or more could not be decoded."""
        if self._bad and self._bad >= self._good:
            is_default = self._encoding.lower().replace("-", "") in ("utf8", "ascii")
            raise CorpusError(
                f"{self._path}:{self._first}: unreadable encoding: {self._bad} of {self._good + self._bad} lines are "
                f"not {self._encoding}: give the right one, for example --encoding "
                f"{'latin-1' if is_default else 'utf-8'}"
            )


def text_lines(
    path: Path, options: CorpusOptions, report: CorpusReport, tick: Tick | None = None
) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of each line, including blank ones; a very long line is split into pieces.

    Undecodable lines are counted in the report and left out.
    """
    codec = options.codec
    watch = Undecodable(path, options.encoding, report)
    for number, raw in numbered_lines(path, options, tick):
        try:
            text = raw.decode(codec)
        except UnicodeDecodeError:
            watch.seen(number, good=False)
            continue
        if not text.isspace():
            watch.seen(number, good=True)
        yield number, without_invisible(text)
    watch.end()


def read_rows(
    path: Path, options: CorpusOptions, report: CorpusReport, tick: Tick | None = None
) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield (line number, object) of each line of a JSONL file that is not blank.

    Undecodable lines are counted in the report and left out.
    """
    watch = Undecodable(path, options.encoding, report)
    codec = options.codec
    for number, raw in numbered_lines(path, options, tick, limit=JSON_LIMIT):
        if not raw.strip():
            continue
        try:
            row = parse_json(raw.decode(codec))
            if not isinstance(row, dict):
                raise ValueError(f"it is {json_type(row)}")
        except UnicodeDecodeError:
            watch.seen(number, good=False)
            continue
        except ValueError as error:
            raise CorpusError(
                f"{path}:{number}: not a JSON object ({error}): a JSONL file has one object a line, nothing else"
            ) from None
        watch.seen(number, good=True)
        yield number, row
    watch.end()


def json_type(value: Any) -> str:
    """Return what a value read from JSON is, in words."""
    return _JSON_TYPES.get(type(value), type(value).__name__)


def field_text(path: Path, number: int, row: dict[str, Any], field: str) -> str:
    """Return the text of a row's field, "" if it is null; raise a CorpusError if it is missing."""
    if field not in row:
        raise CorpusError(
            f"{path}:{number}: no field {field!r} in this row; it has: {', '.join(row) or 'nothing'}; give --field NAME"
        )
    value = row[field]
    if not isinstance(value, str | None):
        raise CorpusError(f"{path}:{number}: field {field!r} is {json_type(value)}, not a text; give --field NAME")
    return without_invisible(value or "")


def article_parts(path: Path, number: int, row: dict[str, Any]) -> tuple[str, str, Sections]:
    """Return (id, title, sections) of an articles file's row; paragraphs are cleaned of wiki leftovers."""
    sections: Sections = []
    try:
        for section in row["sections"]:
            paragraphs = [clean_markup(without_invisible(text)) for text in section["paragraphs"]]
            heading = clean_markup(without_invisible(section.get("heading") or ""))
            sections.append((heading, [text for text in paragraphs if text]))
    except (KeyError, TypeError, AttributeError):
        raise CorpusError(
            f'{path}:{number}: not an article: each of its sections must be {{"heading": text, "paragraphs": [text]}}'
        ) from None
    return str(row.get("id", number)), str(row.get("title", "")), sections
