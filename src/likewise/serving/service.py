"""The models and indexes of a service, and what it does with them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fastapi.concurrency import run_in_threadpool

from likewise.runs.progress import Progress
from likewise.searching import Index
from likewise.serving.batching import Batcher
from likewise.serving.guard import ServiceMetrics
from likewise.serving.options import ServeOptions, ServingError
from likewise.serving.requests import RequestError
from likewise.serving.served import Served, served

_INLINE = 4096
"""Characters that are split into tokens at once; more is done in a thread, so that other requests go on."""


class Service:
    """Models and indexes by name.

    Args:
        models: what `likewise.load` takes, by the name that requests use.
        indexes: folders; each was made by one of the models.
        options: the limits.
        engine, precision: as in `likewise.load`.
        progress: shows what is loaded.

    Raises:
        ServingError: an index was made by another model, or two have the same name.
    """

    def __init__(
        self,
        models: dict[str, Any],
        indexes: Sequence[Path] = (),
        options: ServeOptions | None = None,
        engine: Any = "auto",
        precision: Any = "fp32",
        progress: Progress | None = None,
    ) -> None:
        self.options, self.metrics = options or ServeOptions(), ServiceMetrics()
        told = progress or Progress(quiet=True)
        self.indexes = {path.stem: Index(path) for path in indexes}  # broken ones first
        if len(self.indexes) < len(indexes):
            raise ServingError("two indexes have the same name: rename one of the folders")
        self.models: dict[str, Served] = {}
        self.batchers: dict[str, Batcher] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        for name, given in models.items():
            model = self.models[name] = served(name, given, engine, precision, told)
            self.batchers[name] = Batcher(model, self.options.queue, self.options.wait / 1000)
            self.metrics.waiting.labels(name).set_function(partial(getattr, self.batchers[name], "waiting"))
        for index in self.indexes.values():
            self._model_of(index)

    def _model_of(self, index: Index) -> str:
        for name, model in self.models.items():
            if model.facts.fingerprint == index.made_with:
                index.vectors = partial(self._vectors_for_search, model)
                return name
        raise ServingError(
            f"{index.path} was made by a model that is not served here{f' ({index.model})' if index.model else ''}: "
            "serve that one too, or index again with one that is"
        )

    def start(self) -> None:
        """Note the running event loop."""
        self._loop = asyncio.get_running_loop()

    def model(self, name: str | None) -> Served:
        """Return a model by its name, the first one for None.

        Raises:
            RequestError: there is no such model.
        """
        found = self.models.get(next(iter(self.models)) if name is None else name)
        if found is None:
            raise RequestError(
                f"the model {name!r} is not served here; there are {', '.join(self.models)}",
                status=404,
                param="model",
                code="model_not_found",
            )
        return found

    @property
    def ready(self) -> bool:
        """True if a request would be taken."""
        return all(batcher.waiting < batcher.limit for batcher in self.batchers.values())

    async def vectors(self, model: Served, texts: Sequence[str], prompt: str | None = None) -> tuple[np.ndarray, int]:
        """Return the vectors (S, D) of S texts, and the number of their tokens."""
        short = sum(map(len, texts)) <= _INLINE
        items = model.items(texts, prompt) if short else await run_in_threadpool(model.items, texts, prompt)
        found = await self.batchers[model.name].vectors(items)
        tokens = sum(map(model.tokens, items))
        if not np.isfinite(found).all():
            raise RequestError("the model's vectors are not finite numbers", status=500, kind="server_error")
        self.metrics.texts.labels(model.name).inc(len(texts))
        self.metrics.tokens.labels(model.name).inc(tokens)
        return found, tokens

    def measured(self) -> None:
        """Take up the sizes of the batches since the last call into the metrics."""
        for name, batcher in self.batchers.items():
            sizes, batcher.sizes = batcher.sizes, []
            for size in sizes:
                self.metrics.batches.labels(name).observe(size)

    async def search(self, name: str | None, **asked: Any) -> tuple[str, list[Any]]:
        """Search an index, the first one for None, and return its name and the hits.

        Raises:
            RequestError: there is no such index.
            SearchError: the condition is not valid.
        """
        found = next(iter(self.indexes), None) if name is None else name
        if found not in self.indexes:
            there = ", ".join(self.indexes) or "none: start with --index"
            raise RequestError(f"there is no index {name or ''!r} here; there are {there}", status=404, param="index")
        self._model_of(self.indexes[found])  # it may have been made again by another one
        return found, await run_in_threadpool(self.indexes[found].search, **asked)

    def _vectors_for_search(self, model: Served, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of queries; called in a thread of a search."""
        assert self._loop is not None
        work = self.vectors(model, texts, model.facts.prompt("query"))
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(self.options.timeout)[0]

    def about(self) -> dict[str, Any]:
        """Return what is served, for the page."""
        return {
            "models": [
                {"name": one.name, "dimension": one.facts.dimension, "engine": one.engine}
                for one in self.models.values()
            ],
            "indexes": [
                {"name": name, "model": self._model_of(index), "passages": index.table.rows}
                for name, index in self.indexes.items()
            ],
        }
