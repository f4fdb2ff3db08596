"""Your own sentences in classes: `classes:FOLDER`.

A folder contains `train.tsv` or `classes-train.tsv`, and `PART.tsv` or `classes-PART.tsv`: label, tab, text. Nothing is
trained on the labels: a text of the part takes the class of its nearest training texts.

Letters of the shapes: N training texts, M texts of the part, D embedding.
"""

import math
from dataclasses import dataclass
from pathlib import Path
from unicodedata import normalize

import numpy as np

from likewise.evaluation.data_folder import OwnTask, table_rows
from likewise.evaluation.pairs import cosines
from likewise.evaluation.task import DataError, Items, Prepared, Rows, TaskResult

NEIGHBOURS = 10
SEED = 42
_BLOCK = 512
_NAMES = {
    "label": ("label", "class", "category", "intent", "topic", "tag"),
    "text": ("text", "sentence", "message", "utterance", "title"),
}
"""The names of the two columns, if a file has a header."""


@dataclass(frozen=True)
class ClassesResult(TaskResult):
    """The accuracy of the 10 nearest neighbors, and the agreement of clusters with classes, times 100.

    Attributes:
        v_measure: V-measure of k-means on the part's vectors, with one cluster per label (Rosenberg and Hirschberg
            2007); NaN without vectors.
        classes: Number of labels in the part.
        training: Number of training texts.
    """

    COLUMNS = (
        ("Task", "title"),
        ("10 neighbours", "score"),
        ("V-measure", "v_measure"),
        ("Texts", "n"),
        ("Classes", "classes"),
        ("Training texts", "training"),
    )

    v_measure: float
    classes: int
    training: int


@dataclass(frozen=True)
class ClassesTask(OwnTask):
    """Classification of a part's texts by their nearest training texts."""

    def load(self) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
        """Read label and text of the training rows and of the part's."""
        if self.part == "train":
            raise DataError(
                f"{self.name}: the neighbours come from the part train. Evaluate another part, such as test."
            )
        training, part = (_labelled(self.find(f"classes-{p}.tsv", f"{p}.tsv")) for p in ("train", self.part))
        if len(training) < NEIGHBOURS:
            raise DataError(
                f"{self.path}: {len(training)} training texts, but {NEIGHBOURS} neighbours are needed. Add more."
            )
        known = {label for label, _ in training}
        if len(known) == 1:
            raise DataError(
                f"{self.path}: all training texts have the label {training[0][0]!r}. Add texts with another label."
            )
        if not known & {label for label, _ in part}:
            other, one = part[0][0], training[0][0]
            raise DataError(
                f"{self.path}: no label of the part {self.part}, such as {other!r}, occurs in the part train, which "
                f"has labels such as {one!r}. Use the same labels in both files."
            )
        return training, part

    def read(self, data: Path) -> Prepared:
        """Read the training texts, then the part's, for the suite."""
        training, part = self.load()
        count = len(training)
        known, right = (np.array([label for label, _ in rows]) for rows in (training, part))

        def result(correct: np.ndarray | None, agreement: float = math.nan) -> TaskResult:
            sizes = (len(right), agreement, len(set(right)), count)
            accuracy = math.nan if correct is None else 100 * float(correct.mean())
            items = None if correct is None else Items(correct.astype(np.float64))
            return ClassesResult(self.name, self.title, "10-nn accuracy", accuracy, *sizes, items=items)

        def score(vectors: np.ndarray) -> TaskResult:
            if not np.isfinite(vectors).all():
                return result(None)  # a broken model has no score here, and keeps its other scores
            vectors = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
            correct = right_neighbours(cosines(vectors[count:], vectors[:count]), known, right)
            return result(correct, 100 * cluster_agreement(vectors[count:], right))

        def score_rows(rows: Rows) -> TaskResult:
            return result(right_neighbours(rows, known, right))

        return Prepared([text for _, text in (*training, *part)], score, score_rows=score_rows, ranked=count)


def right_neighbours(rows: Rows, known: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return (M,) whether most of a text's 10 nearest training texts have its class; of equals the first by name.

    Args:
        rows: Scores of the N training texts, with the labels `known` (N,), for each of M texts.
        right: Labels (M,) of the texts.
    """
    names, places = np.unique(known, return_inverse=True)
    correct = np.zeros(len(right), dtype=bool)
    for start in range(0, len(right), _BLOCK):
        block = slice(start, min(start + _BLOCK, len(right)))
        nearest = np.argpartition(rows(block), -NEIGHBOURS)[:, -NEIGHBOURS:]  # (B, 10)
        votes = [names[np.bincount(places[row]).argmax()] for row in nearest]
        correct[block] = np.array(votes) == right[block]
    return correct


def cluster_agreement(vectors: np.ndarray, right: np.ndarray) -> float:
    """Return the V-measure of k-means with as many clusters as labels: (M, D), (M,).

    The clustering is the best of ten starts by its own inertia, with a fixed seed.
    """
    from sklearn.cluster import KMeans
    from sklearn.metrics import v_measure_score

    return float(v_measure_score(right, KMeans(len(set(right)), n_init=10, random_state=SEED).fit_predict(vectors)))


def _labelled(path: Path) -> list[tuple[str, str]]:
    rows, order = [], (0, 1)
    for i, (where, cells) in enumerate(table_rows(path)):
        kinds = [next((kind for kind, names in _NAMES.items() if cell.lower() in names), "") for cell in cells]
        if i == 0 and sorted(kinds) == ["label", "text"]:  # a header
            order = (kinds.index("label"), kinds.index("text"))
            continue
        if len(cells) != 2 or not all(cells):
            raise DataError(f"{where}: a line must consist of a label, a tab and a text. Correct the line.")
        label, text = (normalize("NFC", cells[place]) for place in order)
        rows.append((label, text))
    if not rows:
        raise DataError(f"{path}: the file is empty. Write a label, a tab and a text on each line.")
    return rows
