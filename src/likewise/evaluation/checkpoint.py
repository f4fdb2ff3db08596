"""What all evaluators share that pick a checkpoint during training: their name, their metrics, where these go."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Any

from sentence_transformers.sentence_transformer.evaluation import SentenceEvaluator

if TYPE_CHECKING:
    from likewise.inference.encoding import Precision


class CheckpointEvaluator(SentenceEvaluator):
    """Scores a model; the trainer keeps the checkpoint with the best of one metric.

    Args:
        metric: the one that it selects by.
        name: comes before each metric; "" for nothing. The trainer puts `eval_` before that.
        precision: None or "fp32", or "bf16" for bfloat16 autocast.
        greater_is_better: whether the highest is the best.
    """

    def __init__(
        self, metric: str, name: str, precision: Precision | None = None, *, greater_is_better: bool = True
    ) -> None:
        super().__init__()
        self.name = name
        self.precision: Precision | None = precision
        self.primary_metric = f"{name}_{metric}" if name else metric
        self.greater_is_better = greater_is_better

    @abstractmethod
    def metrics(self, model: Any) -> dict[str, float]:
        """The metrics of a model by their names, without the evaluator's."""

    def __call__(
        self, model: Any, output_path: str | None = None, epoch: float = -1, steps: int = -1
    ) -> dict[str, float]:
        """Score the model; nothing is written to `output_path`."""
        named = self.prefix_name_to_metrics(self.metrics(model), self.name)
        self.store_metrics_in_model_card_data(model, named, int(epoch), steps)
        return named
