"""Rated pairs: the cosine of two vectors is trained towards the rating.

Reimers and Gurevych 2019, "Sentence-BERT", section 3, regression objective: mean squared error of the cosine. The
contexts paper's L2 regression (section 4.1) is the same.
"""

import math
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

from likewise.evaluation.checkpoint import CheckpointEvaluator, ratings_evaluator
from likewise.evaluation.data import find_data, find_file
from likewise.evaluation.registry import rated_task
from likewise.runs.options import OptionError, option
from likewise.training.objectives.objective import FinetuneOptions, Objective
from likewise.training.objectives.rows import LabelledDataError, LabelledRows, TableRow, collect, read_table

_COLUMNS = {
    "sentence1": ("sentence1",),
    "sentence2": ("sentence2",),
    "score": ("score", "rating", "similarity", "relatedness_score"),
}


class STSOptions(FinetuneOptions):
    """The options of `finetune sts`."""

    epochs: int = option(4, "Passes over the rows.")
    eval_steps: int = option(360, "Updates between two evaluations; 0: only at the end.")
    lowest: float = option(0.0, "Rating of pairs that have nothing in common; trained towards cosine 0.")
    highest: float = option(5.0, "Rating of pairs that mean the same; trained towards cosine 1.")

    def _check(self) -> None:
        super()._check()
        if not self.lowest < self.highest:
            raise OptionError(f"lowest {self.lowest} must be below highest {self.highest}")


def read_sts(files: Sequence[Path], data: str | os.PathLike[str] | None, options: STSOptions) -> LabelledRows:
    """Read rated pairs, with ratings scaled to 0 ... 1.

    Args:
        files: tables with a header (or JSONL) and the columns sentence1, sentence2 and score; none: STS-B train of the
            data folder.
    """
    low, high = options.lowest, options.highest
    rows: Iterable[TableRow] = (row for path in files for row in read_table(path, _COLUMNS))
    sources = list(files)
    if not files:
        task = rated_task("sts-b-train")
        pairs = task.pairs(data)
        low, high = task.scale
        rows = (("", row) for row in zip(pairs.first, pairs.second, pairs.gold.tolist(), strict=True))
        sources = [find_file(find_data(data), file.path) for file in task.files]

    def share(score: str | float, place: str) -> float:
        try:
            rating = float(score)
        except ValueError:
            rating = math.nan
        if not low <= rating <= high:
            raise LabelledDataError(
                f"{place}: the rating '{score}' is not a number from {low:g} to {high:g}; mend it, or give the scale "
                "(--lowest, --highest)"
            )
        return (rating - low) / (high - low)

    return collect(rows, ("sentence1", "sentence2"), "rated pairs", sources, "float32", share)


def _held_out(rows: Any, options: STSOptions) -> CheckpointEvaluator:
    return ratings_evaluator(
        rows["sentence1"],
        rows["sentence2"],
        [5 * label for label in rows["label"]],
        name="held_out",
        description=f"Spearman correlation on {len(rows):,} held-out rated pairs",
    )


SBERT = STSOptions()

STS = Objective(
    name="sts",
    summary="Rated pairs: regression of the cosine on the rating, on STS-B train where nothing else is named.",
    source="Reimers and Gurevych 2019, SBERT",
    presets={"sbert": SBERT, "cpu": SBERT.updated(length_batches=True, eval_steps=120)},
    read=read_sts,
    held_out=_held_out,
    build_loss=lambda encoder, options: CosineSimilarityLoss(encoder),
)
