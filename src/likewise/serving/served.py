"""The models of a service: what it needs of one, and one that runs by its export alone, without torch.

Letters of the shapes: S texts, D embedding.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Executor
from typing import Any

import numpy as np

from likewise.inference.batches import CPU_BUDGET
from likewise.inference.deferred import DeferredEncoder
from likewise.inference.engines.names import EngineName, EnginePrecision
from likewise.inference.exported import ExportedEncoder, Facts, cores
from likewise.runs.progress import Progress

Item = Any
"""A text as the model takes it: its token ids, or the text itself where the fast path does not take the model."""


class Served(ABC):
    """A model that is served; its vectors have length 1.

    Attributes:
        name: by which requests ask for it.
        facts: about the model.
        engine: what it runs on.
        budget: tokens of a batch.
        pool: of the threads that run one batch each, on one core.
        workers: their number.
    """

    engine: str
    budget = CPU_BUDGET
    pool: Executor
    workers: int

    def __init__(self, name: str, facts: Facts) -> None:
        self.name, self.facts = name, facts

    def items(self, texts: Sequence[str], prompt: str | None = None) -> list[Item]:
        """Return S texts as the model takes them, after a prompt (None: the model's default one)."""
        put_before = self.facts.prompt() if prompt is None else prompt
        return self.split([put_before + text for text in texts] if put_before else list(texts))

    @abstractmethod
    def split(self, texts: list[str]) -> list[Item]:
        """Return S texts as the model takes them."""

    def tokens(self, item: Item) -> int:
        """Return the length of an item in tokens."""
        return len(item)

    @abstractmethod
    def vectors(self, items: Sequence[Item]) -> np.ndarray:
        """Return the vectors (S, D), float32 and of length 1, of S items, 1 or more."""


class ServedExport(Served):
    """A model that is served by its export, on ONNX Runtime."""

    engine = "onnx (fp32)"

    def __init__(self, name: str, facts: Facts, encoder: ExportedEncoder) -> None:
        super().__init__(name, facts)
        self._encoder = encoder
        self.pool, self.workers = cores()

    def split(self, texts: list[str]) -> list[Item]:
        """See `Served.split`."""
        return self._encoder.ids(texts)

    def vectors(self, items: Sequence[Item]) -> np.ndarray:
        """See `Served.vectors`."""
        return self._encoder.vectors(items)


def served(name: str, model: Any, engine: EngineName, precision: EnginePrecision, progress: Progress) -> Served:
    """Open a model to serve it: by its export, if it has one from an earlier start; torch takes seconds to import.

    Args:
        name: by which requests ask for it.
        model: the encoder, or what `likewise.load` takes.
        engine, precision: as in `likewise.load`.
        progress: shows the engine.
    """
    encoder = DeferredEncoder(model, engine, precision)
    found: Served
    try:
        found = ServedExport(name, encoder.facts, encoder.export())
    except LookupError:
        from likewise.serving.models import ServedModel

        found = ServedModel(name, encoder.facts, encoder.model, progress)
    progress.tell(f"{name}: {found.facts.dimension} numbers, engine: {found.engine}")
    return found
