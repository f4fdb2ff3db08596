"""Checkpoint selection by triplets: in how many the sentence of the own section lies nearer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likewise.evaluation.checkpoint import CheckpointEvaluator
from likewise.evaluation.pairs import pair_cosines
from likewise.evaluation.token_cache import TokenCache

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.inference.encoding import Precision

Distance = Literal["euclidean", "cosine", "manhattan"]


def nearness(first: np.ndarray, second: np.ndarray, distance: Distance) -> np.ndarray:
    """How near row i of one lies to row i of the other, larger is nearer: (R, D), (R, D) to (R,)."""
    if distance == "cosine":
        return pair_cosines(first, second)
    order = 2 if distance == "euclidean" else 1
    return -np.linalg.norm(first.astype(np.float64) - second.astype(np.float64), ord=order, axis=1)


class HeldOutTripletsEvaluator(CheckpointEvaluator):
    """Scores a model by the share of triplets, times 100, whose positive lies nearer than their negative.

    An equal distance counts as wrong, so that a collapsed model has 0.
    """

    def __init__(
        self,
        anchors: Sequence[str],
        positives: Sequence[str],
        negatives: Sequence[str],
        *,
        distance: Distance = "euclidean",
        name: str = "held_out",
        batch_size: int = 32,
        precision: Precision | None = None,
    ) -> None:
        """Hold R triplets.

        Raises:
            ValueError: the three differ in length, or are empty.
        """
        super().__init__("accuracy", name, precision)
        if not len(anchors) == len(positives) == len(negatives) or not len(anchors):
            raise ValueError(f"{len(anchors)} anchors, {len(positives)} positives and {len(negatives)} negatives.")
        self.n = len(anchors)
        self.distance: Distance = distance
        self._cache = TokenCache([*anchors, *positives, *negatives], batch_size)

    @property
    def description(self) -> str:
        """One sentence on what it selects by."""
        return f"Accuracy ({self.distance} distance) on {self.n:,} held-out triplets"

    def metrics(self, model: SentenceTransformer) -> dict[str, float]:
        """The accuracy."""
        vectors, _ = self._cache.vectors(model, self.precision)
        anchors, positives, negatives = np.split(vectors, 3)  # each (R, D)
        right = nearness(anchors, positives, self.distance) > nearness(anchors, negatives, self.distance)  # (R,)
        return {"accuracy": 100 * float(right.mean())}

    def get_config_dict(self) -> dict[str, Any]:
        """What the model card says about it."""
        return {"triplets": self.n, "distance": self.distance, "precision": self.precision or "fp32"}
