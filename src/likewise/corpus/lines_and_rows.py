"""Decoding of lines to text, and the one reader of rows: JSONL, JSON, CSV, TSV, Parquet and .xlsx."""

import csv
import json
import re
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar
from unicodedata import normalize

from likewise.corpus.corpus_options import TEXT, CorpusError, CorpusOptions
from likewise.corpus.counts import CorpusReport, Reason
from likewise.corpus.encodings import AUTO, LineDecoder
from likewise.corpus.files import HEAD, LINE_LIMIT, Tick, format_suffix, numbered_lines, read_head
from likewise.corpus.paged_documents import rows_of_sheets
from likewise.corpus.sentence_splitter import is_prose, is_wrapped
from likewise.runs.whole_files import Record, parse_json

if TYPE_CHECKING:
    import pyarrow as pa

_T = TypeVar("_T")
SourceKind = Literal["text", "markdown", "jsonl", "json", "csv", "parquet", "xlsx", "articles", "wiki", "document"]
JSON_LIMIT = 1 << 26
"""Longest row read, in bytes or characters: it must be held whole."""
_BAD_ROWS = 1000
"""Rows without a good one among them after which a file is given up."""

Layout = Literal["line", "prose", "wrapped"]
SAMPLE_LINES = 500
"""Lines of a file that decide how it is split."""

NumberedRow = tuple[int, Record]
"""The line where a row begins, from 1 (in Parquet and .xlsx its number), and its values by field."""


@dataclass(frozen=True)
class Source:
    """One file of a corpus, and how it is read.

    Attributes:
        kind: what it holds: plain "text"; "markdown", also Org, AsciiDoc and reStructuredText; rows with a text field
            ("jsonl", "json" for a list of objects, "csv" for TSV too, "parquet", "xlsx"); "articles" (rows of id,
            title, sections); a MediaWiki dump ("wiki"); or a "document": what a converter reads.
        report: counts and names what is left out while the file is read.
        tick: called with the bytes read so far.
        strict: a row that cannot be read is an error; otherwise the report names it.
        document: the ending of the format of a document, "" for any other file.
    """

    path: Path
    options: CorpusOptions = CorpusOptions()
    kind: SourceKind = "text"
    report: CorpusReport = field(default_factory=CorpusReport, compare=False)
    tick: Tick | None = field(default=None, compare=False)
    strict: bool = False
    document: str = ""

    @property
    def size(self) -> int:
        """Bytes on disk."""
        return self.path.stat().st_size

    def drop(self, reason: Reason, line: int, count: int = 1) -> None:
        """Count sentences that begin at a line and are left out."""
        self.report.drop(reason, self.path, line, count)

    def drop_row(self, line: int, reason: str) -> None:
        """Count a row that cannot be read, and keep the reason.

        Raises:
            CorpusError: the source is strict.
        """
        if self.strict:
            raise CorpusError(f"{self.path}:{line}: {reason}")
        self.drop("bad row", line)
        self.report.tell(self.path, line, reason)


_JSON_TYPES = {
    dict: "an object",
    list: "a list",
    str: "a text",
    bool: "true or false",
    int: "a number",
    float: "a number",
    type(None): "null",
}

_INVISIBLE = re.compile(
    "\u00ad[ \t\r]*\n[ \t]*"  # a word that is divided at the end of a line
    # colours and links of a terminal, as logs have
    "|\u001b(?:\\[[0-9;?]*[A-Za-z]|\\(B|\\]8;[^\u0007\u001b]{0,2000}(?:\u0007|\u001b\\\\))"
    "|[\u0000-\u0008\u000e-\u001f\u007f\u00ad\u200b\u200e\u200f\u2060\ufeff\ud800-\udfff]"
)
_STYLED = re.compile("[\ufb00-\ufb06\uff10-\uff19\uff21-\uff3a\uff41-\uff5a\uff66-\uff9f\U0001d400-\U0001d7ff]+")


def without_invisible(text: str) -> str:
    """Return a text in Unicode's composed form (NFC), without signs that no one sees.

    Control characters, soft hyphens, direction and byte order marks and lone surrogates go. Joiners stay: they spell.

    >>> without_invisible("Zu\u0308rich\u200b") == "Zürich"
    True
    >>> without_invisible("the turbo\u00ad\\n charger")
    'the turbocharger'
    """
    text = _INVISIBLE.sub("", text)
    return text if text.isascii() else normalize("NFC", text)


def in_plain_letters(text: str) -> str:
    """Return a text as a model knows its letters: without ligatures, styles of letters, and forms of another width.

    >>> in_plain_letters("e\ufb03cient \uff50\uff55\uff4d\uff50s, \uff76\uff9e")
    'efficient pumps, \u30ac'
    """
    return text if text.isascii() else _STYLED.sub(lambda styled: normalize("NFKC", styled[0]), text)


def without_surrogates(text: str) -> str:
    """Return a text with '?' for each lone surrogate, which no tokenizer takes."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")


def digest_of(text: str) -> bytes:
    """Return a fingerprint of a text: 16 bytes, equal for equal texts."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def unrepeated(
    items: Iterable[_T], text_of: Callable[[_T], str], repeated: Callable[[_T], object] = lambda _: None
) -> Iterator[_T]:
    """Yield the items whose text has not come before; to know them takes about 100 bytes each.

    Args:
        repeated: called with each of the others.
    """
    seen: set[bytes] = set()
    for item in items:
        if (digest := digest_of(text_of(item))) not in seen:
            seen.add(digest)
            yield item
        else:
            repeated(item)


def text_lines(source: Source) -> Iterator[tuple[int, str]]:
    """Yield (line number, text) of each line, including blank ones; a very long line is split into pieces.

    Undecodable lines are counted in the report and left out; if they are half or more, the file is rejected.
    """
    begun = ""  # the first part of a word that a soft hyphen divides at the end of a line
    for number, text in _decoded(source, LINE_LIMIT):
        text = f"{begun}{text.lstrip()}" if begun else text
        begun = ""
        if text.rstrip().endswith("\u00ad"):
            text, _, begun = text.rstrip().rpartition(" ")
            if not text.strip():  # no blank line, which would end a paragraph
                continue
        yield number, without_invisible(text)
    if begun:
        yield number, without_invisible(begun)


def _decoded(source: Source, limit: int) -> Iterator[tuple[int, str]]:
    options, path = source.options, source.path
    good = bad = first_bad = 0
    check_at = 1000  # a big file is refused early

    def check() -> None:
        if bad and bad >= good:
            others = "latin-1" if options.encoding.lower().replace("-", "") in ("utf8", "ascii") else "utf-8"
            what = (
                f"{bad} of {good + bad} lines are not {options.encoding}: leave --encoding out, or give the right one"
            )
            if options.encoding == AUTO:
                what = f"{bad} of {good + bad} lines are in none that is known by its bytes: give it"
                others = "cp850"
            raise CorpusError(f"{path}:{first_bad}: unreadable encoding: {what}, for example --encoding {others}")

    decode = LineDecoder(options.encoding)
    odd: list[int] = []

    def opened(encoding: str) -> None:
        if options.encoding == AUTO and encoding != "utf-8":
            source.report.note(f"{path}: read as {encoding}, since it is not UTF-8")

    for number, raw in numbered_lines(path, options, source.tick, limit, opened):
        text = None
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            with suppress(UnicodeDecodeError):
                text = decode(raw)
                odd.append(number)
        if text is None:
            bad += 1
            first_bad = first_bad or number
            source.drop("undecodable", number)
        else:
            good += not text.isspace()
            yield number, text
        if good + bad == check_at:
            check_at *= 10
            check()
    check()
    if odd:
        source.report.note(f"{path}:{odd[0]}: {len(odd)} of its lines not UTF-8, and read as {decode.encoding}")
    if bad:
        known = decode.encoding or options.encoding
        source.report.note(f"{path}:{first_bad}: {bad} of its lines left out: they are not {known}: give --encoding")


def json_object(text: str, where: str) -> Record:
    """Return the object that a line of a JSONL file holds; the error of one that holds none names its place."""
    try:
        value = parse_json(text)
        reason = f"it is {json_type(value)}"
    except ValueError as error:
        value, reason = None, str(error)
    if isinstance(value, dict):
        return _without_types(value)
    raise CorpusError(
        f"{where}: not a JSON object ({reason}): a JSONL file has one object on each line and nothing else"
    )


def _without_types(row: Record) -> Record:
    """Return a row with plain values where MongoDB's export names their types, as in {"$oid": "507f"}."""
    for name, value in row.items():
        if type(value) is dict and len(value) == 1 and next(iter(value)).startswith("$"):
            with suppress(ValueError, TypeError, OverflowError, OSError):
                row[name] = _untyped(value)
    return row


def _untyped(value: Record) -> object:
    ((kind, inner),) = value.items()
    if kind == "$date" and not isinstance(inner, str):
        milliseconds = int(inner["$numberLong"] if isinstance(inner, dict) else inner)
        return datetime.fromtimestamp(milliseconds / 1000, UTC).isoformat()
    kinds: dict[str, Callable[[Any], object]] = {"$numberLong": int, "$numberInt": int, "$numberDouble": float}
    kinds |= {"$numberDecimal": float, "$oid": str, "$date": str}
    return kinds[kind](inner) if kind in kinds else value


def json_type(value: object) -> str:
    """Name the kind of a value read from JSON, in words."""
    return _JSON_TYPES.get(type(value), type(value).__name__)


def field_text(path: Path, number: int, row: Record, field: str) -> str:
    """Return the text of a row's field, "" if it is null; raise a CorpusError if it is missing."""
    if reason := _no_text(row, field):
        raise CorpusError(f"{path}:{number}: {reason}")
    return without_invisible(row[field] or "")


def _no_text(row: Record, field: str) -> str:
    """Return why a row has no text in a field, "" if it has one."""
    if field not in row:
        return f"no field {field!r} in this row; it has: {', '.join(row) or 'nothing'}; give --field NAME"
    if not isinstance(row[field], str | None):
        return f"field {field!r} is {json_type(row[field])}, not a text; give --field NAME"
    return ""


def read_rows(source: Source) -> Iterator[NumberedRow]:
    """Yield the rows of a file of any kind that has rows; the report names those that cannot be read."""
    for number, row in READERS.get(source.kind, _jsonl)(source):
        yield number, row if "".join(row).isascii() else {without_invisible(name): row[name] for name in row}


def texts_of_rows(source: Source) -> Iterator[tuple[int, Record, str]]:
    """Yield the line, the row and the text of each row of a file.

    Raises:
        CorpusError: no row of the first 1,000 has a text, which is the fault of the file or the field; or the source is
            strict.
    """
    name = without_invisible(source.options.field or "")
    good, first, before, line = False, "", source.report.dropped.get("bad row", 0), 0
    for line, row in read_rows(source):
        if reason := _no_text(row, name):
            first = first or f"{source.path}:{line}: {reason}"
            source.drop_row(line, reason)
            if not good and source.report.dropped["bad row"] - before >= _BAD_ROWS:
                raise CorpusError(first)
            continue
        good = True
        yield line, row, without_invisible(row[name] or "")
    if not good and source.report.dropped.get("bad row", 0) > before:
        raise CorpusError(first or source.report.notes[-1])
    if not line and source.size:
        source.report.note(f"{source.path}: there is no row in it")


def _jsonl(source: Source) -> Iterator[NumberedRow]:
    for number, text in _decoded(source, JSON_LIMIT):
        if text.strip():
            try:
                row = json_object(text.lstrip("\ufeff"), "")  # of a file that was put behind another one
            except CorpusError as error:
                source.drop_row(number, str(error).removeprefix(": "))
            else:
                yield number, row


_GAP = re.compile(r"[\s,]*")


def _json(source: Source) -> Iterator[NumberedRow]:
    """Yield the objects of a list, or of a file in which they follow each other on any number of lines.

    A string of a list is a row with that text alone.
    """
    lines = _decoded(source, LINE_LIMIT)
    decoder, held, at, line, ended = json.JSONDecoder(), "", 0, 1, False

    def more() -> bool:
        """Read on, as much again as is held, and return whether there was anything."""
        nonlocal held, at, ended
        parts, size = [held[at:]], 0
        wanted = max(1 << 16, len(parts[0]))
        while size < wanted and not ended:
            _, text = next(lines, (0, ""))
            ended = not text
            parts.append(text)
            size += len(text)
        held, at = "".join(parts), 0
        return size > 0

    more()
    is_list, begun = held.lstrip().startswith("["), False
    while True:
        gap = _GAP.match(held, at)
        assert gap is not None
        line += held.count("\n", at, gap.end())
        at = gap.end()
        if at == len(held):
            if more():
                continue
            if is_list:
                source.drop_row(line, "the list does not end: the file is cut short, or is being written")
            return
        if is_list and held[at] == ("]" if begun else "["):
            if begun:
                return
            begun, at = True, at + 1
            continue
        try:
            value, end = decoder.raw_decode(held, at)
        except (json.JSONDecodeError, RecursionError) as error:
            nested = isinstance(error, RecursionError)
            reason = "it is nested too deeply" if nested else str(error)
            unfinished = not nested and (error.pos > len(held) - 64 or error.msg.startswith("Unterminated"))  # type: ignore[union-attr]
            if unfinished and len(held) - at < JSON_LIMIT and more():
                continue
            source.drop_row(line, f"not a JSON object ({reason}): it and what follows is left out")
            return
        if isinstance(value, dict):
            yield line, _without_types(value)
        elif is_list and isinstance(value, str):
            yield line, {source.options.field or TEXT: value}
        else:
            rows = "a list has an object or a text for each row" if is_list else "one object follows the other"
            source.drop_row(line, f"not a JSON object (it is {json_type(value)}): {rows}")
        line += held.count("\n", at, end)
        at = end


class CsvForm(NamedTuple):
    """The form of a file of separated values.

    Attributes:
        separator: between cells.
        quoted: a quotation mark protects what is in a cell; otherwise it is a sign as any other.
        is_named: a line above the header names the separator, such as Excel's 'sep=;'.
        spaced: blanks before a cell are none of it, so that a quotation mark behind them protects.
    """

    separator: str
    quoted: bool
    is_named: bool = False
    spaced: bool = False

    def rows(self, lines: Iterable[str], *, strict: bool = False) -> Iterator[list[str]]:
        """Return a reader of rows."""
        quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if self.quoted else csv.QUOTE_NONE
        csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a text may be longer than the module's own 128 KiB
        return csv.reader(lines, delimiter=self.separator, quoting=quoting, strict=strict, skipinitialspace=self.spaced)


# No thousands: other than three digits follow, or none but a zero or more than three come before.
_DECIMAL = {
    sign: re.compile(rf"[+-]?(?:\d{{1,20}}\{sign}(?!\d{{3}}$)\d{{1,20}}|(?:0|\d{{4,20}})\{sign}\d{{3}})")
    for sign in ".,"
}


def decimal_of(source: Source) -> str | None:
    """Return the decimal sign of the cells of a file, None if its values have kinds of their own.

    Between commas it is a point. Otherwise it is the one that cells show, as 3,5 and 9.25 do and 1,000 does not; and
    if none does, a comma between semicolons, as in the countries that write both, and a point elsewhere.
    """
    if source.kind == "xlsx":  # its numbers were shown by Python
        return "."
    if source.kind != "csv" or source.options.decimal != "auto":
        return source.options.decimal if source.kind == "csv" else None
    form = csv_form(source)
    if form.separator == ",":
        return "."
    lines = read_head(source.path, source.options).decode("utf-8", "replace").splitlines(keepends=True)[:_TRIED]
    cells = [cell.strip() for row in form.rows(lines) for cell in row]
    shown = [sign for sign in ".," if any(_DECIMAL[sign].fullmatch(cell) for cell in cells)]
    return shown[0] if len(shown) == 1 else "," if form.separator == ";" else "."


_SEPARATORS = (",", ";", "\t", "|")
_TRIED = 100  # rows
_NAMED = re.compile(r"sep=(.)\s*$", re.IGNORECASE)
_PROTECTED = re.compile(r"(?<!\\)((?:\\\\)*)\\\"")  # a quotation mark behind a backslash that none protects itself


def csv_form(source: Source) -> CsvForm:
    """Return the form of a file, by its first lines: the separator at which most rows have as many cells as the header.

    Between tabs, a quotation mark is a sign unless the rows fit their header only if it protects.
    """
    head = read_head(source.path, source.options).decode("utf-8", "replace").removeprefix("\ufeff")
    lines = [line for line in head.splitlines(keepends=True) if line.strip()][: 2 * _TRIED]
    first = _NAMED.match(lines[0]) if lines else None
    named = source.options.separator or (first and first[1])
    sample = lines[1:] if first else lines
    candidates = [named] if named else list(_SEPARATORS)
    if not named and format_suffix(source.path) == ".tsv" and sample:
        others = [separator for separator in _SEPARATORS if separator in sample[0]]
        candidates = ["\t"] if "\t" in others or not others else candidates  # one column has no tab
    quoted = {"\t": (False, True), "|": (False, True)}
    forms = [
        CsvForm(separator, quotes, bool(first), spaced)
        for separator in candidates
        for quotes in quoted.get(separator, (True,))
        for spaced in ((False, True) if quotes and f'{separator} "' in head else (False,))
    ]
    return max(forms, key=lambda form: _fit(form, sample)) if sample else forms[0]


def _fit(form: CsvForm, lines: list[str]) -> tuple[float, int, bool]:
    """Return the share of rows with as many cells as the header, how many these are, and whether blanks are none."""
    try:
        rows = [row for row, _ in zip(form.rows(lines, strict=form.spaced), range(_TRIED), strict=False) if row]
    except csv.Error:
        return 0, 0, False
    width = len(rows[0])
    if width == 1:
        return 0, 0, False
    return sum(len(row) == width for row in rows) / len(rows), width, form.spaced


def _cells(source: Source, form: CsvForm) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of each row that is not blank; of one that is not whole the first line is named.

    A row that is whole only if a backslash protects a quotation mark, as Spark and MySQL write it, is read so.
    """
    lines = ((number, _line_of_cells(text)) for number, text in _decoded(source, LINE_LIMIT))
    if form.is_named:
        next(text for _, text in lines if _NAMED.match(text))
    again: deque[tuple[int, str]] = deque()  # the lines behind the first one of a row that is not whole
    row: list[tuple[int, str]] = []
    size, protects = 0, False

    def next_line() -> str | None:
        nonlocal size
        line = again.popleft() if again else next(lines, None)
        if line is None:
            return None
        row.append(line)
        size += len(line[1])
        if size > JSON_LIMIT:
            raise csv.Error("a quotation mark is missing")
        return _PROTECTED.sub(r'\1""', line[1]) if protects else line[1]

    while True:
        try:
            for cells in form.rows(iter(next_line, None), strict=True):
                number = row[0][0]
                row, size, protects = [], 0, False
                if any(cell.strip() for cell in cells):
                    cells = cells if form.quoted else [_unquoted(cell) for cell in cells]
                    yield number, [without_invisible(cell) if "\u00ad" in cell else cell for cell in cells]
            return
        except csv.Error as error:
            protects = not protects and any(_PROTECTED.search(text) for _, text in row)
            again.extendleft(reversed(row if protects else row[1:]))
            number = row[0][0]
            row, size = [], 0
            if protects:
                continue
            source.drop_row(number, f"this row is not valid CSV ({error}): mend its quotes")


def _line_of_cells(text: str) -> str:
    """Return a line of separated values; a soft hyphen at its end stays, as it may divide a word of a quoted cell."""
    text = text.rstrip("\r\n")
    return f"{without_invisible(text)}{chr(0xAD) * text.endswith(chr(0xAD))}\n".replace("\r", " ")


def _unquoted(cell: str) -> str:
    """Return a cell without quotation marks that a program has put around it, and so has doubled those inside."""
    if len(cell) > 3 and cell[0] == cell[-1] == '"' and '""' in cell[1:-1]:
        inside = cell[1:-1].replace('""', "")
        return cell if '"' in inside else cell[1:-1].replace('""', '"')
    return cell


def csv_header(source: Source) -> list[str]:
    """Return the names of the columns of a file of separated values."""
    return field_names(next(_cells(source, csv_form(source)), (0, []))[1])


def _csv(source: Source) -> Iterator[NumberedRow]:
    form = csv_form(source)
    rows = _cells(source, form)
    _, header = next(rows, (0, []))
    names = field_names(header)
    for number, cells in rows:
        if others := [cell for cell in cells[len(names) :] if cell.strip()]:
            if len(names) == 1:  # the separator is one of the text
                cells = [form.separator.join(cells)]
            else:
                reason = f"{len(cells)} cells, and the header names {len(names)}: {' '.join(others)[:60]!r} is left out"
                source.report.left_out(source.path, number, reason)
        yield number, dict(zip(names, cells, strict=False))


def field_names(header: Iterable[object]) -> list[str]:
    """Return the names of columns; one without a name, or with that of another, gets its number.

    >>> field_names(["id", " text", "", "id"])
    ['id', 'text', 'column 3', 'id 4']
    """
    names: dict[str, None] = {}
    for number, cell in enumerate(header, 1):
        name = without_invisible("" if cell is None else str(cell)).strip() or "column"
        names[f"{name} {number}" if name in names or name == "column" else name] = None
    return list(names)


def _parquet(source: Source) -> Iterator[NumberedRow]:
    import pyarrow as pa
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(source.path) as file:
            for batch in file.iter_batches(1024):
                for row in plain_rows(batch):
                    number += 1
                    yield number, row
    except (pa.ArrowException, OSError, OverflowError, ValueError) as error:
        raise CorpusError(
            f"{source.path}:{number + 1}: this is not a whole Parquet file ({error}): write it again"
        ) from None


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return the names of columns as they are, unless two are alike: one of them would take the place of the other."""
    return list(names) if len({*names}) == len(names) else field_names(names)


def plain_rows(batch: "pa.RecordBatch") -> list[Record]:
    """Return the rows of a batch; times that Python has none for, such as of the year 12000, as texts."""
    import pyarrow as pa

    batch = batch.rename_columns(distinct_names(batch.schema.names))
    try:
        return batch.to_pylist()
    except (OverflowError, ValueError):
        columns = [
            column.cast(pa.string()) if pa.types.is_temporal(column.type) else column for column in batch.columns
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()


def _sheets(source: Source) -> Iterator[NumberedRow]:
    for names, row in rows_of_sheets(source.path, source.options):
        if row.left_out:
            source.report.left_out(source.path, row.place, row.left_out)
        cells = [cell if cell is None else str(cell) for cell in row.cells]
        yield row.place, dict(zip(field_names(names), cells, strict=False))


READERS: dict[str, Callable[[Source], Iterator[NumberedRow]]] = {
    "jsonl": _jsonl,
    "json": _json,
    "csv": _csv,
    "parquet": _parquet,
    "xlsx": _sheets,
}
"""Kind of a file to the function that reads its rows."""


def text_layout(source: Source) -> Layout:
    """Return how a file of text is written, from its first lines and `options.split`."""
    options = source.options
    head = read_head(source.path, options)
    lines = [" ".join(line.split()) for line in head.decode("utf-8", "replace").split("\n")]
    if len(head) == HEAD and len(lines) > 1:
        lines.pop()  # it is cut
    lines = lines[:SAMPLE_LINES]
    known = options.split == "prose"
    if options.split == "line" or not (known or is_prose(lines)):
        return "line"
    return "wrapped" if is_wrapped(lines, known_prose=known) else "prose"
