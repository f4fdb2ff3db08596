"""The encoder of windows of lines, with an engine that is chosen once, and the parts of one output file.

Letters of the shapes: S sentences, D embedding.
"""

import os
from bisect import bisect_right
from collections.abc import Sequence
from hashlib import blake2b
from itertools import accumulate
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.lib import format as npy
from sentence_transformers import SentenceTransformer

from likewise.inference.encoder import DEFAULT_BATCH, default_prompt, finished
from likewise.inference.encoding import all_finite, dimension
from likewise.inference.engines.chooser import choose
from likewise.inference.engines.engine import Choice, Engine
from likewise.inference.engines.names import EngineName, EnginePrecision
from likewise.inference.loading import load
from likewise.inference.runner import UnfitModel, fits, runner_of
from likewise.runs.job import Job
from likewise.runs.parts import Parts
from likewise.runs.progress import Bar, Progress


class EncodedFile(NamedTuple):
    """The result of `encode_file`: the file and its shape."""

    rows: int
    dimension: int


class WindowEncoder:
    """The encoder of windows of lines, by the fast path or, if the model is unsupported, by its own `encode`."""

    def __init__(self, model: SentenceTransformer, batch_size: int | None, normalize: bool, progress: Progress) -> None:
        self.model, self.batch_size, self.normalize, self.progress = model, batch_size, normalize, progress
        self.prompt = default_prompt(model) or ""
        self.dimension = dimension(model)
        self.engine: Engine | None = None
        self.name = ""

    def choose(self, choice: Choice, first: list[str], total: int) -> None:
        """Choose an engine by the first texts, and their number in all."""
        self.name = "sentence-transformers"
        if not first:
            return
        try:
            runner = fits(self.model, first, self.prompt)
            chosen = choose(self.model, runner, choice, [self.prompt + line for line in first], total)
        except UnfitModel as reason:
            self.progress.tell(f"sentence-transformers' own encode runs, the slower way: {reason}.")
            return
        self.engine, self.name = chosen.engine, str(chosen.engine)
        for line in (*chosen.notes, f"engine: {chosen}"):
            self.progress.tell(line)

    def __call__(self, lines: Sequence[str], bar: Bar | None = None) -> np.ndarray:
        """Return the vectors (S, D), float32, of S lines, 1 or more."""
        if self.engine is None:
            found: Any = self.model.encode(
                list(lines),
                batch_size=self.batch_size or DEFAULT_BATCH,
                normalize_embeddings=self.normalize,
                show_progress_bar=False,
            )
            if bar:
                bar.advance(len(lines))
            return all_finite(np.asarray(found, dtype=np.float32))
        texts = [self.prompt + line for line in lines] if self.prompt else lines
        rows = runner_of(self.model).vectors(
            texts, self.engine, at_most=self.batch_size, step=bar.advance if bar else None
        )
        return all_finite(finished(rows, self.model.truncate_dim, self.normalize).float().cpu().numpy())


def opened(
    model: SentenceTransformer | str | os.PathLike[str], engine: EngineName | None, precision: EnginePrecision | None
) -> tuple[SentenceTransformer, Choice]:
    """Return a model, loaded where it is a name, and the choice of its engine; None takes its own."""
    encoder = model if isinstance(model, SentenceTransformer) else load(model)
    own: Choice = getattr(encoder, "choice", Choice())
    return encoder, Choice(engine or own.engine, precision or own.precision)


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
