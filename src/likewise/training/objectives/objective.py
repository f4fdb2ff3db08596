"""The definition of an objective: labelled rows of one kind, their loss and their selection of the checkpoint."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sentence_transformers import SentenceTransformer
from torch import nn

from likewise.evaluation.evaluator import CheckpointEvaluator
from likewise.recipes.options import TrainingOptions
from likewise.recipes.recipe import WithPresets
from likewise.runs.options import option
from likewise.training.objectives.rows import LabelledRows


class FinetuneOptions(TrainingOptions):
    """The options of every objective; the defaults are those of SBERT (Reimers and Gurevych 2019, section 3.1)."""

    batch_size: int = option(16, "Rows of a forward pass.")
    accumulation: int = option(1, "Forward passes of one update.")
    learning_rate: float = option(2e-5, "Peak learning rate.")
    epochs: int = option(1, "Passes over the rows.")
    warmup_ratio: float = option(0.1, "Share of the updates in which the rate rises from 0.")
    sam_rho: float = option(0.0, "Radius of sharpness-aware minimisation; 0: plain AdamW.")
    length_batches: bool = option(False, "Batches of rows of near-equal length.")
    eval_steps: int = option(1000, "Updates between two evaluations; 0: only at the end.")
    select_by: Literal["auto", "sts-b-dev", "held-out", "last"] = option(
        "auto", "What picks the checkpoint: STS-B dev, the --dev file or held-out rows, or simply the last one."
    )
    held_out: int = option(500, "Rows held out of training where the selection needs them.")


@dataclass(frozen=True)
class Objective(WithPresets):
    """A method for labelled rows of one kind.

    Attributes:
        read: (files, data folder, options) to rows; no files means what the data folder holds, where it holds any.
        held_out: (dataset, options) to an evaluator on rows that are not trained on.
        build_loss: (encoder, options) to a sentence-transformers loss.
        training_only: (dimension of the vectors) to modules that are in the encoder for training alone.
    """

    read: Callable[[Sequence[Path], str | os.PathLike[str] | None, Any], LabelledRows]
    held_out: Callable[[Any, Any], CheckpointEvaluator]
    build_loss: Callable[[SentenceTransformer, Any], nn.Module]
    training_only: Callable[[int], list[nn.Module]] = lambda dimension: []
