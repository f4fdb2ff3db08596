"""Natural language inference: a softmax over (u, v, |u - v|) that says how the second sentence follows from the first.

Reimers and Gurevych 2019, "Sentence-BERT", section 3, classification objective: o = softmax(W (u, v, |u - v|)), cross
entropy. The contexts paper trains its surrogate further on SNLI and MultiNLI in this way (section 4.3).
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.losses import SoftmaxLoss
from torch import nn

from likewise.corpus.files import numbered_lines
from likewise.encoder.training_modules import PairClassifier
from likewise.evaluation.checkpoint import CheckpointEvaluator, labels_evaluator
from likewise.training.objectives.objective import FinetuneOptions, Objective
from likewise.training.objectives.rows import Dropped, LabelledDataError, LabelledRows, collect, read_table

LABELS = {"contradiction": 0, "entailment": 1, "neutral": 2}
"""As in SBERT's code."""

UNIT = "labelled pairs"
_NO_GOLD = "-"  # of SNLI, where the annotators did not agree
_COLUMNS = {
    "first": ("sentence1", "premise"),
    "second": ("sentence2", "hypothesis"),
    "label": ("gold_label", "label"),
}
_ENDINGS = ("", ".gz", ".bz2", ".zst")


class NLIOptions(FinetuneOptions):
    """The options of `finetune nli`."""


def read_nli(files: Sequence[Path], data: str | os.PathLike[str] | None = None, options: Any = None) -> LabelledRows:
    """Read SNLI-like data.

    Args:
        files: each is one of these. SentEval's labels file (labels.train, with s1.train and s2.train beside it, a line
            a pair; all may end in .gz). A folder with the three of part 'train'. The original .jsonl, or a table with a
            header, with the columns sentence1 (or premise), sentence2 (or hypothesis) and gold_label (or label).
        data, options: not needed.

    Raises:
        LabelledDataError: a file is missing or broken.
    """
    if not files:
        raise LabelledDataError(
            "nli has no data to train on: name it (--train): SNLI's .jsonl, a table, or labels.train with s1.train and "
            "s2.train beside it"
        )
    dropped = Dropped()
    named = [_labels_of(path) if path.is_dir() else path for path in files]

    def rows() -> Iterator[tuple[str, str, int]]:
        for path in named:
            found = _side_by_side(path) if path.name.startswith("labels.") else _table(path)
            for where, first, second, label in found:
                if label == _NO_GOLD:
                    dropped.add("no gold label", where)
                elif not first or not second:
                    dropped.add("an empty sentence", where)
                elif label.lower() not in LABELS:
                    raise LabelledDataError(
                        f"{where}: '{label}' is no label; there are {', '.join(LABELS)}, and - for none"
                    )
                else:
                    yield first, second, LABELS[label.lower()]

    return collect(rows(), ("sentence1", "sentence2"), "int64", UNIT, named, dropped)


def _labels_of(folder: Path) -> Path:
    for ending in _ENDINGS:
        if (found := folder / f"labels.train{ending}").is_file():
            return found
    there = ", ".join(str(path) for path in sorted(folder.glob("labels.*"))) or "no labels file at all"
    raise LabelledDataError(f"{folder}: no labels.train is in it, but {there}. Name the file that you mean.")


def _side_by_side(labels: Path) -> Iterator[tuple[str, str, str, str]]:
    """(where, first, second, label) of SentEval's three files."""
    part = labels.name.removeprefix("labels.")
    parts = [labels, labels.with_name(f"s1.{part}"), labels.with_name(f"s2.{part}")]
    for path in parts:
        if not path.is_file():
            raise LabelledDataError(f"{path}: there is no such file; it belongs to {labels}")
    readers = [numbered_lines(path) for path in parts]
    number = 0
    while True:
        lines = [next(reader, None) for reader in readers]
        if all(line is None for line in lines):
            return
        number += 1
        texts = []
        for path, line in zip(parts, lines, strict=True):
            if line is None:
                raise LabelledDataError(
                    f"{path}:{number}: the file ends before the others; the three do not belong together. Copy them "
                    "from one release."
                )
            try:
                texts.append(line[1].decode("utf-8").strip())
            except UnicodeDecodeError:
                raise LabelledDataError(f"{path}:{number}: not UTF-8; convert the file with iconv") from None
        label, first, second = texts
        yield f"{labels}:{number}", first, second, label


def _table(path: Path) -> Iterator[tuple[str, str, str, str]]:
    for line, (first, second, label) in read_table(path, _COLUMNS):
        yield f"{path}:{line}", first, second, label


def _classifier(encoder: SentenceTransformer) -> PairClassifier:
    return next(module for module in encoder if isinstance(module, PairClassifier))


def _loss(encoder: SentenceTransformer, options: NLIOptions) -> nn.Module:
    head = _classifier(encoder)
    loss = SoftmaxLoss(encoder, head.dimension, head.classes)
    # The encoder's own, which checkpoints keep; the one that the loss made would be lost at a resume.
    loss.classifier = head.linear
    return loss


def _held_out(rows: LabelledRows, options: NLIOptions) -> CheckpointEvaluator:
    found = rows.dataset
    return labels_evaluator(found["sentence1"], found["sentence2"], found["label"])


SBERT = NLIOptions()
CPU = SBERT.updated(length_batches=True, eval_steps=200)

NLI = Objective(
    name="nli",
    summary="Natural language inference: a softmax classifier over the two vectors and their difference.",
    source="Reimers and Gurevych 2019, SBERT",
    presets={"sbert": SBERT, "cpu": CPU},
    read=read_nli,
    held_out=_held_out,
    build_loss=_loss,
    training_only=lambda dimension: [PairClassifier(dimension, len(LABELS))],
)
