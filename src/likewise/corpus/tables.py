"""Tables with named columns: comma or tab separated with a header, or JSONL."""

import csv
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.files import format_suffix, strict_lines
from likewise.corpus.lines_and_rows import json_object

Columns = Mapping[str, Sequence[str]]
"""The names of each column in files, the likeliest first. Case does not matter."""

TableRow = tuple[str, Sequence[Any]]
"""Its place, 'file:line', and its cells."""

_CELL = 1 << 20  # characters of a cell; a missing quote makes one of all that follows


class LabelledDataError(CorpusError):
    """Raised if labelled data cannot be read as asked; the message names the file, the line and the cure."""


def read_table(path: Path, columns: Columns, optional: Sequence[str] = ()) -> Iterator[TableRow]:
    """Read the rows of a file: the texts of the wanted columns in the order of `columns`.

    A file ending in .jsonl or .json (or .jsonl.gz, ...) has an object a line. Any other has a header; where the header
    holds a tab, tabs separate and quotes are plain characters, else commas separate and quotes protect (as Excel and
    Python write CSV). Blank lines are skipped; white space around a text is taken off.

    Args:
        optional: further columns; where there is none of that name, the text is empty.
    """
    if format_suffix(path) in (".jsonl", ".json", ".ndjson"):
        for number, text in enumerate(strict_lines(path), 1):
            if text.strip():
                found = json_object(text, f"{path}:{number}", LabelledDataError)
                cells = [*found.values(), None]
                texts = [cells[place] for place in _places(list(found), columns, optional, f"{path}:{number}")]
                yield f"{path}:{number}", ["" if cell is None else str(cell).strip() for cell in texts]
        return
    lines = strict_lines(path)
    header = next(lines, "").rstrip("\r\n")
    if not header.strip():
        raise LabelledDataError(f"{path}:1: a header with the names of the columns is expected, and the line is empty")
    csv.field_size_limit(_CELL)
    if "\t" in header:
        reader = csv.reader(lines, delimiter="\t", quoting=csv.QUOTE_NONE)
        names = header.split("\t")
    else:
        reader = csv.reader(lines, strict=True)
        names = next(csv.reader([header]))
    places = _places(names, columns, optional, f"{path}:1")
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
            yield f"{path}:{line}", [row[place].strip() if place >= 0 else "" for place in places]
    except csv.Error as error:
        raise LabelledDataError(
            f"{path}:{start}: the row that begins here cannot be read ({error}): a quote is missing"
        ) from None


def _places(names: Sequence[str], columns: Columns, optional: Sequence[str], where: str) -> list[int]:
    """Return the index of each wanted column, -1 for an optional one that is not there."""
    index = {name.strip().lower(): place for place, name in reversed(list(enumerate(names)))}
    wanted = [*columns.values(), *([name] for name in optional)]
    places = [next((index[name.lower()] for name in known if name.lower() in index), -1) for known in wanted]
    missing = [" or ".join(known) for known, place in zip(columns.values(), places, strict=False) if place < 0]
    if missing:
        there = ", ".join(name.strip()[:40] for name in names[:12])
        raise LabelledDataError(
            f"{where}: there is no column {', '.join(missing)}, only {there}: name it in the header"
        )
    return places
