"""The models and indexes of a service, and what it does with them."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from fastapi.concurrency import run_in_threadpool

from likewise.corpus.bundled import resolve_model
from likewise.errors import LikewiseError
from likewise.inference.engines.engine import ENDLESS
from likewise.inference.handle import Facts, ModelHandle
from likewise.inference.text_encoder import Item, TextEncoder
from likewise.inference.tokens import SENTENCES, TextSide, by_budget
from likewise.runs.job import read_record
from likewise.runs.progress import Progress
from likewise.searching import Index
from likewise.searching.hit import Hits
from likewise.searching.maxsim import max_sim
from likewise.searching.reranker import Reranker
from likewise.serving.guard import ServiceMetrics
from likewise.serving.requests import RequestError, SearchBody
from likewise.serving.serve_options import ServeOptions, ServingError
from likewise.serving.shared_batches import Batcher

_Found = TypeVar("_Found")
_INLINE = 4096
"""Characters that are split into tokens at once; more is done in a thread, so that other requests go on."""


class _Work:
    """The encoding of a search, to be given up when its client leaves or its time is over."""

    def __init__(self) -> None:
        self._given_up = False
        self._encoding: Future[Any] | None = None

    def encodes(self, encoding: Future[Any]) -> None:
        """Note what is encoded now.

        Raises:
            CancelledError: the search was given up.
        """
        self._encoding = encoding
        if self._given_up:
            encoding.cancel()
            raise CancelledError

    def check(self) -> None:
        """Raise CancelledError if the work was given up."""
        if self._given_up:
            raise CancelledError

    def give_up(self) -> None:
        """Give up."""
        self._given_up = True
        if self._encoding is not None:
            self._encoding.cancel()


class Service:
    """Models and indexes by name.

    Args:
        models: what `likewise.load` takes, by the name that requests use.
        indexes: folders, or folders by name, each made by one of the models; notes.index is called notes.
        options: the limits.
        engine, precision: as in `likewise.load`.
        progress: shows what is loaded.
        reranker: the folder or hub name of a cross-encoder for the requests to rerank.

    Raises:
        ServingError: an index was made by another model, or two have the same name.
    """

    def __init__(
        self,
        models: dict[str, Any],
        indexes: Sequence[Path] | Mapping[str, Path] = (),
        options: ServeOptions | None = None,
        engine: Any = "auto",
        precision: Any = "fp32",
        progress: Progress | None = None,
        reranker: str | os.PathLike[str] | None = None,
    ) -> None:
        self.options, self.metrics = options or ServeOptions(), ServiceMetrics()
        told = progress or Progress(quiet=True)
        self.reranker = Reranker(reranker) if reranker is not None else None
        self.reranker_name = Path(os.fspath(reranker)).name if reranker is not None else ""
        named = indexes if isinstance(indexes, Mapping) else {index_name(path): path for path in indexes}
        if len(named) < len(indexes):
            raise ServingError("two indexes have the same name: give names, such as first=FOLDER")
        self.indexes = {name: Index(path) for name, path in named.items()}  # broken ones first
        self.models: dict[str, TextEncoder] = {}
        self.facts: dict[str, Facts] = {}
        self.batchers: dict[str, Batcher] = {}
        self._names: dict[str, str] = {}  # what models were loaded from to their names
        self._places: dict[str, str] = {}  # what the names of models lead to
        self._bases: dict[str, str] = {}  # and of those that were made from another one, its name
        self._loop: asyncio.AbstractEventLoop | None = None
        # Of their own: a search waits for its query to be encoded, which may take a thread of the common pool.
        self._threads = ThreadPoolExecutor(4 * (os.cpu_count() or 1), "search")
        self._searches, self._work = 0, threading.local()
        for name, given in models.items():
            encoder = ModelHandle(given, engine, precision)
            if isinstance(given, str | os.PathLike):
                self._names.setdefault(os.fspath(given), name)
            self._places[name], self._bases[name] = _place(given), _base(given)
            # By its export, if it has one from an earlier start: torch takes seconds to import.
            self.facts[name] = encoder.facts
            told.tell(f"{name}: {encoder.facts.dimension} dimensions")
            model = encoder.opened(None, SENTENCES, ENDLESS, progress=told)
            model.vectors(model.items(SENTENCES[:1]))  # the first request is as fast as the others
            self.models[name], observe = model, self.metrics.batches.labels(name).observe
            self.batchers[name] = Batcher(model, self.options.queue, self.options.wait / 1000, observe)
            self.metrics.waiting.labels(name).set_function(partial(getattr, self.batchers[name], "waiting"))
        for index in self.indexes.values():
            self._model_of(index)
        if self.reranker is not None:
            told.tell(f"{self.reranker_name}: a cross-encoder, for requests to rerank")
            self.reranker.scores(SENTENCES[0], SENTENCES[1:2])  # loaded, and known to run

    def _model_of(self, index: Index) -> str:
        for name, facts in self.facts.items():
            if facts.fingerprint == index.made_with:
                index.vectors = partial(self._vectors_for_search, name)
                index.tokens = partial(self._tokens_for_search, name) if self._gives_tokens(name) else None
                return name
        raise ServingError(
            f"{index.path} was made by a model that is not served here{f' ({index.model})' if index.model else ''}: "
            "serve that one too, or index again with one that is"
        )

    def model_name(self, asked: str | None) -> str:
        """Return the name of a model, which may be asked for by what it was loaded from; the first one for None.

        Raises:
            RequestError: there is no such model.
        """
        name = next(iter(self.models)) if asked is None else self._names.get(asked, asked)
        if name not in self.models:
            there = f"the model {name!r} is not served here; there are {', '.join(self.models)}"
            raise RequestError(there, 404, param="model", code="model_not_found")
        return name

    @property
    def ready(self) -> bool:
        """True if a request would be taken."""
        return all(batcher.waiting < batcher.limit for batcher in self.batchers.values())

    async def vectors(self, name: str, texts: Sequence[str], side: TextSide | None = None) -> tuple[np.ndarray, int]:
        """Return the vectors (S, D) of S texts by a model, and the number of their tokens."""
        model = self.models[name]
        short = sum(map(len, texts)) <= _INLINE
        items = model.items(texts, side) if short else await run_in_threadpool(model.items, texts, side)
        vectors = await self.batchers[name].vectors(items)
        tokens = sum(map(model.tokens, items))
        if not np.isfinite(vectors).all():
            raise RequestError("the model's vectors are not finite numbers", 500)
        self.metrics.texts.labels(name).inc(len(texts))
        self.metrics.tokens.labels(name).inc(tokens)
        return vectors, tokens

    async def search(self, asked: SearchBody) -> tuple[str, Hits]:
        """Search an index, and return its name and the hits.

        Raises:
            RequestError: there is no such index.
            SearchError: the condition is not valid.
        """
        name = asked.index or next(iter(self.indexes), "")
        if name not in self.indexes:
            there = ", ".join(self.indexes) or "none: start with --index"
            raise RequestError(f"there is no index {name!r} here; there are {there}", 404, param="index")
        return name, await self._in_thread(partial(self._search, self.indexes[name], asked))

    async def _in_thread(self, function: Callable[[_Work], _Found]) -> _Found:
        """Run a function in a thread of the searches, of which only so many may wait."""
        if self._searches >= self.options.searches:
            raise RequestError(f"{self._searches} searches are waiting: try again in 1 s", 429, retry_after="1")
        self._loop, work = asyncio.get_running_loop(), _Work()
        self._searches += 1
        running = self._threads.submit(function, work)
        running.add_done_callback(lambda _: self._loop.call_soon_threadsafe(self._searched) if self._loop else None)
        try:
            return await asyncio.wrap_future(running)
        finally:
            work.give_up()  # does nothing to one that is done

    async def rerank(self, asked: str | None, query: str, texts: Sequence[str]) -> tuple[str, np.ndarray, int]:
        """Score texts by how well they answer a query: by the cross-encoder, or by the tokens of a model (MaxSim).

        Returns:
            The name of what scored, the scores (S,), and the number of tokens that were read.

        Raises:
            RequestError: there is no such model, or it has no vectors of tokens.
        """
        if self.reranker is not None and asked in (None, self.reranker.name, self.reranker_name):
            work = partial(self._by_cross_encoder, self.reranker, query, texts)
            return self.reranker_name, *await self._in_thread(work)
        if asked is not None:
            name = self.model_name(asked)
        else:
            name = next(filter(self._gives_tokens, self.models), next(iter(self.models)))
        if not self._gives_tokens(name):
            none = f"{name} has no vectors of tokens to compare: start with --reranker and a cross-encoder"
            raise RequestError(none, param="model")
        return name, *await self._in_thread(partial(self._by_tokens, name, query, texts))

    def _gives_tokens(self, name: str) -> bool:
        return bool(self.facts[name].tokens) and self.models[name].gives_tokens

    def _by_cross_encoder(
        self, reranker: Reranker, query: str, texts: Sequence[str], work: _Work
    ) -> tuple[np.ndarray, int]:
        """Score texts, from 0 to 1; called in a thread of a search."""
        outputs = reranker.scores(query, texts, work.check)
        return 1 / (1 + np.exp(-np.clip(outputs, -500, 500))), reranker.tokens(query, texts)

    def _by_tokens(self, name: str, query: str, texts: Sequence[str], work: _Work) -> tuple[np.ndarray, int]:
        """Score texts by MaxSim; called in a thread of a search.

        One batch at a time is given to the model's workers, so that other requests take turns with a long one.
        """
        model, facts = self.models[name], self.facts[name]
        items = model.items(texts, facts.side("document"))
        (asked,) = model.items([query], facts.side("query"))

        def run(some: Sequence[Item], take: Callable[[np.ndarray], Any]) -> list[Any]:
            encoding = model.pool.submit(model.vectors_and_tokens, some, take)
            work.encodes(encoding)
            return encoding.result(self.options.timeout)[1]

        (tokens,) = run([asked], np.copy)
        scores = np.zeros(len(items))
        for batch in by_budget(np.array([model.tokens(item) for item in items]), model.budget):
            scores[batch] = run([items[i] for i in batch], partial(max_sim, tokens))
        count = sum(map(model.tokens, items)) + model.tokens(asked)
        self.metrics.texts.labels(name).inc(len(items) + 1)
        self.metrics.tokens.labels(name).inc(count)
        if not np.isfinite(scores).all():
            raise RequestError("the model's vectors are not finite numbers", 500)
        return scores, count

    def _searched(self) -> None:
        self._searches -= 1

    def _search(self, index: Index, asked: SearchBody, work: _Work) -> Hits:
        """Search; called in a thread of a search."""
        self._work.present = work
        self._model_of(index)  # it may have been made again by another one
        settings: dict[str, Any] = {"mode": asked.mode, "where": asked.where, "pipeline": asked.pipeline}
        return index.search(asked.query, asked.k, offset=asked.offset, **settings)

    def _vectors_for_search(self, name: str, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of queries; called in a thread of a search."""
        assert self._loop is not None
        coroutine = self.vectors(name, texts, self.facts[name].side("query"))
        encoding = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        self._work.present.encodes(encoding)
        return encoding.result(self.options.timeout)[0]

    def _tokens_for_search(self, name: str, query: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the vector of a query, and its tokens; called in a thread of a search."""
        model, side = self.models[name], self.facts[name].side("query")
        encoding = model.pool.submit(model.read_query, query, side)
        self._work.present.encodes(encoding)
        vector, tokens, ids = encoding.result(self.options.timeout)
        self.metrics.texts.labels(name).inc()
        self.metrics.tokens.labels(name).inc(len(ids))
        return vector, tokens, ids

    def about(self) -> dict[str, Any]:
        """Describe the served model for the page."""
        return {
            "reranker": self.reranker_name or None,
            "models": [
                {"name": name, "dimension": self.facts[name].dimension, "engine": model.engine, **self._base_of(name)}
                for name, model in self.models.items()
            ],
            "indexes": [
                {"name": name, "model": self._model_of(index), "passages": index.table.rows}
                for name, index in self.indexes.items()
            ],
        }

    def _base_of(self, name: str) -> dict[str, str | None]:
        """Return the base of a model, and the name by which that is served; None for what is not known."""
        base = self._bases[name]
        at = _place(base)
        served = next((other for other, place in self._places.items() if other != name and place == at), None)
        return {"base": base or None, "base_served": served if base else None}


def index_name(folder: str | os.PathLike[str]) -> str:
    """Return the name of an index: that of its folder, without the ending .index.

    >>> index_name("notes.index"), index_name("data/notes.2023")
    ('notes', 'notes.2023')
    """
    return Path(folder).absolute().name.removesuffix(".index")


def _place(given: Any) -> str:
    """Resolve the name of a model to its folder; a hub name stays as it is."""
    if not isinstance(given, str | os.PathLike):
        return ""
    name = os.fspath(given)
    with suppress(LikewiseError):  # a bundled one that is not installed here
        name = resolve_model(name)
    path = Path(name).expanduser()
    return str(path.resolve()) if path.exists() else name


def _base(given: Any) -> str:
    """Return the name of the model that one was made from, "" if its folder does not say."""
    if isinstance(given, str | os.PathLike):
        with suppress(LikewiseError):
            return str(read_record(Path(given)).get("base") or "")
    return ""
