"""Semantic textual similarity: STS 2012-2016, STS Benchmark and SICK relatedness, in SentEval's layout.

The seven test sets are the papers' tables. STS13 lacks its part SMT, whose sentences were never free to pass
on; the papers leave it out as well.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from likewise.evaluation.data_folder import find_data, find_file, read_lines, read_rating
from likewise.evaluation.pairs import RatedPairs, prepare_pairs, score_pairs
from likewise.evaluation.task import DataError, Prepared, Task, TaskMissing

_SCALE = (0.0, 5.0)
SEVEN = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
"""The group 'sts', in the order of the papers' tables."""


class StsFile(NamedTuple):
    """One file of `size` pairs, in tab-separated columns from 0.

    Attributes:
        gold: Second file with one rating per line, which is empty for a pair without a rating; or None.
        columns: Columns of the two sentences.
        gold_column: Column of the rating, if `gold` is None.
    """

    subset: str
    path: str
    size: int
    gold: str | None = None
    columns: tuple[int, int] = (0, 1)
    gold_column: int = 0
    header: bool = False


@dataclass(frozen=True)
class StsTask(Task):
    """A task of rated pairs: its files and the scale of its ratings.

    Attributes:
        without: Tasks whose pairs are excluded from this task.
    """

    files: tuple[StsFile, ...]
    scale: tuple[float, float]
    without: tuple["StsTask", ...] = field(default=(), kw_only=True)

    def pairs(self, data: str | os.PathLike[str] | None = None) -> RatedPairs:
        """Read all pairs from the data folder, which `find_data` finds."""
        folder = find_data(data)
        try:
            return self.load(folder)
        except TaskMissing as reason:
            raise DataError(f"No {self.title} in '{folder}': {reason}. Restore SentEval's file.") from None

    def load(self, data: Path) -> RatedPairs:
        """Read all pairs from a folder, the files one after another; raises as `read` does."""
        subsets = {file.subset: _read(data, file, self.scale) for file in self.files}
        for file in self.files:
            self.check_count(data / file.path, len(subsets[file.subset]), "rated pair", file.size)
        return RatedPairs.of(subsets)

    def read(self, data: Path) -> Prepared:
        """Read the pairs for the suite, without the pairs of the tasks in `without`."""
        pairs = self.load(data)
        others = [other.load(data) for other in self.without]
        known = {pair_key(*pair) for other in others for pair in zip(other.first, other.second, strict=True)}
        by_subset: dict[str, list[tuple[str, str, float]]] = {name: [] for name, _ in pairs.subsets}
        for *pair, gold, subset in zip(pairs.first, pairs.second, pairs.gold, pairs.subset_names, strict=True):
            if not known or pair_key(*pair) not in known:
                by_subset[subset].append((*pair, gold))
        clean = RatedPairs.of({name: rows for name, rows in by_subset.items() if rows})
        left_out = len(pairs.gold) - len(clean.gold)
        return prepare_pairs(
            clean, lambda scores: replace(score_pairs(self, scores, clean.gold, clean.subsets), left_out=left_out)
        )


def pair_key(first: str, second: str) -> frozenset[str]:
    """Return the letters and digits of both sentences, in no order, by which two pairs are the same.

    >>> pair_key("A man is cutting.", "Dogs run") == pair_key("dogs run!", "A man is cutting")
    True
    """
    return frozenset("".join(char for char in text.casefold() if char.isalnum()) for text in (first, second))


def without_overlap(tasks: Iterable[Task]) -> list[Task]:
    """Return the tasks with the pairs of STS-B train and dev excluded from every other test of the seven.

    Most pairs of STS-B come from the tests of 2012 to 2016: a checkpoint selected on STS-B dev, or trained on STS-B
    train, has seen them.
    """
    seen = tuple(task for task in TASKS if task.name in ("sts-b-train", "sts-b-dev"))
    return [replace(task, without=seen) if isinstance(task, StsTask) and task.name in SEVEN else task for task in tasks]


def _read(data: Path, file: StsFile, scale: tuple[float, float]) -> list[tuple[str, str, float]]:
    """Return the rated pairs of one file."""
    path, gold = find_file(data, file.path), find_file(data, file.gold) if file.gold else None
    rows = read_lines(path)[int(file.header) :]
    ratings = read_lines(gold) if gold else None
    if ratings is not None and len(ratings) != len(rows):
        raise DataError(
            f"{gold}: {len(ratings)} lines of ratings for the {len(rows)} pairs of {path.name}. The two files do not "
            f"match; copy both from the same release."
        )
    needed = max(*file.columns, file.gold_column) + 1
    pairs = []
    for i, row in enumerate(rows):
        if ratings is not None and not ratings[i].strip():
            continue  # not rated
        where = f"{path}:{i + 1 + int(file.header)}"
        cells = row.split("\t")
        if len(cells) < needed:
            raise DataError(
                f"{where}: {len(cells)} tab-separated columns, but {needed} are needed. If the file was saved with "
                f"spaces instead of tabs, copy it again."
            )
        rating, where = (cells[file.gold_column], where) if ratings is None else (ratings[i], f"{gold}:{i + 1}")
        first, second = (cells[column].strip() for column in file.columns)
        pairs.append((first, second, read_rating(rating, scale, where)))
    return pairs


def _year(year: int, sizes: dict[str, int]) -> StsTask:
    """Return the task of a SemEval year, with an input and a gold file for each subset."""
    folder = f"STS/STS{year}-en-test"
    files = tuple(
        StsFile(subset, f"{folder}/STS.input.{subset}.txt", size, gold=f"{folder}/STS.gs.{subset}.txt")
        for subset, size in sizes.items()
    )
    return StsTask(f"sts{year}", f"STS{year}", files, _SCALE)


def _benchmark(name: str, part: str, size: int) -> StsTask:
    """Return a part of the STS Benchmark: one file, the rating in column 4, the sentences in 5 and 6."""
    file = StsFile(part, f"STS/STSBenchmark/sts-{part}.csv", size, columns=(5, 6), gold_column=4)
    return StsTask(name, "STS-B" if part == "test" else f"STS-B {part}", (file,), _SCALE)


_SICK = StsFile("test", "SICK/SICK_test_annotated.txt", 4927, columns=(1, 2), gold_column=3, header=True)
# Agirre et al. 2012 to 2016 (SemEval), Cer et al. 2017 (STS Benchmark), Marelli et al. 2014 (SICK).
TASKS: tuple[StsTask, ...] = (
    _year(12, {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399}),
    _year(13, {"FNWN": 189, "headlines": 750, "OnWN": 561}),
    _year(14, {"deft-forum": 450, "deft-news": 300, "headlines": 750, "images": 750, "OnWN": 750, "tweet-news": 750}),
    _year(15, {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750}),
    _year(
        16, {"answer-answer": 254, "headlines": 249, "plagiarism": 230, "postediting": 244, "question-question": 209}
    ),
    _benchmark("sts-b", "test", 1379),
    StsTask("sick-r", "SICK-R", (_SICK,), (1.0, 5.0)),
    _benchmark("sts-b-dev", "dev", 1500),
    _benchmark("sts-b-train", "train", 5749),
)
