"""The similarity of two sentences from the encoder and from contexts: a weighted sum with signed weights.

    cosine     of the frozen encoder's vectors: what the encoder alone says
    words      how well the words of one explain those of the other: the mean over word pieces, weighted by idf, of the
               highest cosine with a state of the other sentence; the mean of both directions
    fit        how well the sentences fit the corpus: the mean cosine of a sentence with its 10 nearest sentences of the
               corpus, both summed; with a weight below 0 it takes from a similarity what either has with everything
    coherence, centre, left, right
               the terms of equation 3 as pointwise mutual information (`likewise.context.terms`): the cosine of
               the two sentences' terms over the contexts of both

Letters: P pairs, T and U tokens, S sentences of the corpus, D embedding, C contexts of a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from likewise.context.stage_options import FEATURES, TERMS, ScoreOptions
from likewise.context.states import SentenceReading
from likewise.context.workspace import ContextError
from likewise.runs.options import OptionError, Options, option
from likewise.runs.whole_files import read_json, write_json

NEAREST = 10
COPY = 0.97
"""A sentence of the corpus of this cosine or more is a copy, and does not count among the nearest."""
_SENTENCES = 512
WEIGHTS = "weights.json"
"""In a workspace: the weights that were chosen for it."""


def match_words(first: SentenceReading, second: SentenceReading, idf: np.ndarray) -> float:
    """Return the mean over both directions of the idf-weighted highest cosine of a word piece; 0 without words.

    Args:
        first, second: T and U word pieces with states of unit length.
        idf: (V,), by id.
    """
    if not len(first.ids) or not len(second.ids):
        return 0.0
    cosines = first.states.astype(np.float32) @ second.states.astype(np.float32).T  # (T, U)
    found = 0.0
    for ids, best in ((first.ids, cosines.max(axis=1)), (second.ids, cosines.max(axis=0))):
        weights = idf[ids] + 1e-6  # a sentence of nothing but the most frequent piece
        found += float(best @ weights / weights.sum())
    return found / 2


def fit_to(corpus: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the mean cosine of vectors (N, D) with their nearest rows of the corpus (S, D), copies left out: (N,)."""
    found = np.zeros(len(vectors))
    for begin in range(0, len(vectors), _SENTENCES):
        cosines = vectors[begin : begin + _SENTENCES] @ corpus.T
        cosines[cosines >= COPY] = -1.0
        k = min(NEAREST, cosines.shape[1])
        found[begin : begin + _SENTENCES] = np.partition(cosines, -k, axis=1)[:, -k:].mean(axis=1)
    return found


def agree(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine over contexts of each term (equation 4): (C, 4), (C, 4) -> (4,); 0 where one side is zero."""
    norms = np.linalg.norm(first, axis=0) * np.linalg.norm(second, axis=0)
    return np.where(norms > 1e-12, (first * second).sum(axis=0) / np.maximum(norms, 1e-12), 0.0)


def weighted(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the similarities (P,) of features (P, 7), on the scale of a cosine, whatever the size of weights."""
    return features @ weights / np.maximum(weights, 0).sum()


def even(features: np.ndarray, wanted: Sequence[bool]) -> tuple[float, ...]:
    """Return weights under which each wanted feature varies as much as the first of them, whose weight is 1.

    A feature that does not vary has weight 0, and so have those that are not wanted.

    Args:
        features: (P, 7), in the order of `FEATURES`.
        wanted: (7,).

    >>> even(np.array([[0.0, 0, 1, 0, 0, 0, 0], [1, 2, 5, 0, 0, 0, 0]]), [True, True, False, True, False, False, False])
    (1.0, 0.5, 0.0, 0.0, 0.0, 0.0, 0.0)
    """
    spread = features.std(axis=0)
    weights = np.where(np.asarray(wanted) & (spread > 1e-9), 1 / np.maximum(spread, 1e-9), 0.0)
    if not weights.any():
        raise ContextError("none of the terms differs between the workspace's sentences: give more documents")
    weights /= weights[weights > 0][0]
    return tuple(float(f"{value:.5g}") for value in weights)


def choose_signed(
    features: np.ndarray, gold: np.ndarray, allowed: Sequence[str] = FEATURES
) -> tuple[tuple[float, ...], float]:
    """Choose signed weights under which the weighted sum of features agrees best with ratings, by `choose_weights`.

    Features are put on one scale, and the first allowed one has weight 1.

    Args:
        features: (P, 7), in the order of `FEATURES`.
        gold: (P,).
        allowed: names of the features that may have a weight.

    Returns:
        The seven weights, of the features as they are, and Spearman's correlation times 100.
    """
    check_rated(features, gold)
    if unknown := set(allowed) - set(FEATURES):
        raise ContextError(f"there is no term {', '.join(sorted(unknown))}; there are {', '.join(FEATURES)}")
    spread = features.std(axis=0)
    usable = [i for i, name in enumerate(FEATURES) if name in allowed and spread[i] > 1e-9]
    if not usable:
        raise ContextError("none of the terms differs between the rated pairs")
    scale = np.where(spread > 1e-9, spread, 1)
    scaled = (features - features.mean(axis=0)) / scale
    start = np.eye(len(FEATURES))[usable[0]]
    weights, spearman = choose_weights(lambda tried: scaled @ tried, gold, start, usable[1:])
    raw = weights / scale
    return tuple(float(f"{value:.5g}") for value in raw / np.abs(raw[usable[0]])), spearman


def similarities(terms: Sequence[np.ndarray], weights: np.ndarray | Sequence[float]) -> np.ndarray:
    """Return equation 4 of each pair, the cosine of the two vectors of weighted terms: (P,); 0 without contexts.

    Args:
        terms: of each pair (2, C, 4), the terms of equation 3 of both sentences in the contexts of both.
        weights: (4,).
    """
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


def check_rated(pairs: Sequence[Any] | np.ndarray, gold: np.ndarray) -> None:
    """Raise a ContextError if there are too few rated pairs."""
    if len(gold) < 2 or len(pairs) != len(gold):
        raise ContextError(f"weights need two rated pairs or more, not {len(pairs)} with {len(gold)} ratings")


class Weights(Options):
    """Chosen weights, and how they were chosen."""

    values: tuple[float, ...] = option(
        ..., "The weights of the seven features of the form `pmi`, or of the terms of equation 3."
    )
    spearman: float | None = option(
        None, "Spearman correlation times 100 on the pairs that the weights were chosen on; None without ratings."
    )
    pairs: int = option(..., "Number of pairs that the weights were chosen on.")
    source: str = option(..., "The task or the file of these pairs.")
    form: Literal["pmi", "paper"] = option(..., "The form of the similarity.")

    def save(self, path: Path) -> None:
        """Write the weights as JSON, atomically."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: Path) -> Weights:
        """Read saved weights."""
        try:
            return cls(**read_json(path))
        except (ValueError, TypeError, OptionError) as error:
            raise ContextError(f"'{path}' holds no weights ({error}): choose them again") from None


def with_chosen_weights(work: str | Path, options: ScoreOptions) -> ScoreOptions:
    """Return the options, with the weights that were chosen for the workspace if they name none."""
    path = Path(work) / WEIGHTS
    if options.weights or not path.is_file():
        return options
    chosen = Weights.load(path)
    if chosen.form != options.form:
        raise ContextError(f"{path} was chosen for form={chosen.form}, not {options.form}: choose weights again")
    return options.updated(weights=chosen.values)


def choose_weights(
    similarities: Callable[[np.ndarray], np.ndarray],
    gold: Sequence[float] | np.ndarray,
    start: Sequence[float] | np.ndarray,
    free: Sequence[int],
    least: float = -np.inf,
) -> tuple[np.ndarray, float]:
    """Choose weights under which similarities agree best with ratings, by Spearman.

    One weight at a time is moved by 0.4, then 0.2, 0.1 and 0.05, as long as Spearman's correlation rises by 0.0001.
    Then the weights are moved back to where they began by 0.05 at a time, as long as it stays within 0.0002 of the
    best: of weights that a small dev set cannot tell apart, these change least.

    Args:
        similarities: weights to the similarities (P,) of the rated pairs.
        gold: their ratings (P,).
        start: the weights that are tried first.
        free: which may be moved.
        least: none is moved below it.

    Returns:
        The weights, and Spearman's correlation times 100.
    """
    from scipy.stats import spearmanr

    def spearman(weights: np.ndarray) -> float:
        value = float(spearmanr(similarities(weights), gold).statistic)
        return value if np.isfinite(value) else -1.0

    start = np.asarray(start, dtype=np.float64)
    weights, best = start.copy(), spearman(start)

    def moved(i: int, change: float) -> np.ndarray:
        tried = weights.copy()
        tried[i] = max(least, round(tried[i] + change, 2))
        return tried

    for step in (0.4, 0.2, 0.1, 0.05):
        rising = True
        while rising:
            rising = False
            for i in free:
                for change in (step, -step):
                    tried = moved(i, change)
                    if tried.any() and (value := spearman(tried)) > best + 1e-4:
                        best, weights, rising = value, tried, True
    lowest, falling = best - 2e-4, True
    while falling:
        falling = False
        for i in free:
            if abs(weights[i] - start[i]) > 0.04:
                tried = moved(i, 0.05 * float(np.sign(start[i] - weights[i])))
                if (value := spearman(tried)) >= lowest:
                    best, weights, falling = value, tried, True
    return weights, 100 * best
