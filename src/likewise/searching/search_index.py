"""Searching an index: by meaning, by words, or by both in the pipeline that its record holds."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import wraps
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, ParamSpec
from unicodedata import normalize

import numpy as np

from likewise.corpus.clean_text import in_plain_letters, without_invisible, without_surrogates
from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.inputs import GivenTexts
from likewise.corpus.sentence_splitter import sentence_spans
from likewise.encoder.location import check_cross_encoder
from likewise.errors import counted
from likewise.evaluation.bm25 import folded, spellings
from likewise.inference.engines.engine import EnginePrecision
from likewise.inference.handle import Facts, ModelHandle, export_encoder
from likewise.inference.text_encoder import TextEncoder
from likewise.runs.job import read_record, work_of
from likewise.runs.options import checked
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record, Values
from likewise.searching.index.fields import CALLED
from likewise.searching.index.geometry import Geometry
from likewise.searching.index.maxsim import TokenCodec
from likewise.searching.index.passages import passage_text
from likewise.searching.index.table import OWN_FOLDER, SHOWN, DamageError, SearchError, Table, damage, damaged
from likewise.searching.parts.parts import PARTS, Asked, Part, Ranking, Stored, ranked
from likewise.searching.parts.pipeline import Given, Pipeline, pipeline_of
from likewise.searching.parts.reranker import Reranker, in_range
from likewise.searching.query.exclusion import divided
from likewise.searching.query.hit import Hit, Hits, document_of, place_of
from likewise.searching.query.typed_query import TypedQuery, other_words, searched_words

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Mode = Literal["hybrid", "vectors", "words"]
By = Literal["passage", "document"]
FORMAT = 6
"""The format of the files of an index: an index of another one is to be made again."""
_WORD = re.compile(r"\w+")
_EDGES = re.compile(r"^\W+|\W+$")
_WAIT = 2.0
_SENTENCES = 10_000
"""Sentences whose vectors are kept for the next search, which often has hits of the same passages: 15 MB."""
_SPARE = 10
"""Passages that are ranked beyond those that are wanted, in the place of copies."""
_CHECKED = 32
"""Words of a query that may be looked up in all passages, if no hit has them."""
_Of = ParamSpec("_Of")


def _count_is_k(function: Callable[_Of, Hits]) -> Callable[_Of, Hits]:
    """Return a search that says what the number of hits is called to those who know it by another name."""

    @wraps(function)
    def called(*arguments: _Of.args, **named: _Of.kwargs) -> Hits:
        if other := next((name for name in ("top_k", "limit") if name in named), ""):
            raise SearchError(f"there is no argument {other}: the number of hits is k, for example k=5")
        return function(*arguments, **named)

    return called


class _Request(NamedTuple):
    """The arguments of a search; what a judged set does not need has a default."""

    typed: TypedQuery
    k: int
    offset: int = 0
    by: By = "passage"
    mode: Mode = "hybrid"
    where: str | None = None
    mark: bool = False


@dataclass(frozen=True)
class _Opened:
    """One state of an index, all of whose files belong together.

    Attributes:
        state: what tells it from others.
        folder: where it is, behind any link.
        stored: its passages.
        sentences: the vectors (D,) of sentences that hits had.
    """

    state: object
    folder: Path
    record: Record
    stored: Stored
    sentences: dict[str, np.ndarray] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Path) -> _Opened:
        state, folder = _state(path), path.resolve()
        record = finished_record(folder)
        table = Table(folder, record["table"], record["version"])
        beside = folder / record["geometry"]
        codec, geometry = TokenCodec.open(beside) if table.has_tokens else None, Geometry.open(beside)
        if table.has_tokens and codec is None:
            raise damaged(folder, "the form of its tokens is missing")
        return cls(state, folder, record, Stored(table, geometry, codec))

    @property
    def made_with(self) -> str:
        """The fingerprint of the model that made the index."""
        return str(self.record["plan"]["inputs"]["model"])

    @property
    def language(self) -> str:
        return str(self.record["plan"]["options"].get("language", "English"))

    @property
    def pipeline(self) -> Pipeline:
        """The parts of its search and their weights."""
        steps = Pipeline(**self.record["pipeline"])
        return steps if self.stored.codec is not None else steps.updated(tokens=0)

    def named(self, id: str | None) -> str | int | None:
        """Return an id as it was given: as a whole number if all are."""
        whole = id is not None and self.record.get("ids") == "int" and id.removeprefix("-").isdecimal()
        return int(id) if id is not None and whole else id


class Index:
    """An index, opened to search it, and to add to it; an update by another process is seen at the next search.

    `len(index)` is the number of its passages, and it yields its ids: those of rows and texts.

        index = likewise.Index("my.index")
        index.add([{"id": "b2", "text": "The pump leaks.", "year": 2025}])
        index.search("leak", k=3, where="year >= 2020")
        index.delete(["b2"])

    Args:
        path: of the index.
        model: the encoder of the queries, or what `load` takes; None for the one that made the index. It is loaded
            at the first search that needs it.
        vectors: gives the vectors (S, D) of S queries, in place of a model.
        tokens: gives what `TextEncoder.read_query` does, in place of a model; if `vectors` is given and this is not,
            tokens are not compared.
        parts: further parts of its hybrid search, classes of `likewise.searching.Part`.

    Raises:
        SearchError: there is no such index, or it is damaged; or a part is none, or has the name of another.
        MissingExtraError: LanceDB is not installed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: SentenceTransformer | str | os.PathLike[str] | None = None,
        *,
        vectors: Callable[[Sequence[str]], np.ndarray] | None = None,
        tokens: Callable[[str], tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None,
        parts: Sequence[type[Part]] = (),
    ) -> None:
        self.path, self.vectors, self.tokens, self.parts = Path(path), vectors, tokens, parts
        if isinstance(parts, type):
            raise SearchError(f"parts is a list, such as [{parts.__name__}]")
        for part in parts:
            if isinstance(part, type) and issubclass(part, Part) and part.name and part.weight:
                continue
            raise SearchError(
                f"{part!r} is no part of a search: give a subclass of likewise.searching.Part that has a name and "
                "a weight other than 0, or leave it out"
            )
        names = [*Pipeline.model_fields, *(part.name for part in parts)]
        if twice := next((name for name in names if names.count(name) > 1), ""):
            raise SearchError(f"a part of the search cannot be called {twice!r}: another part or option is")
        self._model = model
        self._now: _Opened | None = None
        self._encoder: TextEncoder | None = None
        self._fits = ""
        self._reranker: Reranker | None = None
        self._writer: ModelHandle | None = None
        _ = self.table

    def __getstate__(self) -> Record:
        """Return what another process opens the index by: what is open or loaded here stays."""
        here = ("_now", "_encoder", "_reranker", "_writer")
        return {**self.__dict__, **dict.fromkeys(here), "_fits": ""}

    def __len__(self) -> int:
        return self.passages

    def __iter__(self) -> Iterator[str | int]:
        opened = self._opened
        return (named for id in opened.stored.table.ids() if (named := opened.named(id)) is not None)

    def __repr__(self) -> str:
        named = f", made with {self.model}" if self.model else ""
        return f"<Index {self.path}: {counted(self.passages, 'passage')}{named}>"

    @property
    def passages(self) -> int:
        """The number of passages."""
        return self.table.rows

    @property
    def files(self) -> int:
        """The number of files that they are of."""
        return len(self.table.sources())

    @property
    def fields(self) -> dict[str, str]:
        """The fields that a condition may name beside id, file, line, title and text; each with what its values are."""
        return {name: CALLED[kind] for name, kind in self.table.metadata.items()}

    @checked
    def add(
        self,
        texts: GivenTexts,
        *,
        corpus_options: CorpusOptions | None = None,
        quiet: bool = True,
    ) -> int:
        """Add texts, rows or files; what has an id, or a path, that is there takes the place of the old.

        Only new text is encoded. A new field of rows becomes a field of the index. Texts without ids get the next whole
        numbers.

        Args:
            texts: as in `likewise.index`.
            corpus_options: how they are read.
            quiet: show nothing on standard error.

        Returns:
            How many texts or files were new or changed.

        Raises:
            CorpusError: a text is none, a file cannot be read, or a field's value is of another kind than before.
            JobError: another process is writing the index.
        """
        from likewise.searching.index.index_update import add  # which opens an index itself

        return add(self, self._writing(), texts, corpus_options, Progress(quiet)).added

    @checked
    def delete(self, ids: str | int | Iterable[str | int], *, quiet: bool = True) -> int:
        """Delete rows and texts by their ids, and return how many there were; other ids are passed over.

        A row of a file is there again once the file is indexed again: take it out of the file, too.
        """
        from likewise.searching.index.index_update import delete

        unwanted = list(ids) if isinstance(ids, Iterable) and not isinstance(ids, str) else [ids]
        if wrong := [id for id in unwanted if isinstance(id, bool) or not isinstance(id, str | Integral)]:
            raise SearchError(f"{wrong[0]!r} is not an id: give texts or whole numbers, such as those of hits (hit.id)")
        names = [without_invisible(str(id)) for id in unwanted]
        return delete(self, self._writing(), names, Progress(quiet)) if names else 0

    def _writing(self) -> ModelHandle:
        if self._writer is None:
            self._writer = encoder_of(self.path, self._model, precision=precision_of(read_record(self.path)))
        return self._writer

    @property
    def _opened(self) -> _Opened:
        """The index as it was when it was finished the last time."""
        now, state = self._now, _state(self.path)
        while now is None or state is None or now.state != state:
            try:
                now = self._now = _Opened.open(self.path)
            except SearchError:  # perhaps of an index that was replaced meanwhile
                if _state(self.path) == state:
                    raise
            state = _state(self.path)
        return now

    @property
    def table(self) -> Table:
        """The table, as it was when the index was finished the last time."""
        return self._opened.stored.table

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (S, D) of queries."""
        if self.vectors is not None:
            return self.vectors(texts)
        return self._encoder_of(self._opened)(texts)

    def _asked(self, opened: _Opened, query: str, words: str, tokens: bool) -> Asked:
        """Return a query with its vector, and with its tokens if they are to be compared."""
        codec = opened.stored.codec
        if codec is None or not tokens or (self.tokens is None and self.vectors is not None):
            return Asked(words, self._encode([query])[0])
        read = self.tokens or self._encoder_of(opened, tokens=True).read_query
        vector, rows, ids = read(query)
        return Asked(words, vector, codec.projected(rows), codec.weights_of(ids))

    def _encoder_of(self, opened: _Opened, tokens: bool = False) -> TextEncoder:
        """Return the encoder of queries, one that gives the vectors of tokens if these are needed."""
        encoder = self._encoder
        if encoder is None or self._fits != opened.made_with or (tokens and not encoder.gives_tokens):
            encoder = self._loaded(opened, tokens)
            self._encoder, self._fits = encoder, opened.made_with
        return encoder

    def _loaded(self, opened: _Opened, tokens: bool) -> TextEncoder:
        query = opened.record.get("query")
        if query and self._model is None:
            with suppress(LookupError):
                exported = export_encoder(opened.made_with, **query)
                if exported.gives_tokens or not tokens:
                    return exported
        encoder = encoder_of(opened.folder, self._model)
        if encoder.facts.fingerprint != opened.made_with:
            raise SearchError(
                f"{self.path} was made with another model{f' ({self.model})' if self.model else ''}: search with "
                "that one, or index again with --model and --overwrite"
            )
        now = of_queries(encoder.facts)
        if self._model is None and query and (changed := [name for name in query if query[name] != now[name]]):
            raise SearchError(
                f"{self.path} was made while {encoder.name} had another {' and '.join(changed)} of queries: give the "
                "encoder as it was (model=...), or index again with --overwrite"
            )
        return encoder.opened("query", tokens=tokens)

    @property
    def made_with(self) -> str:
        """The fingerprint of the model that made the index."""
        return self._opened.made_with

    @property
    def model(self) -> str | None:
        """The name of that model, if it has one."""
        return self._opened.record.get("model")

    @property
    def pipeline(self) -> Pipeline:
        """The parts of a hybrid search and their weights, unless a search is given others."""
        return self._opened.pipeline

    @_count_is_k
    @checked
    def search(
        self,
        query: str,
        k: int = 10,
        *,
        offset: int = 0,
        by: By = "passage",
        mode: Mode = "hybrid",
        where: str | None = None,
        mark: bool = True,
        pipeline: Given | None = None,
    ) -> Hits:
        """Search, as `likewise.search`.

        Args:
            query, k, offset, by, where, pipeline: as in `likewise.search`.
            mode: by both, by meaning, or by words.
            mark: find the sentence that fits best; otherwise it is the whole passage.
        """
        if k < 1:
            raise SearchError(f"k is {k}: give 1 or more")
        if offset < 0:
            raise SearchError(f"offset is {offset}: give 0 or more")
        if mode not in ("hybrid", "vectors", "words"):
            raise SearchError(f"unknown mode {mode!r}: give hybrid, vectors or words")
        if by not in ("passage", "document"):
            raise SearchError(f"by is {by!r}: give passage or document")
        typed = TypedQuery.of(normalize("NFC", in_plain_letters(without_surrogates(query))))
        return self._hits(_Request(typed, k, offset, by, mode, where, mark), pipeline)

    def _hits(self, request: _Request, pipeline: Given | None) -> Hits:
        """Search the present state of the index, and once more if it was replaced meanwhile."""
        while True:
            opened = self._opened
            steps = pipeline_of(pipeline, opened.pipeline)
            try:
                with damage(self.path):
                    return self._searched(opened, request, steps)
            except DamageError:
                if _state(self.path) == opened.state:
                    raise  # otherwise the index was replaced by another one meanwhile

    def _searched(self, opened: _Opened, request: _Request, steps: Pipeline) -> Hits:
        typed, k, offset, by, mode, where, mark = request
        table = opened.stored.table
        whole = opened.record.get("ids") == "int"
        conditions = [f"({table.condition(normalize('NFC', where), whole)})"] if where else []
        if not typed.text.strip() or not table.rows:
            return Hits()
        demanded = {phrase: table.holding(phrase) for phrase in typed.demanded}
        absent = [phrase for phrase, held in demanded.items() if held == "FALSE" and typed.is_prose]
        demanded = {phrase: held for phrase, held in demanded.items() if phrase not in absent}
        conditions += demanded.values()
        conditions += [f"NOT ({table.holding(phrase)})" for phrase in typed.barred]
        condition = " AND ".join(conditions) or None
        query, excluded = divided(typed.text) if mode == "hybrid" and steps.excluded else (typed.text, "")
        words = searched_words(query, opened.language)
        spelled = f"{words} {other_words(query, opened.language)}".strip()
        tokens = mode == "hybrid" and bool(steps.tokens)
        asked = self._asked(opened, query, spelled, tokens) if mode != "words" else None
        barred = self._asked(opened, excluded, searched_words(excluded, opened.language), False) if excluded else None
        if mode == "hybrid" and steps.neighbours and steps.nearest > (known := opened.stored.geometry.near.shape[1]):
            raise SearchError(
                f"{self.path} holds the {known} nearest passages of each one, and not {steps.nearest}: give a "
                "smaller nearest"
            )
        wanted = min(offset + k, table.rows)  # LanceDB's numbers are not as large as Python's
        count = wanted + _SPARE
        while True:
            if asked and mode == "hybrid":
                ranking = ranked(opened.stored, steps, asked, count, condition, barred, self.parts)
                ranking = self._reranked(opened, ranking, query, steps) if steps.reranker else ranking
            else:
                if asked:
                    ids, scores = table.nearest(asked.vector, count, condition)
                else:
                    ids, scores = table.by_words(spelled, count, condition)
                ranking = Ranking(ids, scores, scores, scores)
            rows = table.passages(ranking.ids[:count])
            groups = _grouped(rows, by)
            if len(groups) >= wanted or len(ranking.ids) < count:
                break
            count *= 4
        shown = [(group[0], group[1:]) for group in groups[offset : offset + k]]
        texts = [rows[i]["text"] for i, _ in shown]
        vector = asked.vector if asked else None
        sentences = self._marked(opened, query, vector, texts) if mark else texts
        hits = [
            Hit(
                score=float(ranking.scores[i]),
                sentence=sentence,
                similarity=None if mode == "words" else float(ranking.similarity[i]),
                words=None if mode == "vectors" else float(ranking.words[i]),
                metadata={name: value for name, value in rows[i]["metadata"].items() if value not in (None, "")},
                scores={name: float(values[i]) for name, values in ranking.parts.items()},
                id=opened.named(rows[i]["id"]),
                also=tuple(dict.fromkeys(place_of(rows[j]) for j in others)),
                **{name: rows[i][name] for name in SHOWN},
            )
            for (i, others), sentence in zip(shown, sentences, strict=True)
        ]
        missing = () if mode == "vectors" else _missing(table, words, texts, typed.text)
        return Hits(hits, excluded, tuple(demanded), typed.barred, (*absent, *missing))

    def documents(
        self, query: str, limit: int = 100, *, mode: Mode = "hybrid", pipeline: Given | None = None
    ) -> list[tuple[Sequence[str], float]]:
        """Find the documents that fit best: each by its names and the score of its best passage.

        A row or text goes by its id, a file by its path, name and stem. `likewise.evaluate` scores an index by this.
        The query is one of a set of questions, in which quotes and hyphens demand and bar nothing.

        Args:
            query, mode, pipeline: as in `search`.
            limit: passages that are looked at.
        """
        best: dict[Sequence[str], float] = {}
        asked = TypedQuery(normalize("NFC", without_surrogates(query)))
        for hit in self._hits(_Request(asked, limit, mode=mode), pipeline):
            best.setdefault(hit.document, hit.score)
        return list(best.items())

    @property
    def name(self) -> str:
        """Its path, as a report shows it."""
        return str(self.path)

    @property
    def settings(self) -> dict[str, str]:
        """The weights of its search, as a report shows them."""
        parts = (*(part.name for part in PARTS), "excluded", *(part.name for part in self.parts))
        weights = self.pipeline.to_dict() | {part.name: part.weight for part in self.parts}
        return {
            "similarity": ", ".join(f"{part} {weights[part]:g}" for part in parts if weights[part]),
            "precision": f"an index made with {self.model}" if self.model else "an index",
        }

    def _reranked(self, opened: _Opened, ranking: Ranking, query: str, steps: Pipeline) -> Ranking:
        """Return a ranking with the first passages in a cross-encoder's order; what is excluded stays taken off."""
        if self._reranker is None or self._reranker.name != steps.reranker:
            self._reranker = Reranker(steps.reranker)
        texts = [
            passage_text(row["title"], row["text"])
            for row in opened.stored.table.passages(ranking.ids[: steps.reranked])
        ]
        if len(texts) < 2:
            return ranking
        outputs = self._reranker.scores(query, texts)
        kept = ranking.scores - ranking.parts.get("excluded", 0.0)
        added = np.zeros(len(kept))
        added[: len(texts)] = in_range(kept[: len(texts)], outputs) - kept[: len(texts)]
        order = np.argsort(-(ranking.scores + added), kind="stable")
        parts = {name: values[order] for name, values in {**ranking.parts, "reranker": added}.items()}
        scores = (ranking.scores + added)[order]
        return Ranking(ranking.ids[order], scores, ranking.similarity[order], ranking.words[order], parts)

    def _marked(self, opened: _Opened, query: str, vector: np.ndarray | None, texts: Sequence[str]) -> list[str]:
        """Return the sentence of each text that fits the query best."""
        split = [
            [sentence for line in text.split("\n") for a, b in sentence_spans(line) if (sentence := line[a:b].strip())]
            or [text]
            for text in texts  # a line of a list, code or a table ends a sentence
        ]
        several = list(dict.fromkeys(sentence for some in split if len(some) > 1 for sentence in some))
        fit: dict[str, float] = {}
        if vector is None:
            wanted = {word.lower() for word in _WORD.findall(query)}
            fit = {text: sum(word.lower() in wanted for word in _WORD.findall(text)) for text in several}
        else:
            known = opened.sentences
            if len(known) > _SENTENCES:
                known.clear()
            if new := [sentence for sentence in several if sentence not in known]:
                known.update(zip(new, self._encode(new), strict=True))
            fit = {sentence: float(known[sentence] @ vector) for sentence in several}
        return [max(some, key=lambda sentence: fit.get(sentence, 0.0)) for some in split]


@_count_is_k
@checked
def search(
    index: str | os.PathLike[str] | Index,
    query: str,
    k: int = 10,
    *,
    offset: int = 0,
    by: By = "passage",
    vectors_only: bool = False,
    words_only: bool = False,
    where: str | None = None,
    model: SentenceTransformer | str | os.PathLike[str] | None = None,
    pipeline: Given | None = None,
    reranker: str | os.PathLike[str] | None = None,
) -> Hits:
    """Find the passages of an index that fit a query best.

    A phrase in quotes must stand in a passage, a word behind a hyphen (`-word`) must not, and what a query excludes in
    words, as in 'excluding', is put behind other passages. Copies of a passage are shown once.

    Args:
        index: made by `index`; for many queries an `Index`, which keeps the model.
        query: a question, a sentence, or words.
        k: how many passages, or documents.
        offset: how many of the best are passed over, for further pages.
        by: "document" shows each document once, with its best passage: a row, a text, or a file.
        vectors_only: search by meaning alone, not also by words.
        words_only: search by words alone (BM25); the model is not loaded.
        where: a condition on id, file, line, title, text and the fields of rows, as in SQL: "year >= 2020 AND file LIKE
            '%.md'". Dates are compared in their ISO form: "day < '2024-05-01'".
        model: in place of the one that made the index, if that has moved.
        pipeline: options of a `Pipeline` in place of the index's, such as {"neighbours": 0}, or a TOML file with them.
        reranker: a cross-encoder, by its folder or hub name, that puts the first passages in order.

    Returns:
        Up to k hits, the best first: a list that also tells what was made of the query (`told`).

    Raises:
        SearchError: there is no such index, it is damaged, it was made with another model, or `where` is not valid.
        MissingExtraError: LanceDB is not installed.
    """
    if vectors_only and words_only:
        raise SearchError("a search cannot be both vectors only and words only: give one of them")
    mode: Mode = "vectors" if vectors_only else "words" if words_only else "hybrid"
    opened = index if isinstance(index, Index) else Index(index, model)
    if reranker is not None:
        check_cross_encoder(os.fspath(reranker))
        pipeline = pipeline_of({"reranker": os.fspath(reranker)}, pipeline_of(pipeline, opened.pipeline))
    return opened.search(query, k, offset=offset, by=by, mode=mode, where=where, pipeline=pipeline)


def _grouped(rows: Sequence[Values], by: By) -> list[list[int]]:
    """Return the places of rows, the best first, those of copies of one passage, or of one document, together."""
    groups: dict[object, list[int]] = {}
    for i, row in enumerate(rows):
        key = document_of(row) if by == "document" else (row["title"], row["text"])
        groups.setdefault(key, []).append(i)
    return list(groups.values())


def _missing(table: Table, words: str, texts: Sequence[str], query: str) -> tuple[str, ...]:
    """Return the words of a query that no passage has, as typed; those of the texts of hits are not looked up."""
    shown = " ".join(map(folded, texts))
    typed = dict.fromkeys(_EDGES.sub("", word) for word in words.replace("--", " ").split())  # 'state-of-the-art'
    unseen = [word for word in typed if word and word not in shown]
    as_typed = {_EDGES.sub("", folded(word)): _EDGES.sub("", word) for word in query.replace("--", " ").split()}

    def is_held(word: str) -> bool:
        other = " ".join(spellings(as_typed.get(word, word)))
        return table.has_word(word) or (bool(other) and table.has_word(other))

    return tuple(as_typed.get(word, word) for word in unseen[:_CHECKED] if not is_held(word))


def encoder_of(index: Path, model: SentenceTransformer | str | os.PathLike[str] | None, **engine: Any) -> ModelHandle:
    """Return the encoder that was given, or that of an index; engine and precision as in `load`.

    Raises:
        SearchError: none was given, and the index names none.
    """
    made_with = model or read_record(index).get("model")
    if made_with is None:
        raise SearchError(f"{index} names no model: give the one to index with, such as --model bundled:minilm")
    return ModelHandle(made_with, **engine)


def of_queries(facts: Facts) -> Record:
    """Return the facts by which queries are encoded, as a record has them."""
    return {"prompt": facts.prompt("query"), "tokenizer": facts.tokenizer, "truncate_dim": facts.truncate_dim}


def precision_of(record: Values) -> EnginePrecision:
    """Return the precision of the passages of an index: float32, unless it was made in another one."""
    precision: EnginePrecision = record.get("precision", "fp32")
    return precision


def check_version(index: Path, record: Values) -> None:
    """Raise SearchError if the files of an index have the format of an older or a later version."""
    if not record or not isinstance(made := record["plan"].get("format"), int) or made == FORMAT:
        return
    if made < FORMAT:
        raise SearchError(f"{index} was made by an older version: make it again with `likewise index ... --overwrite`")
    raise SearchError(
        f"{index} was made by a later version (format {made}, and this one reads {FORMAT}): install that version, or "
        "make the index again with `likewise index ... --overwrite`"
    )


def _state(path: Path) -> object:
    """Return a value that changes when an index is finished again."""
    try:
        record = (path / "likewise.json").stat()
        return record.st_mtime_ns, record.st_ino, record.st_dev
    except OSError:
        return None


def finished_record(path: Path) -> Record:
    """Return the record of an index, which is missing for a moment while a new one is put in its place."""
    end = time.monotonic() + _WAIT
    while not (record := read_record(path)) and work_of(path).is_dir() and time.monotonic() < end:
        time.sleep(0.05)
    if record.get("plan", {}).get("job") == "index":
        check_version(path, record)
        query = record.get("query") or {}
        fits = {
            "table": OWN_FOLDER.fullmatch(f"{record.get('table')}.lance"),
            "geometry": OWN_FOLDER.fullmatch(str(record.get("geometry"))),
            "version": isinstance(record.get("version"), int),
            "pipeline": isinstance(record.get("pipeline"), dict),
            "query": isinstance(query, dict) and query.keys() <= {"prompt", "tokenizer", "truncate_dim"},
            "ids": record.get("ids", "") in ("", "int", "text"),
            "plan": isinstance(record["plan"].get("inputs"), dict),
        }
        if wrong := [name for name, is_right in fits.items() if not is_right]:
            raise SearchError(
                f"{path / 'likewise.json'} is damaged (its {wrong[0]!r}): make the index again with "
                "`likewise index ... --overwrite`"
            )
        return record
    if work_of(path).is_dir():
        raise SearchError(f"{path} is not finished: run the same `likewise index` again")
    raise SearchError(
        f"there is no index at {path}: make one with `likewise index TEXT --model bundled:minilm --out {path}`"
    )
