"""SemAntoNeg: a test of an encoder's sensitivity to 'not' (Vahtola, Creutz and Tiedemann 2022).

Each row has a sentence with a negation and three candidates that differ from it by a negation, an antonym, or both;
both together mean the same. An encoder that looks at the words alone takes one of the first two: all-MiniLM-L6-v2 is
right in 2% of the rows, where chance is a third.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.evaluation.data import find_file, read_lines
from likewise.evaluation.pairs import pair_cosines
from likewise.evaluation.task import DataError, Prepared, Task, TaskResult

FILE = Path("semantoneg") / "SemAntoNeg_v1.0.jsonl"


@dataclass(frozen=True)
class SemAntoNegTask(Task):
    """The percentage of rows in which only the right candidate has the highest cosine.

    The right candidate is always the last one, so a tie is wrong: an encoder that gives all candidates one vector
    would be right in all rows if the last of equals counted.
    """

    name: str = "semantoneg"
    title: str = "SemAntoNeg"
    size: int = 3152

    def read(self, data: Path) -> Prepared:
        """Read the rows from the data folder or next to it."""
        path = find_file(data, FILE)
        rows = [_row(line, f"{path}:{number}") for number, line in enumerate(read_lines(path), start=1)]
        self.check_count(path, len(rows), "row", self.size)
        labels = np.array([label for _, label in rows])

        def score(vectors: np.ndarray) -> TaskResult:
            return TaskResult(self.name, self.title, "accuracy", 100 * accuracy(vectors, labels), len(labels))

        return Prepared([sentence for row, _ in rows for sentence in row], score)


def accuracy(vectors: np.ndarray, labels: np.ndarray) -> float:
    """Return the share of rows in which only the right candidate is nearest to the input.

    Args:
        vectors: (4R, D): of each row the input, then its three candidates.
        labels: (R,) index of the right candidate.
    """
    grouped = vectors.reshape(len(labels), 4, -1)  # (R, 4, D)
    cosines = np.stack([pair_cosines(grouped[:, 0], grouped[:, i]) for i in (1, 2, 3)], axis=1)  # (R, 3)
    rows = np.arange(len(labels))
    right = cosines[rows, labels]
    cosines[rows, labels] = -np.inf
    return float(np.mean(right > cosines.max(axis=1)))


def _row(line: str, where: str) -> tuple[list[str], int]:
    try:
        record = json.loads(line)
        sentences = [record["input"], *record["sentences"]]
        label = int(record["label"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{where}: not a row of input, sentences and label ({error!r}).") from None
    if len(sentences) != 4 or not all(isinstance(s, str) for s in sentences) or not 0 <= label <= 2:
        raise DataError(f"{where}: a row has an input, three sentences, and a label from 0 to 2.")
    return sentences, label


TASKS = (SemAntoNegTask(),)
