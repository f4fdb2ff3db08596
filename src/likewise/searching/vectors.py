"""Vectors of passages and queries, of length 1, by the fastest engine.

Letters of the shapes: S texts, D embedding.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from typing import Any, Literal

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from likewise.inference.encoder import default_prompt, finished
from likewise.inference.encoding import all_finite
from likewise.inference.engines.chooser import choose
from likewise.inference.engines.engine import Choice, Engine
from likewise.inference.runner import UnfitModel, fits
from likewise.runs.progress import Progress

Role = Literal["query", "document"]
_PROMPTS: dict[Role, tuple[str, ...]] = {"query": ("query",), "document": ("document", "passage", "corpus")}


def prompt_of(model: SentenceTransformer, role: Role) -> str:
    """Return the prompt that the model puts before a query or a document, "" if it has none."""
    named = (model.prompts.get(name) for name in _PROMPTS[role])
    return next(filter(None, named), None) or default_prompt(model) or ""


class Vectors:
    """The encoder of texts in one role, with an engine that is chosen once.

    Args:
        model: the encoder.
        role: of the texts.
    """

    ahead = 0
    """Windows that may be begun while one is encoded."""

    def __init__(self, model: SentenceTransformer, role: Role) -> None:
        self.model, self.prompt = model.eval(), prompt_of(model, role)
        self._engine: Engine | None = None

    def choose(self, texts: Sequence[str], total: int, progress: Progress) -> None:
        """Choose an engine.

        Args:
            texts: the first of the texts to come, 1 or more.
            total: how many there will be, about.
            progress: shows the choice.
        """
        try:
            runner = fits(self.model, texts, self.prompt)
        except UnfitModel:  # sentence-transformers' own encode runs
            return
        prompted = [self.prompt + text for text in texts]
        chosen = choose(self.model, runner, getattr(self.model, "choice", Choice("torch")), prompted, total)
        self._engine = chosen.engine
        for note in (*chosen.notes, f"engine: {chosen}"):
            progress.tell(note)

    def query(self) -> dict[str, Any] | None:
        """Return what a search without torch must know of the model, as JSON; None where it cannot do without."""
        prompt = prompt_of(self.model, "query")
        try:
            tokenizer = fits(self.model, [], prompt).tokens.hash
        except UnfitModel:
            return None
        return {"prompt": prompt, "tokenizer": tokenizer, "truncate_dim": self.model.truncate_dim}

    def begin(self, texts: Sequence[str]) -> Future[np.ndarray]:
        """Return the vectors of texts, which may come later."""
        found: Future[np.ndarray] = Future()
        found.set_result(self(texts))
        return found

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (S, D), float32, of S texts, 1 or more.

        Raises:
            LikewiseError: they are not finite.
        """
        if self._engine is None:
            self.choose(texts, len(texts), Progress(quiet=True))
        if self._engine is None:
            rows: torch.Tensor = self.model.encode(
                list(texts), prompt=self.prompt, convert_to_tensor=True, show_progress_bar=False
            )
        else:
            runner = fits(self.model, texts, self.prompt)
            rows = runner.vectors([self.prompt + text for text in texts], self._engine)
        return all_finite(finished(rows, self.model.truncate_dim, True).float().cpu().numpy())
