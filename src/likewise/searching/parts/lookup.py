"""The lookup of a query: its standardized cosines and BM25 scores with passages.

Letters of the shapes: N all passages, S some passages, W passages with words of the query, D embedding, Q tokens of the
query, P a token's vector.
"""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from likewise.evaluation.fusion import EQUAL
from likewise.searching.index.geometry import Geometry
from likewise.searching.index.maxsim import TokenCodec
from likewise.searching.index.table import Table
from likewise.searching.parts.pipeline import Pipeline

_READ = 20_000
"""BM25 scores that are read, the highest: a passage below them, in a larger index, counts as one without the words."""


class EncodedQuery(NamedTuple):
    """A query.

    Attributes:
        text: Words of the query.
        vector: (D,) of length 1.
        tokens, weights: (Q, P) and (Q,), to be compared.
        phrases: Condition on passages that contain a phrase, for each phrase.
    """

    text: str
    vector: np.ndarray
    tokens: np.ndarray | None = None
    weights: np.ndarray | None = None
    phrases: tuple[str, ...] = ()


class Stored(NamedTuple):
    """What an index contains of its passages.

    Attributes:
        codec: Format of the stored tokens; None if there are none.
    """

    table: Table
    geometry: Geometry
    codec: TokenCodec | None = None


class Lookup:
    """The cosines and BM25 scores of one query with passages, and their moments over the index.

    Args:
        highest: Maximum number of deviations above the mean that a BM25 score counts.
    """

    def __init__(self, stored: Stored, query: EncodedQuery, pipeline: Pipeline, highest: float = np.inf) -> None:
        self.table, self.geometry, self.codec = stored
        self.query = query
        words = query.text if pipeline.words else ""
        self._begun = self.table.begin_words(words, _READ) if words else None  # while vectors are looked for
        self._of_cosines = self.geometry.moments(query.vector)
        self._cosines = np.full(len(self.geometry.rows), np.nan, dtype=np.float32)  # NaN until they are needed
        self._highest = highest

    @cached_property
    def bm25(self) -> tuple[np.ndarray, np.ndarray]:
        """The positions (W,) of the passages with words of the query, ascending, and their BM25 scores (W,)."""
        if self._begun is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0)
        rows = self._begun()
        ids, scores = rows["_rowid"].to_numpy(), rows["_score"].to_numpy()
        order = np.argsort(ids)
        return self.geometry.positions(ids[order]), scores[order].astype(np.float64)

    def nearest(self, depth: int, where: str | None) -> np.ndarray:
        """Return the positions (S,) of the nearest passages."""
        positions = np.sort(self.geometry.positions(self.table.about(self.query.vector, depth, where)))
        cosines = self.geometry.cosines(self.query.vector, positions)
        return positions[np.argsort(-cosines, kind="stable")[:depth]]

    def best_words(self, depth: int, where: str | None) -> np.ndarray:
        """Return the positions (S,) of the passages with the highest BM25 scores."""
        if where:
            return self.geometry.positions(self.table.by_words(self.query.text, depth, where)[0])
        positions, scores = self.bm25
        least = np.partition(scores, -depth)[-depth] if len(scores) > depth else -np.inf
        best = np.flatnonzero(scores >= least)  # which of equal scores comes first would change
        return positions[best[np.argsort(-scores[best], kind="stable")[:depth]]]

    def cosines(self, positions: np.ndarray) -> np.ndarray:
        """Return the cosines (S,) of query and passages."""
        missing = np.unique(positions[np.isnan(self._cosines[positions])])
        self._cosines[missing] = self.geometry.cosines(self.query.vector, missing)
        return self._cosines[positions]

    def raw(self, positions: np.ndarray) -> np.ndarray:
        """Return cosines and BM25 scores, (2, S), of passages."""
        having, scores = self.bm25
        place = np.searchsorted(having, positions).clip(max=max(0, len(having) - 1))
        words = scores[place] * (having[place] == positions) if len(having) else np.zeros(len(positions))
        return np.stack([self.cosines(positions), words])

    def vectors(self, positions: np.ndarray) -> np.ndarray:
        """Return the cosines (S,) of query and passages, standardized over all passages."""
        mean, deviation = self._of_cosines
        return (self.cosines(positions).astype(np.float64) - mean) / deviation

    def words(self, positions: np.ndarray) -> np.ndarray:
        """Return the BM25 scores (S,) of passages, standardized over all passages."""
        size, scores = len(self.geometry.rows), self.bm25[1]
        mean = scores.sum() / size
        deviation = np.sqrt(max(0.0, (scores**2).sum() / size - mean**2))
        standardised: np.ndarray = (self.raw(positions)[1] - mean) / (deviation if deviation > EQUAL else 1.0)
        return np.minimum(standardised, self._highest)
