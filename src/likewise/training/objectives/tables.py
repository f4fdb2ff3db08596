"""Files of labelled rows with named columns: comma or tab separated with a header, or JSONL; compressed or not."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from likewise.corpus.files import format_suffix, numbered_lines
from likewise.training.objectives.rows import LabelledDataError

Columns = Mapping[str, Sequence[str]]
"""What a column is to us, and the names that files give it, the likeliest first. Case does not matter."""

csv.field_size_limit(1 << 20)


def read_table(path: Path, columns: Columns) -> Iterator[tuple[int, list[str]]]:
    """The rows of a file: (line, the wanted columns' texts in the order of `columns`).

    A file ending in .jsonl or .json (or .jsonl.gz, ...) has an object a line. Any other has a header; where the header
    holds a tab, tabs separate and quotes are plain characters, else commas separate and quotes protect (as Excel and
    Python write CSV). Blank lines are skipped; white space around a text is taken off.

    Raises:
        LabelledDataError: a column is missing, a row is too short, or a line cannot be read.
        CorpusError: the file cannot be opened or decompressed.
    """
    if format_suffix(path) in (".jsonl", ".json", ".ndjson"):
        yield from _objects(path, columns)
        return
    lines = _lines(path)
    header = next(lines, "").rstrip("\r\n")
    if not header.strip():
        raise LabelledDataError(f"{path}:1: a header with the names of the columns is expected, and the line is empty")
    if "\t" in header:
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        names = header.split("\t")
    else:
        reader = csv.reader(lines, strict=True)
        names = next(csv.reader([header]))
    places = list(_found(names, columns, f"{path}:1").values())
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
            yield line, [row[place].strip() for place in places]
    except csv.Error as error:
        raise LabelledDataError(
            f"{path}:{start}: the row that begins here cannot be read ({error}): a quote is missing"
        ) from None


def _objects(path: Path, columns: Columns) -> Iterator[tuple[int, list[str]]]:
    for number, text in enumerate(_lines(path), 1):
        if not text.strip():
            continue
        try:
            row = json.loads(text)
        except ValueError as error:
            raise LabelledDataError(
                f"{path}:{number}: not JSON ({error}): one object a line is expected; copy the file again"
            ) from None
        if not isinstance(row, dict):
            raise LabelledDataError(f"{path}:{number}: an object is expected, as {{...}}, not {type(row).__name__}")
        found = _found(list(row), columns, f"{path}:{number}")
        names = list(row)
        values = [row[names[place]] for place in found.values()]
        yield number, ["" if value is None else str(value).strip() for value in values]


def _found(names: Sequence[str], columns: Columns, where: str) -> dict[str, int]:
    """The place of each wanted column."""
    lower = [name.strip().lower() for name in names]
    places = {}
    for column, known in columns.items():
        place = next((lower.index(name.lower()) for name in known if name.lower() in lower), None)
        if place is None:
            there = ", ".join(name.strip()[:40] for name in names[:12])
            raise LabelledDataError(
                f"{where}: no column {' or '.join(known)}; there are: {there}. Name it in the header."
            )
        places[column] = place
    return places


def _lines(path: Path) -> Iterator[str]:
    for number, raw in numbered_lines(path):
        try:
            yield raw.decode("utf-8")
        except UnicodeDecodeError:
            raise LabelledDataError(f"{path}:{number}: not UTF-8; convert the file with iconv") from None
