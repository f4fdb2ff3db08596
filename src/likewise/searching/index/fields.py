"""The fields of rows that are stored with their passages, and the types of their values."""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from likewise.corpus.clean_text import without_invisible
from likewise.corpus.corpus_options import TEXT, CorpusError, CorpusOptions
from likewise.corpus.csv_rows import SeparatedValues, csv_form
from likewise.corpus.files import read_head
from likewise.corpus.formats import Source
from likewise.corpus.inputs import ID, plain_value
from likewise.corpus.rows import read_rows
from likewise.corpus.sources import open_source
from likewise.runs.whole_files import Values

Kind = Literal["text", "int", "float", "bool", "date", "list"]
"""The kind of a field's values. Dates are kept as their ISO texts, and lists as texts between `BETWEEN`."""
CALLED = {
    "text": "strings",
    "int": "integers",
    "float": "numbers",
    "bool": "Booleans",
    "date": "dates",
    "list": "lists of strings",
}
LONGEST = 200
"""Characters of a field's texts on average; a field of longer ones is skipped, as it is text to read, no property."""
BETWEEN = "\x1f"
"""The character before, between and after the members of a list: ASCII's unit separator, which no text has."""
_INT = re.compile(r"[+-]?(?:0|[1-9]\d*)")
_MOST_DIGITS = 19  # of a whole number of 64 bits
_FLOAT = re.compile(r"[+-]?(?:0|[1-9]\d*)?\.\d+(?:[eE][+-]?\d+)?|[+-]?(?:0|[1-9]\d*)\.?(?:[eE][+-]?\d+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:,\d{3})+(?:\.\d+)?")
_DECIMAL = {
    sign: re.compile(rf"[+-]?(?:\d{{1,20}}\{sign}(?!\d{{3}}$)\d{{1,20}}|(?:0|\d{{4,20}})\{sign}\d{{3}})")
    for sign in ".,"
}
_TRIED_LINES = 100
"""Lines of a file that show its decimal sign."""
_BOOL = {"true": True, "false": False}
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?P<seconds>:\d\d(?:\.\d{1,9})?)?(?:Z|[+-]\d\d:?\d\d)?)?")
_MISSING = frozenset(
    ["", "-", "--", "?", ".", "\\n", "n/a", "#n/a", "na", "<na>", "nan", "null", "none", "nil", "missing"]
)
"""Texts, in lower case, that stand for a missing value in a field of numbers, dates, or true and false."""


class FieldColumn(NamedTuple):
    """A column of the table.

    Attributes:
        name: Name of the column.
        kind: Kind of its values.
        field: Name of its field, if it differs.
        exact: Whether texts are compared with regard to case.
        whole: Whether all texts are integers.
    """

    name: str
    kind: Kind
    field: str = ""
    exact: bool = False
    whole: bool = False

    @property
    def label(self) -> str:
        """The name of the field, for a message."""
        return self.field or self.name


@dataclass
class _Seen:
    """The values of a field so far."""

    kinds: set[str] = field(default_factory=set)
    texts: int = 0
    characters: int = 0

    def add(self, value: object) -> None:
        kind = _kind_of(value)
        if kind == "text" and str(value).strip().lower() in _MISSING:
            kind = "missing"
        self.kinds.add(kind)
        if isinstance(value, str):
            self.texts += 1
            self.characters += len(value)

    @property
    def kind(self) -> Kind | None:
        """The kind that fits all values; None if there is none, or the texts are long."""
        kinds = self.kinds - {"missing"}
        if "" in kinds or not self.kinds or self.characters > LONGEST * max(1, self.texts):
            return None
        if "list" in kinds:
            return "list"
        if kinds and kinds <= {"int", "float"}:
            return "float" if "float" in kinds else "int"
        return kinds.pop() if len(kinds) == 1 else "text"  # type: ignore[return-value]


def decimal_of(source: Source) -> str | None:
    """Return the decimal separator of the cells of a file, None if its values are typed.

    Between commas it is a point. Otherwise it is the one that cells show, as 3,5 and 9.25 do and 1,000 does not; and
    if none does, a comma between semicolons, as in the countries that write both, and a point elsewhere.
    """
    if source.format.holds == "pages":  # numbers of a sheet were shown by Python
        return "." if source.holds == "rows" else None
    if not isinstance(source.format, SeparatedValues) or source.options.decimal != "auto":
        return source.options.decimal if isinstance(source.format, SeparatedValues) else None
    form = csv_form(source)
    if form.separator == ",":
        return "."
    lines = read_head(source.path, source.options).decode("utf-8", "replace").splitlines(keepends=True)[:_TRIED_LINES]
    cells = [cell.strip() for row in form.rows(lines) for cell in row]
    signs = [sign for sign in ".," if any(_DECIMAL[sign].fullmatch(cell) for cell in cells)]
    return signs[0] if len(signs) == 1 else "," if form.separator == ";" else "."


def kinds_of(
    paths: Iterable[Path], options: CorpusOptions, fields: Collection[str] | None, taken: Collection[str]
) -> tuple[dict[str, Kind], dict[str, str]]:
    """Return the fields of the rows of files, each with the kind of its values, and why other fields are not kept.

    Args:
        fields: Names of the stored fields; None for every field whose values are numbers, dates, short texts, lists of
            these, or Booleans.
        taken: Names that no field can have, if `fields` is None.
    """
    seen: dict[str, _Seen] = defaultdict(_Seen)
    text = options.field or TEXT
    for path in paths if fields is None or fields else ():
        with suppress(CorpusError):  # it is reported when the file is read
            source = open_source(path, options)
            decimal = decimal_of(source)
            is_table = source.holds == "rows"
            rows: Iterable[Values] = (row for _, row in read_rows(source)) if is_table else source.format.fields(source)
            for row in rows:
                for name, value in row.items():
                    value = _value(value, decimal)
                    if value is not None and (name in fields if fields is not None else name != text):
                        seen[name].add(value)
    if fields is not None:
        return {name: seen[name].kind or "text" for name in fields if name in seen}, {}
    kinds: dict[str, Kind] = {}
    left_out: dict[str, str] = {}
    for name, values in seen.items():
        if not name.strip() or name in (ID, "id", "title"):
            continue
        if name in taken:
            left_out[name] = "a name of the index's own"
        elif (kind := values.kind) is None:
            left_out[name] = "nested values" if "" in values.kinds else "long texts"
        else:
            kinds[name] = kind
    return kinds, left_out


def _value(value: object, decimal: str | None) -> Any:
    """Return a value of a row as it is kept; a cell of a CSV file as the number that it shows, if it is one.

    Args:
        decimal: Decimal separator of cells; None for typed values.
    """
    value = plain_value(value)
    if isinstance(value, list | tuple):
        members = [plain_value(one) for one in value]
        return [one for one in members if one is not None]
    if not isinstance(value, str):
        return value
    if decimal:
        cell = value.strip()
        if decimal == ",":
            cell = cell.translate({ord(","): ".", ord("."): ","})
        if _THOUSANDS.fullmatch(cell):
            cell = cell.replace(",", "")
        if _INT.fullmatch(cell):
            whole = int(cell) if len(cell) <= _MOST_DIGITS + 1 else 2**63
            # A longer one, such as a number of an account, is a text: as a float it would lose digits.
            return whole if -(2**63) <= whole < 2**63 else cell
        if _FLOAT.fullmatch(cell) and math.isfinite(float(cell)):
            return float(cell)
        if cell.lower() in _BOOL:
            return _BOOL[cell.lower()]
    return without_invisible(value) or None


def _kind_of(value: object) -> str:
    """Return the kind of a value; "" if no field can hold it."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -(2**63) <= value < 2**63 else "text"
    if isinstance(value, str):
        return "date" if is_date(value) else "text"
    if isinstance(value, list):
        return "list" if all(isinstance(one, str | int | float) for one in value) else ""
    return "float" if isinstance(value, float) else ""


def is_date(text: str) -> bool:
    """Return whether a text is a date, or a date and a time, in ISO form.

    >>> is_date("2024-05-01"), is_date("2024-05-01T10:00:00+02:00"), is_date("2024-13-01")
    (True, True, False)
    """
    if not _DATE.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def has_no_seconds(value: object) -> bool:
    """Return whether a date has a time of hours and minutes alone, which LanceDB does not read.

    >>> has_no_seconds("2024-05-01 10:30"), has_no_seconds("2024-05-01")
    (True, False)
    """
    match = _DATE.fullmatch(value) if isinstance(value, str) and len(value) > 10 else None
    return match is not None and not match["seconds"]


def stored_values(
    row: Values, kinds: Mapping[str, Kind], decimal: str | None = None
) -> tuple[tuple[object, ...], list[str]]:
    """Return the values of a row's fields, in the order of `kinds`, and notes on values of another kind.

    A value is None if it is missing, or if its kind differs from the kind in the index, which an earlier update has
    determined.
    """
    values, misfits = [], []
    for name, kind in kinds.items():
        value, fits = _fitted(row.get(name), kind, decimal)
        values.append(value)
        if not fits:
            misfits.append(
                f"{name} is {row[name]!r}, but the index contains {CALLED[kind]} in this field: change the value, or "
                f"rebuild the index with overwrite"
            )
    return tuple(values), misfits


def _fitted(value: Any, kind: Kind, decimal: str | None) -> tuple[object, bool]:
    """Return a value as one of a kind, and whether it fits."""
    if kind == "text":
        value = plain_value(value)
        if isinstance(value, list):  # in an index whose field held texts before
            value = ", ".join(map(str, value))
        if isinstance(value, bool):
            value = str(value).lower()
        return None if value is None else without_invisible(str(value)) or None, True
    value = _value(value, decimal)
    if kind == "list":
        members = value if isinstance(value, list) else [] if value is None else [value]
        texts = [without_invisible(str(one)) for one in members]
        return f"{BETWEEN}{BETWEEN.join(texts)}{BETWEEN}" if texts else None, True
    if value is None or (isinstance(value, str) and value.strip().lower() in _MISSING):
        return None, True
    actual = _kind_of(value)
    if actual == kind:
        return f"{value[:16]}:00{value[16:]}" if has_no_seconds(value) else value, True
    if kind == "float" and actual == "int":
        return float(value), True
    return None, False


def output_value(value: object, kind: Kind) -> Any:
    """Return a value of a field as a hit shows it: a list as a list again."""
    return value.strip(BETWEEN).split(BETWEEN) if kind == "list" and isinstance(value, str) else value
