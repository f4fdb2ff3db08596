"""A model that is served: its tokens, its engine, and one batch at a time.

Letters of the shapes: S texts, D embedding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from likewise.inference.encoder import default_prompt, finished
from likewise.inference.encoding import dimension
from likewise.inference.engines.chooser import choose
from likewise.inference.engines.engine import CPU_BUDGET, Choice
from likewise.inference.engines.graph import fingerprint
from likewise.inference.runner import UnfitModel, by_budget, fits
from likewise.runs.progress import Progress

_SAMPLE = [
    f"{opening} {verb} {ending}"
    for opening in ("The old man", "A report of the committee", "It", "Nobody in the town")
    for verb in ("said that", "did not know", "has found out, after a long search,", "wrote")
    for ending in ("it was late.", "what the cells of the plant need to grow.", "prices rose by 3.5% in May.")
]
"""Texts on which an engine is compared with torch before it is used."""
_MANY = 1 << 30
Item = Any
"""A text as the model takes it: its token ids, or the text itself where the fast path does not take the model."""


class ServedModel:
    """A model with an engine; its vectors have length 1.

    Args:
        name: by which requests ask for it.
        model: as `likewise.load` returns it.
        workers: how many batches run at the same time, each on one core.
        progress: shows the choice of the engine.
    """

    def __init__(self, name: str, model: SentenceTransformer, workers: int, progress: Progress) -> None:
        self.name, self.model = name, model.eval()
        self.dimension, self.fingerprint = dimension(model), fingerprint(model)
        self.prompt = default_prompt(model) or ""
        self._runner: Any = None
        try:
            runner = fits(model, _SAMPLE, self.prompt)
            choice = getattr(model, "choice", Choice("torch"))
            chosen = choose(model, runner, choice, [self.prompt + text for text in _SAMPLE], _MANY)
            self.engine = str(chosen.engine)
            self._call, self._at_least = chosen.engine.open(workers), chosen.engine.at_least
            self.budget, self._runner = chosen.engine.budget, runner
            notes: tuple[str, ...] = chosen.notes
        except UnfitModel as reason:
            self.engine, self.budget, notes = "sentence-transformers", CPU_BUDGET, (f"the slower way: {reason}",)
        for note in (*notes, f"{name}: {self.dimension} numbers, engine: {self.engine}"):
            progress.tell(note)

    def items(self, texts: Sequence[str], prompt: str | None = None) -> list[Item]:
        """Return S texts as the model takes them, after a prompt (None: the model's default one)."""
        put_before = self.prompt if prompt is None else prompt
        prompted = [put_before + text for text in texts] if put_before else list(texts)
        return prompted if self._runner is None else self._runner.tokens(prompted)

    def tokens(self, item: Item) -> int:
        """Return the length of an item in tokens; in characters divided by 4 where they are not known."""
        return len(item) if self._runner is not None else 1 + len(item) // 4

    @torch.inference_mode()
    def vectors(self, items: Sequence[Item]) -> np.ndarray:
        """Return the vectors (S, D), float32 and of length 1, of S items, 1 or more."""
        if self._runner is None:
            return np.asarray(self.model.encode(list(items), prompt="", normalize_embeddings=True))
        found: torch.Tensor | None = None
        for batch in by_budget(np.array([len(item) for item in items]), self.budget):
            rows = self._call(*self._runner.tokens.batch([items[i] for i in batch], self._at_least))
            if found is None:
                found = rows.new_empty((len(items), rows.shape[1]))
            found[torch.from_numpy(batch).to(rows.device)] = rows
        assert found is not None
        return np.asarray(finished(found, self.model.truncate_dim, True).float().cpu().numpy())
