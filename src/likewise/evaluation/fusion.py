"""The math of added scores: standardization, and the contributions of tokens and neighbors.

Letters of the shapes: Q queries, N passages, S some of these, K nearest passages.
"""

from __future__ import annotations

import numpy as np

EQUAL = 1e-9
"""A deviation of scores that is rounding alone."""


def standardised(scores: np.ndarray) -> np.ndarray:
    """Return scores (..., N) with mean 0 and deviation 1 over the passages of each query; zeros if all are equal."""
    spread = scores.std(axis=-1, keepdims=True)
    return (scores - scores.mean(axis=-1, keepdims=True)) / np.where(spread > EQUAL, spread, 1)


def towards_near(own: np.ndarray, near: np.ndarray) -> np.ndarray:
    """Return the mean score of each passage's nearest passages minus its own score, (S,).

    Score regularization (Diaz 2005) adds a share of this difference to a score, because passages that are near each
    other tend to answer the same queries.

    Args:
        own: (S,) the scores.
        near: (S, K) the scores of the nearest passages; NaN if there are fewer.

    >>> towards_near(np.array([1.0, 2.0]), np.array([[3.0, 5.0], [np.nan, np.nan]]))
    array([3., 0.])
    """
    there = ~np.isnan(near)
    count = there.sum(axis=1)
    mean = np.where(there, near, 0.0).sum(axis=1) / np.maximum(count, 1)
    return np.where(count > 0, mean - own, 0.0)


def token_gains(own: np.ndarray, fits: np.ndarray) -> tuple[np.ndarray, float]:
    """Return the contributions of the token matches to the scores of the first passages, and of all other passages.

    The contribution is deviation(own) (fit - mean(fit)) / deviation(fit) for the first passages. The other passages,
    whose tokens are not compared, get the mean of the lowest sixth of these values, so that the comparison itself
    neither raises nor lowers a score.

    Args:
        own: (S,) scores of the first passages.
        fits: (S,) match of their tokens.

    >>> token_gains(np.array([1.0, 3.0]), np.array([0.25, 0.75]))
    (array([-1.,  1.]), -1.0)
    """
    deviation = fits.std()
    if deviation < EQUAL:
        return np.zeros(len(own)), 0.0
    gains = own.std() * (fits - fits.mean()) / deviation
    return gains, float(np.sort(gains)[: -(-len(gains) // 6)].mean())
