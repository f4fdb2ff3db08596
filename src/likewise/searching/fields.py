"""The fields of rows that are kept with their passages: which there are, and what their values are."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.given import ID, plain_value
from likewise.corpus.lines_and_rows import READERS, without_invisible
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
        if source.kind not in READERS or wanted == ():
            continue
        for _, row in READERS[source.kind](source):
            for name, value in row.items():
                value = _value(value, source.kind == "csv")
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


def _value(value: Any, is_csv: bool) -> Any:
    """Return a value of a row as it is kept; a cell of a CSV file as the number that it shows, if it is one."""
    value = plain_value(value)
    if not isinstance(value, str):
        return value
    if is_csv:
        if _INT.fullmatch(value):
            return int(value)
        if _FLOAT.fullmatch(value):
            return float(value)
        if value.lower() in _BOOL:
            return _BOOL[value.lower()]
    return without_invisible(value) or None


def _kind_of(value: Any) -> str:
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if -(2**63) <= value < 2**63 else "text"
    return "float" if isinstance(value, float) else "text" if isinstance(value, str) else ""


def kept_values(row: Mapping[str, Any], kinds: Mapping[str, Kind], place: str, is_csv: bool) -> tuple[Any, ...]:
    """Return the values of a row's fields, in the order of `kinds`; None for one that is not there.

    Raises:
        CorpusError: a value is not of its kind, which an earlier update has fixed.
    """
    return tuple(_fitted(row.get(name), name, kind, place, is_csv) for name, kind in kinds.items())


def _fitted(value: Any, name: str, kind: Kind, place: str, is_csv: bool) -> Any:
    if kind == "text":
        value = plain_value(value)
        if isinstance(value, bool):
            value = str(value).lower()
        return None if value is None else without_invisible(str(value)) or None
    value = _value(value, is_csv)
    found = "bool" if isinstance(value, bool) else _kind_of(value)
    if value is None or found == kind:
        return value
    if kind == "float" and found == "int":
        return float(value)
    raise CorpusError(
        f"{place}: {name} is {value!r}, and the index holds {CALLED[kind]} in this field: change the value or leave it "
        "out, or make the index again with overwrite"
    )
