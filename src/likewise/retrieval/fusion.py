"""The scores of a search, brought to one scale and added, and what tokens and near passages add to them.

Letters of the shapes: Q queries, N passages, S some of these, K nearest passages, D embedding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from likewise.retrieval.pipeline import Pipeline

EQUAL = 1e-9
"""A deviation of scores that is rounding alone."""
_BLOCK = 1024  # passages


def exhaustive(
    pipeline: Pipeline,
    cosines: np.ndarray,
    words: np.ndarray,
    near: np.ndarray | None = None,
    fits: Callable[[int, np.ndarray], np.ndarray] | None = None,
) -> np.ndarray:
    """Return the scores (Q, N) of queries with all passages by a pipeline, as an index gives them to those it looks at.

    What a query excludes is not looked at, and there is no reranker.

    Args:
        pipeline: the weights.
        cosines, words: (Q, N) cosines and BM25 scores.
        near: (N, K) the nearest passages of each, K as many as the pipeline's `nearest` or more; None for none.
        fits: of a query, by its place, how well its tokens fit those of passages (S,): (S,); None for no tokens.

    >>> exhaustive(Pipeline(vectors=0.5, words=0.5), np.array([[0.9, 0.1]]), np.array([[0.0, 3.0]]))
    array([[0., 0.]])
    """
    own = pipeline.vectors * standardised(cosines) + pipeline.words * standardised(words)
    if fits is not None and pipeline.tokens:
        for query, row in enumerate(own):
            first = np.sort(np.argsort(-row, kind="stable")[: pipeline.first])
            gains, others = token_gains(row[first], fits(query, first), pipeline.tokens)
            compared = row[first] + gains
            row += others
            row[first] = compared
    if near is None or not pipeline.neighbours:
        return own
    mean = own[:, near[:, : pipeline.nearest]].mean(axis=2)
    found: np.ndarray = (1 - pipeline.neighbours) * own + pipeline.neighbours * mean
    return found


def standardised(scores: np.ndarray) -> np.ndarray:
    """Return scores (Q, N) with mean 0 and deviation 1 over the passages of each query; zeros if all are equal."""
    spread = scores.std(axis=1, keepdims=True)
    return (scores - scores.mean(axis=1, keepdims=True)) / np.where(spread > EQUAL, spread, 1)


def nearest(vectors: np.ndarray, count: int) -> np.ndarray:
    """Return the nearest passages of each (N, K), the nearest first, by vectors (N, D) of length 1.

    K is `count`, or one less than N if that is fewer.

    >>> nearest(np.array([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]]), 1).tolist()
    [[1], [2], [1]]
    """
    count = min(count, len(vectors) - 1)
    found = np.empty((len(vectors), count), dtype=np.int64)
    for start in range(0, len(vectors), _BLOCK):
        cosines = vectors[start : start + _BLOCK] @ vectors.T
        rows = np.arange(len(cosines))
        cosines[rows, start + rows] = -np.inf
        near = np.argpartition(-cosines, count - 1, axis=1)[:, :count] if count else rows[:, None][:, :0]
        order = np.argsort(-np.take_along_axis(cosines, near, axis=1), axis=1, kind="stable")
        found[start : start + _BLOCK] = np.take_along_axis(near, order, axis=1)
    return found


def spread(own: np.ndarray, near: np.ndarray, share: float) -> np.ndarray:
    """Return scores to which the nearest passages contribute: (1 - share) own + share mean(near).

    Score regularisation (Diaz 2005): passages that are near each other answer the same queries.

    Args:
        own: (S,) the scores.
        near: (S, K) the scores of the nearest passages; NaN if there are fewer.

    >>> spread(np.array([1.0, 2.0]), np.array([[3.0, 5.0], [np.nan, np.nan]]), 0.5)
    array([2.5, 2. ])
    """
    there = ~np.isnan(near)
    count = there.sum(axis=1)
    mean = np.where(there, near, 0.0).sum(axis=1) / np.maximum(count, 1)
    return np.where(count > 0, (1 - share) * own + share * mean, own)


def token_gains(own: np.ndarray, fits: np.ndarray, weight: float) -> tuple[np.ndarray, float]:
    """Compute how much the fit of their tokens adds to the scores of the first passages, and to those of all others.

    The first get weight deviation(own) (fit - mean(fit)) / deviation(fit). The others, whose tokens are not looked at,
    get the mean of the least sixth of these, so that looking at a passage is neither an honour nor a fault.

    Args:
        own: (S,) the scores of the first passages.
        fits: (S,) how well their tokens fit.

    >>> token_gains(np.array([1.0, 3.0]), np.array([0.25, 0.75]), 0.5)
    (array([-0.5,  0.5]), -0.5)
    """
    deviation = fits.std()
    if deviation < EQUAL:
        return np.zeros(len(own)), 0.0
    gains = weight * own.std() * (fits - fits.mean()) / deviation
    return gains, float(np.sort(gains)[: -(-len(gains) // 6)].mean())
