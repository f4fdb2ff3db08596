"""Vectors and cosines of sentences by a loaded model, in memory.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from likewise.encoder.modules import undisturbed
from likewise.errors import LikewiseError
from likewise.inference.engines.engine import TorchEngine
from likewise.inference.load_model import default_prompt, load
from likewise.inference.policy import settled, text_encoder
from likewise.inference.tokens import TextSide
from likewise.runs.progress import Progress

if TYPE_CHECKING:
    from sentence_transformers import CrossEncoder

Precision = Literal["fp32", "bf16"]


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
        model: Encoder. Its training mode and the global random state are restored.
        sentences: S strings, as a list, an array or a column; repeated strings are encoded once.
        batch_size: Maximum number of sentences in a batch; by default only the number of tokens is limited.
        precision: Precision of encoding: "fp32" for unchanged torch, "bf16" for torch under bfloat16 autocast (faster
            on hardware that supports it; it changes about the third digit), or None for the model's own choice (torch
            in float32, unless `likewise.load` set another).
        normalize: Whether to scale each row to length 1.
        progress: Progress that shows a bar; None shows no bar.

    Returns:
        (S, D) float32.

    Raises:
        LikewiseError: If a text is not a string, the batch size is not positive, the precision is unknown, or the
            vectors are not finite.
    """
    if batch_size is not None and batch_size < 1:
        raise LikewiseError(f"batch_size must be 1 or more, not {batch_size}.")
    cast = autocast(model, precision)
    texts, display = _texts(sentences, "sentences"), progress or Progress(quiet=True)
    if not texts:
        return np.zeros((0, dimension(model)), dtype=np.float32)
    choice = settled(model) if precision is None else TorchEngine(model, precision)
    with undisturbed(model), display.bar("encoding", len(texts)) as bar, torch.inference_mode(), cast:
        side = TextSide(default_prompt(model))
        encoder = text_encoder(model, choice, texts, side=side, normalize=normalize, batch_size=batch_size)
        return encoder(texts, bar.advance)


@overload
def similarity(  # type: ignore[overload-overlap]
    texts: str, others: str, /, *, model: SentenceTransformer | str | os.PathLike[str]
) -> float: ...


@overload
def similarity(
    texts: str | Sequence[str],
    others: str | Sequence[str] | None = None,
    /,
    *,
    model: SentenceTransformer | str | os.PathLike[str],
) -> np.ndarray: ...


@overload
def similarity(  # type: ignore[overload-overlap]
    model: SentenceTransformer | str | os.PathLike[str], texts: str, others: str, /
) -> float: ...


@overload
def similarity(
    model: SentenceTransformer | str | os.PathLike[str], texts: str | Sequence[str], others: str | Sequence[str], /
) -> np.ndarray: ...


def similarity(
    *arguments: Any, model: SentenceTransformer | str | os.PathLike[str] | None = None
) -> np.ndarray | float:
    """Return the cosines of texts with other texts, regardless of the similarity in the model card.

    The model is the first argument, as on the command line, or a keyword: `similarity(model, "It is open.", "It is
    shut.")` and `similarity("It is open.", "It is shut.", model=model)` are equivalent.

    Args:
        texts: One text, or S texts (a list, an array, a column).
        others: One text, or O texts; if they are omitted, the texts are compared with each other (`model` is then a
            keyword).
        model: Encoder, or its path or name as in `likewise.load`.

    Returns:
        Cosines (S, O) in float64, from -1 to 1, or a float for two texts. Cosines of different models are not
        comparable; compare their rankings of the same texts instead.

    Raises:
        LoadError: If the model cannot be loaded.
        TypeError: If the model is missing, or there are more than two texts or lists.

    Example:
        >>> import likewise
        >>> cosines = likewise.similarity("bundled:minilm", "A cat sleeps.", ["Prices rose again.", "A cat is asleep."])
        >>> cosines.shape, int(cosines.argmax())
        ((1, 2), 1)
    """
    if model is None and len(arguments) == 3:
        model, *arguments = arguments  # type: ignore[assignment]
    if model is None or not 1 <= len(arguments) <= 2:
        raise TypeError("similarity takes a model and two texts, or lists of texts: similarity(model, texts, others)")
    texts, others = arguments if len(arguments) == 2 else (arguments[0], None)
    encoder = model if isinstance(model, SentenceTransformer) else load(model, precision="fp32")
    rows, columns = _texts(texts, "texts"), [] if others is None else _texts(others, "others")
    vectors = encode(encoder, [*rows, *columns], normalize=True).astype(np.float64)  # (S + O, D)
    cosines = (vectors[: len(rows)] @ (vectors if others is None else vectors[len(rows) :]).T).clip(-1, 1)
    return cosines.item() if isinstance(texts, str) and isinstance(others, str) else cosines


def _texts(texts: Any, name: str) -> list[str]:
    """Return one text, a list of texts, an array or a column of any library as a list; an error names the argument."""
    listed = [texts] if isinstance(texts, str) else list(texts.to_pylist() if hasattr(texts, "to_pylist") else texts)
    others = (f"{name}[{place}], {text!r:.60}," for place, text in enumerate(listed) if not isinstance(text, str))
    is_table = hasattr(texts, "columns") or hasattr(texts, "column_names")
    if wrong := "a table" if is_table else next(others, ""):
        raise LikewiseError(f"{wrong} is not a string: give strings, or lists or columns of them")
    return listed


def dimension(model: SentenceTransformer) -> int:
    """Return the length D of the model's vectors."""
    known = model.get_embedding_dimension()
    if known is not None:
        return int(known)
    with undisturbed(model):
        return int(np.asarray(model.encode(["a"], show_progress_bar=False)).shape[1])


def autocast(model: SentenceTransformer | CrossEncoder, precision: Precision | None) -> AbstractContextManager[object]:
    """Return the context for a precision: bfloat16 autocast for "bf16", otherwise nothing."""
    if precision not in (None, "fp32", "bf16"):
        raise LikewiseError(f"Unknown precision {precision!r}; choose 'fp32' or 'bf16'.")
    return torch.autocast(model.device.type, dtype=torch.bfloat16) if precision == "bf16" else nullcontext()
