"""The ranking of a hybrid search: the scores of its parts, brought to one scale, and what neighbours add.

What is compared is a passage's score in a query of all passages: z = (score - mean) / deviation over the whole index.
Both kinds of hits are scored by both kinds of scores, so that the ranking is that of an exhaustive search wherever the
hits of vectors and of words hold the answer.

Letters of the shapes: S passages, K nearest passages, D embedding, Q tokens of the query, P a token's vector.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from likewise.retrieval.fusion import EQUAL, spread, token_gains
from likewise.retrieval.pipeline import Pipeline
from likewise.searching.geometry import Geometry
from likewise.searching.maxsim import TokenCodec
from likewise.searching.table import Table

SCANNED = 10_000
"""BM25 scores of a query that are read: of a passage below them, the score is looked up if it is needed."""


@dataclass(frozen=True)
class Ranking:
    """Passages, the best first.

    Attributes:
        ids: (S,) their row ids.
        scores: (S,) what they are sorted by.
        similarity, words: (S,) cosines and BM25 scores.
        parts: what each part of the pipeline gave, (S,) each; their sum is the score.
    """

    ids: np.ndarray
    scores: np.ndarray
    similarity: np.ndarray
    words: np.ndarray
    parts: dict[str, np.ndarray] = field(default_factory=dict)


class Asked(NamedTuple):
    """A text, its vector (D,), of length 1, and its tokens (Q, P) with weights (Q,), if they are to be compared."""

    text: str
    vector: np.ndarray
    tokens: np.ndarray | None = None
    weights: np.ndarray | None = None


def ranked(
    table: Table,
    geometry: Geometry,
    pipeline: Pipeline,
    asked: Asked,
    count: int,
    where: str | None,
    excluded: Asked | None = None,
    codec: TokenCodec | None = None,
) -> Ranking:
    """Rank the passages of an index.

    Args:
        asked: what is searched for.
        excluded: what is not wanted: `pipeline.excluded` times a passage's score for it is taken off, after the
            neighbours have contributed, so that they cannot bring the passage back.
        count: passages that are wanted; more are ranked.
        where: as in `likewise.search`.
        codec: of the tokens that are stored.
    """
    scores = _Scores(table, geometry, pipeline, asked)
    barred = _Scores(table, geometry, pipeline, excluded) if excluded else None

    def off(positions: np.ndarray) -> np.ndarray:
        return pipeline.excluded * barred.own(positions) if barred else np.zeros(len(positions))

    depth = max(count, pipeline.depth)
    found = np.unique(np.concatenate([scores.nearest(depth, where), scores.best_words(depth, where)]))  # (S,)
    if not len(found):
        return Ranking(found, np.zeros(0), np.zeros(0), np.zeros(0))
    if pipeline.neighbours:  # their scores are needed, too, and one look is faster than two
        scores.raw(scores.with_near(found))
    if codec is not None and asked.tokens is not None:
        scores.compare_tokens(found[np.argsort(off(found) - scores.own(found), kind="stable")], codec)
    if pipeline.neighbours:
        best = found[np.argsort(off(found) - scores.final(found), kind="stable")[:depth]]
        taken = np.setdiff1d(geometry.near[best, : pipeline.nearest], np.append(found, -1))
        if where:
            taken = geometry.positions(table.allowed(geometry.rows[taken], where))
        found = np.concatenate([found, taken])
    spread_out, own, taken_off = scores.final(found), scores.own(found), off(found)
    final = spread_out - taken_off
    order = np.lexsort((geometry.rows[found], -final))
    similarity, words = scores.raw(found)
    parts = {"vectors": scores.by_vectors(similarity), "words": scores.by_words(words)}
    parts |= {"tokens": scores.by_tokens(found)} if scores.compares_tokens else {}
    parts |= {"neighbours": spread_out - own} | ({"excluded": -taken_off} if barred else {})
    kept = {name: values[order] for name, values in parts.items()}
    return Ranking(geometry.rows[found][order], final[order], similarity[order], words[order], kept)


class _Scores:
    """The scores of one query, looked up for passages, which are given by their positions, as they are needed."""

    def __init__(self, table: Table, geometry: Geometry, pipeline: Pipeline, asked: Asked) -> None:
        self.table, self.geometry, self.pipeline = table, geometry, pipeline
        self.asked, query, vector = asked, asked.text, asked.vector
        self.query, self.vector = query, vector
        ids, self._found = np.zeros(0, dtype=np.uint64), np.zeros(0)
        if pipeline.words:
            ids, self._found = table.by_words(query, SCANNED)
        self._holding = geometry.positions(ids)
        self._by_place = np.argsort(self._holding)
        total = max(1, len(geometry.rows))
        self._words_mean = self._found.sum() / total
        self._words_deviation = np.sqrt(max(0.0, (self._found**2).sum() / total - self._words_mean**2)) or 1.0
        mean, deviation = geometry.moments(vector)
        self._mean, self._deviation = mean, deviation if deviation > EQUAL else 1.0
        self._known = np.zeros(0, dtype=np.int64)  # positions, ascending
        self._raw = np.zeros((2, 0))  # cosines and BM25 scores of these
        self._cosines: dict[int, float] = {}
        self.compares_tokens = False
        self._compared, self._gains, self._other_gain = np.zeros(0, dtype=np.int64), np.zeros(0), 0.0

    def nearest(self, depth: int, where: str | None) -> np.ndarray:
        """Return the positions (S,) of the nearest passages."""
        if not self.pipeline.vectors:
            return np.zeros(0, dtype=np.int64)
        ids, cosines = self.table.nearest(self.vector, depth, where)
        positions = self.geometry.positions(ids)
        self._cosines = dict(zip(positions.tolist(), cosines.tolist(), strict=True))
        return positions

    def best_words(self, depth: int, where: str | None) -> np.ndarray:
        """Return the positions (S,) of the passages with the highest BM25 scores."""
        if not where or not self.pipeline.words:
            return self._holding[:depth]
        return self.geometry.positions(self.table.by_words(self.query, depth, where)[0])

    def with_near(self, positions: np.ndarray) -> np.ndarray:
        """Return the positions (S,) of passages and of their nearest ones, ascending."""
        near = np.asarray(self.geometry.near[positions, : self.pipeline.nearest])
        return np.union1d(positions, near[near >= 0])

    def raw(self, positions: np.ndarray) -> np.ndarray:
        """Return cosines and BM25 scores, (2, S), of passages."""
        missing = np.setdiff1d(positions, self._known)
        if len(missing):
            found = np.stack([self._similarities(missing), self._bm25(missing)])
            known = np.concatenate([self._known, missing])
            order = np.argsort(known)
            self._known, self._raw = known[order], np.hstack([self._raw, found])[:, order]
        return self._raw[:, np.searchsorted(self._known, positions)]

    def _similarities(self, positions: np.ndarray) -> np.ndarray:
        found = np.array([self._cosines.get(one, np.nan) for one in positions.tolist()])
        absent = np.isnan(found)
        if absent.any():
            found[absent] = self.table.vectors_of(self.geometry.rows[positions[absent]]) @ self.vector
        return found

    def _bm25(self, positions: np.ndarray) -> np.ndarray:
        found = np.zeros(len(positions))
        if not len(self._holding):
            return found
        place = np.searchsorted(self._holding, positions, sorter=self._by_place).clip(max=len(self._holding) - 1)
        place = self._by_place[place]
        there = self._holding[place] == positions
        found[there] = self._found[place[there]]
        if len(self._holding) >= SCANNED and not there.all():
            rest = np.flatnonzero(~there)
            ids, scores = self.table.by_words(self.query, len(rest), among=self.geometry.rows[positions[rest]])
            found[rest[np.searchsorted(positions[rest], self.geometry.positions(ids))]] = scores
        return found

    def by_vectors(self, cosines: np.ndarray) -> np.ndarray:
        """Return the part of cosines (S,) in the scores."""
        return self.pipeline.vectors * (cosines - self._mean) / self._deviation

    def by_words(self, words: np.ndarray) -> np.ndarray:
        """Return the part of BM25 scores (S,) in the scores."""
        return self.pipeline.words * (words - self._words_mean) / self._words_deviation

    def compare_tokens(self, positions: np.ndarray, codec: TokenCodec) -> None:
        """Compare the tokens of the first of passages, which are given best first, with those of the query.

        A query as long as the passages is no question but a text like them, which one vector describes as well: its
        tokens find something alike everywhere, and comparing them takes long.
        """
        query, weights = self.asked.tokens, self.asked.weights
        assert query is not None
        assert weights is not None
        first = np.sort(positions[: self.pipeline.first])
        packed = self.table.tokens_of(self.geometry.rows[first])
        if not len(query) or len(query) >= _AS_LONG * codec.lengths(packed).mean():
            return
        fits = codec.fits(query, weights, packed)
        self._gains, self._other_gain = token_gains(self.own(first), fits, self.pipeline.tokens)
        self._compared, self.compares_tokens = first, True

    def by_tokens(self, positions: np.ndarray) -> np.ndarray:
        """Return the part of the tokens of passages (S,) in their scores."""
        if not len(self._compared):
            return np.zeros(len(positions))
        place = np.searchsorted(self._compared, positions).clip(max=len(self._compared) - 1)
        return np.where(self._compared[place] == positions, self._gains[place], self._other_gain)

    def own(self, positions: np.ndarray) -> np.ndarray:
        """Return the scores (S,) of passages by their own vectors, words and tokens."""
        cosines, words = self.raw(positions)
        return self.by_vectors(cosines) + self.by_words(words) + self.by_tokens(positions)

    def final(self, positions: np.ndarray) -> np.ndarray:
        """Return the scores (S,) of passages with what their neighbours add."""
        if not self.pipeline.neighbours:
            return self.own(positions)
        near = np.asarray(self.geometry.near[positions, : self.pipeline.nearest])  # (S, K)
        self.raw(self.with_near(positions))
        scores = np.full(near.shape, np.nan)
        scores[near >= 0] = self.own(near[near >= 0])
        return spread(self.own(positions), scores, self.pipeline.neighbours)


_AS_LONG = 1.0
"""The length of a query, in mean lengths of the passages, from which tokens are not compared."""
