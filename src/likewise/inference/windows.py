"""The encoder of windows of lines, with an engine that is chosen once.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from sentence_transformers import SentenceTransformer

from likewise.inference.encoder import DEFAULT_BATCH, default_prompt, finished
from likewise.inference.encoding import all_finite, dimension
from likewise.inference.engines.chooser import choose
from likewise.inference.engines.engine import Choice, Engine
from likewise.inference.engines.names import EngineName, EnginePrecision
from likewise.inference.loading import load
from likewise.inference.runner import UnfitModel, fits, runner_of
from likewise.runs.progress import Bar, Progress


class EncodedFile(NamedTuple):
    """The result of `encode_file`: the file and its shape."""

    rows: int
    dimension: int


class WindowEncoder:
    """The encoder of windows of lines, by the fast path or, if the model is unsupported, by its own `encode`."""

    def __init__(self, model: SentenceTransformer, batch_size: int | None, normalize: bool, progress: Progress) -> None:
        self.model, self.batch_size, self.normalize, self.progress = model, batch_size, normalize, progress
        self.prompt = default_prompt(model) or ""
        self.dimension = dimension(model)
        self.engine: Engine | None = None
        self.name = ""

    def choose(self, choice: Choice, first: list[str], total: int) -> None:
        """Choose an engine by the first texts, and their number in all."""
        self.name = "sentence-transformers"
        if not first:
            return
        try:
            runner = fits(self.model, first, self.prompt)
            chosen = choose(self.model, runner, choice, [self.prompt + line for line in first], total)
        except UnfitModel as reason:
            self.progress.tell(f"sentence-transformers' own encode runs, the slower way: {reason}.")
            return
        self.engine, self.name = chosen.engine, str(chosen.engine)
        for line in (*chosen.notes, f"engine: {chosen}"):
            self.progress.tell(line)

    def __call__(self, lines: Sequence[str], bar: Bar | None = None) -> np.ndarray:
        """Return the vectors (S, D), float32, of S lines, 1 or more."""
        if self.engine is None:
            found: Any = self.model.encode(
                list(lines),
                batch_size=self.batch_size or DEFAULT_BATCH,
                normalize_embeddings=self.normalize,
                show_progress_bar=False,
            )
            if bar:
                bar.advance(len(lines))
            return all_finite(np.asarray(found, dtype=np.float32))
        texts = [self.prompt + line for line in lines] if self.prompt else lines
        rows = runner_of(self.model).vectors(
            texts, self.engine, at_most=self.batch_size, step=bar.advance if bar else None
        )
        return all_finite(finished(rows, self.model.truncate_dim, self.normalize).float().cpu().numpy())


def opened(
    model: SentenceTransformer | str | os.PathLike[str], engine: EngineName | None, precision: EnginePrecision | None
) -> tuple[SentenceTransformer, Choice]:
    """Return a model, loaded where it is a name, and the choice of its engine; None takes its own."""
    encoder = model if isinstance(model, SentenceTransformer) else load(model)
    own: Choice = getattr(encoder, "choice", Choice())
    return encoder, Choice(engine or own.engine, precision or own.precision)
