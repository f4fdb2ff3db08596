"""Tables with named columns: any file of rows."""

import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from likewise.corpus.clean_text import without_invisible
from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.csv_rows import SeparatedValues, csv_header
from likewise.corpus.files import read_head
from likewise.corpus.formats import Source
from likewise.corpus.rows import json_type, read_rows

Columns = Mapping[str, Sequence[str]]
"""The names of each column in files, the likeliest first. Case does not matter."""

TableRow = tuple[str, Sequence[Any]]
"""Its place, 'file:line', and its cells."""


class LabelledDataError(CorpusError):
    """Raised if labeled data is malformed or missing; the message names the file, the line and the cure."""


def read_table(path: Path, columns: Columns, optional: Sequence[str] = ()) -> Iterator[TableRow]:
    """Read the rows of a file: the texts of the requested columns in the order of `columns`.

    The suffixes .jsonl, .json, .parquet and .xlsx determine the format; other files have a header and cells separated
    by tabs, commas or semicolons. Blank lines are skipped, and texts are stripped of white space.

    Args:
        optional: Names of further columns; the text of a missing column is empty.

    Raises:
        LabelledDataError: If the file, or a row, cannot be read.
    """
    from likewise.corpus.known_formats import row_format
    from likewise.corpus.sources import refuse_binary  # imports numpy, which the help of `finetune` does without

    source = Source(path, CorpusOptions(), row_format(path), "rows", strict=True)
    try:
        header: list[str] = []
        if isinstance(source.format, SeparatedValues):
            refuse_binary(path, read_head(path, source.options))
            header = csv_header(source)
            if not any(header):
                raise LabelledDataError(
                    f"{path}:1: a header with the names of the columns is expected, but the line is empty"
                )
            _places(header, columns, optional, f"{path}:1")
        for number, row in read_rows(source):
            names = header or list(row)
            places = _places(names, columns, optional, f"{path}:{number}")
            if len(row) <= max(places):
                raise LabelledDataError(
                    f"{path}:{number}: {len(row)} columns, but the header names {len(names)}. A quote or a separator "
                    f"is missing; correct the line or copy the file again."
                )
            if source.report.failed:  # cells that no column has
                raise LabelledDataError(f"{source.report.notes[-1]}: quote the cell that contains a separator")
            cells = [*row.values()]
            yield (
                f"{path}:{number}",
                ["" if place < 0 else _text(cells[place], f"{path}:{number}", names[place]) for place in places],
            )
    except LabelledDataError:
        raise
    except CorpusError as error:
        raise LabelledDataError(str(error)) from None


def _text(value: object, where: str, name: str) -> str:
    """Return a cell as text; one that is missing is empty."""
    if isinstance(value, list | dict):
        expected = "but a string or a number is expected: write a row for each"
        raise LabelledDataError(f"{where}: {name} is {json_type(value)}, {expected}")
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ""
    return without_invisible(str(value)).strip()


def _places(names: Sequence[str], columns: Columns, optional: Sequence[str], where: str) -> list[int]:
    """Return the index of each wanted column, -1 for an optional one that is not there."""
    index = {name.strip().lower(): place for place, name in reversed(list(enumerate(names)))}
    requested = [*columns.values(), *([name] for name in optional)]
    places = [next((index[name.lower()] for name in known if name.lower() in index), -1) for known in requested]
    missing = [" or ".join(known) for known, place in zip(columns.values(), places, strict=False) if place < 0]
    if missing:
        there = ", ".join(name.strip()[:40] for name in names[:12])
        raise LabelledDataError(
            f"{where}: missing columns: {', '.join(missing)}; the file has {there}: rename its columns, or add a header"
        )
    return places
