"""The vectors of an index, their moments, and each passage's neighbors and document, for fast lookups.

Letters of the shapes: N passages, R and B passages of a block, K nearest passages, D embedding, M documents, L of these
with more than one passage, S some passages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path
from tempfile import TemporaryFile

import numpy as np

from likewise.evaluation.fusion import EQUAL
from likewise.runs.progress import StopRequest
from likewise.runs.whole_files import written_whole
from likewise.searching.index.lance_access import unreadable
from likewise.searching.index.table import Table
from likewise.searching.parts import cells

_ROWS, _COLUMNS = 2048, 8192
"""Passages that are compared at a time: 64 MB of cosines."""
MANY = 20_000
"""Passages from which on cells are faster than a look at all passages of a large index."""
_LOOKING = "while neighbours were looked for"
Blocks = Callable[[], Iterable[tuple[np.ndarray, np.ndarray]]]
"""Gives positions (B,) and vectors (B, D), block after block."""


@dataclass(frozen=True)
class Geometry:
    """The relations between the vectors of an index. A position is an index into `rows`.

    Attributes:
        rows: (N,) sorted row ids of the passages, in the version of the table that the record names.
        keys: (N,) hashes of their texts, by which they are identified in the next version.
        near: (N, K) positions of the nearest passages in ascending order of distance; -1 if there are fewer.
        similarity: (N, K) cosines of the nearest passages.
        apart: (N, D) normalized vectors minus their mean, in float16, because LanceDB takes a tenth of a millisecond to
            look up a vector.
        mean: (D,) mean vector.
        covariance: (D, D) of the vectors.
        document: (N,) number of each passage's document.
        document_sizes: (M,) number of passages of each document.
        document_rows: (M,) position of the mean vector of each document; -1 if the document has one passage.
        document_vectors: (L, D) mean vectors of documents, float16.
        document_mean, document_covariance: (D,) and (D, D) of the mean vectors of all documents.
    """

    rows: np.ndarray
    keys: np.ndarray
    near: np.ndarray
    similarity: np.ndarray
    apart: np.ndarray
    mean: np.ndarray
    covariance: np.ndarray
    document: np.ndarray
    document_sizes: np.ndarray
    document_rows: np.ndarray
    document_vectors: np.ndarray
    document_mean: np.ndarray
    document_covariance: np.ndarray

    @classmethod
    def open(cls, folder: Path) -> Geometry:
        """Open the files of a folder; the larger files are memory-mapped.

        Raises:
            SearchError: If a file is missing or damaged.
        """
        try:
            return cls(*(np.load(folder / f"{one.name}.npy", mmap_mode="r") for one in fields(cls)))
        except (OSError, ValueError) as error:
            raise unreadable(folder.parent, error) from None

    def save(self, folder: Path) -> None:
        """Write the files to a folder, which is made."""
        folder.mkdir(parents=True, exist_ok=True)
        for one in fields(self):
            with written_whole(folder / f"{one.name}.npy") as path, path.open("wb") as file:
                np.save(file, getattr(self, one.name))

    def positions(self, ids: np.ndarray) -> np.ndarray:
        """Return the positions (S,) of row ids (S,), all of which are there."""
        return np.searchsorted(self.rows, ids)

    def cosines(self, vector: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """Return the cosines (S,) of a query, (D,) of length 1, with passages by their positions (S,)."""
        apart: np.ndarray = np.asarray(self.apart[positions]).astype(np.float32) @ vector
        return apart + float(self.mean @ vector)

    def moments(self, vector: np.ndarray) -> tuple[float, float]:
        """Return the mean and the deviation of a query's cosines with all passages.

        The mean of q.v over the vectors v is q.m with their mean m, and its variance is q.Cq with their covariance C,
        so that no vector needs to be examined.

        Args:
            vector: (D,) of length 1.
        """
        return _moments_along(vector, self.mean, self.covariance)

    def document_cosines(self, vector: np.ndarray, numbers: np.ndarray, own: np.ndarray) -> np.ndarray:
        """Return the products (S,) of a query with the mean vectors of documents, standardized over all documents.

        Args:
            vector: (D,) of length 1.
            numbers: (S,) of documents.
            own: (S,) the cosines of a passage of each, for documents of one passage.
        """
        rows = np.asarray(self.document_rows[numbers])
        products, some = own.copy(), rows >= 0
        unique, place = np.unique(rows[some], return_inverse=True)
        products[some] = (np.asarray(self.document_vectors[unique]).astype(np.float32) @ vector)[place]
        mean, deviation = _moments_along(vector, self.document_mean, self.document_covariance)
        standardised: np.ndarray = (products - mean) / deviation
        return standardised


def _moments_along(vector: np.ndarray, mean: np.ndarray, covariance: np.ndarray) -> tuple[float, float]:
    """Return the mean and the deviation of products with a vector; the deviation is 1 if they are all equal."""
    query = vector.astype(np.float64)
    deviation = float(np.sqrt(max(0.0, query @ covariance @ query)))
    return float(query @ mean), deviation if deviation > EQUAL else 1.0


def build(table: Table, count: int, stop: StopRequest, before: Geometry | None = None) -> Geometry:
    """Compute the geometry of a table.

    Nearest passages are exact, except for many passages in a table with an approximate index: these are searched in the
    cells around each passage.

    Args:
        count: K, nearest passages of each.
        before: Geometry before an update, whose valid parts are reused.
    """
    rows, keys = table.keys()

    def blocks() -> Iterator[tuple[np.ndarray, np.ndarray]]:
        for ids, vectors in table.blocks(_COLUMNS):
            yield np.searchsorted(rows, ids), vectors

    near = _Nearest(len(rows), count)
    if before is not None and before.near.shape[1] == count:
        near.keep(before, keys)
    if table.is_approximate and near.stale.sum() > MANY:
        _in_cells(table, blocks, near, stop)
    else:
        _exact(table, rows, blocks, near, stop)
    near.places[~np.isfinite(near.similarity)] = -1
    apart, *moments = _moments(blocks, len(rows), table)
    documents = _documents(blocks, table.documents(), *moments)
    similarity = np.where(near.places < 0, 0, near.similarity)
    return Geometry(rows, keys, near.places, similarity, apart, *moments, *documents)


class _Nearest:
    """The nearest passages so far.

    Attributes:
        places: (N, K) their positions, the nearest first; -1 if there are fewer.
        similarity: (N, K) their cosines, -inf if there are fewer.
        new: (N,) whether a passage is new: passages that are not stale are compared with new passages alone.
        stale: (N,) whether the nearest of a passage are not known.
    """

    def __init__(self, size: int, count: int) -> None:
        self.places = np.full((size, count), -1, dtype=np.int32)
        self.similarity = np.full((size, count), -np.inf, dtype=np.float32)
        self.new = np.ones(size, dtype=bool)
        self.stale = self.new.copy()

    def keep(self, before: Geometry, keys: np.ndarray) -> None:
        """Fill in what is known from before."""
        _, old, now = np.intersect1d(_numbered(before.keys), _numbered(keys), assume_unique=True, return_indices=True)
        moved = np.full(len(before.keys) + 1, -1, dtype=np.int32)  # the last one for -1 itself
        moved[old] = now
        self.places[now], known = moved[before.near[old]], before.near[old] >= 0
        self.similarity[now] = np.where(known, before.similarity[old], -np.inf)
        self.new[now] = False
        self.stale[now] = (known & (self.places[now] < 0)).any(axis=1)  # one of the nearest is gone
        self.places[self.stale], self.similarity[self.stale] = -1, -np.inf

    def compare(self, positions: np.ndarray, others: np.ndarray, cosines: np.ndarray) -> None:
        """Take up what is near to stale passages (R,) among others (B,), and the new of them where they are near.

        Args:
            cosines: (R, B) of both; they are written over.
        """
        _, own, there = np.intersect1d(positions, others, assume_unique=True, return_indices=True)
        cosines[own, there] = -np.inf  # a passage is not its own neighbor
        new, current = self.new[positions], ~self.stale[others]
        if new.any() and current.any():
            self._merge(others[current], positions[new], cosines[np.ix_(new, current)].T)
        self._merge(positions, others, cosines)

    def _merge(self, positions: np.ndarray, others: np.ndarray, cosines: np.ndarray) -> None:
        """Put the others (B,) that are nearer than the nearest so far of passages (R,) in their place."""
        count = self.places.shape[1]
        for _ in range(count):
            best = cosines.argmax(axis=1)
            cosine = np.take_along_axis(cosines, best[:, None], axis=1)  # (R, 1)
            nearer = np.flatnonzero(cosine[:, 0] > self.similarity[positions, -1])
            if not len(nearer):
                break
            cosines[nearer, best[nearer]] = -np.inf
            some = positions[nearer]
            values = np.hstack([self.similarity[some], cosine[nearer]])
            places = np.hstack([self.places[some], others[best[nearer], None]])
            order = np.argsort(-values, axis=1, kind="stable")[:, :count]
            self.similarity[some] = np.take_along_axis(values, order, axis=1)
            self.places[some] = np.take_along_axis(places, order, axis=1)


def _numbered(keys: np.ndarray) -> np.ndarray:
    """Return keys (N,) with numbers, (N,) pairs, so that keys of repeated texts differ."""
    order = np.argsort(keys, kind="stable")
    ordered, places = keys[order], np.arange(len(keys))
    begins = np.concatenate([[True], ordered[1:] != ordered[:-1]])[: len(keys)]
    numbered = np.empty(len(keys), dtype=[("key", keys.dtype), ("number", np.int64)])
    numbered["key"][order] = ordered
    numbered["number"][order] = places - np.maximum.accumulate(np.where(begins, places, 0))
    return numbered


def _exact(table: Table, rows: np.ndarray, blocks: Blocks, near: _Nearest, stop: StopRequest) -> None:
    """Compare stale passages with all."""
    asking = np.flatnonzero(near.stale)
    with stop.progress.bar("finding neighbours", total=len(asking)) as bar:
        for start in range(0, len(asking), _ROWS):
            positions = asking[start : start + _ROWS]
            vectors = table.vectors(rows[positions])
            for others, block in blocks():
                near.compare(positions, others, vectors @ block.T)
            bar.advance(len(positions))
            stop.check(_LOOKING)


def _in_cells(table: Table, blocks: Blocks, near: _Nearest, stop: StopRequest) -> None:
    """Find the nearest of stale passages in the cells that these visit, a cell at a time.

    The vectors are in a file meanwhile, so that memory holds only a cell's and its visitors' vectors.
    """
    size = len(near.stale)
    count = -(-size // cells.SIZE)
    centres = cells.placed(table.sample(min(size, cells.SAMPLE * count)), count)
    visited = np.empty((size, min(cells.VISITED, count)), dtype=np.int32)
    with TemporaryFile(dir=table.folder) as file:
        table_vectors = np.memmap(file, dtype=np.float32, mode="w+", shape=(size, table.dimension))
        with stop.progress.bar("sorting by cells", total=size) as bar:
            for positions, vectors in blocks():
                table_vectors[positions], visited[positions] = vectors, cells.around(vectors, centres)
                bar.advance(len(positions))
                stop.check(_LOOKING)
        by_cell = np.argsort(visited[:, 0], kind="stable")
        starts = np.searchsorted(visited[by_cell, 0], np.arange(count + 1))
        asking = np.flatnonzero(near.stale)
        with stop.progress.bar("finding neighbours", total=visited[asking].size) as bar:
            for cell, rows in cells.visitors(visited[asking], count):
                members = by_cell[starts[cell] : starts[cell + 1]]
                block = table_vectors[members]
                for start in range(0, len(rows), _ROWS):
                    mine = asking[rows[start : start + _ROWS]]
                    near.compare(mine, members, table_vectors[mine] @ block.T)
                    bar.advance(len(mine))
                stop.check(_LOOKING)


def _moments(blocks: Blocks, total: int, table: Table) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all vectors less their mean (N, D), which lie in a file, the mean (D,) and the covariance (D, D)."""
    mean, squares = np.zeros(table.dimension), np.zeros((table.dimension, table.dimension))
    halves = np.zeros((0, table.dimension), dtype=np.float16)
    if total:
        with TemporaryFile(dir=table.folder) as file:  # which is there until its mapping is closed
            halves = np.memmap(file, dtype=np.float16, mode="w+", shape=(total, table.dimension))
    for _, vectors in blocks():
        mean += vectors.sum(axis=0, dtype=np.float64)
    mean /= max(1, total)
    for positions, vectors in blocks():  # less the mean first: the vectors of some models are nearly the same
        apart = vectors - mean.astype(np.float32)
        squares += apart.T @ apart
        halves[positions] = apart
    return halves, mean, squares / max(1, total)


def _documents(
    blocks: Blocks, document: np.ndarray, mean: np.ndarray, covariance: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Return the fields of a `Geometry` on documents.

    Args:
        document: (N,) number of each passage's document.
        mean, covariance: (D,) and (D, D) of the passages.
    """
    sizes = np.bincount(document)
    several = sizes > 1
    rows = np.where(several, np.cumsum(several) - 1, -1).astype(np.int32)
    vectors = np.zeros((int(several.sum()), len(mean)), dtype=np.float32)
    if not len(vectors):
        return document, sizes.astype(np.int32), rows, vectors.astype(np.float16), mean, covariance
    total, squares = np.zeros(len(mean)), np.zeros_like(covariance)

    def counted(some: np.ndarray) -> None:
        nonlocal total, squares
        apart = some - mean.astype(np.float32)
        total += apart.sum(axis=0, dtype=np.float64)
        squares += apart.T @ apart

    for positions, block in blocks():
        row = rows[document[positions]]
        np.add.at(vectors, row[row >= 0], block[row >= 0])
        counted(block[row < 0])
    vectors /= sizes[several][:, None]
    counted(vectors)
    shift = total / len(sizes)
    spread = squares / len(sizes) - np.outer(shift, shift)
    return document, sizes.astype(np.int32), rows, vectors.astype(np.float16), mean + shift, spread
