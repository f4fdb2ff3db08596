"""The fields of rows that are kept with their passages: which there are, and what their values are."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.given import ID, plain_value
from likewise.corpus.lines_and_rows import decimal_of, without_invisible
from likewise.corpus.paragraphs import read_fields
from likewise.corpus.sources import open_source

Kind = Literal["text", "int", "float", "bool"]
"""Of the values of a field. A date is a text, its ISO form, which sorts as dates do."""
CALLED = {"text": "texts", "int": "whole numbers", "float": "numbers", "bool": "true or false"}
LONGEST = 200
"""Characters of a field's texts on average; a field of longer ones is left out, as it is text to read, no property."""
_INT = re.compile(r"-?(?:0|[1-9]\d{0,17})")
_FLOAT = re.compile(r"-?(?:0|[1-9]\d*)\.\d+(?:[eE][+-]?\d+)?")
_BOOL = {"true": True, "false": False}
_NAME = re.compile(r"[A-Za-z_]\w*")


class FieldColumn(NamedTuple):
    """A column of the table, and the kind of its values."""

    name: str
    kind: Kind


@dataclass
class _Seen:
    """The values of a field so far."""

    kinds: set[str] = field(default_factory=set)
    texts: int = 0
    characters: int = 0

    def add(self, value: Any) -> None:
        self.kinds.add(_kind_of(value))
        if isinstance(value, str):
            self.texts += 1
            self.characters += len(value)

    @property
    def kind(self) -> Kind | None:
        """The kind that fits all values; None if there is none, or the texts are long."""
        if "" in self.kinds or not self.kinds or self.characters > LONGEST * max(1, self.texts):
            return None
        if self.kinds <= {"int", "float"}:
            return "float" if "float" in self.kinds else "int"
        return "bool" if self.kinds == {"bool"} else "text"


def kinds_of(
    paths: Iterable[Path], options: CorpusOptions, wanted: Collection[str] | None, taken: Collection[str]
) -> dict[str, Kind]:
    """Return the fields of the rows of files, each with the kind of its values; {} if no file has rows.

    Args:
        wanted: the fields that are kept, which all are in the result; None for every field whose values are numbers,
            short texts, or true or false, and whose name is letters and digits.
        taken: names that no field can have, if none are wanted.

    Raises:
        CorpusError: a file cannot be read.
    """
    seen: dict[str, _Seen] = defaultdict(_Seen)
    for path in paths:
        source = open_source(path, options)
        decimal = decimal_of(source)
        for row in read_fields(source) if wanted != () else ():
            for name, value in row.items():
                value = _value(value, decimal)
                if value is not None and (name in wanted if wanted is not None else name != options.field):
                    seen[name].add(value)
    if wanted is not None:
        return {name: seen[name].kind or "text" for name in wanted}
    left_out = {ID, "id", "title", *taken}
    found = {name: one.kind for name, one in seen.items() if name not in left_out and _NAME.fullmatch(name)}
    return {name: kind for name, kind in found.items() if kind is not None}


def merged(one: Kind, other: Kind) -> Kind:
    """Return the kind that fits values of two kinds.

    >>> merged("int", "float"), merged("int", "bool")
    ('float', 'text')
    """
    return one if one == other else "float" if {one, other} == {"int", "float"} else "text"


def _value(value: Any, decimal: str | None) -> Any:
    """Return a value of a row as it is kept; a cell of a CSV file as the number that it shows, if it is one.

    Args:
        decimal: the decimal sign of cells; None for values that have kinds of their own.
    """
    value = plain_value(value)
    if not isinstance(value, str):
        return value
    if decimal:
        shown = value.strip()
        if _INT.fullmatch(shown):
            return int(shown)
        if _FLOAT.fullmatch(number := shown.translate({ord(decimal): ".", ord("."): decimal})):
            return float(number)
        if shown.lower() in _BOOL:
            return _BOOL[shown.lower()]
    return without_invisible(value) or None


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -(2**63) <= value < 2**63 else "text"
    return "float" if isinstance(value, float) else "text" if isinstance(value, str) else ""


def kept_values(
    row: Mapping[str, Any], kinds: Mapping[str, Kind], decimal: str | None = None
) -> tuple[tuple[Any, ...], list[str]]:
    """Return the values of a row's fields, in the order of `kinds`, and sentences on those that are of another kind.

    A value is None if it is not there, or is of another kind than the index holds, which an earlier update has fixed.
    """
    values, misfits = [], []
    for name, kind in kinds.items():
        value, fits = _fitted(row.get(name), kind, decimal)
        values.append(value)
        if not fits:
            misfits.append(
                f"{name} is {row[name]!r}, and the index holds {CALLED[kind]} in this field: it is left out; "
                "change the value, or make the index again with overwrite"
            )
    return tuple(values), misfits


def _fitted(value: Any, kind: Kind, decimal: str | None) -> tuple[Any, bool]:
    """Return a value as one of a kind, and whether it fits."""
    if kind == "text":
        value = plain_value(value)
        if isinstance(value, bool):
            value = str(value).lower()
        return None if value is None else without_invisible(str(value)) or None, True
    value = _value(value, decimal)
    found = "bool" if isinstance(value, bool) else _kind_of(value)
    if value is None or found == kind:
        return value, True
    if kind == "float" and found == "int":
        return float(value), True
    return None, False
