"""Vectors in parts: each is written whole or not at all, and all of them make one file, a folder or a Lance table.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

import os
import shutil
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.lib import format as npy
from pyarrow import feather, ipc, parquet

from likewise.errors import LikewiseError, require_extra
from likewise.inference.text_encoder import TextEncoder
from likewise.inference.text_pieces import Piece
from likewise.inference.tokens import Step
from likewise.runs.job import Job, read_record
from likewise.runs.whole_files import Parts, written_whole

LANCE = ".lance"


class EncodedFile(NamedTuple):
    """The result of `encode_file`: the shape of what was written."""

    rows: int
    dimension: int


def vector_column(vectors: np.ndarray) -> pa.Array:
    """Return vectors (S, D) as a column of an Arrow table."""
    flat = np.ascontiguousarray(vectors, dtype=np.float32).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), vectors.shape[1])


def matrix_of(column: pa.ChunkedArray) -> np.ndarray:
    """Return a column of vectors as (S, D)."""
    flat: np.ndarray = column.combine_chunks().flatten().to_numpy()
    return flat.reshape(-1, column.type.list_size)


def write_part(
    opens: Callable[[], TextEncoder], folder: Path, schema: pa.Schema, piece: Piece, step: Step = lambda count: None
) -> int:
    """Encode a piece, write a file of its vectors, and return how many there are; a worker may do it as well.

    Args:
        opens: gives the encoder.
        folder: of the file, whose name says its format: .arrow, .parquet or .lance.
        schema: its columns, of 'file', 'row', 'sentence' and 'embedding'.
        step: called with the number of texts done.
    """
    rows, encoder = piece.start, opens()
    with written_whole(folder / piece.name) as path, _writer(piece.name)(str(path), schema) as writer:
        for texts in piece.windows():
            columns = {"file": [piece.path] * len(texts), "row": range(rows, rows + len(texts)), "sentence": texts}
            columns["embedding"] = vector_column(encoder(texts, step))
            writer.write_batch(pa.record_batch([columns[name] for name in schema.names], schema=schema))
            rows += len(texts)
    return rows - piece.start


class VectorParts:
    """The parts of a job that encodes: windows of one file, or shards of a folder or a Lance table.

    Args:
        job: its target is NAME.npy, NAME.parquet, NAME.lance or any other folder.
        size: the length D of the vectors.
    """

    def __init__(self, job: Job, size: int) -> None:
        self.job, self.size, self.form = job, size, job.plan.options["form"]
        self.parts, self.incoming = Parts(job.work / "parts"), (job.work / "incoming").resolve()
        self.incoming.mkdir(exist_ok=True)
        columns = [("file", pa.string()), ("row", pa.int64()), ("sentence", pa.string())]
        if job.kind == "file":
            columns = columns[2:] if self.form == ".parquet" else []
        self.schema = pa.schema([*columns, ("embedding", pa.list_(pa.float32(), size))])

    @property
    def rows(self) -> int:
        """The number of vectors in all parts."""
        return sum(facts["rows"] for facts in self.parts.facts.values())

    def has(self, piece: Piece) -> bool:
        """Return whether a piece was written, with the same texts."""
        return piece.name in self.parts and self.parts.facts[piece.name].get("texts") == piece.digest

    def take(self, piece: Piece, rows: int) -> None:
        """Take the part that was written for a piece."""
        with self.parts.new(piece.name, rows=rows, texts=piece.digest) as path:
            try:
                (self.incoming / piece.name).replace(path)
            except FileNotFoundError:
                raise LikewiseError(
                    f"the shard {piece.name} of a worker is not in {self.incoming}: --out must lie in a folder that "
                    "all machines of the cluster share"
                ) from None

    def finish(self, engine: str) -> EncodedFile:
        """Make the result of the parts, and finish the job."""
        shape = EncodedFile(self.rows, self.size)
        names = sorted(self.parts.facts)
        if self.job.kind == "folder":
            self._link(names)
            facts = {"rows": shape.rows, "dimension": self.size, "engine": engine, "shards": len(names)}
            self.job.finish(facts)
            return shape
        if self.form == ".parquet":
            with _writer(self.form)(self.job.result, self.schema) as writer:
                for name in names:
                    writer.write_table(self._table(name))
        else:
            with self.job.result.open("wb") as file:
                npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": tuple(shape)})
                file.writelines(self._matrix(name).tobytes() for name in names)
        self.job.finish()
        return shape

    def _link(self, names: list[str]) -> None:
        """Put the shards into the folder of the result."""
        shutil.rmtree(self.job.result)  # some of them, after a kill
        folder = self.job.result / "data" if self.form == LANCE else self.job.result
        folder.mkdir(exist_ok=True)
        for name in names:
            try:
                os.link(self.parts.path(name), folder / name)
            except OSError:  # a file system without links
                shutil.copyfile(self.parts.path(name), folder / name)
        if self.form == LANCE:
            _commit(self.job.result, {name: self.parts.facts[name]["rows"] for name in names}, self.schema)

    def _matrix(self, name: str) -> np.ndarray:
        return matrix_of(self._table(name)["embedding"])

    def _table(self, name: str) -> pa.Table:
        return feather.read_table(self.parts.path(name), memory_map=True)


def check_folder(folder: Path, overwrite: bool) -> str:
    """Return the ending of the shards of a folder.

    Raises:
        MissingExtraError: the package that writes them is missing.
        LikewiseError: a Lance table there has a version of somebody else's, which would hide the one that replaces it.
    """
    form = LANCE if folder.suffix == LANCE else ".parquet"
    _writer(form)
    own = read_record(folder).get("files", [])
    versions = [path.relative_to(folder).as_posix() for path in folder.glob("_versions/*.manifest")]
    if overwrite and not set(versions) <= set(own):
        raise LikewiseError(f"{folder} was changed since it was encoded (rows or an index): choose another --out")
    return form


def _writer(name: str) -> Callable[[Any, Any], Any]:
    """Return what opens a file for batches of rows, in the format that a name says."""
    if name.endswith(LANCE):
        require_extra("lance", "A folder NAME.lance", "lance")
        os.environ.setdefault("LANCE_LOG", "error")  # read at the import
        warnings.filterwarnings("ignore", "lance is not fork-safe")  # Ray forks to start programs alone
        from lance.file import LanceFileWriter

        return LanceFileWriter
    if name.endswith(".arrow"):
        return ipc.new_file
    return parquet.ParquetWriter


def _commit(folder: Path, rows: Mapping[str, int], schema: pa.Schema) -> None:
    """Make the shards in a folder's `data` the fragments of one Lance table, in the order given."""
    from lance import LanceDataset, LanceOperation
    from lance.file import LanceFileReader
    from lance.fragment import DataFile, FragmentMetadata

    folder, fragments = folder.resolve(), []
    columns = list(range(len(schema)))
    for name, number in rows.items():
        form: Any = LanceFileReader(str(folder / "data" / name)).metadata()
        file = DataFile(name, columns, columns, form.major_version, form.minor_version)
        fragments.append(FragmentMetadata(id=0, files=[file], physical_rows=number))
    LanceDataset.commit(str(folder), LanceOperation.Overwrite(schema, fragments))
