"""Your own rated pairs of sentences, `pairs:FILE`, and their reader, which `finetune sts` shares.

A file has columns called sentence1, sentence2 and score (or as `COLUMNS` lists), in any order and among others: a table
with tabs, or with commas where its name ends in .csv, or JSONL. A table of three columns needs no header: score,
sentence, sentence, or the score last. Scores may be on any scale.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np

from likewise.corpus.csv_rows import SeparatedValues, csv_form
from likewise.corpus.files import format_suffix
from likewise.corpus.formats import Source
from likewise.corpus.known_formats import row_format
from likewise.corpus.tables import TableRow, read_table
from likewise.errors import counted
from likewise.evaluation.data_folder import OwnTask, is_number, table_rows
from likewise.evaluation.pairs import RatedPairs, correlations, prepare_pairs
from likewise.evaluation.task import DataError, Items, Prepared, TaskResult

COLUMNS = {
    "score": ("score", "rating", "similarity", "relatedness_score"),
    "sentence1": ("sentence1", "sentence_a", "text1"),
    "sentence2": ("sentence2", "sentence_b", "text2"),
}
"""The names of each column in files, the likeliest first. Case does not matter."""
_COMMA = re.compile(r"^([+-]?\d{1,20}),(\d{1,20})$")
"""A rating with a decimal comma, as between semicolons."""
_NAMES = {name for names in COLUMNS.values() for name in names}


def rated_rows(path: Path) -> Iterator[TableRow]:
    """Yield the place of each pair of a file, and its score and sentences as texts.

    Raises:
        DataError, CorpusError: the file cannot be read, or its columns cannot be distinguished.
    """
    tabs = format_suffix(path) != ".csv"
    if not isinstance(row_format(path), SeparatedValues):
        yield from read_table(path, COLUMNS)
        return
    form = csv_form(Source(path))
    rows = table_rows(path, "\t" if tabs else form.separator)
    if form.is_named:  # sep=;
        next(rows, None)
    last = False  # where the score is
    for i, (where, cells) in enumerate(rows):
        if form.separator == ";":
            cells = [_COMMA.sub(r"\1.\2", cell) for cell in cells]
        if i == 0 and _NAMES & {cell.lower() for cell in cells} and not any(map(is_number, cells)):
            for place, (score, *sentences) in read_table(path, COLUMNS):
                yield place, [_COMMA.sub(r"\1.\2", score) if form.separator == ";" else score, *sentences]
            return
        if len(cells) != 3:
            raise DataError(
                f"{where}: {counted(len(cells), 'column')}, but without a header a pair has three: score, sentence, "
                f"sentence, with {'tabs' if tabs else 'commas'} between them. Name the columns score, sentence1 and "
                "sentence2 in the first line."
            )
        if i == 0:
            last = is_number(cells[2]) and not is_number(cells[0])
        yield where, [*cells[2:], *cells[:2]] if last else cells


@dataclass(frozen=True)
class RatedFileResult(TaskResult):
    """The agreement of cosines with scores, times 100.

    Attributes:
        spearman: Rank correlation; the main score, unless all scores are 0 or 1.
        average_precision: Average precision of ranking pairs scored 1 before pairs scored 0; the main score in this
            case, otherwise None.
    """

    COLUMNS = (
        ("Task", "title"),
        ("Metric", "metric"),
        ("Score", "score"),
        ("Spearman", "spearman"),
        ("Average precision", "average_precision"),
        ("Pairs", "n"),
    )

    spearman: float
    average_precision: float | None


@dataclass(frozen=True)
class RatedFileTask(OwnTask):
    """Rated pairs of a file."""

    PLACE = "FILE"

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
        if not path.exists():
            raise DataError(f"{self.name}: there is no file '{path}'. Check the path.")
        pairs: list[tuple[str, str, float]] = []
        for where, (score, first, second) in rated_rows(path):
            if not is_number(score) or not math.isfinite(float(score)):
                cure = "" if pairs else " or name the columns score, sentence1 and sentence2"
                raise DataError(f"{where}: the score '{score}' is not a number. Write a number{cure}.")
            if not (first and second):
                raise DataError(f"{where}: a sentence is empty. Complete or remove the line.")
            pairs.append((first, second, float(score)))
        if len({rating for *_, rating in pairs}) < 2:
            what = f"all scores are {pairs[0][2]:g}" if pairs else "there is no pair"
            raise DataError(f"{path}: {what}. Add pairs with different scores: score, sentence, sentence.")
        return RatedPairs.of({"": pairs})

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
