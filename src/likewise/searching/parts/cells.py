"""Cells of a vector space: neighbors of a vector are searched in the cells around it, instead of among all vectors.

Letters of the shapes: S vectors of a sample, B of a block, C cells, V visited cells, D embedding.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

SIZE = 1000
"""Vectors of a cell, about."""
VISITED = 6
"""Cells in which a vector is compared: its own and the next ones."""
SAMPLE = 64
"""Vectors of a cell that place its centre."""
_BATCH = 4096


def placed(sample: np.ndarray, count: int, seed: int = 1) -> np.ndarray:
    """Place the centres (C, D) of cells, of length 1, by k-means; a vector is in the cell of the nearest centre.

    Args:
        sample: (S, D) vectors of length 1, about `SAMPLE` for each cell.
        count: C.
    """
    from sklearn.cluster import MiniBatchKMeans

    fitted = MiniBatchKMeans(count, batch_size=_BATCH, n_init=1, max_iter=20, random_state=seed).fit(sample)
    lengths = np.linalg.norm(fitted.cluster_centers_, axis=1, keepdims=True)
    centres: np.ndarray = fitted.cluster_centers_ / np.maximum(lengths, 1e-12)
    return centres.astype(np.float32)


def around(vectors: np.ndarray, centres: np.ndarray) -> np.ndarray:
    """Find the cells (B, V) that vectors (B, D) visit, the nearest first: the first is their own.

    >>> around(np.array([[0.8, 0.0, 0.6]], dtype=np.float32), np.eye(3, dtype=np.float32))
    array([[0, 2, 1]])
    """
    cosines = vectors @ centres.T  # (B, C)
    count = min(VISITED, cosines.shape[1])
    visited = np.argpartition(-cosines, count - 1, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(cosines, visited, axis=1), axis=1, kind="stable")
    return np.take_along_axis(visited, order, axis=1)


def visitors(visited: np.ndarray, count: int) -> Iterator[tuple[int, np.ndarray]]:
    """Yield each visited cell, with the rows of its visitors, ascending.

    Args:
        visited: (B, V) cells.
        count: C.

    >>> [(cell, rows.tolist()) for cell, rows in visitors(np.array([[2, 0], [2, 1]]), 4)]
    [(0, [0]), (1, [1]), (2, [0, 1])]
    """
    cells, rows = visited.ravel(), np.repeat(np.arange(len(visited)), visited.shape[1])
    order = np.argsort(cells, kind="stable")
    starts = np.searchsorted(cells[order], np.arange(count + 1))
    for cell in range(count):
        if starts[cell] < starts[cell + 1]:
            yield cell, rows[order[starts[cell] : starts[cell + 1]]]
