"""The similarity of two sentences from the encoder and from contexts: a weighted sum with signed weights.

    cosine     of the frozen encoder's vectors: what the encoder alone says
    words      how well the words of one explain those of the other: the mean over word pieces, weighted by idf, of the
               highest cosine with a state of the other sentence; the mean of both directions
    fit        how well the sentences fit the corpus: the mean cosine of a sentence with its 10 nearest sentences of the
               corpus, both summed; with a weight below 0 it takes from a similarity what either has with everything
    coherence, centre, left, right
               the terms of equation 3 as pointwise mutual information (`likewise.context.state_score`): the cosine of
               the two sentences' terms over the contexts of both

Letters: P pairs, T and U tokens, S sentences of the corpus, D embedding, C contexts of a pair.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from likewise.context.options import FEATURES
from likewise.context.states import Tokens
from likewise.context.workspace import ContextError

NEAREST = 10
COPY = 0.97
"""A sentence of the corpus of this cosine or more is a copy, and does not count among the nearest."""
_SENTENCES = 512


def match_words(first: Tokens, second: Tokens, idf: np.ndarray) -> float:
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


def choose_signed(
    features: np.ndarray, gold: np.ndarray, allowed: Sequence[str] = FEATURES
) -> tuple[tuple[float, ...], float]:
    """Choose signed weights under which the weighted sum of features agrees best with ratings, by Spearman.

    Features are put on one scale, the first allowed one has weight 1, and one weight at a time is moved by 0.4, then
    0.2, 0.1 and 0.05, as long as Spearman's correlation rises by 0.0001. Then the weights are moved back towards 0 by
    0.05 at a time, as long as it stays within 0.0002 of the best: of weights that a small dev set cannot tell apart,
    these change the first feature least.

    Args:
        features: (P, 7), in the order of `FEATURES`.
        gold: (P,).
        allowed: names of the features that may have a weight.

    Returns:
        The seven weights, of the features as they are, and Spearman's correlation.
    """
    from scipy.stats import spearmanr

    if len(gold) < 2 or len(features) != len(gold):
        raise ContextError(f"weights need two rated pairs or more, not {len(features)} with {len(gold)} ratings")
    if unknown := set(allowed) - set(FEATURES):
        raise ContextError(f"there is no term {', '.join(sorted(unknown))}; there are {', '.join(FEATURES)}")
    spread = features.std(axis=0)
    usable = [i for i, name in enumerate(FEATURES) if name in allowed and spread[i] > 1e-9]
    if not usable:
        raise ContextError("none of the terms differs between the rated pairs")
    scaled = (features - features.mean(axis=0)) / np.where(spread > 1e-9, spread, 1)

    def spearman(weights: np.ndarray) -> float:
        value = float(spearmanr(scaled @ weights, gold).statistic)
        return value if np.isfinite(value) else -1.0

    weights = np.zeros(len(FEATURES))
    weights[usable[0]] = 1.0
    best = spearman(weights)
    for step in (0.4, 0.2, 0.1, 0.05):
        rising = True
        while rising:
            rising = False
            for i in usable[1:]:
                for change in (step, -step):
                    tried = weights.copy()
                    tried[i] = round(tried[i] + change, 2)
                    if (value := spearman(tried)) > best + 1e-4:
                        best, weights, rising = value, tried, True
    least, falling = best - 2e-4, True
    while falling:
        falling = False
        for i in usable[1:]:
            tried = weights.copy()
            tried[i] = round(tried[i] - 0.05 * np.sign(tried[i]), 2)
            if tried[i] != weights[i] and (value := spearman(tried)) >= least:
                best, weights, falling = value, tried, True
    raw = weights / np.where(spread > 1e-9, spread, 1)
    raw /= np.abs(raw[usable[0]])
    return tuple(float(round(value, 4)) for value in raw), 100 * best
