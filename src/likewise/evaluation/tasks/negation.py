"""Sensitivity to 'not': SemAntoNeg, and the distance of a sentence from its own negation.

**SemAntoNeg** (Vahtola, Creutz and Tiedemann 2022). Each row has a sentence with a negation and three candidates that
differ from it by a negation, an antonym, or both; both together mean the same. An encoder that looks at the words alone
takes one of the first two: all-MiniLM-L6-v2 is right in 2% of the rows, where chance is a third.

**Negation gap** (Wang et al. 2022, SNCSE, section 4.3): the mean of cos(s, s) - cos(s, not s) over sentences s of STS-B
test and SICK-R. SNCSE calls a small gap feature suppression: the two share nearly all words, and an encoder that looks
at the words takes them for one. The gap alone does not measure quality: an encoder that spreads all sentences far apart
has a large one, so the result also gives the distance of two *different* sentences. The negations are made by rules
(`likewise.augment.negation`), so the gap depends on their version and on the parser's.
"""

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.errors import counted
from likewise.evaluation.data_folder import find_file, read_lines
from likewise.evaluation.pairs import pair_cosines
from likewise.evaluation.task import DataError, Items, Prepared, Task, TaskMissing, TaskResult
from likewise.evaluation.tasks.sts import TASKS as STS_TASKS

FILE = Path("semantoneg") / "SemAntoNeg_v1.0.jsonl"
_SEED = 42  # SNCSE's seed, section 3.2


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
            correct = right_rows(vectors, labels)
            items = Items(correct.astype(np.float64))
            return TaskResult(self.name, self.title, "accuracy", 100 * float(correct.mean()), len(labels), items=items)

        return Prepared([sentence for row, _ in rows for sentence in row], score)


def right_rows(vectors: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return (R,) whether only the right candidate is nearest to the input.

    Args:
        vectors: (4R, D): of each row the input, then its three candidates.
        labels: (R,) index of the right candidate.
    """
    grouped = vectors.reshape(len(labels), 4, -1)  # (R, 4, D)
    cosines = np.stack([pair_cosines(grouped[:, 0], grouped[:, i]) for i in (1, 2, 3)], axis=1)  # (R, 3)
    rows = np.arange(len(labels))
    right = cosines[rows, labels]
    cosines[rows, labels] = -np.inf
    correct: np.ndarray = right > cosines.max(axis=1)
    return correct


@dataclass(frozen=True)
class NegationGapResult(TaskResult):
    """The gap of a model, times 100.

    Attributes:
        median: Median of the gaps, times 100; half of the sentences are closer to their negation.
        other: Mean of 1 - cos(s, t) with another sentence t of the draw, times 100, to compare the gap with.
    """

    COLUMNS = (
        ("Task", "title"),
        ("Mean gap", "score"),
        ("Median gap", "median"),
        ("Gap to another sentence", "other"),
        ("Sentences", "n"),
    )

    median: float
    other: float


@dataclass(frozen=True)
class NegationGapTask(Task):
    """The mean gap over a fixed draw of `size` sentences with a negation; larger is more sensitive to 'not'."""

    name: str = "negation-gap"
    title: str = "Negation gap"
    size: int = 1000

    def read(self, data: Path) -> Prepared:
        """Draw the sentences and negate them."""
        rows = [task.load(data) for task in STS_TASKS if task.name in ("sts-b", "sick-r")]
        sentences = [sentence for pairs in rows for sentence in (*pairs.first, *pairs.second)]
        try:
            from likewise.augment.negation import negate  # spaCy is an extra

            drawn = draw(sentences, self.size, negate)
        except ImportError as error:
            raise TaskMissing(f"it needs the extra 'negation': pip install \"likewise[negation]\" ({error})") from None
        if len(drawn) < self.size:
            raise DataError(
                f"{data}: {counted(len(drawn), 'sentence')} of STS-B test and SICK-R can be negated, but "
                f"{self.title} needs {self.size}. Restore SentEval's original files."
            )

        def score(vectors: np.ndarray) -> TaskResult:
            # The sentences first, then their negations in the same order: (2S, D).
            own, negated = np.split(vectors, 2)
            between = gaps(own, negated)
            # The order is random already: the next sentence is another one at random.
            other = gaps(own, np.roll(own, -1, axis=0))
            mean, median, others = (100 * float(value) for value in (between.mean(), np.median(between), other.mean()))
            items = Items(between)
            return NegationGapResult(self.name, self.title, "gap", mean, self.size, median, others, items=items)

        return Prepared([text for column in zip(*drawn, strict=True) for text in column], score)


def gaps(sentences: np.ndarray, negations: np.ndarray) -> np.ndarray:
    """Return cos(s, s) - cos(s, not s) = 1 - cos(s, not s) of each row: (S, D), (S, D) -> (S,), between 0 and 2.

    >>> gaps(np.array([[1.0, 0.0], [1.0, 0.0]]), np.array([[2.0, 0.0], [0.0, 1.0]])).tolist()
    [0.0, 1.0]
    """
    return 1.0 - pair_cosines(sentences, negations)


def draw(
    sentences: Iterable[str], size: int, negate: Callable[[list[str]], list[str | None]], seed: int = _SEED
) -> list[tuple[str, str]]:
    """Return the first `size` sentences with a negation as pairs (sentence, negation), in an order fixed by the seed.

    Order and repeats of `sentences` do not matter. There are fewer pairs where there are no more negations.
    """
    unique = sorted(set(sentences))
    order = np.random.default_rng(seed).permutation(len(unique))
    drawn: list[tuple[str, str]] = []
    step = max(size // 4, 1)
    for start in range(0, len(order), step):
        chunk = [unique[i] for i in order[start : start + step]]
        drawn += [(s, n) for s, n in zip(chunk, negate(chunk), strict=True) if n is not None]
        if len(drawn) >= size:
            break
    return drawn[:size]


def _row(line: str, where: str) -> tuple[list[str], int]:
    try:
        record = json.loads(line)
        sentences = [record["input"], *record["sentences"]]
        label = int(record["label"])
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(f"{where}: not a row of input, sentences and label ({error!r}).") from None
    if len(sentences) != 4 or not all(isinstance(s, str) for s in sentences) or not 0 <= label <= 2:
        raise DataError(f"{where}: a row must have an input, three sentences, and a label from 0 to 2.")
    return sentences, label


TASKS = (SemAntoNegTask(), NegationGapTask())
