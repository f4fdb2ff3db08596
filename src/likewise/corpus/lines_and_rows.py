"""Decoding of lines to text, and of files of rows (JSONL, CSV, TSV, Parquet), one field of which holds the text."""

import csv
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, TypeVar

from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.counts import CorpusReport, Reason
from likewise.corpus.files import LINE_LIMIT, Tick, format_suffix, numbered_lines
from likewise.corpus.foreign import DOCUMENTS
from likewise.errors import LikewiseError
from likewise.runs.whole_files import parse_json

_T = TypeVar("_T")
SourceKind = Literal["text", "jsonl", "csv", "parquet", "articles", "wiki", "document"]
MARKDOWN = (".md", ".markdown")
JSON_LIMIT = 1 << 26
"""Longest JSON line read, in bytes: a row must be held whole."""

NumberedRow = tuple[int, dict[str, Any]]
"""The line where a row begins, from 1 (in a Parquet file its number), and its values by field."""


@dataclass(frozen=True)
class Source:
    """One file of a corpus, and how it is read.

    Attributes:
        kind: what it holds: plain "text"; rows with a text field ("jsonl", "csv" for TSV too, "parquet"); "articles"
            (rows of id, title, sections); a MediaWiki dump ("wiki"); or a web page, a notebook, a Word, PowerPoint or
            PDF file ("document").
        report: counts what is left out while the file is read.
        tick: called with the bytes read so far.
    """

    path: Path
    options: CorpusOptions = CorpusOptions()
    kind: SourceKind = "text"
    report: CorpusReport = field(default_factory=CorpusReport, compare=False)
    tick: Tick | None = field(default=None, compare=False)

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.path.stat().st_size

    @property
    def document(self) -> str:
        """The ending of the format of a document, "" for any other file; a PDF is known whatever its name."""
        if (suffix := self.path.suffix.lower()) in DOCUMENTS:
            return suffix
        with suppress(OSError), self.path.open("rb") as file:
            return ".pdf" if file.read(5) == b"%PDF-" else ""
        return ""

    @property
    def is_markdown(self) -> bool:
        """True for Markdown that is read as such, and not as a list of lines."""
        return self.kind == "text" and self.options.split != "line" and format_suffix(self.path) in MARKDOWN

    def drop(self, reason: Reason, line: int, count: int = 1) -> None:
        """Count sentences that begin at a line and are left out."""
        self.report.drop(reason, self.path, line, count)


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


def digest_of(text: str) -> bytes:
    """Return a fingerprint of a text: 16 bytes, equal for equal texts."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def unrepeated(items: Iterable[_T], text_of: Callable[[_T], str]) -> Iterator[_T]:
    """Yield the items whose text has not come before; to know them takes about 100 bytes each."""
    seen: set[bytes] = set()
    for item in items:
        if (digest := digest_of(text_of(item))) not in seen:
            seen.add(digest)
            yield item


def text_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of each line, including blank ones; a very long line is split into pieces.

    Undecodable lines are counted in the report and left out; if they are half or more, the file is rejected.
    """
    for number, text in _decoded(source, LINE_LIMIT):
        yield number, without_invisible(text)


def _decoded(source: Source, limit: int) -> Iterator[tuple[int, str]]:
    options = source.options
    good = bad = first_bad = 0
    check_at = 1000  # a big file is refused early

    def check() -> None:
        if bad and bad >= good:
            is_default = options.encoding.lower().replace("-", "") in ("utf8", "ascii")
            raise CorpusError(
                f"{source.path}:{first_bad}: unreadable encoding: {bad} of {good + bad} lines are not "
                f"{options.encoding}: give the right one, for example --encoding {'latin-1' if is_default else 'utf-8'}"
            )

    codec = options.codec
    for number, raw in numbered_lines(source.path, options, source.tick, limit):
        try:
            text = raw.decode(codec)
            good += not text.isspace()
            yield number, text
        except UnicodeDecodeError:
            bad += 1
            first_bad = first_bad or number
            source.drop("undecodable", number)
        if good + bad == check_at:
            check_at *= 10
            check()
    check()


def read_rows(source: Source) -> Iterator[NumberedRow]:
    """Yield (line number, object) of each line of a JSONL file that is not blank; undecodable ones as `text_lines`."""
    for number, text in _decoded(source, JSON_LIMIT):
        if text.strip():
            yield number, json_object(text, f"{source.path}:{number}")


def json_object(text: str, where: str, fault: type[LikewiseError] = CorpusError) -> dict[str, Any]:
    """Return the object that a line of a JSONL file holds; the error of one that holds none names its place."""
    try:
        found = parse_json(text)
        if isinstance(found, dict):
            return found
        reason = f"it is {_json_type(found)}"
    except ValueError as error:
        reason = str(error)
    raise fault(f"{where}: not a JSON object ({reason}): a JSONL file has one object on each line and nothing else")


def _json_type(value: Any) -> str:
    """Name the kind of a value read from JSON, in words."""
    return _JSON_TYPES.get(type(value), type(value).__name__)


def field_text(path: Path, number: int, row: dict[str, Any], field: str) -> str:
    """Return the text of a row's field, "" if it is null; raise a CorpusError if it is missing."""
    if field not in row:
        raise CorpusError(
            f"{path}:{number}: no field {field!r} in this row; it has: {', '.join(row) or 'nothing'}; give --field NAME"
        )
    value = row[field]
    if not isinstance(value, str | None):
        raise CorpusError(f"{path}:{number}: field {field!r} is {_json_type(value)}, not a text; give --field NAME")
    return without_invisible(value or "")


def _csv(source: Source) -> Iterator[NumberedRow]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a text may be longer than the module's own 128 KiB
    lines = (text for _, text in text_lines(source))
    rows = csv.DictReader(lines, delimiter="\t" if format_suffix(source.path) == ".tsv" else ",", strict=True)
    begin = 1
    try:
        _ = rows.fieldnames
        begin = rows.line_num + 1
        for row in rows:
            row.pop(None, None)  # more cells than the header names
            yield begin, dict(row)
            begin = rows.line_num + 1
    except csv.Error as error:
        raise CorpusError(f"{source.path}:{begin}: this row is not valid CSV ({error}): mend its quotes") from None


def _parquet(source: Source) -> Iterator[NumberedRow]:
    import pyarrow as pa
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(source.path) as file:
            for batch in file.iter_batches(1024):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(
            f"{source.path}:{number + 1}: this is not a whole Parquet file ({error}): write it again"
        ) from None


READERS: dict[str, Callable[[Source], Iterator[NumberedRow]]] = {"jsonl": read_rows, "csv": _csv, "parquet": _parquet}
"""Kind of a file to the function that reads its rows."""
