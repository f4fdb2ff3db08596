"""Checkpoint selection by STS-B dev, as the papers do it."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.evaluation.checkpoint import CheckpointEvaluator
from likewise.evaluation.geometry import alignment, uniformity
from likewise.evaluation.pairs import correlations, pair_cosines
from likewise.evaluation.registry import TASKS
from likewise.evaluation.sts import StsTask
from likewise.evaluation.tasks import DataError, TaskMissing, find_data
from likewise.evaluation.token_cache import TokenCache

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.inference.encoding import Precision

# Pairs rated above this mean the same: SimCSE's choice for alignment on STS-B (Gao et al. 2021, section 6).
_SAME = 4.0


class StsDevEvaluator(CheckpointEvaluator):
    """Scores a model on rated pairs; the trainer keeps the checkpoint with the highest Spearman correlation.

    Metrics, each under `NAME_`: `spearman` and `pearson` of the cosines with the ratings, times 100 (0 where
    they are undefined, as for a collapsed model); `alignment` over the pairs rated above 4 (left out where
    there is none); `uniformity` over all its unique sentences. The trainer puts `eval_` before them, so that
    `metric_for_best_model` is `eval_` + `primary_metric`: "eval_sts_dev_spearman".

    The pairs stay in memory with their tokens; the model's modes and the global random state are left as
    found.
    """

    def __init__(
        self,
        first: Sequence[str],
        second: Sequence[str],
        ratings: Sequence[float],
        *,
        name: str = "sts_dev",
        batch_size: int = 32,
        precision: Precision | None = None,
        description: str | None = None,
    ) -> None:
        """Hold the pairs.

        Args:
            first, second, ratings: P sentences, P sentences and their ratings from 0 to 5.
            name: comes before each metric; "" for nothing.
            batch_size: sentences a batch.
            precision: None or "fp32", or "bf16" for bfloat16 autocast.
            description: one sentence on what it selects by.

        Raises:
            ValueError: the three differ in length, or there are fewer than two pairs.
        """
        super().__init__("spearman", name, precision)
        if not len(first) == len(second) == len(ratings):
            raise ValueError(f"{len(first)} first sentences, {len(second)} second ones and {len(ratings)} ratings.")
        if len(ratings) < 2:
            raise ValueError(f"A correlation needs two rated pairs at least, and there are {len(ratings)}.")
        self.gold = np.asarray(ratings, dtype=np.float64)  # (P,)
        self._cache = TokenCache([*first, *second], batch_size)
        self._description = description or f"Spearman correlation on {len(self.gold)} rated pairs"

    @classmethod
    def from_data(cls, data: str | os.PathLike[str] | None = None, **options: Any) -> StsDevEvaluator:
        """The evaluator on STS-B dev, read from a folder of SentEval's layout.

        Args:
            data: the folder; None looks where `find_data` does.
            options: name, batch_size, precision, description, as for the class.

        Raises:
            DataError: there is no such folder, no STS-B dev in it, or it is malformed.
        """
        task = TASKS["sts-b-dev"]
        assert isinstance(task, StsTask)
        folder = find_data(data)
        try:
            pairs = task.load(folder)
        except TaskMissing as reason:
            raise DataError(f"No STS-B dev in '{folder}': {reason}. Put SentEval's file there.") from None
        options.setdefault("description", f"Spearman correlation on STS-B dev, {task.size} rated pairs")
        return cls(pairs.first, pairs.second, pairs.gold.tolist(), **options)

    @property
    def description(self) -> str:
        """One sentence on what it selects by."""
        return self._description

    def metrics(self, model: SentenceTransformer) -> dict[str, float]:
        """The correlations and the geometry."""
        vectors, unique = self._cache.vectors(model, self.precision)
        first, second = np.split(vectors, 2)  # each (P, D)
        spearman, pearson = correlations(pair_cosines(first, second), self.gold)
        metrics = {
            # A comparison with NaN is always false, and the first checkpoint would then stay the best.
            "spearman": 0.0 if math.isnan(spearman) else spearman,
            "pearson": 0.0 if math.isnan(pearson) else pearson,
        }
        same = self.gold > _SAME
        if same.any():
            metrics["alignment"] = alignment(first[same], second[same])
        if len(unique) > 1:
            metrics["uniformity"] = uniformity(unique)
        return metrics

    def get_config_dict(self) -> dict[str, Any]:
        """What the model card says about it."""
        return {"pairs": len(self.gold), "precision": self.precision or "fp32"}
