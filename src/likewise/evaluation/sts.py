"""Semantic textual similarity: STS 2012-2016, STS Benchmark and SICK relatedness, in SentEval's layout.

Each task is data (habit 10): which files, which columns, which scale, how many pairs. The seven test sets are
those of the papers' tables. STS13's SMT part is not among them: its sentences were never free to pass on, and
the papers leave it out as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.evaluation.pairs import pair_cosines, score_pairs
from likewise.evaluation.tasks import DataError, Prepared, TaskMissing, TaskResult


@dataclass(frozen=True)
class StsFile:
    """One file of pairs.

    Attributes:
        subset: its name within the task.
        path: the file, relative to the data folder.
        size: how many rated pairs it has, which is checked when it is read.
        gold: a second file with a rating a line, an empty line where a pair was not rated; None where the
            rating is a column.
        columns: where the two sentences are, in tab-separated columns from 0.
        gold_column: where the rating is, if it is a column.
        header: whether the first line names the columns.
    """

    subset: str
    path: str
    size: int
    gold: str | None = None
    columns: tuple[int, int] = (0, 1)
    gold_column: int | None = None
    header: bool = False


@dataclass(frozen=True)
class Pairs:
    """Rated pairs: `first`, `second` and `gold` (P,) side by side, and where each subset is among them."""

    first: list[str]
    second: list[str]
    gold: np.ndarray
    subsets: tuple[tuple[str, slice], ...] = ()


@dataclass(frozen=True)
class StsTask:
    """A task of rated pairs: its files, the scale of its ratings and where it comes from."""

    name: str
    title: str
    files: tuple[StsFile, ...]
    scale: tuple[float, float]
    source: str
    needs_data: bool = True

    @property
    def size(self) -> int:
        """How many rated pairs it has."""
        return sum(file.size for file in self.files)

    def load(self, data: Path) -> Pairs:
        """Read all pairs, the files one after another.

        Raises:
            TaskMissing: a file is not there.
            DataError: a file is malformed or does not have the pairs that it should.
        """
        first: list[str] = []
        second: list[str] = []
        gold: list[float] = []
        subsets: list[tuple[str, slice]] = []
        for file in self.files:
            for path in (file.path, file.gold):
                if path is not None and not (data / path).is_file():
                    raise TaskMissing(f"there is no file {path}")
            start = len(gold)
            for one, other, rating in _read(data, file, self.scale):
                first.append(one)
                second.append(other)
                gold.append(rating)
            if len(gold) - start != file.size:
                raise DataError(
                    f"{data / file.path}: {len(gold) - start} rated pairs, and {self.title} has {file.size} "
                    f"there. Put SentEval's own file in its place."
                )
            subsets.append((file.subset, slice(start, len(gold))))
        return Pairs(first, second, np.array(gold), tuple(subsets))

    def prepare(self, data: Path | None) -> Prepared:
        """Read the pairs for the suite; see `likewise.evaluation.tasks.Task`."""
        if data is None:
            raise TaskMissing("no data folder")
        pairs = self.load(data)

        def score(vectors: np.ndarray) -> TaskResult:
            # Two sentences a pair, first all first ones: (2P, D).
            count = len(pairs.gold)
            cosines = pair_cosines(vectors[:count], vectors[count:])
            return score_pairs(self.name, self.title, cosines, pairs.gold, pairs.subsets)

        return Prepared([*pairs.first, *pairs.second], score)


def _read(data: Path, file: StsFile, scale: tuple[float, float]) -> list[tuple[str, str, float]]:
    """The rated pairs of one file."""
    path = data / file.path
    rows = _lines(path)[int(file.header) :]
    offset = 1 + int(file.header)
    ratings: list[str] | None = None
    if file.gold is not None:
        ratings = _lines(data / file.gold)
        if len(ratings) != len(rows):
            raise DataError(
                f"{data / file.gold}: {len(ratings)} lines of ratings for the {len(rows)} pairs of "
                f"{path.name}. The two files do not belong together; copy both from the same release."
            )
    found = []
    for i, row in enumerate(rows):
        if ratings is not None and not ratings[i].strip():
            continue  # not rated
        where = f"{path}, line {i + offset}"
        cells = row.split("\t")
        needed = max(*file.columns, file.gold_column or 0) + 1
        if len(cells) < needed:
            raise DataError(
                f"{where}: {len(cells)} tab-separated columns, and {needed} are needed. Was the file saved "
                f"with blanks for tabs?"
            )
        if ratings is not None:
            where = f"{data / str(file.gold)}, line {i + 1}"
            rating = ratings[i]
        else:
            rating = cells[file.gold_column or 0]
        found.append((*(cells[column].strip() for column in file.columns), _number(rating, scale, where)))
    return found  # type: ignore[return-value]  # two columns, one number


def _number(text: str, scale: tuple[float, float], where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise DataError(
            f"{where}: '{text.strip()}' is no rating. Put a number there, or copy the file again."
        ) from None
    low, high = scale
    if not low <= value <= high:
        raise DataError(f"{where}: the rating {value:g} is outside {low:g} to {high:g}. Copy the file again.")
    return value


def _lines(path: Path) -> list[str]:
    """All lines; split at line feeds alone, as some sentences hold other characters that Python breaks at."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = path.read_bytes()[: error.start].count(b"\n") + 1
        raise DataError(f"{path}, line {line}: not UTF-8. Copy the file again, or convert it with iconv.") from None
    lines = [line.removesuffix("\r") for line in text.split("\n")]
    return lines[:-1] if lines and not lines[-1] else lines


def _year(year: int, sizes: dict[str, int], source: str) -> StsTask:
    """A task of one of the yearly SemEval sets: an input and a gold file a subset."""
    folder = f"STS/STS{year}-en-test"
    files = tuple(
        StsFile(subset, f"{folder}/STS.input.{subset}.txt", size, gold=f"{folder}/STS.gs.{subset}.txt")
        for subset, size in sizes.items()
    )
    return StsTask(f"sts{year}", f"STS{year}", files, (0.0, 5.0), source)


def _benchmark(name: str, part: str, size: int) -> StsTask:
    """A part of the STS Benchmark: one file, the rating in column 4, the sentences in 5 and 6."""
    file = StsFile(part, f"STS/STSBenchmark/sts-{part}.csv", size, columns=(5, 6), gold_column=4)
    title = "STS-B" if part == "test" else f"STS-B {part}"
    return StsTask(name, title, (file,), (0.0, 5.0), "Cer et al. 2017, SemEval-2017 task 1")


TASKS: tuple[StsTask, ...] = (
    _year(
        12,
        {"MSRpar": 750, "MSRvid": 750, "SMTeuroparl": 459, "surprise.OnWN": 750, "surprise.SMTnews": 399},
        "Agirre et al. 2012, SemEval-2012 task 6",
    ),
    _year(13, {"FNWN": 189, "headlines": 750, "OnWN": 561}, "Agirre et al. 2013, *SEM 2013 shared task"),
    _year(
        14,
        {
            "deft-forum": 450,
            "deft-news": 300,
            "headlines": 750,
            "images": 750,
            "OnWN": 750,
            "tweet-news": 750,
        },
        "Agirre et al. 2014, SemEval-2014 task 10",
    ),
    _year(
        15,
        {"answers-forums": 375, "answers-students": 750, "belief": 375, "headlines": 750, "images": 750},
        "Agirre et al. 2015, SemEval-2015 task 2",
    ),
    _year(
        16,
        {
            "answer-answer": 254,
            "headlines": 249,
            "plagiarism": 230,
            "postediting": 244,
            "question-question": 209,
        },
        "Agirre et al. 2016, SemEval-2016 task 1",
    ),
    _benchmark("sts-b", "test", 1379),
    StsTask(
        "sick-r",
        "SICK-R",
        (StsFile("test", "SICK/SICK_test_annotated.txt", 4927, columns=(1, 2), gold_column=3, header=True),),
        (1.0, 5.0),
        "Marelli et al. 2014, LREC",
    ),
    _benchmark("sts-b-dev", "dev", 1500),
    _benchmark("sts-b-train", "train", 5749),
)

# What 'sts' stands for, in the order of the papers' tables.
SEVEN = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
