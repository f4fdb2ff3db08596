"""The checks of a training, before long work starts and before its model is saved."""

import os
from typing import Any

import numpy as np
import torch
from sentence_transformers import CrossEncoder

from likewise.recipes.options import TrainingOptions
from likewise.runs import processes
from likewise.runs.job import check_target, complete_installation
from likewise.runs.options import OptionError
from likewise.training.precision import use_bf16
from likewise.training.trainer import TrainingError

LABEL = "label"


def check_start(out: str | os.PathLike[str], options: TrainingOptions) -> None:
    """Check the arguments before base and data are read; a model half installed in `out`, by a kill, is completed."""
    use_bf16(options.precision)

    def by_first() -> None:
        check_target(out)
        complete_installation(out)

    processes.by_first(by_first)


def check_updates(n_rows: int, options: TrainingOptions, unit: str = "sentences") -> None:
    """Check that the rows fill one update."""
    several = f" x {processes.count()} processes" if processes.count() > 1 else ""
    if n_rows < options.batch_size * options.accumulation * processes.count():
        raise OptionError(
            f"{n_rows:,} training {unit} do not fill one update of {options.batch_size} x {options.accumulation}"
            f"{several}: give more of them, or a smaller batch_size or accumulation"
        )


def check_finite(model: Any, dataset: Any, what: str) -> None:
    """Check the vectors of a few texts; the model's mode and the random state are restored."""
    texts = dataset[:8][next(name for name in dataset.column_names if name != LABEL)]
    training = model.training
    with torch.random.fork_rng():
        if isinstance(model, CrossEncoder):
            found = model.predict([(text, text) for text in texts], show_progress_bar=False)
        else:
            found = model.encode(list(texts), show_progress_bar=False)
    model.train(training)
    if not np.isfinite(np.asarray(found, dtype=np.float64)).all():
        raise TrainingError(f"{what} gives vectors that are not finite: take another base or a lower learning_rate")
