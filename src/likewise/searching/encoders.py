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

from likewise.inference.engines.names import EngineName, EnginePrecision
from likewise.inference.exported import ExportedEncoder, Facts, Role, exported, recalled, remember
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


class IndexEncoder:
    """An encoder whose model is loaded when it is first needed.

    Args:
        model: the encoder, or what `load` takes.
        engine, precision: as in `load`.
    """

    def __init__(
        self,
        model: SentenceTransformer | str | os.PathLike[str],
        engine: EngineName = "auto",
        precision: EnginePrecision = "fp32",
    ) -> None:
        self._given, self._engine, self._precision = model, engine, precision
        # What 'auto' takes for these vectors wherever there is an export (see `fast_pairs`).
        self._by_export = isinstance(model, str | os.PathLike) and engine in ("auto", "onnx") and precision == "fp32"

    @cached_property
    def model(self) -> SentenceTransformer:
        """The model, loaded on first access."""
        if not isinstance(self._given, str | os.PathLike):
            return self._given
        from likewise.inference.loading import load

        return load(self._given, engine=self._engine, precision=self._precision)

    @cached_property
    def facts(self) -> Facts:
        """The facts about the model, which is loaded if there are none from before."""
        if self._by_export:
            with suppress(LookupError):
                return recalled(self._given)  # type: ignore[arg-type]
        from likewise.inference.encoding import facts_of

        found = facts_of(self.model)
        if self._by_export:
            remember(self._given, found)  # type: ignore[arg-type]
        return found

    @property
    def name(self) -> str | None:
        """The name by which a search loads the model again: an absolute path, or one of the hub."""
        if not isinstance(self._given, str | os.PathLike):
            return getattr(self._given, "loaded_from", None)
        return str(Path(self._given).expanduser().resolve()) if Path(self._given).exists() else str(self._given)

    def open(self, role: Role) -> Vectors:
        """Return the vectors of texts in a role by an export, where there is one, or by the loaded model."""
        if self._by_export:
            with suppress(LookupError):
                return ByExport(exported(self.facts), self.facts.prompt(role))
        from likewise.searching.vectors import TorchVectors

        return TorchVectors(self.model, self.facts.prompt(role))


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

    def __init__(self, encoder: IndexEncoder) -> None:
        self.encoder = encoder

    @cached_property
    def vectors(self) -> Vectors:
        """The function of texts to vectors."""
        return self.encoder.open("document")

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
) -> IndexEncoder:
    """Return the encoder that was given, or that of an index.

    Raises:
        SearchError: none was given, and the index names none.
    """
    given = model or read_record(target).get("model")
    if given is None:
        raise SearchError(f"{target} names no model: give the one to index with, as --model runs/arc")
    return IndexEncoder(given, engine, precision)
