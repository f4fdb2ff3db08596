"""Vectors of passages by the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from functools import cached_property, lru_cache

import numpy as np

from likewise.inference.deferred import DeferredEncoder
from likewise.inference.engines.names import EngineName, EnginePrecision
from likewise.inference.loading import load
from likewise.runs.on_ray import ClusterError, RayExecutor
from likewise.searching.encoders import PassageVectors
from likewise.searching.vectors import TorchVectors


class RemoteVectors(PassageVectors):
    """The vectors of passages by a cluster; the engine is chosen here.

    Args:
        encoder: the encoder of the index.
        workers: of the cluster.

    Raises:
        ClusterError: the model is not one that workers can load by its folder or name.
    """

    def __init__(self, encoder: DeferredEncoder, workers: int) -> None:
        super().__init__(encoder)
        if encoder.name is None:
            raise ClusterError("the workers of a cluster load the model themselves: give its folder or its name")
        self.ahead, self._pool = 2 * workers, RayExecutor()

    @cached_property
    def vectors(self) -> TorchVectors:
        """The function of texts to vectors, with its engine."""
        return TorchVectors(self.encoder.model, self.encoder.facts.prompt("document"))

    def begin(self, texts: Sequence[str]) -> Future[np.ndarray]:
        """Let a worker encode texts."""
        chosen = self.vectors.engine
        engine = (chosen.name, chosen.precision) if chosen else ("torch", "fp32")
        return self._pool.submit(_encoded, self.encoder.name, self.vectors.prompt, *engine, list(texts))


def _encoded(name: str, prompt: str, engine: EngineName, precision: EnginePrecision, texts: list[str]) -> np.ndarray:
    """Return the vectors (S, D) of texts; called by a worker, which keeps the model."""
    return _loaded(name, prompt, engine, precision)(texts)


@lru_cache(maxsize=1)
def _loaded(name: str, prompt: str, engine: EngineName, precision: EnginePrecision) -> TorchVectors:
    return TorchVectors(load(name, engine=engine, precision=precision), prompt)
