"""The parts of one output file: the vectors of a window of lines each, and for a table its sentences.

Letters of the shapes: S sentences, D embedding.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy

from likewise.corpus.lines_and_rows import digest_of
from likewise.runs.job import Job
from likewise.runs.parts import Parts


class EncodedFile(NamedTuple):
    """The result of `encode_file`: the file and its shape."""

    rows: int
    dimension: int


def vector_column(vectors: np.ndarray) -> Any:
    """Return vectors (S, D) as a column of an Arrow table."""
    import pyarrow as pa

    flat = np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), vectors.shape[1])


def matrix_of(column: Any) -> np.ndarray:
    """Return a column of vectors as (S, D)."""
    flat: np.ndarray = column.combine_chunks().flatten().to_numpy()
    return flat.reshape(-1, column.type.list_size)


class VectorParts:
    """The rows written so far, one part per window."""

    def __init__(self, job: Job) -> None:
        self._parts = Parts(job.work / "parts")
        self._with_lines = job.target.suffix == ".parquet"
        self.counts: list[int] = []
        while (name := _name(len(self.counts))) in self._parts:
            self.counts.append(self._parts.facts[name]["rows"])

    @property
    def size(self) -> int:
        """The length D of the vectors, if there are any."""
        return int(self._vectors(0).shape[1])

    def has(self, position: int, lines: Sequence[str]) -> bool:
        """Return whether the part of a window exists and was made from these lines."""
        wanted = digest_of("\n".join(lines)).hex()
        return position < len(self.counts) and bool(self._parts.facts[_name(position)]["lines"] == wanted)

    def rows(self, numbers: np.ndarray) -> np.ndarray:
        """Return rows written earlier, (S, D)."""
        ends = np.cumsum(self.counts)
        parts = np.searchsorted(ends, numbers, side="right")
        found = np.empty((len(numbers), self.size), dtype=np.float32)
        for part in np.unique(parts):
            here = parts == part
            found[here] = self._vectors(part)[numbers[here] - ends[part]]  # counted from the part's end
        return found

    def add(self, lines: Sequence[str], vectors: np.ndarray) -> None:
        """Write the next part."""
        import pyarrow as pa
        from pyarrow import feather

        columns = {"sentence": pa.array(lines)} if self._with_lines else {}
        columns["embedding"] = vector_column(vectors)
        with self._parts.new(_name(len(self.counts)), rows=len(lines), lines=digest_of("\n".join(lines)).hex()) as path:
            feather.write_feather(pa.table(columns), path, compression="uncompressed")
        self.counts.append(len(lines))

    def drop_from(self, position: int) -> None:
        """Remove the parts from a window on, because their lines have changed."""
        self._parts.drop(*[name for name in self._parts.facts if name >= _name(position)])
        del self.counts[position:]

    def join(self, path: Path, shape: tuple[int, int]) -> None:
        """Write all rows as one file."""
        import pyarrow as pa
        from pyarrow import parquet

        if self._with_lines:
            schema = pa.schema([("sentence", pa.string()), ("embedding", pa.list_(pa.float32(), shape[1]))])
            with parquet.ParquetWriter(path, schema) as writer:
                for number in range(len(self.counts)):
                    writer.write_table(self._table(number))
            return
        with path.open("wb") as file:
            npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": tuple(shape)})
            for number in range(len(self.counts)):
                file.write(self._vectors(number).tobytes())

    def _vectors(self, number: int) -> np.ndarray:
        return matrix_of(self._table(number)["embedding"])

    def _table(self, number: int) -> Any:
        from pyarrow import feather

        return feather.read_table(self._parts.path(_name(number)), memory_map=True)


def _name(number: int) -> str:
    return f"{number:06d}.arrow"
