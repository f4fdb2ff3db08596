"""The selection of the checkpoint: by STS-B dev if it is found, otherwise by held-out rows.

Checkpoints are scored in float32, whatever they are trained in, as the saved model runs.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.evaluation.checkpoint import sentences_evaluator, sts_b_dev_evaluator
from likewise.evaluation.data import find_data, find_file
from likewise.evaluation.registry import rated_task
from likewise.evaluation.task import DataError
from likewise.recipes.options import TrainingOptions
from likewise.runs.parts import checksum

_STS_DEV = "sts-b-dev"


@dataclass(frozen=True)
class Selection:
    """A selection of the checkpoint: an evaluator, and the rows left for training.

    Attributes:
        name: 'sts-b-dev', 'dev', 'held-out' or 'last'.
        evaluator: None for 'last'.
        rows: row numbers of the data to train on, in order; None for all.
        fingerprint: of data besides the training rows that it is made of.
    """

    name: str
    evaluator: Any
    rows: np.ndarray | None
    description: str
    fingerprint: str = ""

    @property
    def metric(self) -> str:
        """The name of the score in the trainer's log."""
        return f"eval_{self.evaluator.primary_metric}" if self.evaluator else ""

    def training_rows(self, dataset: Any) -> Any:
        """Return the rows to train on."""
        return dataset if self.rows is None else dataset.select(self.rows)

    def best(self, state: Any, before: Mapping[str, float]) -> dict[str, Any] | None:
        """Return the selected checkpoint, from the trainer's state and the scores before training."""
        if not self.evaluator or state.best_metric is None:
            return None
        metric, score = self.metric.removeprefix("eval_"), float(state.best_metric)
        sign = 1 if getattr(self.evaluator, "greater_is_better", True) else -1
        improved = metric not in before or sign * (score - before[metric]) > 0
        return {"metric": metric, "score": score, "step": state.best_global_step, "improved": improved}


def last_checkpoint(why: str = "") -> Selection:
    """Return the selection of the last checkpoint."""
    return Selection("last", None, None, f"{why}the last checkpoint is kept")


def choose_selection(
    dataset: Any, options: TrainingOptions, seed: int, data: str | os.PathLike[str] | None
) -> Selection:
    """Return the selection that the options ask for, on sentences without labels."""
    if options.select_by == "last":
        return last_checkpoint()
    if found := sts_dev(options, data):
        return found
    kept, held = hold_out(range(len(dataset)), options.held_out, seed)
    if len(held) < 2:
        return last_checkpoint("too few sentences to hold any out; ")
    evaluator = sentences_evaluator(dataset[held]["sentence"], seed=seed)
    return Selection("held-out", evaluator, kept, evaluator.description)


def sts_dev(options: TrainingOptions, data: str | os.PathLike[str] | None) -> Selection | None:
    """Return the selection by STS-B dev; None if the options want another one, or if it is not found."""
    if options.select_by not in ("auto", _STS_DEV):
        return None
    try:
        evaluator = sts_b_dev_evaluator(data)
        files = [find_file(find_data(data), file.path) for file in rated_task(_STS_DEV).files]
    except DataError:
        if options.select_by == _STS_DEV or data is not None:
            raise
        return None
    return Selection(_STS_DEV, evaluator, None, evaluator.description, " ".join(checksum(file) for file in files))


def hold_out(groups: Sequence[Any], wanted: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Split rows into those to train on and those held out, both in order.

    Args:
        groups: of each row; rows of one group (those with the same first sentence) stay together.
        wanted: rows to hold out; a tenth of all at most, one group more at most.
    """
    numbers: dict[Any, int] = {}
    group = np.array([numbers.setdefault(one, len(numbers)) for one in groups], dtype=np.int64)
    order = np.random.default_rng([seed, 1]).permutation(len(numbers))
    sizes = np.bincount(group, minlength=len(numbers))[order]
    held = np.isin(group, order[np.cumsum(sizes) - sizes < min(wanted, len(groups) // 10)])
    return np.flatnonzero(~held), np.flatnonzero(held)
