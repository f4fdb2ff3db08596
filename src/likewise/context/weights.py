"""The terms of a similarity that need no context, how terms agree, and the weights of terms, chosen on rated pairs.

Letters: P pairs, C contexts, N vectors, T and U tokens, S sentences, D embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from scipy.optimize import minimize
from scipy.stats import spearmanr

from likewise.context.stage_options import FEATURES, TERMS
from likewise.context.states import SentenceReading
from likewise.context.workspace import ContextError
from likewise.runs.options import OptionError, Options
from likewise.runs.whole_files import read_json, write_json

NEAREST = 10
COPY = 0.97
"""A sentence of the corpus of this cosine or more is a copy, and does not count among the nearest."""
_SENTENCES = 512
WEIGHTS = "weights.json"
"""In a workspace: the weights that were chosen for it."""


class Weights(Options):
    """Weights of the seven features of the form `pmi` or of the terms of equation 3, and the pairs that chose them.

    `spearman` is the correlation times 100 on these; None without ratings.
    """

    values: tuple[float, ...]
    spearman: float | None = None
    pairs: int
    source: str
    form: Literal["pmi", "paper"]

    def save(self, path: Path) -> None:
        """Write the weights as JSON, atomically."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: Path) -> Weights:
        """Read saved weights."""
        try:
            return cls(**read_json(path))
        except (ValueError, TypeError, OptionError) as error:
            raise ContextError(f"'{path}' contains no weights ({error}): repeat their selection") from None


def match_words(first: SentenceReading, second: SentenceReading, idf: np.ndarray) -> float:
    """Return the mean over both directions of the idf-weighted highest cosine of a word piece; 0 without words."""
    if not len(first.ids) or not len(second.ids):
        return 0.0
    cosines = first.states.astype(np.float32) @ second.states.astype(np.float32).T  # (T, U)
    total = 0.0
    for ids, best in ((first.ids, cosines.max(axis=1)), (second.ids, cosines.max(axis=0))):
        weights = idf[ids] + 1e-6  # a sentence of nothing but the most frequent piece
        total += float(best @ weights / weights.sum())
    return total / 2


def fit_to(corpus: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the mean cosine of vectors (N, D) with their nearest rows of the corpus (S, D), without copies: (N,)."""
    fits = np.zeros(len(vectors))
    for begin in range(0, len(vectors), _SENTENCES):
        cosines = vectors[begin : begin + _SENTENCES] @ corpus.T
        cosines[cosines >= COPY] = -1.0
        k = min(NEAREST, cosines.shape[1])
        fits[begin : begin + _SENTENCES] = np.partition(cosines, -k, axis=1)[:, -k:].mean(axis=1)
    return fits


def agree(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine over contexts of each term (equation 4): (C, 4), (C, 4) -> (4,); 0 where one side is zero."""
    norms = np.linalg.norm(first, axis=0) * np.linalg.norm(second, axis=0)
    return np.where(norms > 1e-12, (first * second).sum(axis=0) / np.maximum(norms, 1e-12), 0.0)


def weighted(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the similarities (P,) of features (P, 7), on the scale of a cosine, whatever the size of weights."""
    return features @ weights / np.maximum(weights, 0).sum()


def choose_signed(features: np.ndarray, gold: np.ndarray) -> tuple[tuple[float, ...], float]:
    """Choose signed weights under which the weighted sum of features agrees best with ratings, by `choose_weights`.

    Features (P, 7) are standardized; the first feature that differs between the pairs has weight 1, and a feature that
    is always 0 has weight 0. The returned weights apply to the original features, and are returned with Spearman's
    correlation times 100.
    """
    check_rated(features, gold)
    spread = features.std(axis=0)
    usable = np.flatnonzero(spread > 1e-9).tolist()
    if not usable:
        raise ContextError("none of the terms differs between the rated pairs")
    scale = np.where(spread > 1e-9, spread, 1)
    scaled = (features - features.mean(axis=0)) / scale
    start = np.eye(len(FEATURES))[usable[0]]
    weights, spearman = choose_weights(lambda tried: scaled @ tried, gold, start, usable[1:])
    raw = weights / scale
    return tuple(float(f"{value:.5g}") for value in raw / np.abs(raw[usable[0]])), spearman


def similarities(terms: Sequence[np.ndarray], weights: np.ndarray | Sequence[float]) -> np.ndarray:
    """Return equation 4 of the terms (2, C, 4) of each pair, the cosine of two vectors of weighted terms: (P,)."""
    return np.array([float(agree(*(pair @ np.asarray(weights))[..., None])[0]) for pair in terms])


def choose_even(
    terms: Sequence[np.ndarray], gold: np.ndarray, without: Sequence[str] = ()
) -> tuple[tuple[float, ...], float]:
    """Choose weights of 0 or more for equation 4, which sum to 1, from even ones; see `choose_signed`."""
    check_rated(terms, gold)
    start = np.array([float(name not in without) for name in TERMS])
    free = np.flatnonzero(start).tolist()
    weights, spearman = choose_weights(lambda tried: similarities(terms, tried), gold, start, free, 0.0)
    return tuple((weights / weights.sum()).tolist()), spearman


def check_rated(pairs: Sequence[object] | np.ndarray, gold: np.ndarray) -> None:
    """Raise a ContextError if there are too few rated pairs."""
    if len(gold) < 2 or len(pairs) != len(gold):
        raise ContextError(f"weights need at least two rated pairs, not {len(pairs)} with {len(gold)} ratings")


def choose_weights(
    similarities: Callable[[np.ndarray], np.ndarray],
    gold: np.ndarray,
    start: np.ndarray,
    free: Sequence[int],
    least: float = -4.0,
) -> tuple[np.ndarray, float]:
    """Return the weights under which similarities agree best with ratings, and Spearman's correlation times 100.

    Powell's method moves the `free` weights from `least` to 4, and they are rounded to hundredths.
    """
    weights = start.copy()

    def disagreement(values: Sequence[float] | np.ndarray) -> float:
        weights[free] = values
        value = float(spearmanr(similarities(weights), gold).statistic) if weights.any() else -1.0
        return -value if np.isfinite(value) else 1.0

    best = start[free]
    if len(free):
        settings = {"xtol": 0.01, "ftol": 1e-4}
        best = minimize(disagreement, best, method="Powell", bounds=[(least, 4.0)] * len(free), options=settings).x
    spearman = -100 * disagreement(best.round(2))
    return weights, spearman
