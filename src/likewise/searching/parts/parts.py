"""The parts of a hybrid search, each of which adds to the scores of passages, in one list.

Scores are z-scores over the whole index. Hits of vectors and of words get both scores, so that the ranking equals an
exhaustive search wherever these hits contain the answer.

A new part is a class with a `score`: in `PARTS`, with its weight in `Pipeline` (`parts/pipeline.py`); or, with its own
weight, an entry point of a package or an argument of `Index`.

Letters of the shapes: N all passages, S some of them, M documents, K nearest passages, D embedding, Q tokens of the
query, P a token's vector.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likewise.errors import counted
from likewise.evaluation.fusion import standardised, token_gains, towards_near
from likewise.runs.plugins import PARTS_GROUP, entry_points_of, load_registered
from likewise.runs.whole_files import Record
from likewise.searching.index.table import SearchError
from likewise.searching.parts.lookup import EncodedQuery, Lookup, Stored
from likewise.searching.parts.pipeline import Pipeline

_SLOPE = 0.2
"""How much of a document's length its sum is divided by: the slope of Singhal, Buckley and Mitra (1996)."""
_HIGHEST = 6.0
"""The most deviations that words count above the mean where a query excludes something."""
_AS_LONG = 1.0
"""The length of a query, in mean lengths of the passages, from which tokens are not compared."""


@dataclass(frozen=True)
class Ranking:
    """Passages, the best first.

    Attributes:
        ids, scores: Row ids (S,), and the scores (S,) that sort them.
        similarity, words: Cosines and BM25 scores, (S,) each.
        parts: Contribution (S,) of each part of the pipeline, whose sum is the score.
    """

    ids: np.ndarray
    scores: np.ndarray
    similarity: np.ndarray
    words: np.ndarray
    parts: dict[str, np.ndarray] = field(default_factory=dict)


class Candidates(NamedTuple):
    """Passages that are scored.

    Attributes:
        positions: (S,) positions of the passages in the geometry.
        before: Function from positions (S,) to the sum of the scores of the earlier parts, (S,).
    """

    positions: np.ndarray
    before: Callable[[np.ndarray], np.ndarray]


class Part:
    """A part of a hybrid search, which a subclass defines by `score`.

    Attributes:
        name: Name of the part in the pipeline and in the scores of a hit.
        weight: Factor of its scores: the pipeline's option of this name, or else the class's weight.
        lookup, geometry, pipeline: Lookup of the query, geometry of the index, and options of the search.

    >>> class Short(Part):
    ...     name, weight = "short", 0.1
    ...     def score(self, query, candidates):
    ...         return [-len(passage["text"]) / 100 for passage in self.passages(candidates)]
    >>> Short.weight  # likewise.Index("my.index", parts=[Short])
    0.1
    """

    name: ClassVar[str] = ""
    weight: float = 0.0

    def __init__(self, lookup: Lookup, pipeline: Pipeline) -> None:
        self.lookup, self.geometry, self.pipeline = lookup, lookup.geometry, pipeline
        self.weight = getattr(pipeline, self.name, self.weight)

    def passages(self, candidates: Candidates) -> list[Record]:
        """Return the candidates: `id`, `file`, `line`, `title`, `text`, and the fields of their rows (`metadata`)."""
        return self.lookup.table.passages(self.geometry.rows[candidates.positions])

    @property
    def is_used(self) -> bool:
        """Whether the part contributes to the scores."""
        return bool(self.weight)

    def prepare(self, best_first: np.ndarray, before: Callable[[np.ndarray], np.ndarray]) -> None:
        """Prepare the scoring of passages, given by their positions (S,), sorted by the earlier parts."""

    def score(self, query: EncodedQuery, candidates: Candidates) -> ArrayLike:
        """Return the scores (S,) of candidates by this part, before they are multiplied by `weight`."""
        raise NotImplementedError


class Vectors(Part):
    """The cosine of query and passage."""

    name = "vectors"
    is_used = True  # it is shown, if only as 0

    def score(self, query: EncodedQuery, candidates: Candidates) -> np.ndarray:
        """Return the standardized cosines."""
        return self.lookup.vectors(candidates.positions)


class Words(Part):
    """The BM25 score of query and passage."""

    name = "words"
    is_used = True

    def score(self, query: EncodedQuery, candidates: Candidates) -> np.ndarray:
        """Return the standardized BM25 scores."""
        return self.lookup.words(candidates.positions)


class TokenFit(Part):
    """The match of the first passages' tokens with the query's tokens (MaxSim).

    The tokens of a query that is as long as the passages are not compared, because such a query is itself a text: its
    tokens match every passage, and their comparison takes long.
    """

    name = "tokens"
    _compared: np.ndarray | None = None

    @property
    def is_used(self) -> bool:
        """True if the tokens of passages are stored, and the query's tokens are available."""
        return self.lookup.codec is not None and self.lookup.query.tokens is not None and bool(self.weight)

    def prepare(self, best_first: np.ndarray, before: Callable[[np.ndarray], np.ndarray]) -> None:
        """Compare the tokens of the first passages with the query's tokens."""
        query, weights, codec = self.lookup.query.tokens, self.lookup.query.weights, self.lookup.codec
        assert query is not None
        assert weights is not None
        assert codec is not None
        first = np.sort(best_first[: self.pipeline.first])
        packed = self.lookup.table.tokens_of(self.geometry.rows[first])
        if len(query) and len(query) < _AS_LONG * codec.lengths(packed).mean():
            self._gains, self._other_gain = token_gains(before(first), codec.fits(query, weights, packed))
            self._compared = first
        else:
            self.weight = 0.0

    def score(self, query: EncodedQuery, candidates: Candidates) -> np.ndarray:
        """Return the gains of compared passages, and the gain of all others."""
        if self._compared is None:
            return np.zeros(len(candidates.positions))
        place = np.searchsorted(self._compared, candidates.positions).clip(max=len(self._compared) - 1)
        return np.where(self._compared[place] == candidates.positions, self._gains[place], self._other_gain)


class Neighbours(Part):
    """A share of the mean score of the nearest passages."""

    name = "neighbours"

    def near(self, positions: np.ndarray) -> np.ndarray:
        """Return the positions (S,) of the nearest passages of others, each once."""
        near = np.unique(np.asarray(self.geometry.near[positions, : self.pipeline.nearest]))
        return near[near >= 0]

    def score(self, query: EncodedQuery, candidates: Candidates) -> np.ndarray:
        """Return the mean score of the nearest passages minus the passage's own score."""
        own = candidates.before(candidates.positions)
        near = np.asarray(self.geometry.near[candidates.positions, : self.pipeline.nearest])  # (S, K)
        scores = np.full(near.shape, np.nan)
        scores[near >= 0] = candidates.before(near[near >= 0])
        return towards_near(own, scores)


class Documents(Part):
    """A fraction of the score of a passage's whole document, if the document has several passages.

    The score combines the document's mean vector and the sum of its passages' BM25 scores, each standardized over all
    documents, because a long document can match a query by several passages together. The sum is divided by a pivoted
    length, which prevents documents with many passages from always ranking first.
    """

    name = "documents"

    @property
    def is_used(self) -> bool:
        """True if there are several documents, and one of them has more than one passage."""
        several = len(self.geometry.document_vectors) > 0 and len(self.geometry.document_sizes) > 1
        return bool(self.weight) and several

    def score(self, query: EncodedQuery, candidates: Candidates) -> np.ndarray:
        """Return the scores of the documents."""
        numbers = np.asarray(self.geometry.document[candidates.positions])
        own = self.lookup.cosines(candidates.positions)
        by_vectors = self.geometry.document_cosines(query.vector, numbers, own)
        return self.pipeline.vectors * by_vectors + self.pipeline.words * self._words[numbers]

    @cached_property
    def _words(self) -> np.ndarray:
        """The standardized sums (M,) of BM25 scores, divided by a length that is 1 for a document of the mean size."""
        sizes = self.geometry.document_sizes
        positions, scores = self.lookup.bm25
        sums = np.bincount(self.geometry.document[positions], scores, len(sizes))
        return standardised(sums / (1 - _SLOPE + _SLOPE * sizes / sizes.mean()))


class Phrases(Part):
    """The fraction of the query's quoted phrases that occur in a passage."""

    name = "phrases"

    @property
    def is_used(self) -> bool:
        """True if there are phrases."""
        return bool(self.weight) and bool(self.lookup.query.phrases)

    def score(self, query: EncodedQuery, candidates: Candidates) -> np.ndarray:
        """Return the share."""
        rows = self.geometry.rows[candidates.positions]
        there = [np.isin(rows, self.lookup.table.allowed(rows, phrase)) for phrase in query.phrases]
        return np.asarray(np.mean(there, axis=0))


PARTS: tuple[type[Part], ...] = (Vectors, Words, TokenFit, Neighbours, Documents, Phrases)
"""All parts of a search, in the order in which they add to the scores; then what is excluded is taken off."""


def registered_parts() -> tuple[type[Part], ...]:
    """Return the parts that other packages register as entry points of `likewise.search_parts`, by their names.

    Raises:
        SearchError: If an entry point cannot be loaded, or is not a part.
    """
    entries = sorted(entry_points_of(PARTS_GROUP), key=lambda entry: entry.name)
    parts = [load_registered(entry, type, f"the search part {entry.name!r}", SearchError) for entry in entries]
    return checked_parts(parts)


def checked_parts(parts: object, others: Sequence[type[Part]] = ()) -> tuple[type[Part], ...]:
    """Return further search parts after a check.

    Raises:
        SearchError: If an item is not a part, or has the name of another part or option.
    """
    if not isinstance(parts, Sequence) or isinstance(parts, str):
        kind = parts if isinstance(parts, type) else type(parts)
        name = kind.__name__ if issubclass(kind, Part) else "Part"
        shown = f"the class {kind.__name__}" if parts is kind else f"an instance of {kind.__name__}"
        raise SearchError(f"parts must be a list of classes, such as [{name}], not {shown}")
    checked = list(others)
    for part in parts:
        if isinstance(part, Part):
            name = type(part).__name__
            raise SearchError(f"a part must be a class, not an instance of {name}: give [{name}]")
        if not (isinstance(part, type) and issubclass(part, Part)):
            raise SearchError(f"{part!r} is not a search part: give a subclass of likewise.searching.Part")
        if not (part.name and part.weight):
            raise SearchError(
                f"{part.__name__} needs a name and a weight other than 0 to be a search part: give both, or omit it"
            )
        checked.append(part)
    names = [*Pipeline.model_fields, *(part.name for part in checked)]
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise SearchError(f"a search part cannot be named {twice!r}, which is the name of another part or option")
    return tuple(checked)


def _by_part(parts: Sequence[Part], positions: np.ndarray) -> dict[str, np.ndarray]:
    """Return what each part gives passages, (S,), times its weight."""
    gained: dict[str, np.ndarray] = {}
    for number, part in enumerate(parts):
        given = part.score(part.lookup.query, Candidates(positions, _sum(parts[:number])))
        scores = np.asarray(given)
        if scores.shape != positions.shape:
            made = "None" if given is None else counted(len(scores), "score") if scores.shape else "one number"
            raise SearchError(
                f"the search part {part.name!r} returned {made} for {counted(len(positions), 'passage')}: "
                "return one score for each candidate, in their order"
            )
        if not np.isfinite(scores).all():
            raise SearchError(f"the search part {part.name!r} returned a score that is not finite (NaN or inf)")
        gained[part.name] = part.weight * scores
    return gained


def _sum(parts: Sequence[Part]) -> Callable[[np.ndarray], np.ndarray]:
    """Return the function that gives the sum of parts, (S,) for positions (S,)."""
    return lambda positions: sum(_by_part(parts, positions).values(), np.zeros(len(positions)))


def ranked(
    stored: Stored,
    pipeline: Pipeline,
    query: EncodedQuery,
    count: int,
    where: str | None,
    excluded: EncodedQuery | None = None,
    more: Sequence[type[Part]] = (),
) -> Ranking:
    """Rank the best passages of an index by vectors, the best by words, and their neighbors.

    Args:
        query: Query to search for.
        count: Number of requested passages; more are ranked.
        where: as in `likewise.search`.
        excluded: Excluded query, of which `pipeline.excluded` times a passage's score is subtracted after the
            neighbors have contributed, so that they cannot restore the passage.
        more: Parts of other packages, which add to the scores after `PARTS`.
    """
    lookup = Lookup(stored, query, pipeline, _HIGHEST if excluded else np.inf)
    parts = [part for part in (one(lookup, pipeline) for one in (*PARTS, *more)) if part.is_used]
    barred = None
    if excluded:
        unwanted = Lookup(stored, excluded, pipeline)
        barred = _sum([Vectors(unwanted, pipeline), Words(unwanted, pipeline)])

    def off(positions: np.ndarray) -> np.ndarray:
        return pipeline.excluded * barred(positions) if barred else np.zeros(len(positions))

    table, geometry, depth = stored.table, stored.geometry, max(count, pipeline.depth)
    nearest = lookup.nearest(depth, where) if pipeline.vectors else np.zeros(0, dtype=np.int64)
    best_words = lookup.best_words(depth, where) if pipeline.words else np.zeros(0, dtype=np.int64)
    passages = np.union1d(nearest, best_words)  # (S,)
    if not len(passages):
        return Ranking(passages, np.zeros(0), np.zeros(0), np.zeros(0))
    for number, part in enumerate(parts):
        if type(part).prepare is not Part.prepare:
            before = _sum(parts[:number])
            part.prepare(passages[np.argsort(off(passages) - before(passages), kind="stable")], before)
    parts = [part for part in parts if part.is_used]  # tokens may not be worth comparing
    for neighbours in (part for part in parts if isinstance(part, Neighbours)):
        best = passages[np.argsort(off(passages) - _sum(parts)(passages), kind="stable")[:depth]]
        taken = np.setdiff1d(neighbours.near(best), passages)
        if where:
            taken = geometry.positions(table.allowed(geometry.rows[taken], where))
        passages = np.concatenate([passages, taken])
    given = _by_part(parts, passages) | ({"excluded": -off(passages)} if barred else {})
    final = np.sum(list(given.values()), axis=0)
    order = np.lexsort((geometry.rows[passages], -final))
    passages = passages[order]
    ordered = {name: values[order] for name, values in given.items()}
    similarity, words = lookup.raw(passages)
    return Ranking(geometry.rows[passages], final[order], similarity, words, ordered)
