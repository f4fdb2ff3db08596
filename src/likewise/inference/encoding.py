"""Vectors of sentences: in memory, from a file to a file, and the cosine of two.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from numpy.lib import format as npy

from likewise.inference.lines import open_lines

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Precision = Literal["fp32", "bf16"]
_PRECISIONS = (None, "fp32", "bf16")
# So many batches are read, sorted by length and encoded at a time: enough that batches hold sentences of one
# length, little enough that memory stays constant.
_BATCHES_IN_A_CHUNK = 64


def encode(
    model: SentenceTransformer,
    sentences: Sequence[str],
    *,
    batch_size: int = 64,
    precision: Precision | None = None,
    normalize: bool = False,
    progress: bool = False,
) -> np.ndarray:
    """Encode sentences: the vectors of `model.encode`, as float32 rows in the order given.

    Args:
        model: the encoder; its train or eval mode and the global random state are left as they were.
        sentences: S strings.
        batch_size: sentences a batch; batches hold sentences of similar length.
        precision: None or "fp32" for the model's own, "bf16" to run it under bfloat16 autocast (faster on
            hardware that has it; changes the third digit or so).
        normalize: scale each row to length 1.
        progress: show a bar on standard error.

    Returns:
        (S, D) float32.

    Raises:
        ValueError: the batch size is not positive or the precision is unknown.
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; give 1 or more.")
    if not len(sentences):
        return np.zeros((0, dimension(model)), dtype=np.float32)
    with undisturbed(model), autocast(model, precision):
        vectors = model.encode(
            list(sentences),
            batch_size=batch_size,
            show_progress_bar=progress,
            convert_to_tensor=True,
            normalize_embeddings=normalize,
        )
    return vectors.float().cpu().numpy()  # (S, D)


def dimension(model: SentenceTransformer) -> int:
    """The length D of the model's vectors."""
    known = model.get_embedding_dimension()
    if known is not None:
        return int(known)
    with undisturbed(model):
        return int(np.asarray(model.encode(["a"], show_progress_bar=False)).shape[1])


def autocast(model: SentenceTransformer, precision: Precision | None) -> AbstractContextManager[Any]:
    """The context for a precision: bfloat16 autocast for "bf16", otherwise nothing.

    Raises:
        ValueError: the precision is unknown.
    """
    if precision not in _PRECISIONS:
        raise ValueError(f"Unknown precision {precision!r}; known are 'fp32' and 'bf16'.")
    if precision == "bf16":
        return torch.autocast(model.device.type, dtype=torch.bfloat16)
    return nullcontext()


@contextmanager
def undisturbed(model: torch.nn.Module) -> Iterator[None]:
    """Put the model in eval mode inside, and give back everything as it was found.

    Each module gets its own train or eval flag back (a run may keep some parts frozen in eval mode), and the
    random states of torch, its devices, numpy and Python are restored: an evaluation in the middle of a run
    must not change the run.
    """
    flags = {module: module.training for module in model.modules()}
    python_state, numpy_state = random.getstate(), np.random.get_state()
    devices = sorted({tensor.device.index or 0 for tensor in model.parameters() if tensor.device.type == "cuda"})
    try:
        with torch.random.fork_rng(devices=devices):
            model.eval()
            yield
    finally:
        random.setstate(python_state)
        np.random.set_state(numpy_state)
        for module, training in flags.items():
            module.training = training


def encode_file(
    model: SentenceTransformer,
    in_path: str | os.PathLike[str],
    out_path: str | os.PathLike[str],
    *,
    batch_size: int = 64,
    precision: Precision | None = None,
    normalize: bool = False,
    progress: bool = True,
) -> tuple[int, int]:
    """Encode a text file, one sentence a line, into a .npy file of float32 rows; row i belongs to line i.

    The file is read as a stream and written as it goes, so that memory does not grow with it. The rows appear
    under `out_path` only when all are written (a temporary file beside it is renamed).

    Args:
        model: the encoder.
        in_path: a text file, plain, .gz, .bz2 or .zst, or '-' for standard input. An empty line keeps its
            row.
        out_path: the .npy file, in a folder that is there; an older one is replaced.
        batch_size, precision, normalize: as in `encode`.
        progress: show a count of the sentences on standard error.

    Returns:
        The shape (S, D) of what was written.

    Raises:
        FileNotFoundError: there is no such input file or output folder.
        LinesError: the input is not UTF-8 text or a broken archive.
        ValueError: the batch size is not positive or the precision is unknown.
    """
    out = Path(out_path)
    if not out.parent.is_dir():
        raise FileNotFoundError(f"There is no folder '{out.parent}' to write '{out.name}' in; make it first.")
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}; give 1 or more.")
    size = dimension(model)
    rows = 0
    unfinished = out.with_name(f".{out.name}.{os.getpid()}.part")
    try:
        with open_lines(os.fspath(in_path)) as lines, unfinished.open("w+b") as file, _bar(progress) as step:
            _write_header(file, (0, size))
            start = file.tell()
            while chunk := list(islice(lines, _BATCHES_IN_A_CHUNK * batch_size)):
                vectors = encode(model, chunk, batch_size=batch_size, precision=precision, normalize=normalize)
                file.write(np.ascontiguousarray(vectors, dtype="<f4").tobytes())
                rows += len(chunk)
                step(len(chunk))
            file.seek(0)
            _write_header(file, (rows, size))
            # numpy keeps room in a header for the row count to grow; without it the rows would be
            # overwritten.
            if file.tell() != start:
                raise RuntimeError("the .npy header changed its length")
        unfinished.replace(out)
    finally:
        unfinished.unlink(missing_ok=True)
    return rows, size


def _write_header(file: Any, shape: tuple[int, int]) -> None:
    npy.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})


@contextmanager
def _bar(progress: bool) -> Iterator[Any]:
    if not progress:
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (SpinnerColumn(), TextColumn("encoding"), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("encoding", total=None)
        yield lambda count: bar.advance(task, count)


def similarity(model: SentenceTransformer, a: str, b: str) -> float:
    """The cosine of the vectors of two sentences, between -1 and 1.

    Cosine whatever similarity the model card names: the papers score with it.
    """
    first, second = encode(model, [a, b], normalize=True).astype(np.float64)  # each (D,)
    return float(first @ second)
