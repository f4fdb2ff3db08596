"""Vectors of sentences in memory, and their cosines.

Letters of the shapes: S sentences, D embedding.
"""

import os
import random
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from likewise.errors import LikewiseError
from likewise.inference.encoder import DEFAULT_BATCH, default_prompt, fast_vectors, finished
from likewise.inference.engines.engine import Choice, TorchEngine
from likewise.inference.engines.graph import fingerprint
from likewise.inference.exported import Facts
from likewise.inference.loading import load
from likewise.inference.runner import UnfitModel, fits
from likewise.runs.progress import Progress

Precision = Literal["fp32", "bf16"]
_PRECISIONS = (None, "fp32", "bf16")


def encode(
    model: SentenceTransformer,
    sentences: Sequence[str],
    *,
    batch_size: int | None = None,
    precision: Precision | None = None,
    normalize: bool = False,
    progress: Progress | None = None,
) -> np.ndarray:
    """Encode sentences: the vectors of `model.encode`, as float32 rows in the order given.

    Args:
        model: the encoder; its train or eval mode and the global random state are restored.
        sentences: S strings; one that occurs again is encoded once.
        batch_size: most sentences in a batch; None leaves it to the number of their tokens.
        precision: None for the model's own choice (torch, if it was not loaded by `likewise.load`), "fp32" for
            unchanged torch, "bf16" for torch under bfloat16 autocast (faster on hardware that has it; changes the
            third digit or so).
        normalize: scale each row to length 1.
        progress: where to show a bar; None shows none.

    Returns:
        (S, D) float32.

    Raises:
        LikewiseError: the batch size is not positive, the precision is unknown, or the vectors are not finite.
    """
    if batch_size is not None and batch_size < 1:
        raise LikewiseError(f"batch_size is {batch_size}; give 1 or more.")
    if not len(sentences):
        return np.zeros((0, dimension(model)), dtype=np.float32)
    if precision not in _PRECISIONS:
        raise LikewiseError(f"Unknown precision {precision!r}; known are 'fp32' and 'bf16'.")
    shown = progress or Progress(quiet=True)
    own = getattr(model, "choice", Choice("torch"))
    choice = own if precision is None else TorchEngine(model, precision)
    with undisturbed(model):
        try:
            with torch.inference_mode():
                prompt = default_prompt(model)
                found, _ = fast_vectors(model, sentences, choice, prompt=prompt, at_most=batch_size, progress=shown)
                vectors = finished(found, model.truncate_dim, normalize)
        except UnfitModel:
            with autocast(model, precision):
                vectors = model.encode(
                    list(sentences),
                    batch_size=batch_size or DEFAULT_BATCH,
                    show_progress_bar=False,
                    convert_to_tensor=True,
                    normalize_embeddings=normalize,
                )
    return all_finite(vectors.float().cpu().numpy())  # (S, D)


def similarity(
    texts: str | Sequence[str],
    others: str | Sequence[str] | None = None,
    *,
    model: SentenceTransformer | str | os.PathLike[str],
) -> np.ndarray:
    """Return the cosines of texts with others, whichever similarity the model card names.

    Args:
        texts: S texts, or one.
        others: O texts, or one; None compares the texts with each other.
        model: the encoder, or what `likewise.load` takes.

    Returns:
        (S, O) float64, each between -1 and 1.
    """
    encoder = model if isinstance(model, SentenceTransformer) else load(model)
    rows = [texts] if isinstance(texts, str) else list(texts)
    columns = [others] if isinstance(others, str) else list(others or ())
    vectors = encode(encoder, [*rows, *columns], normalize=True).astype(np.float64)  # (S + O, D)
    return vectors[: len(rows)] @ (vectors if others is None else vectors[len(rows) :]).T


def dimension(model: SentenceTransformer) -> int:
    """Return the length D of the model's vectors."""
    known = model.get_embedding_dimension()
    if known is not None:
        return int(known)
    with undisturbed(model):
        return int(np.asarray(model.encode(["a"], show_progress_bar=False)).shape[1])


def facts_of(model: SentenceTransformer) -> Facts:
    """Return the facts about a model that later jobs can use without loading it."""
    default = default_prompt(model) or ""
    try:
        tokenizer = fits(model, [], default).tokens.hash
    except UnfitModel:
        tokenizer = None
    prompts = {name: text for name, text in model.prompts.items() if text} | {"": default}
    return Facts(fingerprint(model), dimension(model), model.max_seq_length, model.truncate_dim, prompts, tokenizer)


def all_finite(vectors: np.ndarray) -> np.ndarray:
    """Return vectors unchanged, if all of them are finite."""
    if not np.isfinite(vectors).all():
        raise LikewiseError("The model's vectors are not finite numbers: its weights are broken, so train it again.")
    return vectors


def autocast(model: SentenceTransformer, precision: Precision | None) -> AbstractContextManager[Any]:
    """Return the context for a precision: bfloat16 autocast for "bf16", otherwise nothing."""
    if precision not in _PRECISIONS:
        raise LikewiseError(f"Unknown precision {precision!r}; known are 'fp32' and 'bf16'.")
    if precision == "bf16":
        return torch.autocast(model.device.type, dtype=torch.bfloat16)
    return nullcontext()


@contextmanager
def undisturbed(model: torch.nn.Module) -> Iterator[None]:
    """Put the model in evaluation mode in a `with` block, and restore its modes and the random state.

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
