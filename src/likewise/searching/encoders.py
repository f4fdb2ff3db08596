"""The encoder of an index or of its queries. Nothing here imports torch before the model itself is needed.

Letters of the shapes: S texts, D embedding.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import numpy as np

from likewise.inference.deferred import DeferredEncoder
from likewise.inference.engines.names import EngineName, EnginePrecision
from likewise.inference.exported import ExportedEncoder, Role
from likewise.runs.job import read_record
from likewise.runs.progress import Progress
from likewise.searching.table import SearchError

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer


class Vectors(Protocol):
    """The vectors of texts, of length 1."""

    def choose(self, texts: Sequence[str], total: int, progress: Progress) -> None:
        """Choose an engine by the first of `total` texts, 1 or more, and show the choice."""

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (S, D), float32, of S texts, 1 or more."""


def vectors_in(role: Role, encoder: DeferredEncoder) -> Vectors:
    """Return the vectors of texts in a role by an export, where there is one, or by the loaded model."""
    prompt = encoder.facts.prompt(role)
    with suppress(LookupError):
        return ByExport(encoder.export(), prompt)
    from likewise.searching.vectors import TorchVectors

    return TorchVectors(encoder.model, prompt)


class ByExport:
    """The vectors of an exported encoder, which computes them with a prompt."""

    def __init__(self, encoder: ExportedEncoder, prompt: str) -> None:
        self._encoder, self._prompt = encoder, prompt

    def choose(self, texts: Sequence[str], total: int, progress: Progress) -> None:
        """Show the engine; there is no choice."""
        progress.tell("engine: onnx (fp32)")

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """See `Vectors`."""
        return self._encoder([self._prompt + text for text in texts])


class PassageVectors:
    """The vectors of passages; the encoder is opened when there is something to encode."""

    ahead = 0
    """Windows that may be begun while one is encoded."""

    def __init__(self, encoder: DeferredEncoder) -> None:
        self.encoder = encoder

    @cached_property
    def vectors(self) -> Vectors:
        """The function of texts to vectors."""
        return vectors_in("document", self.encoder)

    def begin(self, texts: Sequence[str]) -> Future[np.ndarray]:
        """Return the vectors (S, D) of texts, which may come later."""
        found: Future[np.ndarray] = Future()
        found.set_result(self.vectors(texts))
        return found


def opened(
    target: Path,
    model: SentenceTransformer | str | os.PathLike[str] | None,
    engine: EngineName = "auto",
    precision: EnginePrecision = "fp32",
) -> DeferredEncoder:
    """Return the encoder that was given, or that of an index.

    Raises:
        SearchError: none was given, and the index names none.
    """
    given = model or read_record(target).get("model")
    if given is None:
        raise SearchError(f"{target} names no model: give the one to index with, as --model runs/arc")
    return DeferredEncoder(given, engine, precision)
