"""The selection of the checkpoint: by STS-B dev for English, if it is available, otherwise by held-out rows."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from datasets import Dataset

from likewise.corpus.languages import language_of
from likewise.evaluation.checkpoint import (
    CheckpointEvaluator,
    measurable_sentences,
    sentences_evaluator,
    sts_b_dev_evaluator,
)
from likewise.evaluation.data_folder import find_data, find_file
from likewise.evaluation.registry import rated_task
from likewise.evaluation.task import DataError, Items
from likewise.recipes.recipe_options import TrainingOptions
from likewise.runs.options import choices_of
from likewise.runs.whole_files import Record, checksum

_STS_DEV = "sts-b-dev"
_LOOKED_AT = 1000  # rows, to know the language


@dataclass(frozen=True)
class Selection:
    """A selection of the checkpoint: an evaluator, and the rows left for training.

    Attributes:
        description: Description for the user and the plan.
        evaluator: None where the checkpoint is simply the last.
        rows: Row numbers of the data to train on, in order; None for all.
        fingerprint: Fingerprint of further data that it depends on.
    """

    description: str
    evaluator: CheckpointEvaluator | None = None
    rows: np.ndarray | None = None
    fingerprint: str = ""

    @property
    def metric(self) -> str:
        """The name of the score that selects; "" without an evaluator."""
        return self.evaluator.primary_metric if self.evaluator else ""

    def training_rows(self, dataset: Dataset) -> Dataset:
        """Return the rows to train on."""
        return dataset if self.rows is None else dataset.select(self.rows)

    def best(self, state: Any, before: Mapping[str, float], model: Any, items: Items | None) -> Record | None:
        """Return the selected checkpoint, the noise of its gain, and whether the gain is larger.

        Args:
            state: State of the trainer.
            before: Scores before training.
            model: Model to save, whose noise is measured.
            items: Items of the evaluator before training, see `CheckpointEvaluator.noise`.
        """
        if not self.evaluator or state.best_metric is None:
            return None
        score, noise = float(state.best_metric), None
        gain = self.evaluator.gain(before[self.metric], score)
        if gain > 0 and items is not None:
            self.evaluator(model)
            noise = self.evaluator.noise(items, self.evaluator.items)
        step, improved = state.best_global_step, gain > (noise or 0.0)
        return {"metric": self.metric, "score": score, "step": step, "improved": improved, "noise": noise}


def last_checkpoint(why: str = "") -> Selection:
    """Return the selection of the last checkpoint."""
    return Selection(f"last ({why})" if why else "last")


def choose_selection(
    dataset: Dataset,
    options: TrainingOptions,
    seed: int,
    data: str | os.PathLike[str] | None,
    groups: Sequence[object] | None = None,
    evaluator_of: Callable[[Dataset], CheckpointEvaluator] | None = None,
) -> Selection:
    """Return the selection that the options ask for.

    Args:
        dataset: Rows there are to train on.
        data: Folder of SentEval's data.
        groups: Group of each row, see `hold_out`; by default each row is its own group.
        evaluator_of: Function from held-out rows to their evaluator; by default they are sentences without labels.
    """
    if options.select_by == "last":
        return last_checkpoint()
    if by_ratings := sts_dev(options, data, texts_of(dataset)):
        return by_ratings
    training_rows, held_out_rows = hold_out(range(len(dataset)) if groups is None else groups, options.held_out, seed)
    if len(held_out_rows) < 2:
        return last_checkpoint("too few rows to hold any out")
    rows = dataset.select(held_out_rows)
    if not evaluator_of and len(measurable_sentences(rows["sentence"])) < 2:
        return last_checkpoint(f"the {len(held_out_rows)} held-out sentences of one word measure nothing")
    evaluator = evaluator_of(rows) if evaluator_of else sentences_evaluator(rows["sentence"], seed=seed)
    return Selection(evaluator.description, evaluator, training_rows)


def texts_of(dataset: Dataset) -> Iterator[str]:
    """Yield texts from all over a dataset, which say what language it is in."""
    names = [name for name, feature in dataset.features.items() if feature.dtype == "string"]
    for row in np.linspace(0, len(dataset) - 1, min(len(dataset), _LOOKED_AT)).astype(int).tolist():
        yield from (text for name in names if (text := dataset[row][name]))


def sts_dev(
    options: TrainingOptions, data: str | os.PathLike[str] | None, texts: Iterable[str] = ()
) -> Selection | None:
    """Return the selection by STS-B dev; None if the options do not want it, or if it is not found.

    Args:
        data: Folder of SentEval's data.
        texts: Texts that are trained on. With `select_by="auto"`, STS-B dev measures English ones alone.
    """
    if options.select_by not in ("auto", _STS_DEV) or _STS_DEV not in choices_of(type(options), "select_by"):
        return None
    try:
        folder = find_data(data)
        evaluator = sts_b_dev_evaluator(data)
        files = [find_file(folder, file.path) for file in rated_task(_STS_DEV).files]
    except DataError:
        if options.select_by == _STS_DEV or data is not None:
            raise
        return None
    if options.select_by == "auto" and language_of(texts) not in ("", "English"):
        return None
    return Selection(evaluator.description, evaluator, fingerprint=" ".join(checksum(file) for file in files))


def hold_out(groups: Sequence[object], count: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Split rows into training rows and held-out rows, both in order.

    Args:
        groups: Group of each row; rows of one group (with the same first sentence) stay together.
        count: Number of rows to hold out, at most a tenth of all plus one group; larger groups are used for training.
    """
    numbers: dict[object, int] = {}
    group = np.array([numbers.setdefault(name, len(numbers)) for name in groups], dtype=np.int64)
    order = np.random.default_rng([seed, 1]).permutation(len(numbers))
    most, sizes = min(count, len(groups) // 10), np.bincount(group, minlength=len(numbers))
    order = order[sizes[order] <= max(most, 1)]
    is_held_out = np.isin(group, order[np.cumsum(sizes[order]) - sizes[order] < most])
    return np.flatnonzero(~is_held_out), np.flatnonzero(is_held_out)
