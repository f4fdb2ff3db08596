"""Rows of Parquet files and of Arrow tables."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.formats import Format, Row, Source
from likewise.corpus.rows import distinct_names
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    import pyarrow as pa

_BATCH = 1024


class Parquet(Format):
    """Parquet files, whatever their names."""

    name = "Parquet"
    suffixes = (".parquet",)
    holds = "rows"
    is_text = False

    def accepts(self, source: Source) -> bool:
        """Return whether a file begins like a Parquet file."""
        return source.head.startswith(b"PAR1")

    def read(self, source: Source) -> Iterator[Row]:
        """Yield the rows by their numbers.

        Raises:
            CorpusError: The file is not whole.
        """
        import pyarrow as pa
        from pyarrow import parquet

        number = 0
        try:
            with parquet.ParquetFile(source.path) as file:
                for batch in file.iter_batches(_BATCH):
                    for row in plain_rows(batch):
                        number += 1
                        yield number, row
        except (pa.ArrowException, OSError, OverflowError, ValueError) as error:
            raise CorpusError(
                f"{source.path}:{number + 1}: this is not a complete Parquet file ({error}): write it again"
            ) from None


def plain_rows(batch: "pa.RecordBatch") -> list[Record]:
    """Return the rows of a batch; times that Python has none for, such as of the year 12000, as texts."""
    import pyarrow as pa

    batch = batch.rename_columns(distinct_names(batch.schema.names))
    try:
        return batch.to_pylist()
    except (OverflowError, ValueError):
        columns = [
            column.cast(pa.string()) if pa.types.is_temporal(column.type) else column for column in batch.columns
        ]
        return pa.RecordBatch.from_arrays(columns, names=batch.schema.names).to_pylist()
