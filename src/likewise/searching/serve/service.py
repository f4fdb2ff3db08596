"""The models and indexes of a service, and its operations."""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from fastapi.concurrency import run_in_threadpool

from likewise.data.bundled import resolve_model
from likewise.errors import LikewiseError
from likewise.inference.engines.engine import ENDLESS, EngineName, EnginePrecision
from likewise.inference.handle import Facts, ModelHandle
from likewise.inference.text_encoder import Item, TextEncoder
from likewise.inference.tokens import SENTENCES, by_budget
from likewise.runs.job import read_record
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record
from likewise.searching import Index
from likewise.searching.index.maxsim import max_sim
from likewise.searching.parts.reranker import Reranker
from likewise.searching.query.hit import Hits
from likewise.searching.query.query_encoder import read_query
from likewise.searching.serve.guard import ServiceMetrics
from likewise.searching.serve.requests import RequestError, SearchBody
from likewise.searching.serve.serve_options import ServeOptions, ServingError
from likewise.searching.serve.shared_batches import Batcher

logger = logging.getLogger(__name__)
_Answer = TypeVar("_Answer")
_INLINE = 4096
"""Characters that are split into tokens at once; more is done in a thread, so that other requests go on."""


class _Work:
    """The work of a search, to be given up when its client leaves or its time is over."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self._given_up = seconds, False
        self._encoding: Future[Any] | None = None

    def result(self, encoding: Future[_Answer]) -> _Answer:
        """Wait for the current encoding.

        Raises:
            CancelledError: If the search was cancelled.
        """
        self._encoding = encoding
        if self._given_up:
            encoding.cancel()
        return encoding.result(self._seconds)

    def check(self) -> None:
        """Raise CancelledError if the work was given up."""
        if self._given_up:
            raise CancelledError

    def give_up(self) -> None:
        """Give up."""
        self._given_up = True
        if self._encoding is not None:
            self._encoding.cancel()


@dataclass(frozen=True)
class ServedModel:
    """A model of a service, which requests call by its name.

    Attributes:
        source: Folder or the name that it was loaded from; "" for a model in memory.
    """

    name: str
    source: str
    encoder: TextEncoder
    facts: Facts
    batcher: Batcher

    @property
    def gives_tokens(self) -> bool:
        """True if it has vectors of tokens."""
        return bool(self.facts.tokens) and self.encoder.gives_tokens


class Service:
    """Models and indexes by name.

    Args:
        models: Models as in `likewise.load`, by the names in requests.
        indexes: Paths, or paths by name, each built with one of the models; notes.index is named notes.
        options: Limits.
        engine, precision: as in `likewise.load`.
        progress: Progress of loading.
        reranker: Folder or hub name of a cross-encoder for the requests to rerank.

    Raises:
        ServingError: If an index was made by another model, or two have the same name.
    """

    def __init__(
        self,
        models: Record,
        indexes: Sequence[Path] | Mapping[str, Path] = (),
        options: ServeOptions | None = None,
        engine: EngineName = "auto",
        precision: EnginePrecision = "fp32",
        progress: Progress | None = None,
        reranker: str | os.PathLike[str] | None = None,
    ) -> None:
        self.options, self.metrics = options or ServeOptions(), ServiceMetrics()
        display = progress or Progress(quiet=True)
        self.reranker = Reranker(reranker) if reranker is not None else None
        self.reranker_name = Path(os.fspath(reranker)).name if reranker is not None else ""
        named = indexes if isinstance(indexes, Mapping) else {index_name(path): path for path in indexes}
        if len(named) < len(indexes):
            raise ServingError("two indexes have the same name: give names, such as first=FOLDER")
        self.indexes = {name: Index(path) for name, path in named.items()}  # broken ones first
        # Of their own: a search waits for its query to be encoded, which may take a thread of the common pool.
        self._threads = ThreadPoolExecutor(4 * (os.cpu_count() or 1), "search")
        self._free, self._work = threading.Semaphore(self.options.searches), threading.local()
        self.models = {name: self._opened(name, model, engine, precision, display) for name, model in models.items()}
        for index in self.indexes.values():
            self._model_of(index)
        if self.reranker is not None:
            display.tell(f"{self.reranker_name}: a cross-encoder, for requests to rerank")
            self.reranker.scores(SENTENCES[0], SENTENCES[1:2])  # loaded, and known to run

    def _opened(
        self, name: str, model: Any, engine: EngineName, precision: EnginePrecision, progress: Progress
    ) -> ServedModel:
        """Open a model, by its export if it has one from an earlier start: torch takes seconds to import."""
        handle = ModelHandle(model, engine, precision)
        progress.tell(f"{name}: {handle.facts.dimension} dimensions")
        encoder = handle.opened(None, SENTENCES, ENDLESS, progress=progress)
        encoder.vectors(encoder.items(SENTENCES[:1]))  # the first request is as fast as the others
        observe = self.metrics.batches.labels(name).observe
        batcher = Batcher(encoder, self.options.queue, self.options.wait / 1000, observe)
        self.metrics.waiting.labels(name).set_function(lambda: batcher.waiting)
        source = os.fspath(model) if isinstance(model, str | os.PathLike) else ""
        return ServedModel(name, source, encoder, handle.facts, batcher)

    def _model_of(self, index: Index) -> str:
        for name, model in self.models.items():
            if model.facts.fingerprint == index.made_with:
                index.encoder.vectors = partial(self._vectors_for_search, model)
                index.encoder.tokens = partial(self._tokens_for_search, model) if model.gives_tokens else None
                return name
        raise ServingError(
            f"{index.path} was built with a model that is not served "
            f"here{f' ({index.model})' if index.model else ''}: serve it, too, or index again with a served model"
        )

    def model_name(self, requested: str | None) -> str:
        """Return the name of a model, given by its name or its path; None selects the first model.

        Raises:
            RequestError: If there is no such model.
        """
        by_source = (name for name, model in self.models.items() if model.source == requested)
        name = next(iter(self.models)) if requested is None else next(by_source, requested)
        if name not in self.models:
            there = f"the model {name!r} is not served here; choose one of {', '.join(self.models)}"
            raise RequestError(there, 404, param="model", code="model_not_found")
        return name

    @property
    def ready(self) -> bool:
        """True if a request would be taken."""
        return all(model.batcher.waiting < model.batcher.limit for model in self.models.values())

    async def vectors(self, name: str, texts: Sequence[str]) -> tuple[np.ndarray, int]:
        """Return the vectors (S, D) of S texts by a model, and the number of their tokens."""
        model, short = self.models[name], sum(map(len, texts)) <= _INLINE
        items = model.encoder.items(texts) if short else await run_in_threadpool(model.encoder.items, texts)
        return self._checked(model, await model.batcher.vectors(items), items)

    def _checked(self, model: ServedModel, numbers: np.ndarray, items: Sequence[Item]) -> tuple[np.ndarray, int]:
        """Return what a model gave for texts, if it is finite, with the number of their tokens, and count them."""
        if not np.isfinite(numbers).all():
            raise RequestError("the model's vectors are not finite numbers", 500)
        tokens = sum(map(model.encoder.tokens, items))
        self.metrics.texts.labels(model.name).inc(len(items))
        self.metrics.tokens.labels(model.name).inc(tokens)
        return numbers, tokens

    async def search(self, body: SearchBody) -> tuple[str, Hits]:
        """Search an index, and return its name and the hits.

        Raises:
            RequestError: If there is no such index.
            SearchError: If the condition is not valid.
        """
        name = body.index or next(iter(self.indexes), "")
        if name not in self.indexes:
            there = ", ".join(self.indexes) or "none: start with --index"
            raise RequestError(f"there is no index {name!r} here; choose one of {there}", 404, param="index")
        return name, await self._in_thread(partial(self._search, self.indexes[name], body))

    async def _in_thread(self, function: Callable[[_Work], _Answer]) -> _Answer:
        """Run a function in a thread of the searches, of which only so many may wait."""
        if not self._free.acquire(blocking=False):
            waiting = f"{self.options.searches} searches are waiting: try again in 1 s"
            raise RequestError(waiting, 429, retry_after="1")
        work = _Work(self.options.timeout)
        running = self._threads.submit(function, work)
        running.add_done_callback(lambda _: self._free.release())
        try:
            return await asyncio.wrap_future(running)
        finally:
            work.give_up()  # does nothing to one that is done

    async def rerank(
        self, requested: str | None, query: str, texts: Sequence[str], raw: bool = False
    ) -> tuple[str, np.ndarray, int]:
        """Score texts by how well they answer a query: by the cross-encoder, or by the tokens of a model (MaxSim).

        Args:
            requested: Name of a model; None for the cross-encoder, or otherwise the first model with token vectors.
            query: Text of the query.
            texts: S texts.
            raw: Whether to return the outputs of the cross-encoder without a sigmoid.

        Returns:
            The name of what scored, the scores (S,), and the number of tokens that were read.

        Raises:
            RequestError: If there is no such model, or it has no vectors of tokens.
        """
        if self.reranker is not None and requested in (None, self.reranker.name, self.reranker_name):
            work = partial(self._by_cross_encoder, self.reranker, query, texts, raw)
            return self.reranker_name, *await self._in_thread(work)
        if requested is not None:
            name = self.model_name(requested)
        else:
            able = [name for name, model in self.models.items() if model.gives_tokens]
            name = next(iter([*able, *self.models]))
        if not self.models[name].gives_tokens:
            none = f"{name} has no token vectors to compare: start the service with --reranker and a cross-encoder"
            raise RequestError(none, param="model")
        return name, *await self._in_thread(partial(self._by_tokens, self.models[name], query, texts))

    def _by_cross_encoder(
        self, reranker: Reranker, query: str, texts: Sequence[str], raw: bool, work: _Work
    ) -> tuple[np.ndarray, int]:
        """Score texts, from 0 to 1 unless the outputs are wanted raw; called in a thread of a search."""
        outputs = reranker.scores(query, texts, work.check)
        scores = outputs if raw else 1 / (1 + np.exp(-np.clip(outputs, -500, 500)))
        return scores, reranker.tokens(query, texts)

    def _by_tokens(self, served: ServedModel, query: str, texts: Sequence[str], work: _Work) -> tuple[np.ndarray, int]:
        """Score texts by MaxSim; called in a thread of a search.

        One batch at a time is given to the model's workers, so that other requests take turns with a long one.
        """
        model, facts = served.encoder, served.facts
        items = model.items(texts, facts.side("document"))
        (query_item,) = model.items([query], facts.side("query"))

        def run(some: Sequence[Item], take: Callable[[np.ndarray], Any]) -> list[Any]:
            return work.result(model.pool.submit(model.with_tokens, some, take, spread=map))[1]

        (tokens,) = run([query_item], np.copy)
        scores = np.zeros(len(items))
        for batch in by_budget(np.array([model.tokens(item) for item in items]), model.budget):
            scores[batch] = run([items[i] for i in batch], partial(max_sim, tokens))
        return self._checked(served, scores, [*items, query_item])

    def _search(self, index: Index, body: SearchBody, work: _Work) -> Hits:
        """Search; called in a thread of a search."""
        self._work.present = work
        try:
            self._model_of(index)  # another process may have rebuilt it
        except LikewiseError as error:
            raise self._unreadable(error) from error
        settings: Record = {"mode": body.mode, "where": body.where, "pipeline": body.pipeline}
        return index.search(body.query, body.k, offset=body.offset, **settings)

    def _vectors_for_search(self, model: ServedModel, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of queries; called in a thread of a search."""
        items = model.encoder.items(texts, model.facts.side("query"))
        vectors = self._work.present.result(model.encoder.pool.submit(model.encoder.vectors, items))
        return self._checked(model, vectors, items)[0]

    def _tokens_for_search(self, model: ServedModel, query: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the vector of a query, and its tokens; called in a thread of a search."""
        reading = model.encoder.pool.submit(read_query, model.encoder, query, model.facts.side("query"))
        vector, tokens, ids = self._work.present.result(reading)
        self._checked(model, vector, [ids])
        return vector, tokens, ids

    def _unreadable(self, error: LikewiseError) -> RequestError:
        """Log why an index cannot be searched any more, with its place, and return the message for a client."""
        logger.warning("%s", error)
        return RequestError("the index cannot be searched at the moment; see the log of the service", 503)

    def _about_index(self, name: str, index: Index) -> Record | None:
        """Describe an index for the page; None if it is gone, or another model has made it again."""
        try:
            return {"name": name, "model": self._model_of(index), "passages": index.table.rows}
        except LikewiseError as error:
            self._unreadable(error)
            return None

    def about(self) -> Record:
        """Describe the models and the indexes for the page."""
        models = [
            {"name": name, "dimension": model.facts.dimension, "engine": model.encoder.engine, **self._base_of(model)}
            for name, model in self.models.items()
        ]
        indexes = [self._about_index(name, index) for name, index in self.indexes.items()]
        there = [about for about in indexes if about]
        return {"reranker": self.reranker_name or None, "models": models, "indexes": there}

    def _base_of(self, model: ServedModel) -> dict[str, str | None]:
        """Return the base of a model, and the name by which that is served; None for what is not known."""
        base: str | None = None
        with suppress(LikewiseError):
            base = read_record(model.source).get("base") if model.source else None
        if not base:
            return {"base": None, "base_served": None}
        others = (other.name for other in self.models.values() if other is not model)
        served = (name for name in others if _place(self.models[name].source) == _place(base))
        return {"base": base, "base_served": next(served, None)}


def index_name(folder: str | os.PathLike[str]) -> str:
    """Return the name of an index: the name of its folder, without the suffix .index.

    >>> index_name("notes.index"), index_name("data/notes.2023")
    ('notes', 'notes.2023')
    """
    return Path(os.path.abspath(folder)).name.removesuffix(".index")  # noqa: PTH100  # a link keeps its own name


def _place(source: str) -> str:
    """Return the folder that the name of a model leads to; a hub name stays as it is."""
    with suppress(LikewiseError):  # a bundled one that is not installed here
        source = resolve_model(source)
    path = Path(source).expanduser()
    return str(path.resolve()) if source and path.exists() else source
