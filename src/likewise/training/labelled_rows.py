"""Labelled rows, read from files with named columns: comma or tab separated with a header, or JSONL."""

import csv
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.corpus.decoding import json_type
from likewise.corpus.files import format_suffix, strict_lines
from likewise.errors import LikewiseError
from likewise.runs.whole_files import parse_json

LABEL = "label"
"""The column of labels."""

Columns = Mapping[str, Sequence[str]]
"""The names of each column in files, the likeliest first. Case does not matter."""

TableRow = tuple[str, Sequence[Any]]
"""Its place, 'file:line', and its cells."""


class LabelledDataError(LikewiseError):
    """Raised if labelled data cannot be read as asked; the message names the file, the line and the cure."""


@dataclass(frozen=True)
class LabelledRows:
    """Rows of texts, with or without a label.

    Attributes:
        dataset: a Hugging Face dataset: the text columns in order, then 'label' where there is one.
        unit: what a row is, in the plural, for the user.
        dropped: the number of rows that were left out, by reason.
        left_out: the same in words, with the place of the first of each.
    """

    dataset: Any
    unit: str
    sources: tuple[str, ...]
    sha256: str
    dropped: Mapping[str, int]
    left_out: str

    def __len__(self) -> int:
        return len(self.dataset)

    def __str__(self) -> str:
        return f"{len(self):,} {self.unit} from {', '.join(self.sources)}\n{self.left_out}".rstrip()

    def record(self) -> dict[str, Any]:
        """Return the facts about the rows for the record of a run."""
        return {
            "sources": list(self.sources),
            "sentences": len(self),
            "unit": self.unit,
            "sha256": self.sha256,
            "dropped": dict(self.dropped),
        }


def collect(
    rows: Iterable[TableRow],
    texts: Sequence[str],
    unit: str,
    sources: Sequence[Path],
    kind: str | None = None,
    number: Callable[[Any, str], Any] | None = None,
) -> LabelledRows:
    """Collect rows in a dataset; those with an empty text or without a label are left out.

    Args:
        rows: the texts of each, then its label.
        kind: Arrow type of the label, "int64" or "float32"; None for rows without one.
        number: (label, place) to the number to learn, None for no label.
    """
    from datasets import Dataset, Features, Value

    dropped: Counter[str] = Counter()
    first: dict[str, str] = {}
    kept: list[tuple[Any, ...]] = []
    digest = hashlib.sha256()
    for place, cells in rows:
        row: tuple[Any, ...] = tuple(cells[: len(texts)])
        label = number(cells[-1], place) if number is not None and all(row) else None
        if not all(row) or (number is not None and label is None):
            reason = "no gold label" if all(row) else "an empty sentence"
            dropped[reason] += 1
            first.setdefault(reason, place)
        else:
            kept.append(row if number is None else (*row, label))
            digest.update(repr(kept[-1]).encode("utf-8", "backslashreplace"))
    named = tuple(str(path) for path in sources)
    left_out = "; ".join(f"{n:,} left out: {why} (first: {first[why]})" for why, n in dropped.items())
    if not kept:
        raise LabelledDataError(f"{', '.join(named)}: no {unit} are in it{f' ({left_out})' if left_out else ''}")
    types = dict.fromkeys(texts, "string") | ({LABEL: kind} if kind else {})
    features = Features({name: Value(kind) for name, kind in types.items()})
    dataset = Dataset.from_dict(dict(zip(types, map(list, zip(*kept, strict=True)), strict=True)), features)
    return LabelledRows(dataset, unit, named, digest.hexdigest(), dropped, left_out)


csv.field_size_limit(1 << 20)


def read_table(path: Path, columns: Columns) -> Iterator[TableRow]:
    """Read the rows of a file: the texts of the wanted columns in the order of `columns`.

    A file ending in .jsonl or .json (or .jsonl.gz, ...) has an object a line. Any other has a header; where the header
    holds a tab, tabs separate and quotes are plain characters, else commas separate and quotes protect (as Excel and
    Python write CSV). Blank lines are skipped; white space around a text is taken off.
    """
    if format_suffix(path) in (".jsonl", ".json", ".ndjson"):
        yield from _objects(path, columns)
        return
    lines = strict_lines(path)
    header = next(lines, "").rstrip("\r\n")
    if not header.strip():
        raise LabelledDataError(f"{path}:1: a header with the names of the columns is expected, and the line is empty")
    if "\t" in header:
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        names = header.split("\t")
    else:
        reader = csv.reader(lines, strict=True)
        names = next(csv.reader([header]))
    places = _places(names, columns, f"{path}:1")
    start = 2
    try:
        for row in reader:
            line, start = start, reader.line_num + 2
            if not any(cell.strip() for cell in row):
                continue
            if len(row) <= max(places):
                raise LabelledDataError(
                    f"{path}:{line}: {len(row)} columns, and the header names {len(names)}. A quote or a separator is "
                    "missing there; mend the line or copy the file again."
                )
            yield f"{path}:{line}", [row[place].strip() for place in places]
    except csv.Error as error:
        raise LabelledDataError(
            f"{path}:{start}: the row that begins here cannot be read ({error}): a quote is missing"
        ) from None


def _objects(path: Path, columns: Columns) -> Iterator[TableRow]:
    for number, text in enumerate(strict_lines(path), 1):
        if not text.strip():
            continue
        place = f"{path}:{number}"
        try:
            row = parse_json(text)
        except ValueError as error:
            raise LabelledDataError(
                f"{place}: not JSON ({error}): one object a line is expected; copy the file again"
            ) from None
        if not isinstance(row, dict):
            raise LabelledDataError(f"{place}: an object is expected, as {{...}}, not {json_type(row)}")
        values = list(row.values())
        found = [values[at] for at in _places(list(row), columns, place)]
        yield place, ["" if value is None else str(value).strip() for value in found]


def _places(names: Sequence[str], columns: Columns, where: str) -> list[int]:
    """Return the index of each wanted column."""
    lower = [name.strip().lower() for name in names]
    places = []
    for known in columns.values():
        place = next((lower.index(name.lower()) for name in known if name.lower() in lower), None)
        if place is None:
            there = ", ".join(name.strip()[:40] for name in names[:12])
            raise LabelledDataError(
                f"{where}: no column {' or '.join(known)}; there are: {there}. Name it in the header."
            )
        places.append(place)
    return places
