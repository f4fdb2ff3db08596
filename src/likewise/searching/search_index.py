"""Searching an index: by meaning, by words, or by both in the pipeline of its record."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from numbers import Integral
from pathlib import Path
from typing import TYPE_CHECKING
from unicodedata import normalize

import numpy as np

from likewise.corpus.clean_text import in_plain_letters, without_invisible, without_surrogates
from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.inputs import GivenTexts
from likewise.encoder.location import check_cross_encoder
from likewise.errors import counted
from likewise.inference.handle import ModelHandle
from likewise.runs.options import checked
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record
from likewise.searching.index.fields import CALLED
from likewise.searching.index.index_record import record_before
from likewise.searching.index.lance_access import DamageError, damage
from likewise.searching.index.opened_index import OpenedIndex, state_of
from likewise.searching.index.table import SearchError, Table
from likewise.searching.parts.parts import PARTS, Part, checked_parts, registered_parts
from likewise.searching.parts.pipeline import Given, Pipeline, pipeline_of
from likewise.searching.parts.reranker import Reranker
from likewise.searching.query.hit import Hits
from likewise.searching.query.query_encoder import QueryEncoder, encoder_of
from likewise.searching.search_flow import By, Mode, Request, Search

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Index:
    """An open index for searches and updates; an update by another process is visible to the next search.

    `len(index)` is the number of its passages, and iteration yields the ids of its rows and texts.

    Args:
        path: Path to the index.
        model: Encoder of the queries, or its path or name as in `load`; by default the model of the index. It is loaded
            by the first search that needs it.
        vectors: Function that returns the vectors (S, D) of S queries, instead of a model.
        tokens: Function that returns the output of `read_query`, instead of a model. If only `vectors` is given, tokens
            are not compared.
        parts: Further parts of the hybrid search, subclasses of `likewise.searching.Part`, after the entry points of
            `likewise.search_parts`.

    Raises:
        SearchError: If there is no such index, it is damaged, or a part is invalid or has the name of another part.
        MissingExtraError: If LanceDB is not installed.

    Example:
        >>> import likewise
        >>> _ = likewise.index(["The valve is stuck."], model="bundled:minilm", out="parts.index", quiet=True)
        >>> index = likewise.Index("parts.index")
        >>> index.add(["The pump is leaking.", "The gauge is broken."])
        2
        >>> index.search("a leak", k=1)[0].text
        'The pump is leaking.'
        >>> index.delete([1]), len(index)
        (1, 2)
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
        self.path, self.parts = Path(path), checked_parts(parts, registered_parts())
        self.encoder = QueryEncoder(self.path, model, vectors, tokens)
        self._now: OpenedIndex | None = None
        self._reranker: Reranker | None = None
        self._writer: ModelHandle | None = None
        _ = self.table

    def __getstate__(self) -> Record:
        """Return what another process opens the index by: what is open or loaded here stays."""
        return {**self.__dict__, **dict.fromkeys(["_now", "_reranker", "_writer"])}

    def __len__(self) -> int:
        return self.passages

    def __iter__(self) -> Iterator[str | int]:
        opened = self._opened
        return (named for id in opened.stored.table.ids() if (named := opened.named(id)) is not None)

    def __repr__(self) -> str:
        named = f", built with {self.model}" if self.model else ""
        return f"<Index {self.path}: {counted(self.passages, 'passage')}{named}>"

    @property
    def passages(self) -> int:
        """The number of passages."""
        return self.table.rows

    @property
    def files(self) -> int:
        """The number of files."""
        return len(self.table.sources())

    @property
    def fields(self) -> dict[str, str]:
        """The fields that a filter can use in addition to id, file, line, title and text, each with its type."""
        return {name: CALLED[kind] for name, kind in self.table.metadata.items()}

    @checked
    def add(
        self,
        texts: GivenTexts,
        *,
        corpus_options: CorpusOptions | None = None,
        quiet: bool = True,
    ) -> int:
        """Add texts, rows or files; an existing id or path is replaced.

        Only new text is encoded. A new field of rows becomes a field of the index. Texts without ids are numbered
        consecutively.

        Args:
            texts: Texts, rows or paths, as in `likewise.index`.
            corpus_options: Options of reading.
            quiet: Whether to print nothing to standard error.

        Returns:
            The number of texts or files that were new or changed.

        Raises:
            CorpusError: If a text is missing, a file cannot be read, or the type of a field has changed.
            JobError: If another process is writing the index.
        """
        from likewise.searching.index.index_update import add  # which opens an index itself

        return add(self, self._writing(), texts, corpus_options, Progress(quiet)).added

    @checked
    def delete(self, ids: str | int | Iterable[str | int], *, quiet: bool = True) -> int:
        """Delete rows and texts by their ids, and return their number; unknown ids are ignored.

        A deleted row of a file reappears when the file is indexed again, unless it is also removed from the file.
        """
        from likewise.searching.index.index_update import delete

        unwanted = list(ids) if isinstance(ids, Iterable) and not isinstance(ids, str) else [ids]
        if wrong := [id for id in unwanted if isinstance(id, bool) or not isinstance(id, str | Integral)]:
            raise SearchError(f"{wrong[0]!r} is not an id: give strings or integers, such as hit.id")
        names = [without_invisible(str(id)) for id in unwanted]
        return delete(self, self._writing(), names, Progress(quiet)) if names else 0

    def _writing(self) -> ModelHandle:
        if self._writer is None:
            record = record_before(self.path)
            self._writer = encoder_of(self.path, self.encoder.model, precision=record.precision if record else "fp32")
        return self._writer

    @property
    def _opened(self) -> OpenedIndex:
        """The index as it was when it was finished the last time."""
        now, state = self._now, state_of(self.path)
        while now is None or state is None or now.state != state:
            try:
                now = self._now = OpenedIndex.open(self.path)
            except SearchError:  # perhaps of an index that was replaced meanwhile
                if state_of(self.path) == state:
                    raise
            state = state_of(self.path)
        return now

    @property
    def table(self) -> Table:
        """The table of the last complete update."""
        return self._opened.stored.table

    def _encode(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (S, D) of queries."""
        return self.encoder.encode(self._opened, texts)

    @property
    def made_with(self) -> str:
        """The fingerprint of the model that built the index."""
        return self._opened.record.made_with

    @property
    def model(self) -> str | None:
        """The name of the model that built the index, if it has one."""
        return self._opened.record.model

    @property
    def pipeline(self) -> Pipeline:
        """The default parts of a hybrid search and their weights."""
        return self._opened.pipeline

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
        """Find the passages that best match a query; see `likewise.search`.

        Args:
            query, k, offset, by, where, pipeline: See `likewise.search`.
            mode: Mode of the search: hybrid, vectors or words.
            mark: Whether to find the best sentence; otherwise, `sentence` is the whole passage.
        """
        if k < 1:
            raise SearchError(f"k is {k}: give 1 or more")
        if offset < 0:
            raise SearchError(f"offset is {offset}: give 0 or more")
        if mode not in ("hybrid", "vectors", "words"):
            raise SearchError(f"unknown mode {mode!r}: give hybrid, vectors or words")
        if by not in ("passage", "document"):
            raise SearchError(f"by is {by!r}: give passage or document")
        return self._hits(Request(query, k, offset, by, mode, where, mark), pipeline)

    def documents(
        self, query: str, limit: int = 100, *, mode: Mode = "hybrid", pipeline: Given | None = None
    ) -> list[tuple[Sequence[str], float]]:
        """Find the documents that best match a query, each with its names and the score of its best passage.

        The name of a row or text is its id; the names of a file are its path, name and stem. `likewise.evaluate` uses
        this method to score an index. It differs from `search` in copies of a passage: each has its own score.

        Args:
            query, mode, pipeline: See `search`.
            limit: Maximum number of different passages.
        """
        best: dict[Sequence[str], float] = {}
        for hit in self._hits(Request(query, limit, mode=mode, mark=False, with_copies=True), pipeline):
            best.setdefault(hit.document, hit.score)
        return list(best.items())

    @property
    def name(self) -> str:
        """The path of the index in reports."""
        return str(self.path)

    @property
    def settings(self) -> dict[str, str]:
        """The weights of the search in reports."""
        parts = (*(part.name for part in PARTS), "excluded", *(part.name for part in self.parts))
        weights = self.pipeline.to_dict() | {part.name: part.weight for part in self.parts}
        return {
            "similarity": ", ".join(f"{part} {weights[part]:g}" for part in parts if weights[part]),
            "precision": f"an index built with {self.model}" if self.model else "an index",
        }

    def _hits(self, request: Request, pipeline: Given | None) -> Hits:
        """Return the hits of a request, from the present state of the index."""
        request = request._replace(query=normalize("NFC", in_plain_letters(without_surrogates(request.query))))
        while True:
            opened = self._opened
            steps = pipeline_of(pipeline, opened.pipeline)
            try:
                with damage(self.path):
                    return Search(opened, self.encoder, steps, self.parts, self._reranker_of(steps)).hits(request)
            except DamageError:
                if state_of(self.path) == opened.state:
                    raise  # otherwise the index was replaced by another one meanwhile

    def _reranker_of(self, steps: Pipeline) -> Reranker | None:
        """Return the cross-encoder of a pipeline, which is loaded once."""
        if steps.reranker and (self._reranker is None or self._reranker.name != steps.reranker):
            self._reranker = Reranker(steps.reranker)
        return self._reranker if steps.reranker else None


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
    """Find the passages of an index that best match a query.

    In a query of a few words, passages with a quoted phrase come first, followed by other passages if there are fewer
    than k; in prose, a quoted phrase ranks passages higher. A word preceded by a hyphen (`-word`) excludes passages
    that contain it, and words such as 'excluding' rank the excluded passages lower. Copies of a passage are listed
    once.

    Args:
        index: Path to an index built by `index`, or an open `Index`, which keeps the model loaded for many queries.
        query: Text of the query: a question, a sentence, or words.
        k: Number of passages, or of documents.
        offset: Number of results to skip (pagination).
        by: Unit of the results; "document" lists each document (a row, a text or a file) once, with its best passage.
        vectors_only: Whether to search by meaning alone, without words.
        words_only: Whether to search by words alone (BM25), without loading the model.
        where: Condition on id, file, line, title, text and the fields of rows, as in SQL: "year >= 2020 AND file LIKE
            '%.md'". Dates are compared in their ISO form: "day < '2024-05-01'".
        model: Path or name of a model to use instead of the index's own, for example if the model has been moved.
        pipeline: Options of a `Pipeline` that override the options of the index, such as {"neighbours": 0}, or a path
            to a TOML file.
        reranker: Path or hub name of a cross-encoder that reorders the first passages.

    Returns:
        At most k hits in descending order of their scores, in a list that also describes the interpretation of the
        query (`told`).

    Raises:
        SearchError: If the index does not exist, is damaged, or was built with another model, or if `where` is invalid.
        MissingExtraError: If LanceDB is not installed.

    Example:
        >>> import likewise
        >>> texts = ["The valve does not close.", "The pump is leaking.", "Diesel pumps are loud."]
        >>> _ = likewise.index(texts, model="bundled:minilm", out="machines.index", quiet=True)
        >>> hits = likewise.search("machines.index", "pumps, excluding diesel", k=2)
        >>> hits[0].text
        'The pump is leaking.'
    """
    if vectors_only and words_only:
        raise SearchError("a search cannot use both vectors_only and words_only: give one of them")
    mode: Mode = "vectors" if vectors_only else "words" if words_only else "hybrid"
    opened = index if isinstance(index, Index) else Index(index, model)
    if reranker is not None:
        check_cross_encoder(os.fspath(reranker))
        pipeline = pipeline_of({"reranker": os.fspath(reranker)}, pipeline_of(pipeline, opened.pipeline))
    return opened.search(query, k, offset=offset, by=by, mode=mode, where=where, pipeline=pipeline)
