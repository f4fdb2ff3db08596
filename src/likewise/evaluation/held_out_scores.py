"""Checkpoint selection by scored pairs: the squared error of what a model says of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from sentence_transformers import CrossEncoder

from likewise.evaluation.checkpoint import CheckpointEvaluator
from likewise.evaluation.cross_encoder import predict_pairs
from likewise.evaluation.pairs import correlations, pair_cosines
from likewise.evaluation.token_cache import TokenCache

if TYPE_CHECKING:
    from likewise.inference.encoding import Precision


class PairPredictions:
    """What a model says of P pairs, as often as asked: cosines of an encoder, scores of a cross-encoder."""

    def __init__(self, first: Sequence[str], second: Sequence[str], batch_size: int = 32) -> None:
        self.first, self.second, self.batch_size = list(first), list(second), batch_size
        self._cache = TokenCache([*first, *second], batch_size)

    def __call__(self, model: Any, precision: Precision | None = None) -> np.ndarray:
        """(P,) float64; the model's modes and the global random state stay as they were."""
        if not isinstance(model, CrossEncoder):
            vectors, _ = self._cache.vectors(model, precision)
            return pair_cosines(*np.split(vectors, 2))
        return predict_pairs(model, list(zip(self.first, self.second, strict=True)), self.batch_size, precision)


class HeldOutScoresEvaluator(CheckpointEvaluator):
    """Scores an encoder (by its cosines) or a cross-encoder; the trainer keeps the checkpoint with the lowest error.

    Metrics, each under `NAME_`: `mse`, the mean squared error against the targets, which it selects by; `mse_harvest`,
    the same on the scale of the scores themselves; `spearman` and `pearson` with the scores, times 100 (0 where they
    are undefined).
    """

    def __init__(
        self,
        first: Sequence[str],
        second: Sequence[str],
        scores: Sequence[float] | np.ndarray,
        *,
        to_target: Callable[[np.ndarray], np.ndarray] = lambda scores: scores,
        from_target: Callable[[np.ndarray], np.ndarray] = lambda targets: targets,
        name: str = "dev",
        batch_size: int = 32,
        precision: Precision | None = None,
    ) -> None:
        """Hold P pairs of sentences and their scores.

        Args:
            first, second, scores: P of each.
            to_target, from_target: from scores to what the model is trained towards, and back.
            name: comes before each metric.
            batch_size: pairs (or sentences) a batch.
            precision: None or "fp32", or "bf16" for bfloat16 autocast.

        Raises:
            ValueError: the three differ in length, or there are fewer than two pairs.
        """
        super().__init__("mse", name, precision, greater_is_better=False)
        if not len(first) == len(second) == len(scores):
            raise ValueError(f"{len(first)} first sentences, {len(second)} second ones and {len(scores)} scores.")
        if len(scores) < 2:
            raise ValueError(f"A held-out error needs two scored pairs at least, and there are {len(scores)}.")
        self.scores = np.asarray(scores, dtype=np.float64)  # (P,)
        self.targets = to_target(self.scores)
        self.from_target = from_target
        self._predict = PairPredictions(first, second, batch_size)

    @property
    def description(self) -> str:
        """One sentence on what it selects by."""
        return f"Mean squared error on {len(self.scores):,} held-out scored pairs"

    def metrics(self, model: Any) -> dict[str, float]:
        """The error on both scales, and the correlations."""
        found = self._predict(model, self.precision)  # (P,)
        spearman, pearson = correlations(found, self.scores)
        return {
            "mse": float(np.mean((found - self.targets) ** 2)),
            "mse_harvest": float(np.mean((self.from_target(found) - self.scores) ** 2)),
            "spearman": 0.0 if math.isnan(spearman) else spearman,
            "pearson": 0.0 if math.isnan(pearson) else pearson,
        }

    def get_config_dict(self) -> dict[str, Any]:
        """What the model card says about it."""
        return {"pairs": len(self.scores), "precision": self.precision or "fp32"}
