"""The models of a service: what it needs of one, and one that runs by its export alone, without torch.

Letters of the shapes: S texts, D embedding.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import suppress
from typing import Any

import numpy as np

from likewise.inference.batches import CPU_BUDGET
from likewise.inference.exported import ExportedEncoder, Facts, cores, exported, recalled, remember
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


def served(name: str, model: Any, engine: str, precision: str, progress: Progress) -> Served:
    """Open a model to serve it: by its export, if it has one from an earlier start; torch takes seconds to import.

    Args:
        name: by which requests ask for it.
        model: the encoder, or what `likewise.load` takes.
        engine, precision: as in `likewise.load`.
        progress: shows the engine.
    """
    named = isinstance(model, str | os.PathLike)
    by_export = named and engine in ("auto", "onnx") and precision == "fp32"
    found: Served | None = None
    if by_export:
        with suppress(LookupError):
            facts = recalled(model)
            found = ServedExport(name, facts, exported(facts))
    if found is None:
        from likewise.inference.loading import load
        from likewise.serving.models import ServedModel

        loaded = load(model, engine=engine, precision=precision) if named else model  # type: ignore[arg-type]
        found = ServedModel(name, loaded, progress)
        if by_export:
            remember(model, found.facts)
    progress.tell(f"{name}: {found.facts.dimension} numbers, engine: {found.engine}")
    return found
