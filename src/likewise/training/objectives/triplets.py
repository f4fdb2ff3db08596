"""Triplets: a sentence should be nearer to one from its own section than to one from another section.

Reimers and Gurevych 2019, "Sentence-BERT", section 3, triplet objective: max(|a - p| - |a - n| + 1, 0) with Euclidean
distances. The contexts paper trains on the Wikipedia sections of Ein Dor et al. 2018 with it (section 4.5).
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from sentence_transformers.sentence_transformer.losses import TripletDistanceMetric, TripletLoss

from likewise.evaluation.checkpoint import triplets_evaluator
from likewise.runs.options import OptionError, option
from likewise.training.objectives.objective import FinetuneOptions, Objective
from likewise.training.objectives.rows import LabelledDataError, LabelledRows, collect, read_table

_COLUMNS = {
    "anchor": ("Sentence1", "anchor"),
    "positive": ("Sentence2", "positive"),
    "negative": ("Sentence3", "negative"),
}


class TripletOptions(FinetuneOptions):
    """The options of `finetune triplets`."""

    select_by: Literal["auto", "held-out", "last"] = option(
        "auto", "What picks the checkpoint: the --dev file or held-out rows, or simply the last one."
    )

    margin: float = option(1.0, "How much nearer the sentence of the same section should be.", ge=0)
    distance: Literal["euclidean", "cosine", "manhattan"] = option("euclidean", "The distance that is compared.")

    def _check(self) -> None:
        super()._check()
        if self.distance == "cosine" and self.margin >= 2:
            raise OptionError(f"cosines differ by 2 at most: margin {self.margin} can never be reached")


def read_triplets(
    files: Sequence[Path], data: str | os.PathLike[str] | None = None, options: Any = None
) -> LabelledRows:
    """Read triplets in the format of the Wikipedia sections that SBERT trained on.

    That is a comma-separated file with a header, quotes where a cell needs them, and among its columns Sentence1 (the
    anchor), Sentence2 (of the anchor's section) and Sentence3 (of another); its parts are train.csv, validation.csv and
    test.csv. Tabs, JSONL, and the names anchor, positive and negative are read too.

    Args:
        files: such files; a folder stands for its train.csv.
    """
    if not files:
        raise LabelledDataError("triplets has no data to train on: name it (--train), as the train.csv of the triplets")
    named = [path / "train.csv" if path.is_dir() else path for path in files]
    return collect((row for path in named for row in read_table(path, _COLUMNS)), tuple(_COLUMNS), "triplets", named)


SBERT = TripletOptions()

TRIPLETS = Objective(
    name="triplets",
    summary="Triplets: a sentence should be nearer to one from its own section than to one from another section.",
    source="Reimers and Gurevych 2019, SBERT; data of Ein Dor et al. 2018",
    presets={"sbert": SBERT, "cpu": SBERT.updated(length_batches=True, eval_steps=200)},
    read=read_triplets,
    held_out=lambda rows, options: triplets_evaluator(*(rows[name] for name in _COLUMNS), distance=options.distance),
    build_loss=lambda encoder, options: TripletLoss(
        encoder, getattr(TripletDistanceMetric, options.distance.upper()), options.margin
    ),
)
