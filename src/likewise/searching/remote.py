"""Vectors of passages by the workers of a Ray cluster."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from functools import lru_cache

import numpy as np
from sentence_transformers import SentenceTransformer

from likewise.inference.engines.engine import EngineName, EnginePrecision
from likewise.inference.loading import load
from likewise.runs.on_ray import ClusterError, RayExecutor
from likewise.searching.vectors import Role, Vectors


class RemoteVectors(Vectors):
    """The encoder of texts on a cluster; the engine is chosen here.

    Args:
        workers: of the cluster.

    Raises:
        ClusterError: the model is not one that workers can load by its folder or name.
    """

    def __init__(self, model: SentenceTransformer, role: Role, workers: int) -> None:
        super().__init__(model, role)
        name = getattr(model, "loaded_from", None)
        if name is None:
            raise ClusterError("the workers of a cluster load the model themselves: give its folder or its name")
        self._name, self._role, self.ahead, self._pool = name, role, 2 * workers, RayExecutor()

    def begin(self, texts: Sequence[str]) -> Future[np.ndarray]:
        """Let a worker encode texts."""
        engine = (self._engine.name, self._engine.precision) if self._engine else ("torch", "fp32")
        return self._pool.submit(_encoded, self._name, self._role, *engine, list(texts))


def _encoded(name: str, role: Role, engine: EngineName, precision: EnginePrecision, texts: list[str]) -> np.ndarray:
    """Return the vectors (S, D) of texts; called by a worker, which keeps the model."""
    return _loaded(name, role, engine, precision)(texts)


@lru_cache(maxsize=1)
def _loaded(name: str, role: Role, engine: EngineName, precision: EnginePrecision) -> Vectors:
    return Vectors(load(name, engine=engine, precision=precision), role)
