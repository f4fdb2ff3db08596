"""Rows of files: their texts, the names of their fields, and the kinds of their values."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import cast

from likewise.corpus.clean_text import without_invisible
from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.formats import Page, Row, Source
from likewise.runs.whole_files import Record

_BAD_ROWS = 1000
"""Number of rows without a good one among them after which a file is given up."""
_JSON_TYPES = {
    dict: "an object",
    list: "a list",
    str: "a string",
    bool: "a Boolean",
    int: "a number",
    float: "a number",
    type(None): "null",
}


def json_type(value: object) -> str:
    """Name the kind of a value read from JSON, in words."""
    return _JSON_TYPES.get(type(value), type(value).__name__)


def field_names(header: Iterable[object]) -> list[str]:
    """Return the names of columns; a column without a name, or with a repeated name, gets its number.

    >>> field_names(["id", " text", "", "id"])
    ['id', 'text', 'column 3', 'id 4']
    """
    names: dict[str, None] = {}
    for number, cell in enumerate(header, 1):
        name = without_invisible("" if cell is None else str(cell)).strip() or "column"
        names[f"{name} {number}" if name in names or name == "column" else name] = None
    return list(names)


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return the names of columns; repeated names are made distinct."""
    return list(names) if len({*names}) == len(names) else field_names(names)


def field_text(path: Path, number: int, row: Record, field: str) -> str:
    """Return the text of a row's field, "" if it is null; raise a CorpusError if it is missing."""
    if reason := _no_text(row, field):
        raise CorpusError(f"{path}:{number}: {reason}")
    return without_invisible(row[field] or "")


def read_rows(source: Source) -> Iterator[Row]:
    """Yield the rows of a file that has rows; the report names unreadable rows."""
    is_paged = source.format.holds == "pages"
    rows = _rows_of_pages(source) if is_paged else cast(Iterator[Row], source.format.read(source))
    for number, row in rows:
        yield number, row if "".join(row).isascii() else {without_invisible(name): row[name] for name in row}


def texts_of_rows(source: Source) -> Iterator[tuple[int, Record, str]]:
    """Yield the line, the row and the text of each row of a file.

    Raises:
        CorpusError: If no row of the first 1,000 has a text, which is the fault of the file or the field; or the source
            is strict.
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
        source.report.note(f"{source.path}: it contains no row")


def _no_text(row: Record, field: str) -> str:
    """Return why a row has no text in a field, "" if it has one."""
    if field not in row:
        return f"no field {field!r} in this row; it has: {', '.join(row) or 'nothing'}; give --field NAME"
    if not isinstance(row[field], str | None):
        return f"field {field!r} is {json_type(row[field])}, not a string; give --field NAME"
    return ""


def _rows_of_pages(source: Source) -> Iterator[Row]:
    """Yield the pages with cells as rows, such as a workbook's, where the first of each title is the header."""
    title, names = None, list[str]()
    for page in cast(Iterator[Page], source.format.read(source)):
        if not page.cells and not page.left_out:
            continue
        if page.title != title:
            title, names = page.title, field_names(page.cells)
            continue
        if page.left_out:
            source.report.left_out(source.path, page.place, page.left_out)
        cells = (cell if cell is None else str(cell) for cell in page.cells)
        yield page.place, dict(zip(names, cells, strict=False))
