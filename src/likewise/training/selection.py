"""What picks the checkpoint: STS-B dev where it is found, held-out sentences of the corpus elsewhere.

Checkpoints are scored in float32, whatever they are trained in: so runs the saved folder, here and in
sentence-transformers, and its score is the one that was selected.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from likewise.evaluation.checkpoint import sentences_evaluator, sts_b_dev_evaluator
from likewise.evaluation.task import DataError
from likewise.recipes.options import TrainingOptions


@dataclass(frozen=True)
class Selection:
    """An evaluator and the rows that are left for training.

    Attributes:
        name: 'sts-b-dev', 'held-out' or 'last'.
        evaluator: None for 'last'.
        rows: row numbers of the corpus to train on, in order; None for all.
        description: one sentence for the user.
    """

    name: str
    evaluator: Any
    rows: np.ndarray | None
    description: str

    @property
    def metric(self) -> str:
        """Name of the score, as the trainer logs it."""
        return f"eval_{self.evaluator.primary_metric}" if self.evaluator else ""


def choose_selection(
    dataset: Any, options: TrainingOptions, seed: int, data: str | os.PathLike[str] | None
) -> Selection:
    """The selection that the options ask for, on what is there.

    Raises:
        DataError: STS-B dev is asked for and not found, or it is malformed; or `data` is given and holds none.
    """
    if options.select_by == "last":
        return Selection("last", None, None, "the last checkpoint is kept")
    if options.select_by in ("auto", "sts-b-dev"):
        try:
            evaluator = sts_b_dev_evaluator(data)
            return Selection("sts-b-dev", evaluator, None, evaluator.description)
        except DataError:
            if options.select_by == "sts-b-dev" or data is not None:
                raise
    n_held_out = min(options.held_out, len(dataset) // 10)
    if n_held_out < 2:
        return Selection("last", None, None, "too few sentences to hold any out; the last checkpoint is kept")
    order = np.random.default_rng([seed, 1]).permutation(len(dataset))
    held_out = dataset[np.sort(order[:n_held_out])]["sentence"]
    chosen = sentences_evaluator(held_out, seed=seed)
    return Selection("held-out", chosen, np.sort(order[n_held_out:]), chosen.description)
