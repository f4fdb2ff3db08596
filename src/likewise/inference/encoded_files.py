"""Encoding of text files into files of vectors: in constant memory, in order, and resumable."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from functools import partial
from itertools import chain, repeat
from pathlib import Path

from sentence_transformers import SentenceTransformer

from likewise.corpus import CorpusOptions
from likewise.encoder.modules import undisturbed
from likewise.errors import LikewiseError, counted
from likewise.inference.engines.engine import EngineChoice, EngineName, EnginePrecision
from likewise.inference.engines.graph import fingerprint
from likewise.inference.handle import ModelHandle
from likewise.inference.load_model import default_prompt, load
from likewise.inference.policy import settled, text_encoder
from likewise.inference.text_encoder import TextEncoder
from likewise.inference.text_pieces import STREAM, Piece, check_source, list_pieces, state_of, stream_pieces
from likewise.inference.tokens import TextSide
from likewise.inference.vector_parts import EncodedFile, VectorParts, check_folder, write_part
from likewise.inference.vectors import dimension
from likewise.runs.arguments import checked
from likewise.runs.job import Job, Plan, Resume, TargetKind, check_target, open_job
from likewise.runs.on_ray import begun_on_ray, check_workers, cluster
from likewise.runs.prefetch import in_order
from likewise.runs.progress import Progress, StopRequest, orderly_stop

Opens = Callable[..., TextEncoder]
"""Opens the encoder of some texts: of the first of them, how many there are, progress, and the engine of before."""
Pieces = Iterator[tuple[Piece, int]]
"""Pieces, and the number of texts that are expected in all."""
_SAMPLE = 512  # texts on which every worker checks its engine, so that all come to the same one


@checked
def encode_file(
    model: SentenceTransformer | str | os.PathLike[str],
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    normalize: bool = False,
    engine: EngineName | None = None,
    precision: EnginePrecision | None = None,
    field: str | None = None,
    encoding: str = "auto",
    on: str | None = None,
    workers: int | None = None,
    quiet: bool = False,
    resume: Resume = "auto",
    overwrite: bool = False,
) -> EncodedFile:
    """Encode a text file with one sentence per line; row i of the output belongs to line i.

    The file is read as a stream and written in parts, so that memory does not grow with it. A run that was stopped is
    resumed where it was, if model and options are the same; windows of 8,192 lines whose text has changed since are
    encoded again. The output appears under its name when it is whole, and replaces an older file.

    Args:
        model: the encoder, or what `load` takes.
        source: a text or JSONL file, plain, .gz, .bz2 or .zst, or '-' for standard input. An empty line has a row, too.
        out: X.npy (float32, a row per line) or X.parquet ('sentence' and 'embedding'). The folder X/ takes Parquet
            shards of 'file', 'row', 'sentence' and 'embedding', and X.lance a Lance table of these; their source may
            also be a Parquet file, a folder, a pattern, or the URL of an object store.
        normalize: scale each row to length 1.
        engine, precision: as in `load`; None takes what the model was loaded with, and float32 if that was no
            precision.
        field: the field of JSONL with the text, by default `text`; or the column of a Parquet file.
        encoding: the encoding of the file, as Python names it; "auto" is UTF-8, or what a file that is not looks like.
        on: 'ray' for workers on the cores of this machine (or of the cluster in $RAY_ADDRESS), or the address of a Ray
            cluster, as ray://head:10001; `out` is then a folder.
        workers: number of workers of the Ray cluster; None for one on each core.
        quiet: show nothing on standard error: not the engine, nor sentences and time left.
        resume: True insists on a stopped run to resume.
        overwrite: start again if a stopped run had other options or another model.

    Returns:
        The shape (S, D) of what was written.

    Raises:
        LikewiseError: the input is missing, not UTF-8 or broken; the output has another ending, is being written by
            another process, or a stopped run had other options; the engine is missing or does not keep the vectors.
    """
    check_workers(on, workers)
    source, out = os.fspath(source), os.fspath(out)
    reading, progress = CorpusOptions(field=field, encoding=encoding), Progress(quiet)
    form = Path(out).suffix
    is_folder = out.endswith(("/", os.sep)) or Path(out).is_dir() or (out != STREAM and form in ("", ".lance"))
    if on and not is_folder:
        raise LikewiseError(f"--on {on} writes a folder: give --out FOLDER/, not '{out}'")
    if is_folder:
        check_target(out)
        form = check_folder(Path(out), overwrite)
        listed = list_pieces(source, reading, form, progress.tell)
        pieces: Pieces = zip(listed, repeat(sum(piece.rows or 0 for piece in listed)))
    else:
        check_source(source)
        pieces = stream_pieces(source, reading, progress.tell)
        check_target(out, "file", overwrite)
        if form not in (".npy", ".parquet"):
            raise LikewiseError(f"'{out}': the vectors go to a .npy or .parquet file, a folder, or a .lance table.")
    encoder = model if isinstance(model, SentenceTransformer) else load(model, precision="fp32")
    own = settled(encoder) if hasattr(encoder, "choice") else EngineChoice()
    choice = EngineChoice(engine or own.engine, precision or own.precision)
    with undisturbed(encoder):
        prompt = default_prompt(encoder)
        opens: Opens = partial(text_encoder, encoder, choice, side=TextSide(prompt), normalize=normalize)
        options: dict[str, object] = {"normalize": normalize, "form": form}
        options |= {"engine": choice.engine, "precision": choice.precision, "prompt": prompt}
        options |= {"max_seq_length": encoder.max_seq_length, "truncate_dim": encoder.truncate_dim}
        inputs = {"model": fingerprint(encoder)}
        if is_folder:
            options |= reading.to_dict()
            inputs["text"] = state_of(listed)
        plan = Plan("encode", options, inputs, defaults=reading.defaults())
        kind: TargetKind = "folder" if is_folder else "file"
        with (
            cluster(on, workers) as number,
            open_job(out, plan, resume=resume, overwrite=overwrite, kind=kind) as job,
            orderly_stop(progress) as stop,
        ):
            if job.finished:
                return EncodedFile(job.finished["rows"], job.finished["dimension"])
            return _to_parts(encoder, opens, pieces, job, number, stop)


def _to_parts(
    model: SentenceTransformer,
    opens: Opens,
    pieces: Pieces,
    job: Job,
    workers: int,
    stop: StopRequest,
) -> EncodedFile:
    """Encode the pieces that are not written yet, here or by the workers of a cluster, and make the result of all."""
    written, progress, before = VectorParts(job, dimension(model)), stop.progress, job.notes.get("engine", "")
    first, total = next(pieces, (None, 0))
    texts = next(first.windows(), [])[: _SAMPLE if workers else None] if first else []
    encoder = opens(texts, total, progress=progress, before=before)
    if before not in ("", encoder.engine):
        written.parts.drop(*written.parts.facts)
    opened = ModelHandle(model).for_worker(encoder, texts, total) if workers else lambda: encoder
    write = partial(write_part, opened, written.incoming, written.schema)
    if earlier := written.rows:
        progress.tell(f"resuming after {counted(earlier, 'row')}")
    names: set[str] = set()
    with progress.bar("encoding", total or None) as bar:

        def begun() -> Iterator[Callable[[], tuple[Piece, int | None]]]:
            """Begin to write each piece that is not there."""
            told = False
            for piece, expected in chain([(first, total)] if first else [], pieces):
                bar.update(total=expected or None)
                names.add(piece.name)
                work: Callable[[], int] | None = None
                if not written.has(piece):
                    work = begun_on_ray(write, piece) if workers else partial(write, piece, bar.advance)
                    if piece.name in written.parts and not told:
                        told = True
                        progress.tell(f"the text has changed from line {piece.start + 1:,} on: it is encoded again")
                yield partial(_result_of, piece, work)

        done = 0
        for piece, rows in in_order(begun(), 2 * workers):
            if rows is not None:
                if before != encoder.engine:  # not earlier: a job that noted nothing leaves nothing when it fails
                    before = encoder.engine
                    job.note(engine=before)
                written.take(piece, rows)
            count = written.parts.facts[piece.name]["rows"]
            if rows is None or workers:
                bar.advance(count)
            done += count
            if rows is not None:
                stop.check(f"after {counted(done, 'row')}")
    written.parts.drop(*(written.parts.facts.keys() - names))  # the text is shorter now
    return written.finish(encoder.engine)


def _result_of(piece: Piece, work: Callable[[], int] | None) -> tuple[Piece, int | None]:
    return piece, work() if work else None
