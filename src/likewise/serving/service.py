"""The models and indexes of a service, and what it does with them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from fastapi.concurrency import run_in_threadpool

from likewise.inference.deferred import DeferredEncoder
from likewise.inference.exported import Facts, TextEncoder
from likewise.runs.progress import Progress
from likewise.searching import Hit, Index
from likewise.serving.batching import Batcher
from likewise.serving.guard import ServiceMetrics
from likewise.serving.options import ServeOptions, ServingError
from likewise.serving.requests import RequestError, SearchBody

_SAMPLE = [
    f"{opening} {verb} {ending}"
    for opening in ("The old man", "A report of the committee", "It", "Nobody in the town")
    for verb in ("said that", "did not know", "has found out, after a long search,", "wrote")
    for ending in ("it was late.", "what the cells of the plant need to grow.", "prices rose by 3.5% in May.")
]
"""Texts on which an engine is compared with torch before it is used."""
_MANY = 1 << 30
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
        self.models: dict[str, TextEncoder] = {}
        self.facts: dict[str, Facts] = {}
        self.batchers: dict[str, Batcher] = {}
        self._loop: asyncio.AbstractEventLoop | None = None
        for name, given in models.items():
            encoder = DeferredEncoder(given, engine, precision)
            # By its export, if it has one from an earlier start: torch takes seconds to import.
            model, self.facts[name] = encoder.opened(), encoder.facts
            told.tell(f"{name}: {encoder.facts.dimension} numbers")
            model.choose(_SAMPLE, _MANY, told)
            model.vectors(model.items(_SAMPLE[:1]))  # the first request is as fast as the others
            self.models[name], observe = model, self.metrics.batches.labels(name).observe
            self.batchers[name] = Batcher(model, self.options.queue, self.options.wait / 1000, observe)
            self.metrics.waiting.labels(name).set_function(partial(getattr, self.batchers[name], "waiting"))
        for index in self.indexes.values():
            self._model_of(index)

    def _model_of(self, index: Index) -> str:
        for name, facts in self.facts.items():
            if facts.fingerprint == index.made_with:
                index.vectors = partial(self._vectors_for_search, name)
                return name
        raise ServingError(
            f"{index.path} was made by a model that is not served here{f' ({index.model})' if index.model else ''}: "
            "serve that one too, or index again with one that is"
        )

    def model_name(self, asked: str | None) -> str:
        """Return the name of a model, the first one for None.

        Raises:
            RequestError: there is no such model.
        """
        name = next(iter(self.models)) if asked is None else asked
        if name not in self.models:
            there = f"the model {name!r} is not served here; there are {', '.join(self.models)}"
            raise RequestError(there, 404, param="model", code="model_not_found")
        return name

    @property
    def ready(self) -> bool:
        """True if a request would be taken."""
        return all(batcher.waiting < batcher.limit for batcher in self.batchers.values())

    async def vectors(self, name: str, texts: Sequence[str], prompt: str | None = None) -> tuple[np.ndarray, int]:
        """Return the vectors (S, D) of S texts by a model, and the number of their tokens."""
        model = self.models[name]
        short = sum(map(len, texts)) <= _INLINE
        items = model.items(texts, prompt) if short else await run_in_threadpool(model.items, texts, prompt)
        found = await self.batchers[name].vectors(items)
        tokens = sum(map(model.tokens, items))
        if not np.isfinite(found).all():
            raise RequestError("the model's vectors are not finite numbers", 500)
        self.metrics.texts.labels(name).inc(len(texts))
        self.metrics.tokens.labels(name).inc(tokens)
        return found, tokens

    async def search(self, asked: SearchBody) -> tuple[str, list[Hit]]:
        """Search an index, and return its name and the hits.

        Raises:
            RequestError: there is no such index.
            SearchError: the condition is not valid.
        """
        name = asked.index or next(iter(self.indexes), "")
        if name not in self.indexes:
            there = ", ".join(self.indexes) or "none: start with --index"
            raise RequestError(f"there is no index {name!r} here; there are {there}", 404, param="index")
        index, self._loop = self.indexes[name], asyncio.get_running_loop()
        self._model_of(index)  # it may have been made again by another one
        settings: dict[str, Any] = {"mode": asked.mode, "where": asked.where, "pipeline": asked.pipeline}
        hits = await run_in_threadpool(partial(index.search, asked.query, asked.k, **settings))
        return name, hits

    def _vectors_for_search(self, name: str, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors of queries; called in a thread of a search."""
        assert self._loop is not None
        work = self.vectors(name, texts, self.facts[name].prompt("query"))
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(self.options.timeout)[0]

    def about(self) -> dict[str, Any]:
        """Return what is served, for the page."""
        return {
            "models": [
                {"name": name, "dimension": self.facts[name].dimension, "engine": model.engine}
                for name, model in self.models.items()
            ],
            "indexes": [
                {"name": name, "model": self._model_of(index), "passages": index.table.rows}
                for name, index in self.indexes.items()
            ],
        }
