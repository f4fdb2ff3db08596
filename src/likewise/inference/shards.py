"""Vectors on the way to a file: shards that are written whole, so that a stopped run can go on.

A folder `.NAME.parts` beside the file holds `00000.npy`, `00001.npy` and so on, for a table their sentences as text
too, and `job.json`: what is being made, and a hash of the lines of each shard.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

import json
import shutil
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
from numpy.lib import format as npy

from likewise.runs.whole_files import write_text, written_whole

_ROW_GROUP = 8192  # rows of a table written at a time


class OutputError(ValueError):
    """A file of vectors that cannot be written; the message names it and the cure."""


class Shards:
    """The shards of one output file."""

    def __init__(self, out: Path, job: dict[str, Any]) -> None:
        """Find the shards of an earlier run, if it did the same job.

        Args:
            out: the file that they become: .npy, or .parquet with the columns 'sentence' and 'embedding'.
            job: what the vectors depend on. Shards of another job are thrown away.

        Raises:
            OutputError: another ending.
            FileNotFoundError: the folder of `out` is not there.
        """
        self.out, self.job = out, job
        self.table = is_table(out)
        self.folder = out.with_name(f".{out.name}.parts")
        self.digests: list[str] = []
        self.rows: list[int] = []
        found = _read(self.folder / "job.json")
        if found.get("job") == job:
            self.digests, self.rows = list(found["digests"]), list(found["rows"])
        else:
            shutil.rmtree(self.folder, ignore_errors=True)

    def __len__(self) -> int:
        return len(self.digests)

    def row(self, number: int) -> np.ndarray:
        """A row that was written, (D,)."""
        ends = list(accumulate(self.rows))
        shard = bisect_right(ends, number)
        place = number - (ends[shard] - self.rows[shard])
        return np.asarray(np.load(self._path(shard), mmap_mode="r")[place])

    def add(self, lines: Sequence[str], vectors: np.ndarray) -> None:
        """Write a shard: it counts once `job.json` names it."""
        self.folder.mkdir(exist_ok=True)
        number = len(self)
        np.save(self._path(number), np.ascontiguousarray(vectors, dtype="<f4"))
        if self.table:
            self._path(number, ".txt").write_bytes("\n".join(lines).encode())
        self.digests.append(digest(lines))
        self.rows.append(len(lines))
        state = {"job": self.job, "digests": self.digests, "rows": self.rows}
        write_text(self.folder / "job.json", json.dumps(state))

    def drop_from(self, number: int) -> None:
        """Forget the shards from one on: their lines are others now."""
        del self.digests[number:], self.rows[number:]

    def finish(self, dimension: int) -> tuple[int, int]:
        """Put the shards together under the file's name, by rename, and remove them; the shape (S, D)."""
        shape = (sum(self.rows), dimension)
        with written_whole(self.out) as unfinished:
            (self._write_table if self.table else self._write_array)(unfinished, shape)
        shutil.rmtree(self.folder, ignore_errors=True)
        return shape

    def _path(self, number: int, ending: str = ".npy") -> Path:
        return self.folder / f"{number:05d}{ending}"

    def _arrays(self) -> Iterator[np.ndarray]:
        return (np.load(self._path(number), mmap_mode="r") for number in range(len(self)))

    def _write_array(self, path: Path, shape: tuple[int, int]) -> None:
        with path.open("wb") as file:
            npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
            for rows in self._arrays():
                file.write(rows.tobytes())

    def _write_table(self, path: Path, shape: tuple[int, int]) -> None:
        import pyarrow as pa
        from pyarrow import parquet

        kind = pa.list_(pa.float32(), shape[1])
        schema = pa.schema([("sentence", pa.string()), ("embedding", kind)])
        with parquet.ParquetWriter(path, schema) as writer:
            for number, rows in enumerate(self._arrays()):
                lines = self._path(number, ".txt").read_bytes().decode().split("\n")
                for start in range(0, len(lines), _ROW_GROUP):
                    part = slice(start, start + _ROW_GROUP)
                    vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows[part].reshape(-1)), shape[1])
                    writer.write_table(pa.Table.from_arrays([pa.array(lines[part]), vectors], schema=schema))


def is_table(out: Path) -> bool:
    """Whether a file of vectors is a table (.parquet) and not an array (.npy).

    Raises:
        OutputError: another ending.
        FileNotFoundError: its folder is not there.
    """
    if not out.parent.is_dir():
        raise FileNotFoundError(f"There is no folder '{out.parent}' to write '{out.name}' in; make it first.")
    if out.suffix not in (".npy", ".parquet"):
        raise OutputError(f"'{out}': the vectors go to a .npy or a .parquet file, or to '-' (standard output).")
    return out.suffix == ".parquet"


def digest(lines: Sequence[str]) -> str:
    """A hash of lines."""
    return blake2b("\n".join(lines).encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def recorded_job(out: Path) -> dict[str, Any]:
    """What an unfinished run was making; empty if there is none."""
    found = _read(out.with_name(f".{out.name}.parts") / "job.json").get("job")
    return found if isinstance(found, dict) else {}
