"""Encoding of a text file into a file of vectors: in constant memory, in order, and resumable.

A window of lines is a part of the job: `000000.arrow` and so on. Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
from sentence_transformers import SentenceTransformer

from likewise.corpus import CorpusOptions
from likewise.corpus.lines_and_rows import digest_of
from likewise.errors import LikewiseError, counted
from likewise.inference.engines.engine import EngineChoice, EngineName, EnginePrecision
from likewise.inference.engines.graph import fingerprint
from likewise.inference.lines import STREAM, WINDOW, Lines, check_lines, list_pieces, open_lines, state_of
from likewise.inference.load_model import default_prompt, load
from likewise.inference.policy import settled, text_encoder
from likewise.inference.shards import Opens, check_shards, to_shards
from likewise.inference.text_encoder import TextEncoder
from likewise.inference.tokens import TextSide
from likewise.inference.vector_parts import EncodedFile, VectorParts
from likewise.inference.vectors import dimension, undisturbed
from likewise.runs.arguments import checked
from likewise.runs.job import Job, Resume, TargetKind, check_target, open_job
from likewise.runs.on_ray import check_workers, cluster
from likewise.runs.orderly_stop import StopRequest, orderly_stop
from likewise.runs.plan import Plan
from likewise.runs.progress import Bar, Progress

# A window is read, sorted by length and encoded at a time: 8,192 texts, or 16 million characters of longer ones.
_WINDOW_CHARACTERS = 1 << 24
_REMEMBERED = 1 << 18  # sentences that are recognised when they occur again, about 40 MB


@checked
def encode_file(
    model: SentenceTransformer | str | os.PathLike[str],
    source: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    normalize: bool = False,
    batch_size: int | None = None,
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
    resumed where it was, if model and options are the same; a text that has changed is noticed, and encoded again from
    the first changed window of 8,192 lines on. A sentence that occurs again is encoded once, unless more than 262,144
    others lie between. The output appears under its name when it is whole, and replaces an older file.

    Args:
        model: the encoder, or what `load` takes.
        source: a text or JSONL file, plain, .gz, .bz2 or .zst, or '-' for standard input. An empty line has a row, too.
        out: X.npy (float32, a row per line), X.parquet ('sentence' and 'embedding'), or '-' (a JSON array per line on
            standard output, which cannot be resumed). The folder X/ takes Parquet shards of 'file', 'row', 'sentence'
            and 'embedding', and X.lance a Lance table of these; their source may also be a Parquet file, a folder, a
            pattern, or the URL of an object store.
        normalize: scale each row to length 1.
        batch_size: most sentences in a batch; by default only their tokens are limited.
        engine, precision: as in `load`; None takes what the model was loaded with, and float32 if that was no
            precision.
        field: the field with the text, if the file is JSONL; or the column of a Parquet file.
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
    if batch_size is not None and batch_size < 1:
        raise LikewiseError(f"batch_size is {batch_size}; give 1 or more.")
    check_workers(on, workers)
    source, out = os.fspath(source), os.fspath(out)
    reading, progress, pieces = CorpusOptions(field=field, encoding=encoding), Progress(quiet), []
    form = Path(out).suffix
    is_folder = out.endswith(("/", os.sep)) or Path(out).is_dir() or (out != STREAM and form in ("", ".lance"))
    if on and not is_folder:
        raise LikewiseError(f"--on {on} writes a folder: give --out FOLDER/, not '{out}'")
    if is_folder:
        check_target(out)
        form = check_shards(Path(out), overwrite)
        pieces = list_pieces(source, reading, form)
    else:
        check_lines(source)
        if out != STREAM:
            check_target(out, "file", overwrite)
        if out != STREAM and form not in (".npy", ".parquet"):
            raise LikewiseError(
                f"'{out}': the vectors go to a .npy or .parquet file, a folder, a .lance table, or '-' (stdout)."
            )
    encoder = model if isinstance(model, SentenceTransformer) else load(model, precision="fp32")
    own = settled(encoder) if hasattr(encoder, "choice") else EngineChoice()
    choice = EngineChoice(engine or own.engine, precision or own.precision)
    with undisturbed(encoder):
        prompt = default_prompt(encoder)
        settings: Any = {"side": TextSide(prompt), "normalize": normalize, "batch_size": batch_size}
        opens: Opens = partial(text_encoder, encoder, choice, **settings)
        size = dimension(encoder)
        if out == STREAM:
            with open_lines(source, reading, progress.tell) as lines:
                return _to_stream(opens, size, lines, progress, sys.stdout)
        options: dict[str, Any] = {"normalize": normalize, "batch_size": batch_size, "form": form}
        options |= {"engine": choice.engine, "precision": choice.precision, "prompt": prompt}
        options |= {"max_seq_length": encoder.max_seq_length, "truncate_dim": encoder.truncate_dim}
        inputs = {"model": fingerprint(encoder)}
        if is_folder:
            options |= reading.to_dict()
            inputs["text"] = state_of(pieces)
        plan = Plan("encode", options, inputs, defaults=reading.defaults())
        kind: TargetKind = "folder" if is_folder else "file"
        with (
            cluster(on, workers) as number,
            open_job(out, plan, resume=resume, overwrite=overwrite, kind=kind) as job,
            orderly_stop(progress) as stop,
        ):
            if is_folder:
                return to_shards(encoder, opens, pieces, reading, job, number, stop)
            with open_lines(source, reading, progress.tell) as lines:
                return _to_file(opens, size, lines, job, stop)


def _windows(
    opens: Opens, lines: Lines, progress: Progress, before: str = ""
) -> Iterator[tuple[TextEncoder, list[str], Bar]]:
    """Open the encoder (`before` is that of the run that is resumed), and yield it, lines in windows, and the bar."""
    windows = lines.windows(WINDOW, _WINDOW_CHARACTERS)
    first, total = next(windows, ([], 0))
    encoder = opens(first, total, progress=progress, before=before)
    with progress.bar("encoding", total) as bar:
        for window, expected in chain([(first, total)] if first else [], windows):
            bar.update(total=expected)
            yield encoder, window, bar


def _to_stream(opens: Opens, size: int, lines: Lines, progress: Progress, out: IO[str]) -> EncodedFile:
    rows = 0
    for encoder, window, bar in _windows(opens, lines, progress):
        vectors = encoder(window, bar.advance)
        # 9 digits give the float32 back.
        form = "[" + ", ".join(["%.9g"] * vectors.shape[1]) + "]\n"
        out.writelines(form % tuple(row) for row in vectors.tolist())
        out.flush()
        rows += len(window)
    return EncodedFile(rows, size)


def _to_file(opens: Opens, size: int, lines: Lines, job: Job, stop: StopRequest) -> EncodedFile:
    """Encode the missing parts, join all parts, and return the shape."""
    parts, before, tell = VectorParts(job), job.notes.get("engine", ""), stop.progress.tell
    seen: dict[bytes, int] = {}  # sentence to the number of its row
    position, rows, earlier = 0, 0, sum(parts.counts)
    for encoder, window, bar in _windows(opens, lines, stop.progress, before):
        if not rows and before not in ("", encoder.engine):
            parts.drop_from(0)
        keys = [digest_of(line) for line in window]
        if parts.has(position, window):
            if not rows:
                tell(f"resuming after {counted(earlier, 'row')}")
            bar.advance(len(window))
        else:
            if rows < earlier:
                tell(f"the text has changed from line {rows + 1:,} on: it is encoded again from there")
                earlier = rows
            parts.drop_from(position)
            vectors = _with_known(encoder, window, np.array([seen.get(key, -1) for key in keys]), parts, bar)
            job.note(engine=encoder.engine)
            parts.add(window, vectors)
            stop.check(f"after row {rows + len(window):,}")
        for place, key in enumerate(keys):
            seen.setdefault(key, rows + place)
        while len(seen) > _REMEMBERED:
            del seen[next(iter(seen))]
        rows += len(window)
        position += 1
    parts.drop_from(position)  # the text is shorter now
    shape = EncodedFile(rows, parts.size if rows else size)
    parts.join(job.result, shape)
    job.finish()
    return shape


def _with_known(work: TextEncoder, lines: list[str], known: np.ndarray, parts: VectorParts, bar: Bar) -> np.ndarray:
    """Return the vectors (S, D) of a window; those of repeated sentences are in known rows, -1 for none."""
    fresh = np.flatnonzero(known < 0)
    if len(fresh) == len(lines):
        return work(lines, bar.advance)
    found = parts.rows(np.maximum(known, 0))
    if len(fresh):
        found[fresh] = work([lines[i] for i in fresh], bar.advance)
    bar.advance(len(lines) - len(fresh))
    return found
