"""Checkpoint selection by labelled pairs: how many of them the classifier gets right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from likewise.encoder.modules import find_part
from likewise.encoder.training_modules import PairClassifier
from likewise.evaluation.checkpoint import CheckpointEvaluator
from likewise.evaluation.token_cache import TokenCache

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.inference.encoding import Precision


class HeldOutLabelsEvaluator(CheckpointEvaluator):
    """Scores a model that is being trained with a `PairClassifier`, by accuracy times 100 (`held_out_accuracy`)."""

    def __init__(
        self,
        first: Sequence[str],
        second: Sequence[str],
        labels: Sequence[int],
        *,
        name: str = "held_out",
        batch_size: int = 32,
        precision: Precision | None = None,
    ) -> None:
        """Hold P pairs of sentences and their labels, from 0.

        Raises:
            ValueError: the three differ in length, or are empty.
        """
        super().__init__("accuracy", name, precision)
        if not len(first) == len(second) == len(labels) or not len(labels):
            raise ValueError(f"{len(first)} first sentences, {len(second)} second ones and {len(labels)} labels.")
        self.labels = np.asarray(labels)  # (P,)
        self._cache = TokenCache([*first, *second], batch_size)

    @property
    def description(self) -> str:
        """One sentence on what it selects by."""
        return f"Accuracy on {len(self.labels):,} held-out labelled pairs"

    def metrics(self, model: SentenceTransformer) -> dict[str, float]:
        """The accuracy.

        Raises:
            ValueError: it has no classifier.
        """
        head = find_part(model, PairClassifier)
        if head is None:
            raise ValueError("the model has no PairClassifier: it is only there while the model is trained on labels")
        vectors, _ = self._cache.vectors(model, self.precision)
        first, second = torch.from_numpy(vectors).to(head.linear.weight.device).chunk(2)  # each (P, D)
        with torch.inference_mode():
            found = head.logits(first, second).argmax(dim=1).cpu().numpy()  # (P,)
        return {"accuracy": 100 * float((found == self.labels).mean())}

    def get_config_dict(self) -> dict[str, Any]:
        """What the model card says about it."""
        return {"pairs": len(self.labels), "precision": self.precision or "fp32"}
