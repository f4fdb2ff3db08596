"""Measures of vectors without ratings: alignment, uniformity and separation.

Alignment and uniformity follow Wang and Isola 2020, 'Understanding Contrastive Representation Learning through
Alignment and Uniformity on the Hypersphere', as ArcCSE uses them (Zhang et al. 2022, equations 6 and 7). Lower is
better for both. Letters of the shapes: N rows, D embedding.
"""

import numpy as np
from numpy.typing import ArrayLike

from likewise.evaluation.task import EvaluationError

_ROWS_AT_A_TIME = 2048  # a block of products is then 2048 x 2048 float64, 32 MiB


def alignment(x: ArrayLike, y: ArrayLike) -> float:
    """Return E |f(x) - f(x+)|^2 over pairs of corresponding rows (ArcCSE equation 6).

    Args:
        x, y: (N, D) arrays or tensors; row i of `y` is the positive of row i of `x`. Rows are scaled to
            length 1 here; a row of zeros stays zero.

    Returns:
        The alignment, between 0 (all positives coincide) and 4 (all positives are opposite).

    Raises:
        EvaluationError: If the shapes differ, are not (N, D), or there is no row.

    >>> alignment([[1.0, 0.0]], [[0.0, 2.0]])
    2.0
    """
    left, right = _matrix(x), _matrix(y)
    if left.shape != right.shape:
        raise EvaluationError(f"The two sides differ in shape: {left.shape} and {right.shape}.")
    if not len(left):
        raise EvaluationError("Alignment needs one pair or more.")
    return float(np.square(_unit(left) - _unit(right)).sum()) / len(left)


def uniformity(x: ArrayLike) -> float:
    """Return log E e^(-2 |f(x) - f(y)|^2) over all pairs of distinct rows (ArcCSE equation 7).

    Args:
        x: (N, D) array or tensor. Rows are scaled to length 1 here; a row of zeros stays zero. Memory grows
            by N x D only: N x N products are made in blocks.

    Returns:
        The uniformity, between -8 (two opposite points) and 0 (all rows coincide); it is -4 if all rows are orthogonal.

    Raises:
        EvaluationError: If the shape is not (N, D), or there are fewer than two rows.

    >>> uniformity([[1.0, 0.0], [0.0, 3.0]])
    -4.0
    """
    vectors = _matrix(x)
    count = len(vectors)
    if count < 2:
        raise EvaluationError(f"Uniformity needs two rows or more, not {count}.")
    total = 0.0
    for top in range(0, count, _ROWS_AT_A_TIME):
        left = _unit(vectors[top : top + _ROWS_AT_A_TIME])
        for start in range(top, count, _ROWS_AT_A_TIME):
            right = left if start == top else _unit(vectors[start : start + _ROWS_AT_A_TIME])
            squared = (left**2).sum(1)[:, None] + (right**2).sum(1)[None, :] - 2.0 * (left @ right.T)
            potential = np.exp(-2.0 * np.maximum(squared, 0.0))
            # Each unordered pair once: of a block on the diagonal only the part above the diagonal.
            total += float(np.triu(potential, k=1).sum() if start == top else potential.sum())
    return float(np.log(total / (count * (count - 1) / 2)))


def separation_of_each(queries: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return the z-scores (N,) of the cosines of corresponding rows among the cosines of other rows.

    It is (cos(q_i, t_i) - m) / s for each i, where m and s are the mean and the standard deviation of all cos(q_i, t_j)
    with j other than i. Unlike alignment, its mean does not reward a model whose vectors all lie in one narrow cone,
    and unlike a rank it has no ceiling: it is 0 for chance and for a collapsed model, and 8.6 for all-MiniLM-L6-v2 at
    rate 0.4.

    Args:
        queries, targets: (N, D) each, N at least 2.
    """
    cosines = _unit(queries) @ _unit(targets).T  # (N, N)
    own = np.diag(cosines)
    others = cosines[~np.eye(len(cosines), dtype=bool)]  # (N * (N - 1),)
    spread = float(others.std())
    # Below this the differences are rounding errors.
    return (own - others.mean()) / spread if spread > 1e-6 else np.zeros(len(own))


def _matrix(x: ArrayLike) -> np.ndarray:
    """Return (N, D) as numpy, from an array, nested lists or a tensor on any device and of any float type."""
    if hasattr(x, "detach"):
        x = x.detach().float().cpu().numpy()
    array = np.asarray(x)
    if array.ndim != 2:
        raise EvaluationError(f"Rows of vectors must have the shape (N, D), not {array.shape}.")
    return array


def _unit(rows: np.ndarray) -> np.ndarray:
    wide = rows.astype(np.float64)
    return wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)
