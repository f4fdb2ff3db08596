"""The evaluator of a checkpoint, and the noise of what it measures.

Letters of the shapes: R items (pairs, sentences) that a metric is computed from.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator

Metrics = dict[str, float]
_DRAWS = 500  # samples of a bootstrap


class CheckpointEvaluator(SentenceEvaluator):
    """An evaluator of checkpoints; the trainer keeps the one with the best value of its primary metric.

    The trainer puts `eval_` before the names of the metrics: "eval_sts_dev_spearman".

    Args:
        metric: the metric to select by.
        name: put before each metric, with an underscore.
        score: from a model to its metrics, or to these and the values of `items`.
        description: of the selection, one sentence for the user.
        sentences: the encoded sentences.
        of_items: the primary metric from some of the items that `score` leaves in `items`, and their numbers; None
            where its noise is not known.

    Attributes:
        items: one value for each item (a pair's cosine, say) of the last model scored, (R,); None before the first.
    """

    description: str = ""

    def __init__(
        self,
        metric: str,
        name: str,
        score: Callable[[Any], Metrics | tuple[Metrics, np.ndarray]],
        description: str,
        sentences: Sequence[str],
        *,
        greater_is_better: bool = True,
        of_items: Callable[[np.ndarray, np.ndarray], float] | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self.primary_metric = f"{name}_{metric}"
        self.greater_is_better = greater_is_better
        self.sentences = tuple(sentences)
        self.items: np.ndarray | None = None
        self.description = description
        self._score, self._of_items = score, of_items

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Score the model; nothing is written to `output_path`."""
        found = self._score(model)
        if isinstance(found, tuple):
            found, self.items = found
        return self.prefix_name_to_metrics(found, self.name)

    def noise(self, before: np.ndarray | None, after: np.ndarray | None) -> float | None:
        """Return the noise of the primary metric's change from one model to another, None where it is not known.

        It is half of the 95% interval of the change: 1.96 standard deviations over samples of the items, drawn with
        replacement (a paired bootstrap). Another sample of sentences might undo a smaller change.

        Args:
            before, after: the `items` of both models.
        """
        if self._of_items is None or before is None or after is None:
            return None
        rng = np.random.default_rng(0)
        samples = (rng.integers(len(before), size=len(before)) for _ in range(_DRAWS))
        changes = [self._of_items(after, rows) - self._of_items(before, rows) for rows in samples]
        return 1.96 * float(np.std(changes))
