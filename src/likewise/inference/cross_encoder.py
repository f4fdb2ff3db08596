"""Cross-encoders, which read two sentences together: loaded and checked, and their scores of pairs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from sentence_transformers import CrossEncoder

from likewise.encoder.location import LoadError, check_cross_encoder
from likewise.encoder.modules import undisturbed
from likewise.encoder.saved_models import fit_to_weights
from likewise.errors import first_line
from likewise.inference.vectors import Precision, autocast
from likewise.transformers_output import no_bar


def open_cross_encoder(model: CrossEncoder | str) -> CrossEncoder:
    """Return a cross-encoder with one output.

    Args:
        model: A CrossEncoder, or its folder or hub name.

    Raises:
        LoadError: If there is no such model, or it has more than one output.
    """
    named = model if isinstance(model, str) else type(model).__name__
    if isinstance(model, str):
        check_cross_encoder(model)
    try:
        with no_bar():
            encoder = CrossEncoder(model) if isinstance(model, str) else model
    except (OSError, ValueError) as error:
        raise LoadError(f"'{named}' cannot be loaded as a cross-encoder: {first_line(error)}") from error
    fit_to_weights(encoder[0], named)
    if (outputs := encoder.num_labels) != 1:
        raise LoadError(f"'{named}' has {outputs} outputs per pair: give a cross-encoder with a single score")
    return encoder


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
