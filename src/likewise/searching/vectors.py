"""Vectors of passages and queries, of length 1, by the fastest engine of a loaded model.

Letters of the shapes: S texts, D embedding.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from likewise.inference.encoder import finished
from likewise.inference.encoding import all_finite
from likewise.inference.engines.chooser import choose
from likewise.inference.engines.engine import Choice, Engine
from likewise.inference.runner import UnfitModel, fits
from likewise.runs.progress import Progress


class TorchVectors:
    """An encoder of texts, with an engine that is chosen once.

    Args:
        model: the encoder.
        prompt: what it puts before each text.

    Attributes:
        engine: the chosen one; None where sentence-transformers' own way is taken.
    """

    def __init__(self, model: SentenceTransformer, prompt: str) -> None:
        self.model, self.prompt = model.eval(), prompt
        self.engine: Engine | None = None

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
        self.engine = chosen.engine
        for note in (*chosen.notes, f"engine: {chosen}"):
            progress.tell(note)

    @torch.inference_mode()
    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        """Return the vectors (S, D), float32, of S texts, 1 or more.

        Raises:
            LikewiseError: they are not finite.
        """
        if self.engine is None:
            self.choose(texts, len(texts), Progress(quiet=True))
        if self.engine is None:
            rows: torch.Tensor = self.model.encode(
                list(texts), prompt=self.prompt, convert_to_tensor=True, show_progress_bar=False
            )
        else:
            runner = fits(self.model, texts, self.prompt)
            rows = runner.vectors([self.prompt + text for text in texts], self.engine)
        return all_finite(finished(rows, self.model.truncate_dim, True).float().cpu().numpy())
