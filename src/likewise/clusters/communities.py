"""Groups of near vectors: communities in the graph of nearest neighbours, or k-means for a given number.

Letters of the shapes: S vectors, K nearest, T groups, D embedding.
"""

from __future__ import annotations

import numpy as np

NEAREST = 10
RESOLUTION = 4.0
_ROWS = 2048


def nearest_neighbours(vectors: np.ndarray, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the nearest (S, K) of each vector of length 1, and their cosines (S, K), by comparing all."""
    count = min(count, len(vectors) - 1)
    near = np.empty((len(vectors), count), dtype=np.int64)
    cosines = np.empty((len(vectors), count), dtype=np.float32)
    for begin in range(0, len(vectors), _ROWS):
        block = vectors[begin : begin + _ROWS] @ vectors.T
        rows = np.arange(len(block))
        block[rows, begin + rows] = -np.inf
        near[begin : begin + _ROWS] = places = np.argpartition(-block, count - 1, axis=1)[:, :count]
        cosines[begin : begin + _ROWS] = np.take_along_axis(block, places, axis=1)
    return near, cosines


def communities(vectors: np.ndarray, resolution: float, seed: int) -> np.ndarray:
    """Return the community (S,) of each vector, by Louvain's method on the graph of nearest neighbours.

    Blondel et al. 2008, with the resolution of Reichardt and Bornholdt 2006: a higher one gives more and smaller
    communities. An edge weighs what its cosine is, and 0 below that.

    Args:
        vectors: (S, D) of length 1.
        resolution: 1 is plain modularity.
        seed: of the order in which vectors are moved.
    """
    import networkx as nx

    near, cosines = nearest_neighbours(vectors, NEAREST)
    graph = nx.Graph()
    graph.add_nodes_from(range(len(vectors)))
    for one, (others, weights) in enumerate(zip(near.tolist(), np.maximum(cosines, 0).tolist(), strict=True)):
        graph.add_weighted_edges_from((one, other, weight) for other, weight in zip(others, weights, strict=True))
    found = np.empty(len(vectors), dtype=np.int64)
    for number, members in enumerate(
        nx.community.louvain_communities(graph, weight="weight", resolution=resolution, seed=seed)
    ):
        found[list(members)] = number
    return found


def divided(vectors: np.ndarray, count: int, seed: int) -> np.ndarray:
    """Return the group (S,) of each vector, by k-means with a given number of groups."""
    from sklearn.cluster import KMeans

    found: np.ndarray = KMeans(count, n_init=3, random_state=seed).fit_predict(vectors)
    return found


def centres_of(vectors: np.ndarray, groups: np.ndarray, count: int) -> np.ndarray:
    """Return the mean vectors (T, D) of groups, scaled to length 1."""
    sums = np.zeros((count, vectors.shape[1]), dtype=np.float64)
    np.add.at(sums, groups, vectors)
    centres: np.ndarray = sums / np.maximum(np.linalg.norm(sums, axis=1, keepdims=True), 1e-12)
    return centres.astype(np.float32)
