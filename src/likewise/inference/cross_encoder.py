"""The scores of pairs by a cross-encoder, which reads two sentences together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from sentence_transformers import CrossEncoder

from likewise.encoder.modules import undisturbed
from likewise.inference.vectors import Precision, autocast


def predict_pairs(
    model: CrossEncoder,
    first: Sequence[str],
    second: Sequence[str],
    batch_size: int,
    precision: Precision | None,
    activation: torch.nn.Module | None = None,
) -> np.ndarray:
    """Return the scores of P pairs by a cross-encoder, (P,) float64; its modes and the random state are restored.

    Args:
        activation: Module that replaces the model's own.
    """
    with undisturbed(model), autocast(model, precision):
        pairs = list(zip(first, second, strict=True))
        scores = model.predict(pairs, batch_size=batch_size, show_progress_bar=False, activation_fn=activation)
    return np.asarray(scores, dtype=np.float64)
