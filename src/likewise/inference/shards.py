"""Encoding of a text of any size into a folder of shards, here or by the workers of a Ray cluster.

A shard has the columns 'file', 'row' (the line or row of the file, from 0), 'sentence' and 'embedding'; the shards, by
name, and their rows are in the order of the text. They are Parquet files, or the fragments of one Lance table where the
folder is called NAME.lance.
"""

import os
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer

from likewise.corpus import CorpusOptions
from likewise.errors import LikewiseError, counted, require_extra
from likewise.inference.handle import ModelHandle
from likewise.inference.lines import read_piece
from likewise.inference.text_encoder import TextEncoder
from likewise.inference.vector_parts import EncodedFile, vector_column
from likewise.inference.vectors import dimension
from likewise.runs.job import Job, read_record
from likewise.runs.on_ray import Piece, pieces_on_ray
from likewise.runs.orderly_stop import StopRequest
from likewise.runs.parts import Parts
from likewise.runs.whole_files import written_whole

_LANCE = ".lance"
Opens = Callable[..., TextEncoder]
"""Opens the encoder of some texts: of the first of them, how many there are, progress, and the engine of before."""
_SAMPLE = 512  # texts on which every worker checks its engine, so that all come to the same one


def check_shards(folder: Path, overwrite: bool) -> str:
    """Return the ending of the shards of a folder.

    Raises:
        MissingExtraError: the package that writes them is missing.
        LikewiseError: a Lance table there has a version of somebody else's, which would hide the one that replaces it.
    """
    form = _LANCE if folder.suffix == _LANCE else ".parquet"
    _writer(form)
    own = read_record(folder).get("files", [])
    versions = [path.relative_to(folder).as_posix() for path in folder.glob("_versions/*.manifest")]
    if overwrite and not set(versions) <= set(own):
        raise LikewiseError(f"{folder} was changed since it was encoded (rows or an index): choose another --out")
    return form


def to_shards(
    model: SentenceTransformer,
    opens: Opens,
    pieces: Sequence[Piece],
    reading: CorpusOptions,
    job: Job,
    workers: int,
    stop: StopRequest,
) -> EncodedFile:
    """Encode pieces into a folder of shards, by the workers of a cluster if there are any; finished shards are kept."""
    if job.finished:
        return EncodedFile(job.finished["rows"], job.finished["dimension"])
    parts, incoming, progress = Parts(job.work / "shards"), (job.work / "incoming").resolve(), stop.progress
    total, before = sum(piece["rows"] or 0 for piece in pieces), job.notes.get("engine", "")
    texts = next(read_piece(pieces[0], reading), [])[:_SAMPLE] if pieces else []
    encoder, size = opens(texts, total, progress=progress, before=before), dimension(model)
    if before not in ("", encoder.engine):
        parts.drop(*parts.facts)
    incoming.mkdir(exist_ok=True)
    missing = [piece for piece in pieces if piece["name"] not in parts]
    again = ModelHandle(model).elsewhere(encoder, texts, total) if workers else lambda: encoder
    arguments = (again, size, reading, str(incoming))
    encoded = (
        pieces_on_ray(ShardEncoder, arguments, missing, workers) if workers else map(ShardEncoder(*arguments), missing)
    )
    earlier = sum(fact["rows"] for fact in parts.facts.values())
    if earlier:
        progress.tell(f"resuming after {counted(earlier, 'row')} in {counted(len(parts), 'shard')}")
    with progress.bar("encoding", total or None, done=earlier) as bar:
        for found in encoded:
            _take(parts, incoming, found)
            job.note(engine=encoder.engine)
            bar.advance(found["rows"])
            stop.check(f"after {counted(len(parts), 'shard')} of {len(pieces):,}")
    return _finish(job, parts, size, encoder.engine)


class ShardEncoder:
    """The encoder of pieces: writes the shard of each, whole or not at all.

    Args:
        opens: gives the encoder.
        size: the length of the vectors.
        reading: how the pieces are read.
        folder: of the shards.
    """

    def __init__(self, opens: Callable[[], TextEncoder], size: int, reading: CorpusOptions, folder: str) -> None:
        self.encoder, self.reading, self.folder = opens(), reading, Path(folder)
        self.schema = _schema(size)

    def __call__(self, piece: Piece) -> Piece:
        """Write the shard of a piece; return its name and rows."""
        import pyarrow as pa

        begin = end = piece["start"]
        with (
            written_whole(self.folder / piece["name"]) as path,
            _writer(piece["name"])(str(path), self.schema) as writer,
        ):
            for window in read_piece(piece, self.reading):
                places = [[piece["path"]] * len(window), range(end, end + len(window))]
                columns = [*places, window, vector_column(self.encoder(window))]
                writer.write_batch(pa.record_batch(columns, schema=self.schema))
                end += len(window)
        return {"name": piece["name"], "rows": end - begin}


def _schema(size: int) -> Any:
    import pyarrow as pa

    text = [("file", pa.string()), ("row", pa.int64()), ("sentence", pa.string())]
    return pa.schema([*text, ("embedding", pa.list_(pa.float32(), size))])


def _writer(name: str) -> Any:
    """Return the class that writes a shard of this name."""
    if name.endswith(_LANCE):
        require_extra("lance", "A folder NAME.lance", "lance")
        os.environ.setdefault("LANCE_LOG", "error")  # read at the import
        warnings.filterwarnings("ignore", "lance is not fork-safe")  # Ray forks to start programs alone
        from lance.file import LanceFileWriter

        return LanceFileWriter
    from pyarrow.parquet import ParquetWriter

    return ParquetWriter


def _take(parts: Parts, incoming: Path, found: Piece) -> None:
    """Record a shard that a worker has written."""
    with parts.new(found["name"], rows=found["rows"]) as path:
        try:
            (incoming / found["name"]).replace(path)
        except FileNotFoundError:
            raise LikewiseError(
                f"the shard {found['name']} of a worker is not in {incoming}: --out must lie in a folder that all "
                "machines of the cluster share"
            ) from None


def _finish(job: Job, parts: Parts, size: int, engine: str) -> EncodedFile:
    shutil.rmtree(job.result)  # some of them, after a kill
    lance = job.plan.options["form"] == _LANCE
    folder = job.result / "data" if lance else job.result
    folder.mkdir(exist_ok=True)
    for name in parts.facts:
        try:
            os.link(parts.path(name), folder / name)
        except OSError:  # a file system without links
            shutil.copyfile(parts.path(name), folder / name)
    rows = sum(fact["rows"] for fact in parts.facts.values())
    if lance:
        _commit(job.result, {name: parts.facts[name]["rows"] for name in sorted(parts.facts)}, size)
    job.finish({"rows": rows, "dimension": size, "engine": engine, "shards": len(parts)})
    return EncodedFile(rows, size)


def _commit(folder: Path, rows: Mapping[str, int], size: int) -> None:
    """Make the shards in a folder's `data` the fragments of one Lance table, in the order given."""
    from lance import LanceDataset, LanceOperation
    from lance.file import LanceFileReader
    from lance.fragment import DataFile, FragmentMetadata

    schema, fragments = _schema(size), []
    columns = list(range(len(schema)))
    for name, number in rows.items():
        form: Any = LanceFileReader(str(folder / "data" / name)).metadata()
        file = DataFile(name, columns, columns, form.major_version, form.minor_version)
        fragments.append(FragmentMetadata(id=0, files=[file], physical_rows=number))
    LanceDataset.commit(str(folder), LanceOperation.Overwrite(schema, fragments))
