"""The objectives of fine-tuning on labeled rows, after Reimers and Gurevych 2019, "Sentence-BERT", section 3.

Natural language inference: o = softmax(W (u, v, |u - v|)), cross entropy. Rated pairs: the mean squared error of the
cosine. Triplets: max(|a - p| - |a - n| + 1, 0) with Euclidean distances. The contexts paper trains its surrogate
further by the first and the last of them (sections 4.3 and 4.5), and its L2 regression (section 4.1) is the second.
"""

from __future__ import annotations

import dataclasses
import hashlib
import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from likewise.corpus.encodings import AUTO
from likewise.corpus.files import COMPRESSED, strict_lines
from likewise.corpus.tables import LabelledDataError, TableRow, read_table
from likewise.encoder.location import Role
from likewise.recipes.recipe_options import SharpOptions, WithPresets
from likewise.runs.options import OptionError, option
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from datasets import Dataset
    from sentence_transformers import SentenceTransformer
    from torch import nn

    from likewise.evaluation.checkpoint import CheckpointEvaluator

LABEL = "label"
"""The column of labels."""
LABELS = {"contradiction": 0, "entailment": 1, "neutral": 2}
"""As in SBERT's code."""
_NO_GOLD = "-"  # of SNLI, where the annotators did not agree
_NLI_COLUMNS = {
    "sentence1": ("sentence1", "premise"),
    "sentence2": ("sentence2", "hypothesis"),
    "label": ("gold_label", "label"),
}
_TRIPLET_COLUMNS = {
    "anchor": ("Sentence1", "anchor"),
    "positive": ("Sentence2", "positive"),
    "negative": ("Sentence3", "negative"),
}


@dataclass(frozen=True)
class LabelledRows:
    """Rows of texts, with or without a label.

    Attributes:
        dataset: Hugging Face dataset with the text columns in order, followed by 'label' if there is one.
        unit: Name of a row, in the plural.
        dropped: Number of dropped rows, by reason.
        left_out: Description of dropped rows, with the location of the first row of each kind.
    """

    dataset: Dataset
    unit: str
    sources: tuple[str, ...]
    sha256: str
    dropped: Mapping[str, int]
    left_out: str

    def __len__(self) -> int:
        return len(self.dataset)

    def __str__(self) -> str:
        return f"{len(self):,} {self.unit} from {', '.join(self.sources)}\n{self.left_out}".rstrip()

    def record(self) -> Record:
        """Return the facts about the rows for the record of a run."""
        return {
            "sources": list(self.sources),
            "sentences": len(self),
            "unit": self.unit,
            "sha256": self.sha256,
            "dropped": dict(self.dropped),
        }


def collect(
    rows: Iterable[TableRow],
    texts: Sequence[str],
    unit: str,
    sources: Sequence[Path],
    kind: str | None = None,
    number: Callable[[Any, str], object] | None = None,
) -> LabelledRows:
    """Collect rows in a dataset; those with an empty text or without a label are skipped.

    Args:
        rows: Texts of each row, followed by its label.
        kind: Arrow type of the label, "int64" or "float32"; None for rows without one.
        number: Function from (label, location) to the numeric label; None if there are no labels.
    """
    from datasets import Dataset, Features, Value

    dropped: Counter[str] = Counter()
    first: dict[str, str] = {}
    names = [*texts, LABEL] if kind else list(texts)
    columns: dict[str, list[object]] = {name: [] for name in names}
    digest = hashlib.sha256()
    for place, cells in rows:
        row = list(cells[: len(texts)])
        reason = "" if all(row) else "an empty sentence"
        if number is not None and not reason:
            row.append(number(cells[-1], place))
            reason = "no gold label" if row[-1] is None else ""
        if reason:
            dropped[reason] += 1
            first.setdefault(reason, place)
            continue
        digest.update(repr(tuple(row)).encode("utf-8", "backslashreplace"))
        for name, value in zip(names, row, strict=True):
            columns[name].append(value)
    named = tuple(str(path) for path in sources)
    left_out = "; ".join(f"{n:,} skipped: {why} (first: {first[why]})" for why, n in dropped.items())
    if not columns[names[0]]:
        raise LabelledDataError(f"{', '.join(named)}: it contains no {unit}{f' ({left_out})' if left_out else ''}")
    features = Features({name: Value(kind if name == LABEL else "string") for name in names})
    dataset = Dataset.from_dict(columns, features)
    return LabelledRows(dataset, unit, named, digest.hexdigest(), dropped, left_out)


class FinetuneOptions(SharpOptions):
    """The options of every objective; the defaults follow SBERT (Reimers and Gurevych 2019, section 3.1)."""

    batch_size: int = option(16, "Number of rows in a forward pass.")
    accumulation: int = option(1, "Number of forward passes that are accumulated for one update.")
    learning_rate: float = option(2e-5, "Peak learning rate.")
    epochs: int = option(1, "Number of passes over the rows.")
    warmup_ratio: float = option(0.1, "Fraction of the updates over which the learning rate warms up from 0.")
    sam_rho: float = option(0.0, "Radius rho of sharpness-aware minimization (SAM); 0 uses plain AdamW.")
    length_batches: bool = option(False, "Whether to batch rows of similar length together.")
    eval_steps: int = option(1000, "Number of updates between two evaluations; 0 evaluates only at the end.")
    select_by: Literal["auto", "sts-b-dev", "held-out", "last"] = option(
        "auto",
        "Criterion that selects the checkpoint: STS-B dev, the --dev file or held-out rows, or the last checkpoint.",
    )
    held_out: int = option(500, "Number of rows that are held out of training if the selection needs them.")


@dataclass(frozen=True)
class Objective(WithPresets):
    """A training method for labeled rows of one kind.

    Attributes:
        read: Function from (files, data folder, options) to rows; without files, it reads the data folder.
        held_out: Function from (dataset, options) to an evaluator on held-out rows.
        build_loss: Function from (encoder, options) to a loss of sentence-transformers.
        training_only: Function from the dimension of the vectors to modules for training only.
        sides: Role of each column of texts for a model that encodes queries and documents in different ways; () if the
            columns have no sides, in which case a base with separate routes is refused.
    """

    read: Callable[[Sequence[Path], str | os.PathLike[str] | None, Any], LabelledRows]
    held_out: Callable[[Dataset, Any], CheckpointEvaluator]
    build_loss: Callable[[SentenceTransformer, Any], nn.Module]
    training_only: Callable[[int], list[nn.Module]] = lambda dimension: []
    sides: tuple[Role, ...] = ()


def read_nli(files: Sequence[Path], data: str | os.PathLike[str] | None = None, options: object = None) -> LabelledRows:
    """Read SNLI-like data.

    Args:
        files: Paths to files of these formats: SentEval's labels file (labels.train, with s1.train and s2.train in the
            same folder, a line a pair; all may end in .gz). A folder with the three of part 'train'. The original
            .jsonl, or a table with a header, with the columns sentence1 (or premise), sentence2 (or hypothesis) and
            gold_label (or label).
    """
    if not files:
        raise LabelledDataError(
            "nli needs training data: give a file by --train: SNLI's .jsonl, a table, or labels.train with "
            "s1.train and "
            "s2.train next to it"
        )
    named = [_labels_of(path) if path.is_dir() else path for path in files]
    rows = (
        row
        for path in named
        for row in (_side_by_side(path) if path.name.startswith("labels.") else read_table(path, _NLI_COLUMNS))
    )

    def number(label: str, place: str) -> int | None:
        if label == _NO_GOLD:
            return None
        if label.lower() not in LABELS:
            raise LabelledDataError(f"{place}: '{label}' is not a label; choose one of {', '.join(LABELS)}, or -")
        return LABELS[label.lower()]

    return collect(rows, ("sentence1", "sentence2"), "labelled pairs", named, "int64", number)


def _softmax_loss(encoder: SentenceTransformer, options: FinetuneOptions) -> nn.Module:
    from sentence_transformers.sentence_transformer.losses import SoftmaxLoss

    from likewise.encoder.modules import find_part
    from likewise.encoder.training_modules import PairClassifier

    head = find_part(encoder, PairClassifier)
    assert head is not None
    loss = SoftmaxLoss(encoder, head.dimension, head.classes)
    # The encoder's own, which checkpoints keep; the one that the loss made would be lost at a resume.
    loss.classifier = head.linear
    return loss


def _classifier(dimension: int) -> list[nn.Module]:
    from likewise.encoder.training_modules import PairClassifier

    return [PairClassifier(dimension, len(LABELS))]


def _held_out_labels(rows: Dataset, options: FinetuneOptions) -> CheckpointEvaluator:
    from likewise.evaluation.checkpoint import labels_evaluator

    return labels_evaluator(rows["sentence1"], rows["sentence2"], rows["label"])


class STSOptions(FinetuneOptions):
    """The options of `finetune sts`."""

    epochs: int = option(4, "Number of passes over the rows.")
    eval_steps: int = option(360, "Number of updates between two evaluations; 0 evaluates only at the end.")
    lowest: float = option(
        0.0, "Minimum rating, of pairs with nothing in common, which are trained towards a cosine of 0."
    )
    highest: float = option(
        5.0, "Maximum rating, of pairs with the same meaning, which are trained towards a cosine of 1."
    )

    def _check(self) -> None:
        super()._check()
        if not self.lowest < self.highest:
            raise OptionError(f"lowest {self.lowest} must be below highest {self.highest}")


def read_sts(files: Sequence[Path], data: str | os.PathLike[str] | None, options: STSOptions) -> LabelledRows:
    """Read rated pairs, with ratings scaled to 0 ... 1.

    Args:
        files: Paths to files as for `evaluate pairs:FILE`, see `likewise.evaluation.tasks.rated_file`; by default STS-B
            train of the data folder.
    """
    from likewise.evaluation.tasks.rated_file import rated_rows

    low, high = options.lowest, options.highest
    read = (row for path in files for row in rated_rows(path))
    rows: Iterable[TableRow] = ((place, (first, second, score)) for place, (score, first, second) in read)
    sources = list(files)
    if not files:
        from likewise.evaluation.data_folder import find_data, find_file
        from likewise.evaluation.registry import rated_task

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
                f"{place}: the rating '{score}' is not a number from {low:g} to {high:g}; correct it, or give the "
                f"scale (--lowest, --highest)"
            )
        return (rating - low) / (high - low)

    collected = collect(rows, ("sentence1", "sentence2"), "rated pairs", sources, "float32", share)
    most = low + (high - low) * max(collected.dataset[LABEL])
    if files and most <= low + (high - low) * 0.21:  # as ratings from 0 to 1 on a scale from 0 to 5
        scale = f"the ratings only go up to {most:g}, on a scale from {low:g} to {high:g}: is --highest {most:g} meant?"
        left_out = f"{collected.left_out}; {scale}" if collected.left_out else scale
        return dataclasses.replace(collected, left_out=left_out)
    return collected


def _held_out_pairs(rows: Dataset, options: STSOptions) -> CheckpointEvaluator:
    from likewise.evaluation.checkpoint import ratings_evaluator

    ratings = [5 * label for label in rows["label"]]
    description = f"best Spearman correlation on {len(rows):,} held-out rated pairs"
    return ratings_evaluator(rows["sentence1"], rows["sentence2"], ratings, name="held_out", description=description)


def _cosine_loss(encoder: SentenceTransformer, options: STSOptions) -> nn.Module:
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    return CosineSimilarityLoss(encoder)


class TripletOptions(FinetuneOptions):
    """The options of `finetune triplets`."""

    select_by: Literal["auto", "held-out", "last"] = option(
        "auto", "Criterion that selects the checkpoint: the --dev file or held-out rows, or the last checkpoint."
    )
    margin: float = option(1.0, "Margin by which the sentence from the same section should be closer.", ge=0)


def read_triplets(
    files: Sequence[Path], data: str | os.PathLike[str] | None = None, options: object = None
) -> LabelledRows:
    """Read triplets in the format of the Wikipedia sections that SBERT trained on (Ein Dor et al. 2018).

    That is a comma-separated file with a header, quotes where a cell needs them, and among its columns Sentence1 (the
    anchor), Sentence2 (of the anchor's section) and Sentence3 (of another); its parts are train.csv, validation.csv and
    test.csv. Tabs, JSONL, and the names anchor, positive and negative are read too.

    Args:
        files: Paths to such files; a folder means its train.csv.
    """
    if not files:
        raise LabelledDataError(
            "triplets needs training data: give a file by --train, such as the train.csv of the triplets"
        )
    named = [path / "train.csv" if path.is_dir() else path for path in files]
    rows = (row for path in named for row in read_table(path, _TRIPLET_COLUMNS))
    return collect(rows, tuple(_TRIPLET_COLUMNS), "triplets", named)


def _held_out_triplets(rows: Dataset, options: TripletOptions) -> CheckpointEvaluator:
    from likewise.evaluation.checkpoint import triplets_evaluator

    columns = rows["anchor"], rows["positive"], rows["negative"]
    return triplets_evaluator(*columns, sides=TRIPLETS.sides)


def _triplet_loss(encoder: SentenceTransformer, options: TripletOptions) -> nn.Module:
    from sentence_transformers.sentence_transformer.losses import TripletLoss

    return TripletLoss(encoder, triplet_margin=options.margin)


_SBERT, _SBERT_STS, _SBERT_TRIPLETS = FinetuneOptions(), STSOptions(), TripletOptions()
NLI = Objective(
    name="nli",
    summary="Natural language inference: a softmax classifier over the two vectors and their difference.",
    source="Reimers and Gurevych 2019, SBERT",
    presets={"sbert": _SBERT, "cpu": _SBERT.updated(length_batches=True, eval_steps=200)},
    read=read_nli,
    held_out=_held_out_labels,
    build_loss=_softmax_loss,
    training_only=_classifier,
)
STS = Objective(
    name="sts",
    summary="Rated pairs: regression of the cosine on the rating, by default on STS-B train.",
    source="Reimers and Gurevych 2019, SBERT",
    presets={"sbert": _SBERT_STS, "cpu": _SBERT_STS.updated(length_batches=True, eval_steps=120)},
    read=read_sts,
    held_out=_held_out_pairs,
    build_loss=_cosine_loss,
)
TRIPLETS = Objective(
    name="triplets",
    summary="Triplets: a sentence should be closer to a sentence of its own section than to a sentence of another "
    "section.",
    source="Reimers and Gurevych 2019, SBERT; data of Ein Dor et al. 2018",
    presets={"sbert": _SBERT_TRIPLETS, "cpu": _SBERT_TRIPLETS.updated(length_batches=True, eval_steps=200)},
    read=read_triplets,
    held_out=_held_out_triplets,
    build_loss=_triplet_loss,
    sides=("query", "document", "document"),
)
OBJECTIVES: dict[str, Objective] = {objective.name: objective for objective in (NLI, STS, TRIPLETS)}


def find_objective(name: str) -> Objective:
    """Return the objective of that name."""
    if name not in OBJECTIVES:
        raise OptionError(f"there is no objective {name!r}; choose one of {', '.join(OBJECTIVES)}")
    return OBJECTIVES[name]


def _labels_of(folder: Path) -> Path:
    for ending in ("", *COMPRESSED):
        if (labels := folder / f"labels.train{ending}").is_file():
            return labels
    others = ", ".join(str(path) for path in sorted(folder.glob("labels.*")))
    only = f", only {others}" if others else ""
    raise LabelledDataError(f"{folder}: the folder contains no labels.train{only}. Give the path of a file.")


def _side_by_side(labels: Path) -> Iterator[TableRow]:
    """Read SentEval's three files."""
    parts = [labels.with_name(f"{name}.{labels.name.removeprefix('labels.')}") for name in ("s1", "s2", "labels")]
    for path in parts:
        if not path.is_file():
            raise LabelledDataError(f"{path}: no such file: put it next to {labels}, to which it belongs")
    for number, texts in enumerate(zip_longest(*(strict_lines(path, AUTO) for path in parts)), 1):
        if None in texts:
            raise LabelledDataError(
                f"{parts[texts.index(None)]}:{number}: the file is shorter than the others, so the three do not "
                f"match. Copy them from one release."
            )
        yield f"{labels}:{number}", [text.strip() for text in texts]
