"""Rows with named fields, one of which holds the text: JSONL, CSV, TSV and Parquet files."""

import csv
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from likewise.corpus.decoding import read_rows, text_lines
from likewise.corpus.files import Tick, format_suffix
from likewise.corpus.options import CorpusError, CorpusOptions
from likewise.corpus.report import CorpusReport

NumberedRow = tuple[int, dict[str, Any]]
"""The line where a row begins, from 1 (in a Parquet file its number), and its values by field."""


def _csv(path: Path, options: CorpusOptions, report: CorpusReport, tick: Tick | None = None) -> Iterator[NumberedRow]:
    csv.field_size_limit(min(sys.maxsize, 2**31 - 1))  # a text may be longer than the module's own 128 KiB
    lines = (text for _, text in text_lines(path, options, report, tick))
    rows = csv.DictReader(lines, delimiter="\t" if format_suffix(path) == ".tsv" else ",", strict=True)
    begin = 1
    try:
        _ = rows.fieldnames
        begin = rows.line_num + 1
        for row in rows:
            row.pop(None, None)  # more cells than the header names
            yield begin, dict(row)
            begin = rows.line_num + 1
    except csv.Error as error:
        raise CorpusError(f"{path}:{begin}: this row is not valid CSV ({error}): mend its quotes") from None


def _parquet(
    path: Path, options: CorpusOptions, report: CorpusReport, tick: Tick | None = None
) -> Iterator[NumberedRow]:
    import pyarrow as pa
    from pyarrow import parquet

    number = 0
    try:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(1024):
                for row in batch.to_pylist():
                    number += 1
                    yield number, row
    except (pa.ArrowException, OSError) as error:
        raise CorpusError(f"{path}:{number + 1}: this is not a whole Parquet file ({error}): write it again") from None


READERS: dict[str, Callable[..., Iterator[NumberedRow]]] = {"jsonl": read_rows, "csv": _csv, "parquet": _parquet}
"""Kind of a file to the function that reads its rows: (path, options, report, tick)."""
