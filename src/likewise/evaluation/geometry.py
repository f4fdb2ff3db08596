"""Alignment and uniformity: how close positives lie, and how evenly all vectors spread over the sphere.

Wang and Isola 2020, 'Understanding Contrastive Representation Learning through Alignment and Uniformity on
the Hypersphere', as ArcCSE uses them (Zhang et al. 2022, equations 6 and 7). Lower is better for both.
Letters of the shapes: N rows, D embedding.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_ROWS_AT_A_TIME = 2048  # a block of products is then 2048 x 2048 float64, 32 MiB


def alignment(x: Any, y: Any) -> float:
    """E |f(x) - f(x+)|^2 over rows that belong together (ArcCSE equation 6).

    Args:
        x, y: (N, D) arrays or tensors; row i of `y` is the positive of row i of `x`. Rows are scaled to
            length 1 here; a row of zeros stays zero.

    Returns:
        Between 0 (all positives coincide) and 4 (all are opposite).

    Raises:
        ValueError: the shapes differ, are not (N, D), or there is no row.

    >>> alignment([[1.0, 0.0]], [[0.0, 2.0]])
    2.0
    """
    left, right = _matrix(x), _matrix(y)
    if left.shape != right.shape:
        raise ValueError(f"The two sides differ in shape: {left.shape} and {right.shape}.")
    if not len(left):
        raise ValueError("Alignment needs a pair at least.")
    total = 0.0
    for start in range(0, len(left), _ROWS_AT_A_TIME):
        rows = slice(start, start + _ROWS_AT_A_TIME)
        total += float(np.square(_unit(left[rows]) - _unit(right[rows])).sum())
    return total / len(left)


def uniformity(x: Any) -> float:
    """log E e^(-2 |f(x) - f(y)|^2) over all pairs of distinct rows (ArcCSE equation 7).

    Args:
        x: (N, D) array or tensor. Rows are scaled to length 1 here; a row of zeros stays zero. Memory grows
            by N x D only: the N x N products are made in blocks.

    Returns:
        Between -8 (two opposite points) and 0 (all rows coincide); -4 where all rows are orthogonal.

    Raises:
        ValueError: the shape is not (N, D), or there are fewer than two rows.

    >>> uniformity([[1.0, 0.0], [0.0, 3.0]])
    -4.0
    """
    given = _matrix(x)
    count = len(given)
    if count < 2:
        raise ValueError(f"Uniformity needs two rows at least, and there are {count}.")
    total = 0.0
    for top in range(0, count, _ROWS_AT_A_TIME):
        left = _unit(given[top : top + _ROWS_AT_A_TIME])
        for start in range(top, count, _ROWS_AT_A_TIME):
            right = left if start == top else _unit(given[start : start + _ROWS_AT_A_TIME])
            squared = (left**2).sum(1)[:, None] + (right**2).sum(1)[None, :] - 2.0 * (left @ right.T)
            potential = np.exp(-2.0 * np.maximum(squared, 0.0))
            # Each unordered pair once: the part above the diagonal of a block on the diagonal, all of the
            # others.
            total += float(np.triu(potential, k=1).sum() if start == top else potential.sum())
    return float(np.log(total / (count * (count - 1) / 2)))


def _matrix(x: Any) -> np.ndarray:
    """(N, D) as numpy, from an array, nested lists or a tensor on any device and of any float type."""
    if hasattr(x, "detach"):
        x = x.detach().float().cpu().numpy()
    array = np.asarray(x)
    if array.ndim != 2:
        raise ValueError(f"Rows of vectors have the shape (N, D), and this is {array.shape}.")
    return array


def _unit(rows: np.ndarray) -> np.ndarray:
    wide = rows.astype(np.float64)
    return wide / np.maximum(np.linalg.norm(wide, axis=1, keepdims=True), 1e-12)
