"""The search of one query: it is parsed, passages are ranked, and hits are built."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Literal, NamedTuple
from unicodedata import normalize

import numpy as np

from likewise.corpus.sentence_splitter import sentence_spans
from likewise.corpus.words import with_blanks
from likewise.evaluation.bm25 import folded
from likewise.runs.whole_files import Record
from likewise.searching.index.opened_index import OpenedIndex
from likewise.searching.index.passages import passage_text
from likewise.searching.index.table import HIT_COLUMNS, NOWHERE, SearchError, Table
from likewise.searching.parts.lookup import EncodedQuery
from likewise.searching.parts.parts import Part, Ranking, ranked
from likewise.searching.parts.pipeline import Pipeline
from likewise.searching.parts.reranker import Reranker, in_range
from likewise.searching.query.exclusion import divided
from likewise.searching.query.hit import Hit, Hits, document_of, place_of
from likewise.searching.query.query_encoder import QueryEncoder
from likewise.searching.query.typed_query import TypedQuery, searched_words

Mode = Literal["hybrid", "vectors", "words"]
By = Literal["passage", "document"]
_WORD = re.compile(r"\w+")
_EDGES = re.compile(r"^\W+|\W+$")
_SPARE = 10
"""Passages that are ranked beyond the hits, since copies of a passage are one hit."""
_CHECKED = 32
"""Words of a query that may be looked up in all passages, if no hit has them."""
_BELOW = 1e-3
"""How far the best passage without a demanded phrase is put below the last one with it."""


class Request(NamedTuple):
    """The arguments of a search.

    Attributes:
        with_copies: Whether copies of a passage are hits of their own, in addition to the k.
    """

    query: str
    k: int
    offset: int = 0
    by: By = "passage"
    mode: Mode = "hybrid"
    where: str | None = None
    mark: bool = True
    with_copies: bool = False


class _Understood(NamedTuple):
    """A query, as a search reads it.

    Attributes:
        typed: Phrases and barred words of the query.
        text: Rest of the query, without the exclusion.
        excluded: Exclusion of the query in words.
        words: Words to search for.
        encoded: Query for the pipeline; None in a search by words only.
        off: Exclusion for the pipeline; None without one.
        allowed: Condition on every passage; None without one.
        demanding: Condition on the first passages, which contain the demanded phrases; None without such phrases.
        ranking: Conditions of the optional phrases.
    """

    typed: TypedQuery
    text: str
    excluded: str
    words: str
    encoded: EncodedQuery | None
    off: EncodedQuery | None
    allowed: str | None
    demanding: str | None
    ranking: dict[str, str]


class _Match(NamedTuple):
    """A passage in a ranking.

    Attributes:
        ranking, place: Ranking, and the place in it.
        row: Displayed columns.
        has_demanded: Whether the passage contains the demanded phrases, if there are any.
        below: Value that is subtracted from its score, so that it is below passages with these phrases.
    """

    ranking: Ranking
    place: int
    row: Record
    has_demanded: bool
    below: float = 0.0

    @property
    def row_id(self) -> int:
        return int(self.ranking.ids[self.place])

    @property
    def score(self) -> float:
        return float(self.ranking.scores[self.place]) - self.below


@dataclass(frozen=True)
class Search:
    """A search of one state of an index.

    Attributes:
        opened: Index.
        encoder: Encoder of the query.
        steps: Weights of the pipeline.
        parts: Further parts of the pipeline.
        reranker: Cross-encoder that orders the first passages; None if there is none.
    """

    opened: OpenedIndex
    encoder: QueryEncoder
    steps: Pipeline
    parts: Sequence[type[Part]] = ()
    reranker: Reranker | None = None

    def hits(self, request: Request) -> Hits:
        """Return the hits of a request."""
        typed = TypedQuery.of(request.query, self.opened.language)
        if not typed.text.strip() or not self.opened.table.rows:
            return Hits()
        if request.mode == "hybrid":
            self._check_neighbours()
        query = self._understood(typed, request)
        return self._hits_of(query, request, self._ranked(query, request))

    def _check_neighbours(self) -> None:
        """Raise SearchError if the pipeline wants more neighbors than the index contains."""
        known = self.opened.stored.geometry.near.shape[1]
        if self.steps.neighbours and self.steps.nearest > known:
            raise SearchError(
                f"{self.encoder.path} stores {known} neighbours of each passage, not {self.steps.nearest}: give a "
                f"smaller nearest"
            )

    def _understood(self, typed: TypedQuery, request: Request) -> _Understood:
        """Return what a query asks for, with the conditions on the passages."""
        opened, table, hybrid = self.opened, self.opened.table, request.mode == "hybrid"
        conditions = [f"NOT ({table.holding(phrase)})" for phrase in typed.barred]
        if request.where:
            conditions.insert(0, f"({table.condition(normalize('NFC', request.where), opened.has_whole_ids)})")
        demanded = [table.holding(phrase) for phrase in typed.demanded]
        ranking = dict(zip(typed.demanded, demanded, strict=True))
        if hybrid and self.steps.phrases:
            ranking |= {phrase: table.holding(phrase) for phrase in typed.ranking}
        text, excluded = divided(typed.text) if hybrid and self.steps.excluded else (typed.text, "")
        words = searched_words(text, opened.language)
        parsed, off = None, None
        if request.mode != "words":
            parsed = self.encoder.encoded_query(opened, text, words, hybrid and bool(self.steps.tokens))
            parsed = parsed._replace(phrases=tuple(stored for stored in ranking.values() if stored != NOWHERE))
        if excluded:
            off = self.encoder.encoded_query(opened, excluded, searched_words(excluded, opened.language), tokens=False)
        allowed = " AND ".join(conditions) or None
        demanding = " AND ".join([*conditions, *demanded]) if demanded else None
        return _Understood(typed, text, excluded, words, parsed, off, allowed, demanding, ranking)

    def _ranked(self, query: _Understood, request: Request) -> list[list[_Match]]:
        """Return the passages, the best first, the copies of one together: at least as many as are shown, if there are.

        Passages with the demanded phrases come first; others follow where these are too few.
        """
        most = min(request.offset + request.k, self.opened.table.rows)  # LanceDB's numbers are not as large as Python's
        results: list[_Match] = []
        for condition in dict.fromkeys([query.demanding or query.allowed, query.allowed]):
            before, count = {one.row_id for one in results}, most + _SPARE + len(results)
            while True:
                ranking = self._ranking(query, request.mode, count, condition)
                rows = self.opened.table.passages(ranking.ids[:count])
                has_demanded = query.demanding is not None and condition == query.demanding
                more = [_Match(ranking, place, row, has_demanded) for place, row in enumerate(rows)]
                more = _put_below([one for one in more if one.row_id not in before], results)
                groups = _grouped([*results, *more], request.by)
                if len(groups) >= most or len(ranking.ids) < count:
                    break
                count *= 4
            results += more
            if len(groups) >= most:
                break
        return groups

    def _ranking(self, query: _Understood, mode: Mode, count: int, condition: str | None) -> Ranking:
        """Rank the passages that meet a condition."""
        if query.encoded is not None and mode == "hybrid":
            ranking = ranked(self.opened.stored, self.steps, query.encoded, count, condition, query.off, self.parts)
            return self._reranked(ranking, query.text)
        if query.encoded is not None:
            ids, scores = self.opened.table.nearest(query.encoded.vector, count, condition)
        else:
            ids, scores = self.opened.table.by_words(query.words, count, condition)
        return Ranking(ids, scores, scores, scores)

    def _reranked(self, ranking: Ranking, query: str) -> Ranking:
        """Return a ranking with the first passages in a cross-encoder's order; what is excluded stays taken off."""
        rows = self.opened.table.passages(ranking.ids[: self.steps.reranked]) if self.reranker else []
        if self.reranker is None or len(rows) < 2:
            return ranking
        outputs = self.reranker.scores(query, [passage_text(row["title"], row["text"]) for row in rows])
        before = ranking.scores - ranking.parts.get("excluded", 0.0)
        added = np.zeros(len(before))
        added[: len(rows)] = in_range(before[: len(rows)], outputs) - before[: len(rows)]
        order = np.argsort(-(ranking.scores + added), kind="stable")
        parts = {name: values[order] for name, values in {**ranking.parts, "reranker": added}.items()}
        scores = (ranking.scores + added)[order]
        return Ranking(ranking.ids[order], scores, ranking.similarity[order], ranking.words[order], parts)

    def _hits_of(self, query: _Understood, request: Request, groups: list[list[_Match]]) -> Hits:
        """Return the hits of a page, with what was made of the query."""
        page, typed = groups[request.offset : request.offset + request.k], query.typed
        if request.with_copies:
            page = [[one] for one in sorted(chain.from_iterable(page), key=lambda one: -one.score)]
        texts = [group[0].row["text"] for group in page]
        vector = query.encoded.vector if query.encoded else None
        sentences = self._marked(query.text, vector, texts) if request.mark else texts
        hits = [self._hit(group, sentence, request.mode) for group, sentence in zip(page, sentences, strict=True)]
        is_met = any(group[0].has_demanded for group in groups)
        missing = [phrase for phrase, place in query.ranking.items() if place == NOWHERE]
        if request.mode != "vectors":
            missing += _missing(self.opened.table, query.words, texts, typed.text)
        demanded = typed.demanded if is_met else ()
        ranking = tuple(one for one in query.ranking if one not in demanded and one not in missing)
        others = sum(not group[0].has_demanded for group in page) if demanded else 0
        return Hits(hits, query.excluded, demanded, typed.barred, tuple(missing), ranking, others)

    def _hit(self, group: Sequence[_Match], sentence: str, mode: Mode) -> Hit:
        """Return the hit of a passage, with the places of its copies or of further passages of its document."""
        (ranking, place, row, *_), score = group[0], group[0].score
        scores = {name: float(values[place]) for name, values in ranking.parts.items()}
        return Hit(
            score=score,
            sentence=sentence,
            similarity=None if mode == "words" else float(ranking.similarity[place]),
            words=None if mode == "vectors" else float(ranking.words[place]),
            metadata={name: value for name, value in row["metadata"].items() if value not in (None, "")},
            scores=scores | ({"demanded": -group[0].below} if scores and group[0].below else {}),
            id=self.opened.named(row["id"]),
            also=tuple(dict.fromkeys(place_of(other.row) for other in group[1:])),
            **{name: row[name] for name in HIT_COLUMNS},
        )

    def _marked(self, query: str, vector: np.ndarray | None, texts: Sequence[str]) -> list[str]:
        """Return the sentence of each text that fits the query best."""
        split = [
            [sentence for line in text.split("\n") for a, b in sentence_spans(line) if (sentence := line[a:b].strip())]
            or [text]
            for text in texts  # a line of a list, code or a table ends a sentence
        ]
        several = list(dict.fromkeys(sentence for some in split if len(some) > 1 for sentence in some))
        if vector is None:
            words = {word.lower() for word in _WORD.findall(query)}
            fit = {text: float(sum(word.lower() in words for word in _WORD.findall(text))) for text in several}
        else:
            vectors = self.encoder.of_sentences(self.opened, several)
            fit = {sentence: float(vectors[sentence] @ vector) for sentence in several}
        return [max(some, key=lambda sentence: fit.get(sentence, 0.0)) for some in split]


def _put_below(more: Sequence[_Match], results: Sequence[_Match]) -> list[_Match]:
    """Return further passages with scores below the scores of the first passages."""
    if not results or not more:
        return list(more)
    below = max(0.0, more[0].score - min(one.score for one in results) + _BELOW)
    return [one._replace(below=below) for one in more]


def _grouped(results: Sequence[_Match], by: By) -> list[list[_Match]]:
    """Return passages, the best first, the copies of one passage, or the passages of one document, together."""
    groups: dict[object, list[_Match]] = {}
    for one in results:
        key = document_of(one.row) if by == "document" else (one.row["title"], one.row["text"])
        groups.setdefault(key, []).append(one)
    return list(groups.values())


def _missing(table: Table, words: str, texts: Sequence[str], query: str) -> list[str]:
    """Return the words of a query that no passage has, as typed; words in the texts of hits are not looked up."""
    text = " ".join(map(folded, texts))
    typed = dict.fromkeys(_EDGES.sub("", word) for word in _as_words(words))
    unseen = [word for word in typed if word and word not in text]
    as_typed = {_EDGES.sub("", folded(word)): _EDGES.sub("", word) for word in _as_words(query)}
    return [as_typed.get(word, word) for word in unseen[:_CHECKED] if not table.has_word(word)]


def _as_words(text: str) -> list[str]:
    """Return the words of a query, of any script; two hyphens part words, and one does not: 'state-of-the-art'."""
    return with_blanks(text.replace("--", " ")).split()
