"""Searching an index: by meaning, by words, or by both in the pipeline that its record holds."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, ParamSpec

import numpy as np

from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.given import GivenTexts
from likewise.corpus.lines_and_rows import without_surrogates
from likewise.corpus.sentence_splitter import sentence_spans
from likewise.encoder.location import check_cross_encoder
from likewise.errors import counted
from likewise.inference.deferred import DeferredEncoder
from likewise.inference.engines.engine import EnginePrecision
from likewise.inference.exported import ExportedEncoder
from likewise.inference.text_encoder import TextEncoder
from likewise.retrieval.pipeline import Given, Pipeline, pipeline_of
from likewise.runs.arguments import checked
from likewise.runs.job import read_record, work_of
from likewise.runs.progress import Progress
from likewise.searching.exclusion import divided
from likewise.searching.fields import CALLED
from likewise.searching.fusion import Asked, Ranking, ranked
from likewise.searching.geometry import Geometry
from likewise.searching.hit import Hit
from likewise.searching.leftovers import OWN_FOLDER
from likewise.searching.maxsim import TokenCodec
from likewise.searching.passages import passage_text
from likewise.searching.reranker import Reranker, in_range
from likewise.searching.table import SHOWN, SearchError, Table, damage

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

Mode = Literal["hybrid", "vectors", "words"]
_WORD = re.compile(r"\w+")
_WAIT = 2.0
_SENTENCES = 10_000
"""Sentences whose vectors are kept for the next search, which often has hits of the same passages: 15 MB."""
_NO_TOKENS = Pipeline(tokens=0)
_OTHER_NAMES = ("top_k", "limit")
_Of = ParamSpec("_Of")


def _count_is_k(function: Callable[_Of, list[Hit]]) -> Callable[_Of, list[Hit]]:
    """Return a search that says what the number of hits is called to those who know it by another name."""

    @wraps(function)
    def called(*arguments: _Of.args, **named: _Of.kwargs) -> list[Hit]:
        if other := next((name for name in _OTHER_NAMES if name in named), ""):
            raise SearchError(f"there is no argument {other}: the number of hits is k, for example k=5")
        return function(*arguments, **named)

    return called


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

    Raises:
        SearchError: there is no such index, or it is damaged.
        MissingExtraError: LanceDB is not installed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        model: SentenceTransformer | str | os.PathLike[str] | None = None,
        *,
        vectors: Callable[[Sequence[str]], np.ndarray] | None = None,
        tokens: Callable[[str], tuple[np.ndarray, np.ndarray, np.ndarray]] | None = None,
    ) -> None:
        self.path, self.vectors, self.tokens = Path(path), vectors, tokens
        self._model = model
        self._seen: Any = None
        self._encoder: TextEncoder | None = None
        self._fits = ""
        self._reranker: Reranker | None = None
        self._writer: DeferredEncoder | None = None
        self._sentences: dict[str, np.ndarray] = {}  # vectors (D,) of sentences that hits had
        self._sentences_of = ""  # the model of these
        _ = self.table

    def __len__(self) -> int:
        return self.passages

    def __iter__(self) -> Iterator[str | int]:
        return (int(one) if self._record.get("ids") == "int" else one for one in self.table.ids())

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
    def texts(self) -> int:
        """The number of texts and rows, given themselves and not in a file, that they are of."""
        return self.table.texts_given()

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
        from likewise.searching.index_update import add  # which opens an index itself

        return add(self, self._writing(), texts, corpus_options, Progress(quiet)).added

    @checked
    def delete(self, ids: str | int | Iterable[str | int], *, quiet: bool = True) -> int:
        """Delete rows and texts by their ids, and return how many there were; other ids are passed over.

        A row of a file is there again once the file is indexed again: take it out of the file, too.
        """
        from likewise.searching.index_update import delete

        given = [ids] if isinstance(ids, str | int) else list(ids)
        if wrong := [one for one in given if isinstance(one, bool) or not isinstance(one, str | Integral)]:
            raise SearchError(f"{wrong[0]!r} is not an id: give texts or whole numbers, such as those of hits (hit.id)")
        there = self.table.present([str(one) for one in given])
        return delete(self, self._writing(), there, Progress(quiet)) if there else 0

    def _writing(self) -> DeferredEncoder:
        """Return the encoder of passages."""
        if self._writer is None:
            self._writer = encoder_of(self.path, self._model, precision=precision_of(read_record(self.path)))
        return self._writer

    def _named(self, id: str | None) -> str | int | None:
        """Return an id as it was given: as a whole number if all are."""
        return int(id) if id is not None and self._record.get("ids") == "int" else id

    @property
    def table(self) -> Table:
        """The table, as it was when the index was finished the last time."""
        seen = _state(self.path)
        if seen is None or seen != self._seen:
            try:
                self._open()
            except SearchError:  # perhaps of an index that was replaced meanwhile
                if _state(self.path) == seen:
                    raise
                seen = _state(self.path)
                self._open()
            self._seen = seen
        return self._table

    def _open(self) -> None:
        record = finished_record(self.path)
        table = Table(self.path, record["table"], record["version"])
        self._geometry = Geometry.open(self.path / record["geometry"])
        self._codec = _codec(self.path / record["geometry"]) if table.has_tokens else None
        self._record, self._table = record, table

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (S, D) of queries."""
        if self.vectors is not None:
            return self.vectors(texts)
        made_with = self.made_with
        if self._encoder is None or self._fits != made_with:
            self._encoder, self._fits = self._opened(made_with), made_with
        return self._encoder(texts)

    def _asked(self, query: str, steps: Pipeline) -> Asked:
        """Return a query with its vector, and with its tokens if they are to be compared."""
        if self._codec is None or not steps.tokens or (self.tokens is None and self.vectors is not None):
            return Asked(query, self._encode([query])[0])
        read = self.tokens
        if read is None:
            made_with = self.made_with
            if self._encoder is None or self._fits != made_with or not self._encoder.gives_tokens:
                self._encoder, self._fits = self._opened(made_with, tokens=True), made_with
            read = self._encoder.read_query
        vector, tokens, ids = read(query)
        return Asked(query, vector, self._codec.projected(tokens), self._codec.weights_of(ids))

    def _opened(self, made_with: str, tokens: bool = False) -> TextEncoder:
        """Return the encoder of queries, one that gives the vectors of tokens if these are needed."""
        query = self._record.get("query")
        if query and self._model is None:
            with suppress(LookupError):
                found = ExportedEncoder(made_with, **query)
                if found.gives_tokens or not tokens:
                    return found
        encoder = encoder_of(self.path, self._model)
        if encoder.facts.fingerprint != made_with:
            raise SearchError(
                f"{self.path} was made with another model{f' ({self.model})' if self.model else ''}: search with "
                "that one, or index again with --model and --overwrite"
            )
        return encoder.opened("query", tokens)

    @property
    def made_with(self) -> str:
        """The fingerprint of the model that made the index."""
        _ = self.table
        return str(self._record["plan"]["inputs"]["model"])

    @property
    def model(self) -> str | None:
        """The name of that model, if it has one."""
        return self._record.get("model")

    @property
    def pipeline(self) -> Pipeline:
        """The parts of a hybrid search and their weights, unless a search is given others."""
        table, steps = self.table, Pipeline(**self._record["pipeline"])
        return steps if table.has_tokens else steps.updated(tokens=0)  # of an index that is older than tokens

    @_count_is_k
    @checked
    def search(
        self,
        query: str,
        k: int = 10,
        *,
        mode: Mode = "hybrid",
        where: str | None = None,
        mark: bool = True,
        pipeline: Given | None = None,
    ) -> list[Hit]:
        """Search, as `likewise.search`.

        Args:
            query, k, where, pipeline: as in `likewise.search`.
            mode: by both, by meaning, or by words.
            mark: find the sentence that fits best; otherwise it is the whole passage.
        """
        if k < 1:
            raise SearchError(f"k is {k}: give 1 or more")
        if mode not in ("hybrid", "vectors", "words"):
            raise SearchError(f"unknown mode {mode!r}: give hybrid, vectors or words")
        with damage(self.path):
            where = self.table.condition(where) if where else None
            table, steps = self.table, pipeline_of(pipeline, self.pipeline)
            query = without_surrogates(query)
            if not query.strip() or not table.rows:
                return []
            k = min(k, table.rows)  # LanceDB's numbers are not as large as Python's
            query, excluded = divided(query) if mode == "hybrid" and steps.excluded else (query, "")
            asked = None if mode == "words" else self._asked(query, steps if mode == "hybrid" else _NO_TOKENS)
            vector = asked.vector if asked else None
            barred = Asked(excluded, self._encode([excluded])[0]) if excluded else None
            found = self._ranked(query, asked, k, mode, where, steps, barred)
            if mode == "hybrid" and steps.reranker:
                found = self._reranked(found, query, steps)
            rows = table.passages(found.ids[:k])
        texts = [row["text"] for row in rows]
        sentences, fields = self._marked(query, vector, texts) if mark else texts, table.metadata
        return [
            Hit(
                score=float(found.scores[i]),
                sentence=sentences[i],
                similarity=None if mode == "words" else float(found.similarity[i]),
                words=None if mode == "vectors" else float(found.words[i]),
                metadata={name: row[name] for name in fields if row[name] not in (None, "")},
                scores={name: float(values[i]) for name, values in found.parts.items()},
                id=self._named(row["id"]),
                **{name: row[name] for name in SHOWN},
            )
            for i, row in enumerate(rows)
        ]

    def documents(
        self, query: str, limit: int = 100, *, mode: Mode = "hybrid", pipeline: Given | None = None
    ) -> list[tuple[Sequence[str], float]]:
        """Find the documents that fit best: each by its names and the score of its best passage.

        A row or text goes by its id, a file by its path, name and stem. `likewise.evaluate` scores an index by this.

        Args:
            query, mode, pipeline: as in `search`.
            limit: passages that are looked at.
        """
        best: dict[Sequence[str], float] = {}
        for hit in self.search(query, limit, mode=mode, mark=False, pipeline=pipeline):
            best.setdefault(hit.document, hit.score)
        return list(best.items())

    @property
    def name(self) -> str:
        """Its path, as a report shows it."""
        return str(self.path)

    @property
    def settings(self) -> dict[str, str]:
        """The weights of its search, as a report shows them."""
        parts = ("vectors", "words", "tokens", "neighbours", "excluded")
        weights = self.pipeline.to_dict()
        return {
            "similarity": ", ".join(f"{part} {weights[part]:g}" for part in parts if weights[part]),
            "precision": f"an index made with {self.model}" if self.model else "an index",
        }

    def _ranked(
        self,
        query: str,
        asked: Asked | None,
        k: int,
        mode: Mode,
        where: str | None,
        steps: Pipeline,
        excluded: Asked | None,
    ) -> Ranking:
        """Return the best passages, k or more if there are as many."""
        if asked is None:
            ids, scores = self._table.by_words(query, k, where)
            return Ranking(ids, scores, scores, scores)
        if mode == "vectors":
            ids, scores = self._table.nearest(asked.vector, k, where)
            return Ranking(ids, scores, scores, scores)
        if steps.neighbours and steps.nearest > (stored := self._geometry.near.shape[1]):
            raise SearchError(
                f"{self.path} holds the {stored} nearest passages of each one, and not {steps.nearest}: give a "
                "smaller nearest"
            )
        return ranked(self._table, self._geometry, steps, asked, k, where, excluded, self._codec)

    def _reranked(self, found: Ranking, query: str, steps: Pipeline) -> Ranking:
        """Return a ranking with the first passages in a cross-encoder's order; what is excluded stays taken off."""
        if self._reranker is None or self._reranker.name != steps.reranker:
            self._reranker = Reranker(steps.reranker)
        texts = [passage_text(row["title"], row["text"]) for row in self._table.passages(found.ids[: steps.reranked])]
        if len(texts) < 2:
            return found
        outputs = self._reranker.scores(query, texts)
        kept = found.scores - found.parts.get("excluded", 0.0)
        added = np.zeros(len(kept))
        added[: len(texts)] = in_range(kept[: len(texts)], outputs) - kept[: len(texts)]
        order = np.argsort(-(found.scores + added), kind="stable")
        parts = {name: values[order] for name, values in {**found.parts, "reranker": added}.items()}
        scores = (found.scores + added)[order]
        return Ranking(found.ids[order], scores, found.similarity[order], found.words[order], parts)

    def _vectors_of(self, sentences: Sequence[str]) -> np.ndarray:
        """Return the vectors (S, D) of sentences, of which those of earlier hits are known."""
        if self._sentences_of != self.made_with or len(self._sentences) > _SENTENCES:
            self._sentences, self._sentences_of = {}, self.made_with
        known = self._sentences
        if new := [one for one in sentences if one not in known]:
            known.update(zip(new, self._encode(new), strict=True))
        return np.stack([known[one] for one in sentences])

    def _marked(self, query: str, vector: np.ndarray | None, texts: Sequence[str]) -> list[str]:
        """Return the sentence of each text that fits the query best."""
        lines = [text.split("\n") for text in texts]  # of lists, code and tables
        split = [
            [line[a:b].strip() for line in some for a, b in sentence_spans(line) if line[a:b].strip()] or [text]
            for text, some in zip(texts, lines, strict=True)
        ]
        several = list(dict.fromkeys(one for some in split if len(some) > 1 for one in some))
        fit: dict[str, float] = {}
        if vector is None:
            wanted = {word.lower() for word in _WORD.findall(query)}
            fit = {one: sum(word.lower() in wanted for word in _WORD.findall(one)) for one in several}
        elif several:
            fit = dict(zip(several, (self._vectors_of(several) @ vector).tolist(), strict=True))
        return [max(some, key=lambda one: fit.get(one, 0.0)) for some in split]


@_count_is_k
@checked
def search(
    index: str | os.PathLike[str] | Index,
    query: str,
    k: int = 10,
    *,
    vectors_only: bool = False,
    words_only: bool = False,
    where: str | None = None,
    model: SentenceTransformer | str | os.PathLike[str] | None = None,
    pipeline: Given | None = None,
    reranker: str | os.PathLike[str] | None = None,
) -> list[Hit]:
    """Find the passages of an index that fit a query best.

    Args:
        index: made by `index`; for many queries an `Index`, which keeps the model.
        query: a question, a sentence, or words.
        k: how many passages.
        vectors_only: search by meaning alone, not also by words.
        words_only: search by words alone (BM25); the model is not loaded.
        where: a condition on id, file, line, title, text and the fields of rows, as in SQL: "year >= 2020 AND file LIKE
            '%.md'". Dates are compared in their ISO form: "day < '2024-05-01'".
        model: in place of the one that made the index, if that has moved.
        pipeline: options of a `Pipeline` in place of the index's, such as {"neighbours": 0}, or a TOML file with them.
        reranker: a cross-encoder, by its folder or hub name, that puts the first passages in order.

    Returns:
        Up to k hits, the best first.

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
    return opened.search(query, k, mode=mode, where=where, pipeline=pipeline)


def encoder_of(
    index: Path, model: SentenceTransformer | str | os.PathLike[str] | None, **engine: Any
) -> DeferredEncoder:
    """Return the encoder that was given, or that of an index; engine and precision as in `load`.

    Raises:
        SearchError: none was given, and the index names none.
    """
    given = model or read_record(index).get("model")
    if given is None:
        raise SearchError(f"{index} names no model: give the one to index with, such as --model runs/arc")
    return DeferredEncoder(given, **engine)


def precision_of(record: Mapping[str, Any]) -> EnginePrecision:
    """Return the precision of the passages of an index: float32, unless it was made in another one."""
    found: EnginePrecision = record.get("precision", "fp32")
    return found


def check_version(index: Path, record: Mapping[str, Any]) -> None:
    """Raise SearchError if an index was made before there were pipelines."""
    if record and "pipeline" not in record:
        raise SearchError(f"{index} was made by an older version: make it again with `likewise index ... --overwrite`")


def _codec(folder: Path) -> TokenCodec:
    """Return the form in which the tokens of an index are stored."""
    try:
        if found := TokenCodec.open(folder):
            return found
        reason = "the form of its tokens is missing"
    except (OSError, ValueError, KeyError) as error:
        reason = str(error)
    raise SearchError(f"{folder.parent} is damaged ({reason}): make it again with `likewise index ... --overwrite`")


def _state(path: Path) -> Any:
    """Return a value that changes when an index is finished again."""
    try:
        found = (path / "likewise.json").stat()
        return found.st_mtime_ns, found.st_ino
    except OSError:
        return None


def finished_record(path: Path) -> dict[str, Any]:
    """Return the record of an index, which is missing for a moment while a new one is put in its place."""
    end = time.monotonic() + _WAIT
    while not (record := read_record(path)) and work_of(path).is_dir() and time.monotonic() < end:
        time.sleep(0.05)
    if record.get("plan", {}).get("job") == "index":
        check_version(path, record)
        kinds = {"table": str, "version": int, "geometry": str, "pipeline": dict}
        wrong = [name for name, kind in kinds.items() if not isinstance(record.get(name), kind)]
        wrong += [] if wrong or OWN_FOLDER.fullmatch(f"{record['table']}.lance") else ["table"]
        wrong += [] if wrong or OWN_FOLDER.fullmatch(record["geometry"]) else ["geometry"]
        wrong += [] if isinstance(record.get("query"), dict | None) else ["query"]
        if wrong or not isinstance(record["plan"].get("inputs"), dict):
            raise SearchError(
                f"{path / 'likewise.json'} is damaged (its {(wrong or ['plan'])[0]!r}): make the index again with "
                "`likewise index ... --overwrite`"
            )
        return record
    if work_of(path).is_dir():
        raise SearchError(f"{path} is not finished: run the same `likewise index` again")
    raise SearchError(f"there is no index at {path}: make one with `likewise index TEXT --model DIR --out {path}`")
