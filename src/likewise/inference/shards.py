"""Encoding of a text of any size into a folder of shards, here or by the workers of a Ray cluster.

A shard has the columns 'file', 'row' (the line or row of the file, from 0), 'sentence' and 'embedding'; the shards, by
name, and their rows are in the order of the text. They are Parquet files, or the fragments of one Lance table where the
folder is called NAME.lance.
"""

import os
import shutil
import warnings
from collections.abc import Mapping
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from sentence_transformers import SentenceTransformer

from likewise.corpus import CorpusOptions
from likewise.errors import LikewiseError, counted, require_extra
from likewise.inference.encoding import undisturbed
from likewise.inference.engines.engine import Choice
from likewise.inference.engines.graph import fingerprint
from likewise.inference.engines.names import EngineName, EnginePrecision
from likewise.inference.loading import load
from likewise.inference.pieces import list_pieces, read_piece
from likewise.inference.windows import EncodedFile, WindowEncoder, opened
from likewise.runs.job import Job, Resume, open_job, read_record
from likewise.runs.on_ray import Piece, cluster, pieces_on_ray
from likewise.runs.parts import Parts
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress
from likewise.runs.stopping import orderly_stop

_LANCE = ".lance"
_SAMPLE = 512  # texts on which every worker checks its engine, so that all come to the same one


def encode_shards(
    model: SentenceTransformer | str | os.PathLike[str],
    source: str,
    out: str | os.PathLike[str],
    *,
    normalize: bool,
    batch_size: int | None,
    engine: EngineName | None,
    precision: EnginePrecision | None,
    reading: CorpusOptions,
    on: str | None,
    workers: int | None,
    progress: Progress,
    resume: Resume,
    overwrite: bool,
) -> EncodedFile:
    """Encode files into a folder of shards, as `encode_file`; shards that a stopped run has finished are kept."""
    form = _LANCE if Path(out).suffix == _LANCE else ".parquet"
    _writer(form)  # a missing extra is an error before anything is read
    if overwrite:
        _check_unchanged(Path(out))
    pieces = list_pieces(source, reading, form)
    encoder, choice = opened(model, engine, precision)
    with ExitStack() as stack:
        stack.enter_context(undisturbed(encoder))
        work = WindowEncoder(encoder, batch_size, normalize, progress)
        total = sum(piece["rows"] or 0 for piece in pieces)
        sample = next(read_piece(pieces[0], reading), [])[:_SAMPLE] if pieces else []
        work.choose(choice, sample, total)
        options: dict[str, Any] = {"normalize": normalize, "batch_size": batch_size, "form": form}
        options |= {"engine": work.name, "prompt": work.prompt, **reading.to_dict()}
        options |= {"max_seq_length": encoder.max_seq_length, "truncate_dim": encoder.truncate_dim}
        plan = Plan("encode", options, inputs={"model": fingerprint(encoder), "text": _state(pieces)})
        number = stack.enter_context(cluster(on, workers))
        job = stack.enter_context(open_job(out, plan, resume=resume, overwrite=overwrite))
        if job.finished:
            return EncodedFile(job.finished["rows"], job.finished["dimension"])
        stop = stack.enter_context(orderly_stop(progress))
        parts, incoming = Parts(job.work / "shards"), (job.work / "incoming").resolve()
        incoming.mkdir(exist_ok=True)
        missing = [piece for piece in pieces if piece["name"] not in parts]
        same = Choice(work.engine.name, work.engine.precision) if work.engine else Choice("torch")
        arguments = (_name_of(encoder, on), same, batch_size, normalize, sample, total, reading, str(incoming))
        done = (
            pieces_on_ray(ShardEncoder, arguments, missing, number)
            if on
            else map(ShardEncoder(*arguments, work=work), missing)
        )
        before = sum(fact["rows"] for fact in parts.facts.values())
        if before:
            progress.tell(f"resuming after {counted(before, 'row')} in {counted(len(parts), 'shard')}")
        with progress.bar("encoding", total or None, done=before) as bar:
            for found in done:
                _take(parts, incoming, found)
                bar.advance(found["rows"])
                stop.check(f"after {counted(len(parts), 'shard')} of {len(pieces):,}")
        return _finish(job, parts, work)


class ShardEncoder:
    """The encoder of pieces: writes the shard of each, whole or not at all.

    Args:
        sample, total: what the engine is chosen by.
        work: an encoder whose engine is chosen, in place of model and choice.
    """

    def __init__(
        self,
        model: Any,
        choice: Choice,
        batch_size: int | None,
        normalize: bool,
        sample: list[str],
        total: int,
        reading: CorpusOptions,
        folder: str,
        work: WindowEncoder | None = None,
    ) -> None:
        self.reading, self.folder = reading, Path(folder)
        if work is None:
            work = WindowEncoder(load(model), batch_size, normalize, Progress(quiet=True))
            work.choose(choice, sample, total)
        self.work = work

    @torch.inference_mode()
    def __call__(self, piece: Piece) -> Piece:
        """Write the shard of a piece; return its name, rows and dimension."""
        import pyarrow as pa

        size, rows = self.work.dimension, 0
        schema = _schema(size)
        unfinished = self.folder / f".{uuid4().hex}.part"
        try:
            with _writer(piece["name"])(str(unfinished), schema) as writer:
                for window in read_piece(piece, self.reading):
                    vectors = pa.array(self.work(window).reshape(-1))
                    first = piece["start"] + rows
                    columns = [[piece["path"]] * len(window), range(first, first + len(window)), window]
                    columns.append(pa.FixedSizeListArray.from_arrays(vectors, size))
                    writer.write_batch(pa.record_batch(columns, schema=schema))
                    rows += len(window)
            unfinished.replace(self.folder / piece["name"])
        finally:
            unfinished.unlink(missing_ok=True)
        return {"name": piece["name"], "rows": rows, "dimension": size}


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
    with parts.new(found["name"], rows=found["rows"], dimension=found["dimension"]) as path:
        try:
            (incoming / found["name"]).replace(path)
        except FileNotFoundError:
            raise LikewiseError(
                f"the shard {found['name']} of a worker is not in {incoming}: --out must lie in a folder that all "
                "machines of the cluster share"
            ) from None


def _finish(job: Job, parts: Parts, work: WindowEncoder) -> EncodedFile:
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
    size = next((fact["dimension"] for fact in parts.facts.values()), work.dimension)
    if lance:
        _commit(job.result, {name: parts.facts[name]["rows"] for name in sorted(parts.facts)}, size)
    job.finish({"rows": rows, "dimension": size, "engine": work.name, "shards": len(parts)})
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


def _check_unchanged(folder: Path) -> None:
    """Check that a Lance table has no version of somebody else's, which would hide the one that replaces it."""
    own = read_record(folder).get("files", [])
    if [path for path in folder.glob("_versions/*.manifest") if path.relative_to(folder).as_posix() not in own]:
        raise LikewiseError(f"{folder} was changed since it was encoded (rows or an index): choose another --out")


def _name_of(encoder: SentenceTransformer, on: str | None) -> str:
    """Return what a worker loads the model from."""
    name = getattr(encoder, "loaded_from", None)
    if on and name is None:
        raise LikewiseError("the workers of a cluster load the model themselves: give its folder or its name")
    return name or ""


def _state(pieces: list[Piece]) -> str:
    """Return a fingerprint of the files' names, cuts, sizes and times."""
    found = blake2b(digest_size=16)
    for piece in pieces:
        path = Path(piece["path"])
        stat = path.stat() if "://" not in piece["path"] else None
        found.update(repr((piece, stat and (stat.st_size, stat.st_mtime_ns))).encode())
    return found.hexdigest()
