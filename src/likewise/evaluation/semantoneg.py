"""SemAntoNeg: does an encoder see 'not'? (Vahtola, Creutz and Tiedemann 2022.)

Each row has a sentence with a negation and three candidates that differ from it by a negation, an antonym, or both;
both together mean the same. An encoder that looks at the words alone takes one of the first two: all-MiniLM-L6-v2 is
right in 2% of the rows, where chance is a third.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.evaluation.pairs import pair_cosines
from likewise.evaluation.tasks import DataError, Prepared, TaskMissing, TaskResult

FILE = Path("semantoneg") / "SemAntoNeg_v1.0.jsonl"


@dataclass(frozen=True)
class SemAntoNegTask:
    """Share of rows, times 100, in which the right candidate has the highest cosine, and no other as high.

    The right candidate is always the last one, so a tie is wrong: taking the first of equals would make an encoder
    that gives all candidates one vector look careful, and taking the last would make it perfect.
    """

    name: str = "semantoneg"
    title: str = "SemAntoNeg"
    size: int = 3152
    needs_data: bool = True

    def prepare(self, data: Path | None) -> Prepared:
        """Read the rows; see `likewise.evaluation.tasks.Task`. The file lies in the data folder or beside it."""
        folders = [data, data.parent] if data else []
        path = next((folder / FILE for folder in folders if (folder / FILE).is_file()), None)
        if path is None:
            raise TaskMissing(f"there is no file {FILE} in or beside the data folder")
        rows = [_row(line, f"{path}:{number}") for number, line in enumerate(_lines(path), start=1)]
        if len(rows) != self.size:
            raise DataError(f"{path}: {len(rows)} rows, and {self.title} has {self.size}. Put the whole file there.")
        sentences = [sentence for row, _ in rows for sentence in row]
        labels = np.array([label for _, label in rows])

        def score(vectors: np.ndarray) -> TaskResult:
            return TaskResult(self.name, self.title, "accuracy", 100 * accuracy(vectors, labels), len(labels))

        return Prepared(sentences, score)


def accuracy(vectors: np.ndarray, labels: np.ndarray) -> float:
    """Share of rows whose right candidate alone is the nearest to the input.

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


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise DataError(f"{path}: not UTF-8 ({error.reason}). Put the original file there.") from None


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
