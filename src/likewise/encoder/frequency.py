"""Smooth inverse frequency: what every sentence has in common should not make sentences alike."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
from torch import Tensor

_Array = TypeVar("_Array", np.ndarray, Tensor)

SMOOTHING = 1e-3
"""a; Arora et al. 2017 give 1e-4 to 1e-3."""


def frequency_weighted(vectors: _Array, shares: _Array, mean: _Array) -> _Array:
    """Word vectors without their mean, frequent words made short: (v - mean) a / (a + p).

    The weight is that of Arora, Liang and Ma 2017, "A simple but tough-to-beat baseline for sentence embeddings"; the
    mean takes the place of their first principal component, which needs the sentences.

    Args:
        vectors: (V, D).
        shares: (V,) p, each word's share of the corpus's tokens.
        mean: (D,) what is taken off.

    Returns:
        (V, D).
    """
    return (vectors - mean) * (SMOOTHING / (SMOOTHING + shares))[:, None]
