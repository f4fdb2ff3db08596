"""Rows of cells between commas, semicolons, tabs or bars, below a header."""

import csv
import re
import sys
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple

from likewise.corpus.clean_text import without_invisible
from likewise.corpus.files import LINE_LIMIT, format_suffix, read_head
from likewise.corpus.formats import Format, Line, Row, Source
from likewise.corpus.json_rows import ROW_LIMIT
from likewise.corpus.rows import field_names
from likewise.corpus.text_lines import decoded_lines

# No thousands: other than three digits follow, or none but a zero or more than three come before.
_SEPARATORS = (",", ";", "\t", "|")
_TRIED = 100
"""Number of rows that decide the form of a file."""
_NAMED = re.compile(r"sep=(.)\s*$", re.IGNORECASE)


class SeparatedValues(Format):
    """Files of cells between commas, semicolons, tabs or bars, below a header."""

    name = "CSV"
    suffixes = (".csv", ".tsv")
    holds = "rows"

    def read(self, source: Source) -> Iterator[Row]:
        """Yield the rows; cells without a column are reported."""
        form = csv_form(source)
        rows = _cells(source, form)
        _, header = next(rows, (0, []))
        names = field_names(header)
        for number, cells in rows:
            if others := [cell for cell in cells[len(names) :] if cell.strip()]:
                if len(names) == 1:  # the separator is one of the text
                    cells = [form.separator.join(cells)]
                else:
                    reason = (
                        f"{len(cells)} cells, but the header names {len(names)}: {' '.join(others)[:60]!r} is dropped"
                    )
                    source.report.left_out(source.path, number, reason)
            yield number, dict(zip(names, cells, strict=False))


class CsvForm(NamedTuple):
    """The form of a file of separated values.

    Attributes:
        separator: Separator of cells.
        quoted: Whether a quotation mark protects the content of a cell; otherwise it is an ordinary character.
        is_named: Whether a line above the header names the separator, such as Excel's 'sep=;'.
        spaced: Whether blanks before a cell are ignored, so that a quotation mark after them protects.
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


def csv_form(source: Source) -> CsvForm:
    """Return the form of a file, by its first lines: the separator at which most rows have as many cells as the header.

    Between tabs, a quotation mark is an ordinary character, unless the rows fit their header only if it protects.
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


def csv_header(source: Source) -> list[str]:
    """Return the names of the columns of a file of separated values."""
    return field_names(next(_cells(source, csv_form(source)), (0, []))[1])


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
    """Yield the line and the cells of each row that is not blank; of one that is not whole the first line is named."""
    lines = ((number, _line_of_cells(text)) for number, text in decoded_lines(source, LINE_LIMIT))
    if form.is_named:
        next(text for _, text in lines if _NAMED.match(text))
    again: deque[Line] = deque()  # the lines behind the first one of a row that is not whole
    row: list[Line] = []
    size = 0

    def next_line() -> str | None:
        nonlocal size
        line = again.popleft() if again else next(lines, None)
        if line is None:
            return None
        row.append(line)
        size += len(line[1])
        if size > ROW_LIMIT:
            raise csv.Error("a quotation mark is missing")
        return line[1]

    while True:
        try:
            for cells in form.rows(iter(next_line, None), strict=True):
                number = row[0][0]
                row, size = [], 0
                if any(cell.strip() for cell in cells):
                    cells = cells if form.quoted else [_unquoted(cell) for cell in cells]
                    yield number, [without_invisible(cell) if "\u00ad" in cell else cell for cell in cells]
            return
        except csv.Error as error:
            again.extendleft(reversed(row[1:]))
            number = row[0][0]
            row, size = [], 0
            source.drop_row(number, f"this row is not valid CSV ({error}): correct its quotes")


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
