"""Encoding of a text of any size into a folder of Parquet shards, here or by the workers of a Ray cluster.

A shard has the columns 'file', 'row' (the line or row of the file, from 0), 'sentence' and 'embedding'; the shards, by
name, and their rows are in the order of the text.
"""

from __future__ import annotations

import os
import shutil
from contextlib import ExitStack
from hashlib import blake2b
from pathlib import Path
from typing import Any
from uuid import uuid4

import torch
from sentence_transformers import SentenceTransformer

from likewise.corpus import CorpusOptions
from likewise.errors import LikewiseError, counted
from likewise.inference.encoding import undisturbed
from likewise.inference.engines.engine import Choice, EngineName, EnginePrecision
from likewise.inference.engines.graph import fingerprint
from likewise.inference.loading import load
from likewise.inference.pieces import list_pieces, read_piece
from likewise.inference.windows import EncodedFile, WindowEncoder, opened
from likewise.runs.job import Job, Resume, open_job
from likewise.runs.on_ray import Piece, cluster, pieces_on_ray
from likewise.runs.parts import Parts
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress
from likewise.runs.stopping import orderly_stop

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
    """Encode files into a folder of shards, as `encode_file`; shards that a stopped run has finished are kept.

    Raises:
        LikewiseError: a file cannot be read, or the cluster cannot be used.
    """
    pieces = list_pieces(source, reading)
    encoder, choice = opened(model, engine, precision)
    with ExitStack() as stack:
        stack.enter_context(undisturbed(encoder))
        work = WindowEncoder(encoder, batch_size, normalize, progress)
        total = sum(piece["rows"] or 0 for piece in pieces)
        sample = next(read_piece(pieces[0], reading), [])[:_SAMPLE] if pieces else []
        work.choose(choice, sample, total)
        options: dict[str, Any] = {"normalize": normalize, "batch_size": batch_size, "form": "shards"}
        options |= {"engine": work.name, "prompt": work.prompt, **reading.to_dict()}
        options |= {"max_seq_length": encoder.max_seq_length, "truncate_dim": encoder.truncate_dim}
        plan = Plan("encode", options, inputs={"model": fingerprint(encoder), "text": _state(pieces)})
        number = stack.enter_context(cluster(on, workers)) if on else 1
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
        return _finish(job, parts, work.name)


class ShardEncoder:
    """The encoder of pieces: writes the shard of each, whole or not at all.

    Args:
        model: what `load` takes.
        choice: the engine.
        sample, total: what the engine is chosen by.
        folder: where the shards go.
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
        from pyarrow import parquet

        size, rows = self.work.dimension, 0
        text = [("file", pa.string()), ("row", pa.int64()), ("sentence", pa.string())]
        schema = pa.schema([*text, ("embedding", pa.list_(pa.float32(), size))])
        unfinished = self.folder / f".{uuid4().hex}.part"
        try:
            with parquet.ParquetWriter(unfinished, schema) as writer:
                for window in read_piece(piece, self.reading):
                    vectors = pa.array(self.work(window).reshape(-1))
                    first = piece["start"] + rows
                    columns = [[piece["path"]] * len(window), range(first, first + len(window)), window]
                    columns.append(pa.FixedSizeListArray.from_arrays(vectors, size))
                    writer.write_table(pa.table(dict(zip(schema.names, columns, strict=True)), schema=schema))
                    rows += len(window)
            unfinished.replace(self.folder / piece["name"])
        finally:
            unfinished.unlink(missing_ok=True)
        return {"name": piece["name"], "rows": rows, "dimension": size}


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


def _finish(job: Job, parts: Parts, engine: str) -> EncodedFile:
    shutil.rmtree(job.result)  # some of them, after a kill
    for name in parts.facts:
        try:
            os.link(parts.path(name), job.result / name)
        except OSError:  # a file system without links
            shutil.copyfile(parts.path(name), job.result / name)
    rows = sum(fact["rows"] for fact in parts.facts.values())
    size = next((fact["dimension"] for fact in parts.facts.values()), 0)
    job.finish({"rows": rows, "dimension": size, "engine": engine, "shards": len(parts)})
    return EncodedFile(rows, size)


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
