"""Natural language inference: a softmax over (u, v, |u - v|) for the relation of two sentences.

Reimers and Gurevych 2019, "Sentence-BERT", section 3, classification objective: o = softmax(W (u, v, |u - v|)), cross
entropy. The contexts paper trains its surrogate further on SNLI and MultiNLI in this way (section 4.3).
"""

import os
from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss
from torch import nn

from likewise.corpus.files import strict_lines
from likewise.encoder.modules import find_part
from likewise.encoder.training_modules import PairClassifier
from likewise.evaluation.checkpoint import labels_evaluator
from likewise.training.objectives.objective import FinetuneOptions, Objective
from likewise.training.objectives.rows import LabelledDataError, LabelledRows, TableRow, collect, read_table

LABELS = {"contradiction": 0, "entailment": 1, "neutral": 2}
"""As in SBERT's code."""

_NO_GOLD = "-"  # of SNLI, where the annotators did not agree
_COLUMNS = {
    "sentence1": ("sentence1", "premise"),
    "sentence2": ("sentence2", "hypothesis"),
    "label": ("gold_label", "label"),
}


def read_nli(files: Sequence[Path], data: str | os.PathLike[str] | None = None, options: Any = None) -> LabelledRows:
    """Read SNLI-like data.

    Args:
        files: each is one of these. SentEval's labels file (labels.train, with s1.train and s2.train in the same
            folder, a line a pair; all may end in .gz). A folder with the three of part 'train'. The original .jsonl, or
            a table with a header, with the columns sentence1 (or premise), sentence2 (or hypothesis) and gold_label (or
            label).
    """
    if not files:
        raise LabelledDataError(
            "nli has no data to train on: name it (--train): SNLI's .jsonl, a table, or labels.train with s1.train and "
            "s2.train next to it"
        )
    named = [_labels_of(path) if path.is_dir() else path for path in files]
    rows = (
        row
        for path in named
        for row in (_side_by_side(path) if path.name.startswith("labels.") else read_table(path, _COLUMNS))
    )
    return collect(rows, ("sentence1", "sentence2"), "labelled pairs", named, "int64", _number)


def _number(label: str, place: str) -> int | None:
    if label == _NO_GOLD:
        return None
    if label.lower() not in LABELS:
        raise LabelledDataError(f"{place}: '{label}' is not a label; there are {', '.join(LABELS)}, and - for none")
    return LABELS[label.lower()]


def _labels_of(folder: Path) -> Path:
    for ending in ("", ".gz", ".bz2", ".zst"):
        if (found := folder / f"labels.train{ending}").is_file():
            return found
    there = ", ".join(str(path) for path in sorted(folder.glob("labels.*"))) or "no labels file at all"
    raise LabelledDataError(f"{folder}: no labels.train is in it, but {there}. Name the file that you mean.")


def _side_by_side(labels: Path) -> Iterator[TableRow]:
    """Read SentEval's three files."""
    part = labels.name.removeprefix("labels.")
    parts = [labels.with_name(f"{name}.{part}") for name in ("s1", "s2", "labels")]
    for path in parts:
        if not path.is_file():
            raise LabelledDataError(f"{path}: there is no such file; it belongs to {labels}")
    for number, texts in enumerate(zip_longest(*map(strict_lines, parts)), 1):
        if None in texts:
            raise LabelledDataError(
                f"{parts[texts.index(None)]}:{number}: the file ends before the others; the three do not belong "
                "together. Copy them from one release."
            )
        yield f"{labels}:{number}", [text.strip() for text in texts]


def _loss(encoder: SentenceTransformer, options: FinetuneOptions) -> nn.Module:
    head = find_part(encoder, PairClassifier)
    assert head is not None
    loss = SoftmaxLoss(encoder, head.dimension, head.classes)
    # The encoder's own, which checkpoints keep; the one that the loss made would be lost at a resume.
    loss.classifier = head.linear
    return loss


SBERT = FinetuneOptions()

NLI = Objective(
    name="nli",
    summary="Natural language inference: a softmax classifier over the two vectors and their difference.",
    source="Reimers and Gurevych 2019, SBERT",
    presets={"sbert": SBERT, "cpu": SBERT.updated(length_batches=True, eval_steps=200)},
    read=read_nli,
    held_out=lambda rows, _: labels_evaluator(*(rows[name] for name in ("sentence1", "sentence2", "label"))),
    build_loss=_loss,
    training_only=lambda dimension: [PairClassifier(dimension, len(LABELS))],
)
