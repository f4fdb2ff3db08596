"""The seven transfer tasks of SentEval: classification of frozen vectors (Conneau and Kiela 2018, section 3).

A logistic regression is trained on the vectors, to its optimum. Its regularization is chosen on its training rows
alone, by cross-validation inside of them or on a dev set.

Letters of the shapes: N rows, D embedding, R strengths.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from likewise.evaluation.data_folder import find_file, read_lines
from likewise.evaluation.pairs import pair_features
from likewise.evaluation.task import DataError, Prepared, Task, TaskResult

FOLDS = 10
SEED = 1111  # SentEval's
STRENGTHS = tuple(2.0**power for power in range(-2, 6))
"""Values of C: SentEval's for scikit-learn, and the values of its cross-validation on a training set (2^-1 to 2^5)."""
_SENTIMENT = r"(?P<first>.*)\t\s*(?P<label>[01])\s*", "a sentence, a tab and 0 or 1"
_QUESTION = (
    r"(?P<label>ABBR|DESC|ENTY|HUM|LOC|NUM)(:[^ ]*)? (?P<first>.*\S.*)",
    "a class (ABBR, DESC, ENTY, HUM, LOC, NUM), a colon, a finer class and a question",
)
_PARAPHRASE = (
    r"(?P<label>[01])\t[^\t]*\t[^\t]*\t(?P<first>[^\t]*)\t(?P<second>[^\t]*)",
    "0 or 1, two ids and two sentences, separated by tabs",
)
SEVEN = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
"""The group 'transfer', in the order of the papers' tables."""


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to test on, as indices.

    Attributes:
        checks: Parts of the training rows by which the regularization is chosen.
    """

    train: np.ndarray
    test: np.ndarray
    checks: tuple[Fold, ...] = ()


@dataclass(frozen=True)
class Probed:
    """The result of a probe.

    Attributes:
        accuracy: Mean over the trials of the accuracy on the test rows.
        dev: Mean over the trials of the best mean accuracy over the checks.
        strengths: C of scikit-learn that each trial chose.
        predictions: (N,) the class predicted for each row that is `tested`; the first class elsewhere.
    """

    accuracy: float
    dev: float
    strengths: tuple[float, ...]
    predictions: np.ndarray
    tested: np.ndarray


def folds(labels: np.ndarray, rows: np.ndarray, count: int = FOLDS, seed: int = SEED) -> tuple[Fold, ...]:
    """Split rows into shuffled, stratified folds."""
    from sklearn.model_selection import StratifiedKFold

    cut = StratifiedKFold(count, shuffle=True, random_state=seed).split(rows, labels[rows])
    return tuple(Fold(rows[train], rows[test]) for train, test in cut)


def nested(labels: np.ndarray, count: int = FOLDS, seed: int = SEED) -> tuple[Fold, ...]:
    """Return nested cross-validation trials: each fold is tested once, inner folds select C (MR, CR, SUBJ, MPQA)."""
    return tuple(
        replace(outer, checks=folds(labels, outer.train, count, seed))
        for outer in folds(labels, np.arange(len(labels)), count, seed)
    )


def probe(vectors: np.ndarray, labels: np.ndarray, trials: Sequence[Fold], strengths: Sequence[float]) -> Probed:
    """Train and test classifiers on vectors (N, D) with labels (N,).

    Args:
        strengths: Values of C to choose from; the smallest of equal values wins, as in SentEval.
    """
    vectors, ordered = vectors.astype(np.float64), sorted(strengths)
    predictions, covered = np.full(len(labels), min(labels)), np.zeros(len(labels), dtype=bool)
    shares, chosen, dev = [], [], []
    for trial in trials:
        checked = np.mean([_accuracies(vectors, labels, check, ordered) for check in trial.checks], axis=0)  # (R,)
        # Rounded as SentEval does, so that differences of less than a row do not decide.
        best = int(np.round(100 * checked, 2).argmax())
        model = _classifier(ordered[best]).fit(vectors[trial.train], labels[trial.train])
        predictions[trial.test], covered[trial.test] = model.predict(vectors[trial.test]), True
        shares.append((predictions[trial.test] == labels[trial.test]).mean())
        chosen.append(ordered[best])
        dev.append(checked.max())
    return Probed(float(np.mean(shares)), float(np.mean(dev)), tuple(chosen), predictions, covered)


@dataclass(frozen=True)
class TransferResult(TaskResult):
    """The accuracy of a task, times 100.

    Attributes:
        f1: F1 of the second class, times 100, if the task is reported with it (MRPC).
        dev: Accuracy by which the regularization was chosen, times 100.
        strengths: Values of C that were chosen, one for each tested fold.
        seed: Random seed of the folds.
    """

    COLUMNS = (
        ("Task", "title"),
        ("Accuracy", "score"),
        ("F1", "f1"),
        ("Dev accuracy", "dev"),
        ("C", "chosen"),
        ("Items", "n"),
    )

    f1: float | None
    dev: float
    strengths: tuple[float, ...]
    seed: int

    @property
    def chosen(self) -> str:
        """The range of `strengths`, as text."""
        ends = dict.fromkeys((min(self.strengths, default=None), max(self.strengths, default=None)))
        return " to ".join("-" if end is None else f"{end:g}" for end in ends)


class TransferFile(NamedTuple):
    """A data file: its path in the data folder and its number of rows.

    Attributes:
        row: Pattern of its lines, with the sentences and the label as groups.
        form: Pattern in words.
        label: Label of all rows, if the lines have none.
    """

    path: str
    size: int
    row: str = "(?P<first>.*)"
    form: str = "a sentence"
    part: Literal["train", "dev", "test", "all"] = "all"
    label: str = ""
    header: bool = False
    encoding: str = "utf-8"


@dataclass(frozen=True)
class TransferTask(Task):
    """A task of labeled sentences or pairs.

    A task with a part "all" is tested by cross-validation, with another one inside to choose the regularization; one
    with a "dev" part chooses on that, and others by cross-validation on "train"; both are tested on "test".
    """

    files: tuple[TransferFile, ...]
    pairs: bool = False
    seed: int = SEED
    strengths: tuple[float, ...] = STRENGTHS

    def load(self, data: Path) -> tuple[list[tuple[str, ...]], np.ndarray, np.ndarray]:
        """Read the texts of all rows, N of one or two, their labels, (N,), and their parts, (N,); raise as `read`."""
        texts, labels, parts = list[tuple[str, ...]](), list[str](), list[str]()
        for file in self.files:
            path = find_file(data, file.path)
            lines = read_lines(path, file.encoding)[file.header :]
            for place, line in enumerate(lines, start=1 + file.header):
                if (match := re.fullmatch(file.row, line)) is None:
                    raise DataError(f"{path}:{place}: a line must consist of {file.form}. Copy the file again.")
                cells = match.groupdict()
                labels.append(cells.pop("label", file.label))
                # An empty line is a full stop, as in SentEval's examples.
                texts.append(tuple(" ".join(text.split()) or "." for text in cells.values()))
            self.check_count(path, len(lines), "row", file.size)
            parts += [file.part] * len(lines)
        return texts, np.array(labels), np.array(parts)

    def trials(self, labels: np.ndarray, parts: np.ndarray) -> tuple[Fold, ...]:
        """Return the trials of rows with these labels (N,) and parts (N,)."""
        if (parts == "all").any():
            return nested(labels, seed=self.seed)
        train, dev, test = (np.flatnonzero(parts == part) for part in ("train", "dev", "test"))
        checks = (Fold(train, dev),) if len(dev) else folds(labels, train, seed=self.seed)
        return (Fold(train, test, checks=checks),)

    def read(self, data: Path) -> Prepared:
        """Read the rows for the suite."""
        texts, labels, parts = self.load(data)

        def score(vectors: np.ndarray) -> TaskResult:
            from sklearn.metrics import f1_score

            if self.pairs:
                # All first sentences, then all second ones: (2N, D).
                vectors = pair_features(*np.split(vectors, 2))
            if not np.isfinite(vectors).all():
                # A broken model has no score here, and keeps its other scores.
                return TransferResult(self.name, self.title, "accuracy", math.nan, 0, None, math.nan, (), self.seed)
            probed = probe(vectors, labels, self.trials(labels, parts), self.strengths)
            sides = labels[probed.tested], probed.predictions[probed.tested]
            f1 = 100 * float(f1_score(*sides, pos_label="1", zero_division=0)) if self.pairs else None
            measures = (int(probed.tested.sum()), f1, 100 * probed.dev, probed.strengths, self.seed)
            return TransferResult(self.name, self.title, "accuracy", 100 * probed.accuracy, *measures)

        return Prepared([text for column in zip(*texts, strict=True) for text in column], score)


def _two_files(name: str, second: tuple[str, int], first: tuple[str, int]) -> TransferTask:
    """Return a task with one file for each class, the second class first, as SentEval has them."""
    files = tuple(
        TransferFile(path, size, label=label, encoding="latin-1")
        for (path, size), label in ((second, "1"), (first, "0"))
    )
    return TransferTask(name.lower(), name, files)


def _accuracies(vectors: np.ndarray, labels: np.ndarray, fold: Fold, strengths: Sequence[float]) -> list[float]:
    """Return the accuracy on the test rows of a fold for each strength (R,), from the strongest regularization on.

    Each optimum is the start of the search for the next.
    """
    model = _classifier(strengths[0])
    train, right = (vectors[fold.train], labels[fold.train]), (vectors[fold.test], labels[fold.test])
    return [model.set_params(C=strength).fit(*train).score(*right) for strength in strengths]


def _classifier(strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, tol=1e-4, max_iter=2000, warm_start=True)


_SST = (
    TransferFile("SST/binary/sentiment-train", 67349, *_SENTIMENT, "train"),
    TransferFile("SST/binary/sentiment-dev", 872, *_SENTIMENT, "dev"),
    TransferFile("SST/binary/sentiment-test", 1821, *_SENTIMENT, "test"),
)
_TREC = (
    TransferFile("TREC/train_5500.label", 5452, *_QUESTION, "train", encoding="latin-1"),
    TransferFile("TREC/TREC_10.label", 500, *_QUESTION, "test", encoding="latin-1"),
)
_MRPC = (
    TransferFile("MRPC/msr_paraphrase_train.txt", 4076, *_PARAPHRASE, "train", header=True),
    TransferFile("MRPC/msr_paraphrase_test.txt", 1725, *_PARAPHRASE, "test", header=True),
)
TASKS: tuple[TransferTask, ...] = (
    _two_files("MR", ("MR/rt-polarity.pos", 5331), ("MR/rt-polarity.neg", 5331)),  # Pang and Lee 2005
    _two_files("CR", ("CR/custrev.pos", 2407), ("CR/custrev.neg", 1368)),  # Hu and Liu 2004
    _two_files("SUBJ", ("SUBJ/subj.objective", 5000), ("SUBJ/subj.subjective", 5000)),  # Pang and Lee 2004
    _two_files("MPQA", ("MPQA/mpqa.pos", 3312), ("MPQA/mpqa.neg", 7294)),  # Wiebe et al. 2005
    TransferTask("sst2", "SST-2", _SST),  # Socher et al. 2013
    TransferTask("trec", "TREC", _TREC),  # Voorhees and Tice 2000
    TransferTask("mrpc", "MRPC", _MRPC, pairs=True),  # Dolan and Brockett 2005
)
