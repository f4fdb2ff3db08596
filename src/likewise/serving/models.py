"""A loaded model that is served, with an engine.

Letters of the shapes: S texts, D embedding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from likewise.inference.batches import by_budget
from likewise.inference.encoder import finished
from likewise.inference.engines.chooser import choose
from likewise.inference.engines.engine import Choice
from likewise.inference.exported import Facts
from likewise.inference.runner import UnfitModel, fits, one_core_threads, torch_threads
from likewise.runs.progress import Progress
from likewise.serving.served import Item, Served

_SAMPLE = [
    f"{opening} {verb} {ending}"
    for opening in ("The old man", "A report of the committee", "It", "Nobody in the town")
    for verb in ("said that", "did not know", "has found out, after a long search,", "wrote")
    for ending in ("it was late.", "what the cells of the plant need to grow.", "prices rose by 3.5% in May.")
]
"""Texts on which an engine is compared with torch before it is used."""
_MANY = 1 << 30


class ServedModel(Served):
    """A loaded model with an engine.

    Args:
        name: by which requests ask for it.
        facts: about the model.
        model: as `likewise.load` returns it.
        progress: shows the choice of the engine.
    """

    def __init__(self, name: str, facts: Facts, model: SentenceTransformer, progress: Progress) -> None:
        super().__init__(name, facts)
        self.model, prompt, self.workers = model.eval(), facts.prompt(), torch_threads()
        self.pool = one_core_threads(self.workers)
        self._runner: Any = None
        try:
            runner = fits(model, _SAMPLE, prompt)
            choice = getattr(model, "choice", Choice("torch"))
            chosen = choose(model, runner, choice, [prompt + text for text in _SAMPLE], _MANY)
            self.engine = str(chosen.engine)
            self._call, self._at_least = chosen.engine.open(self.workers), chosen.engine.at_least
            self.budget, self._runner = chosen.engine.budget, runner
            notes: tuple[str, ...] = chosen.notes
        except UnfitModel as reason:
            self.engine, notes = "sentence-transformers", (f"the slower way: {reason}",)
        for note in notes:
            progress.tell(note)

    def split(self, texts: list[str]) -> list[Item]:
        """See `Served.split`."""
        return texts if self._runner is None else self._runner.tokens(texts)

    def tokens(self, item: Item) -> int:
        """Return the length of an item in tokens; in characters divided by 4 where they are not known."""
        return len(item) if self._runner is not None else 1 + len(item) // 4

    @torch.inference_mode()
    def vectors(self, items: Sequence[Item]) -> np.ndarray:
        """See `Served.vectors`."""
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
