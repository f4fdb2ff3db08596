"""The vectors of a text file on their way to one output file: a part for each window of lines."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path

import numpy as np
from numpy.lib import format as npy

from likewise.runs.job import Job
from likewise.runs.parts import Parts

WINDOW = 8192
"""Lines of a part, and rows of a table that are written at a time."""


class VectorParts:
    """The rows written so far, one part per window."""

    def __init__(self, job: Job) -> None:
        self._parts = Parts(job.work / "parts")
        self._table = job.target.suffix == ".parquet"
        self.counts: list[int] = []
        while (name := _name(len(self.counts))) in self._parts and (not self._table or f"{name}.txt" in self._parts):
            self.counts.append(self._parts.facts[name]["rows"])

    def has(self, position: int, lines: Sequence[str]) -> bool:
        """Return whether the part of a window exists and was made from these lines."""
        wanted = digest("\n".join(lines)).hex()
        return position < len(self.counts) and bool(self._parts.facts[_name(position)]["lines"] == wanted)

    def row(self, number: int) -> np.ndarray:
        """Return a row written earlier, (D,)."""
        ends = list(accumulate(self.counts))
        part = bisect_right(ends, number)
        return np.asarray(self._array(part)[number - ends[part]])  # counted from the part's end

    def add(self, lines: Sequence[str], vectors: np.ndarray) -> None:
        """Write the next part."""
        name = _name(len(self.counts))
        if self._table:
            with self._parts.new(f"{name}.txt") as path:
                path.write_bytes("\n".join(lines).encode())
        with (
            self._parts.new(name, rows=len(lines), lines=digest("\n".join(lines)).hex()) as path,
            path.open("wb") as file,
        ):
            np.save(file, np.ascontiguousarray(vectors, dtype="<f4"))
        self.counts.append(len(lines))

    def drop_from(self, position: int) -> None:
        """Remove the parts from a window on, because their lines have changed."""
        self._parts.drop(*[name for name in self._parts.facts if name >= _name(position)])
        del self.counts[position:]

    def join(self, path: Path, shape: tuple[int, int]) -> None:
        """Write all rows as one file."""
        if self._table:
            self._join_table(path, shape[1])
            return
        with path.open("wb") as file:
            npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": tuple(shape)})
            for number in range(len(self.counts)):
                file.write(self._array(number).tobytes())

    def _array(self, number: int) -> np.ndarray:
        found: np.ndarray = np.load(self._parts.path(_name(number)), mmap_mode="r")
        return found

    def _join_table(self, path: Path, size: int) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        schema = pa.schema([("sentence", pa.string()), ("embedding", pa.list_(pa.float32(), size))])
        with parquet.ParquetWriter(path, schema) as writer:
            for number in range(len(self.counts)):
                rows = self._array(number)
                lines = self._parts.path(f"{_name(number)}.txt").read_bytes().decode().split("\n")
                for start in range(0, len(lines), WINDOW):
                    piece = slice(start, start + WINDOW)
                    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows[piece].reshape(-1)), size)
                    writer.write_table(pa.Table.from_arrays([pa.array(lines[piece]), vectors], schema=schema))


def _name(number: int) -> str:
    return f"{number:06d}.npy"


def digest(text: str) -> bytes:
    """Return a hash of a text, by which it is known again."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()
