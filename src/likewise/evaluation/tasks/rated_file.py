"""Your own rated pairs of sentences: `pairs:FILE`.

The file is a table with tabs, or with commas where its name ends in .csv: score, sentence, sentence; or columns called
sentence1, sentence2 and score, in any order. Scores may be on any scale.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

import numpy as np

from likewise.corpus.files import format_suffix
from likewise.evaluation.data import OwnTask, is_number, table_rows
from likewise.evaluation.pairs import RatedPairs, correlations, prepare_pairs
from likewise.evaluation.task import DataError, Items, Prepared, TaskResult

_COLUMNS = ("score", "sentence1", "sentence2")


@dataclass(frozen=True)
class RatedFileResult(TaskResult):
    """The agreement of cosines with scores, times 100.

    Attributes:
        spearman: the rank correlation; the main score, unless all scores are 0 or 1.
        average_precision: of ranking the pairs scored 1 before those scored 0; the main score there, else None.
    """

    COLUMNS: ClassVar[Mapping[str, str]] = {
        "Task": "title",
        "Metric": "metric",
        "Score": "score",
        "Spearman": "spearman",
        "Average precision": "average_precision",
        "Pairs": "n",
    }

    spearman: float
    average_precision: float | None


@dataclass(frozen=True)
class RatedFileTask(OwnTask):
    """Rated pairs of a file."""

    @classmethod
    def at(cls, name: str, place: str) -> Self:
        """Return the task on a file."""
        path = Path(place).expanduser()
        # The folder tells one pairs-test.tsv from another.
        title = "/".join(part.partition(".")[0] or part for part in path.resolve().parts[-2:])
        return cls(name, title, path, needs_data=False)

    def load(self) -> RatedPairs:
        """Read the file."""
        path = self.path
        if not path.is_file():
            raise DataError(f"{self.name}: there is no file '{path}'. Check the path.")
        rows = table_rows(path, "," if format_suffix(path) == ".csv" else "\t")
        places = [0, 1, 2]
        found: list[tuple[str, str, float]] = []
        for i, (where, cells) in enumerate(rows):
            names = [cell.lower() for cell in cells]
            if i == 0 and set(_COLUMNS) <= set(names):
                places = [names.index(name) for name in _COLUMNS]
                continue
            if len(cells) <= max(places):
                raise DataError(
                    f"{where}: {len(cells)} columns, and a pair has three: score, sentence, sentence, with tabs "
                    "between them."
                )
            score, first, second = (cells[place] for place in places)
            if not is_number(score) or not math.isfinite(float(score)):
                cure = " or name the columns score, sentence1 and sentence2" if i == 0 else ""
                raise DataError(f"{where}: the score '{score}' is not a number. Put one there{cure}.")
            if not (first and second):
                raise DataError(f"{where}: a sentence is empty. Write it, or remove the line.")
            found.append((first, second, float(score)))
        if len({rating for *_, rating in found}) < 2:
            what = f"all scores are {found[0][2]:g}" if found else "there is no pair"
            raise DataError(f"{path}: {what}. Put pairs with different scores there: score, sentence, sentence.")
        return RatedPairs.of({"": found})

    def read(self, data: Path) -> Prepared:
        """Read the pairs for the suite."""
        pairs = self.load()
        return prepare_pairs(pairs, lambda scores: self._result(scores, pairs.gold))

    def _result(self, scores: np.ndarray, gold: np.ndarray) -> RatedFileResult:
        spearman, _ = correlations(scores, gold)
        if not set(gold) <= {0.0, 1.0}:
            items = None if math.isnan(spearman) else Items(scores, gold)
            return RatedFileResult(self.name, self.title, "spearman", spearman, len(gold), spearman, None, items=items)
        from sklearn.metrics import average_precision_score

        precision = math.nan if math.isnan(spearman) else 100 * float(average_precision_score(gold, scores))
        return RatedFileResult(self.name, self.title, "average precision", precision, len(gold), spearman, precision)
