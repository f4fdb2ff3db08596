"""The seven transfer tasks of SentEval: classification of frozen vectors (Conneau and Kiela 2018).

The classifier is a logistic regression at its optimum; see `probe.py`.

Letters of the shapes: N rows, D embedding.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

import numpy as np

from likewise.evaluation.data import find_file, read_lines
from likewise.evaluation.pairs import pair_features
from likewise.evaluation.probe import SEED, Fold, folds, nested, probe
from likewise.evaluation.task import DataError, Prepared, Task, TaskResult

STRENGTHS = tuple(2.0**power for power in range(-2, 6))
"""Values of C: SentEval's for scikit-learn, and those of its cross-validation on a training set (2^-1 to 2^5)."""


@dataclass(frozen=True)
class TransferResult(TaskResult):
    """The accuracy of a task, times 100.

    Attributes:
        f1: of the second class, times 100, where the task is reported with it (MRPC).
        dev: the accuracy by which the regularisation was chosen, times 100.
        strengths: the values of C that were chosen, one for each tested fold.
        seed: of the folds.
    """

    COLUMNS: ClassVar[Mapping[str, str]] = {
        "Task": "title",
        "Accuracy": "score",
        "F1": "f1",
        "Dev accuracy": "dev",
        "C": "chosen",
        "Items": "n",
    }

    f1: float | None
    dev: float
    strengths: tuple[float, ...]
    seed: int

    @property
    def chosen(self) -> str:
        """The range of `strengths`, as text."""
        ends = dict.fromkeys((min(self.strengths, default=None), max(self.strengths, default=None)))
        return " to ".join("-" if end is None else f"{end:g}" for end in ends)


class LabelledTexts(NamedTuple):
    """A labelled row: a sentence, or two for a task of pairs."""

    texts: tuple[str, ...]
    label: str


class TransferFile(NamedTuple):
    """A data file: its path in the data folder, its number of rows, and their reader.

    `row` reads a line, and raises a ValueError with the reason where it cannot.
    """

    path: str
    size: int
    row: Callable[[str], LabelledTexts]
    part: Literal["train", "dev", "test", "all"] = "all"
    header: bool = False
    encoding: str = "utf-8"


@dataclass(frozen=True)
class TransferTask(Task):
    """A task of labelled sentences or pairs.

    A task with a part "all" is tested by cross-validation, with another one inside to choose the regularisation; one
    with a "dev" part chooses on that, and others by cross-validation on "train"; both are tested on "test".
    """

    files: tuple[TransferFile, ...]
    pairs: bool = False
    seed: int = SEED
    strengths: tuple[float, ...] = STRENGTHS

    def load(self, data: Path) -> tuple[list[LabelledTexts], np.ndarray]:
        """Read all rows of all files, and the part of each row, (N,); raise as `read` does."""
        rows: list[LabelledTexts] = []
        parts: list[str] = []
        for file in self.files:
            path = find_file(data, file.path)
            lines = read_lines(path, file.encoding)[file.header :]
            for place, line in enumerate(lines, start=1 + file.header):
                try:
                    rows.append(file.row(line))
                except ValueError as error:
                    raise DataError(f"{path}, line {place}: {error}. Copy the file again.") from None
            self.check_count(path, len(lines), "row", file.size)
            parts += [file.part] * len(lines)
        return rows, np.array(parts)

    def trials(self, labels: np.ndarray, parts: np.ndarray) -> tuple[Fold, ...]:
        """Return the trials of rows with these labels (N,) and parts (N,)."""
        if (parts == "all").any():
            return nested(labels, seed=self.seed)
        train, dev, test = (np.flatnonzero(parts == part) for part in ("train", "dev", "test"))
        checks = (Fold(train, dev),) if len(dev) else folds(labels, train, seed=self.seed)
        return (Fold(train, test, checks=checks),)

    def read(self, data: Path) -> Prepared:
        """Read the rows for the suite."""
        rows, parts = self.load(data)
        labels = np.array([row.label for row in rows])

        def score(vectors: np.ndarray) -> TaskResult:
            from sklearn.metrics import f1_score

            if self.pairs:
                # All first sentences, then all second ones: (2N, D).
                vectors = pair_features(vectors[: len(rows)], vectors[len(rows) :])
            if not np.isfinite(vectors).all():
                # A broken model has no score here, and keeps those of the other tasks.
                return TransferResult(self.name, self.title, "accuracy", math.nan, 0, None, math.nan, (), self.seed)
            found = probe(vectors, labels, self.trials(labels, parts), self.strengths)
            f1 = None
            if self.pairs:
                sides = labels[found.tested], found.predictions[found.tested]
                f1 = 100 * float(f1_score(*sides, pos_label="1", zero_division=0))
            measures = (int(found.tested.sum()), f1, 100 * found.dev, found.strengths, self.seed)
            return TransferResult(self.name, self.title, "accuracy", 100 * found.accuracy, *measures)

        columns = zip(*(row.texts for row in rows), strict=True)
        return Prepared([text for column in columns for text in column], score)


def _sentence(text: str) -> str:
    """Return a line with single spaces, or a full stop if it is empty, as in SentEval's examples."""
    return " ".join(text.split()) or "."


def _labelled(label: str) -> Callable[[str], LabelledTexts]:
    """Return a reader of lines that are sentences of the same class."""
    return lambda line: LabelledTexts((_sentence(line),), label)


def _sst(line: str) -> LabelledTexts:
    text, tab, label = line.rpartition("\t")
    if not tab or label.strip() not in ("0", "1"):
        raise ValueError("not a sentence, a tab and 0 or 1")
    return LabelledTexts((_sentence(text),), label.strip())


_QUESTIONS = ("ABBR", "DESC", "ENTY", "HUM", "LOC", "NUM")


def _trec(line: str) -> LabelledTexts:
    kind, _, text = line.partition(" ")
    coarse = kind.split(":")[0]
    if coarse not in _QUESTIONS or not text.strip():
        raise ValueError(f"not a class ({', '.join(_QUESTIONS)}), a colon, a finer class and a question")
    return LabelledTexts((_sentence(text),), coarse)


def _mrpc(line: str) -> LabelledTexts:
    cells = line.split("\t")
    if len(cells) != 5 or cells[0] not in ("0", "1"):
        raise ValueError("not 0 or 1, two ids and two sentences, with tabs between them")
    return LabelledTexts((_sentence(cells[3]), _sentence(cells[4])), cells[0])


def _two_files(name: str, second: tuple[str, int], first: tuple[str, int]) -> TransferTask:
    """Return a task with one file for each class, the second class first, as SentEval has them."""
    files = tuple(
        TransferFile(path, size, _labelled(label), encoding="latin-1")
        for (path, size), label in ((second, "1"), (first, "0"))
    )
    return TransferTask(name.lower(), name, files)


_SST = (
    TransferFile("SST/binary/sentiment-train", 67349, _sst, "train"),
    TransferFile("SST/binary/sentiment-dev", 872, _sst, "dev"),
    TransferFile("SST/binary/sentiment-test", 1821, _sst, "test"),
)
_TREC = (
    TransferFile("TREC/train_5500.label", 5452, _trec, "train", encoding="latin-1"),
    TransferFile("TREC/TREC_10.label", 500, _trec, "test", encoding="latin-1"),
)
_MRPC = (
    TransferFile("MRPC/msr_paraphrase_train.txt", 4076, _mrpc, "train", header=True),
    TransferFile("MRPC/msr_paraphrase_test.txt", 1725, _mrpc, "test", header=True),
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

SEVEN = ("mr", "cr", "subj", "mpqa", "sst2", "trec", "mrpc")
"""The group 'transfer', in the order of the papers' tables."""
