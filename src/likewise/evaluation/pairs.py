"""Rated sentence pairs: their cosines, and the correlation with human ratings.

Letters of the shapes: P pairs, D embedding.
"""

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Self

import numpy as np

from likewise.evaluation.task import Items, Prepared, Rows, Task, TaskResult

Distance = Literal["euclidean", "cosine", "manhattan"]


@dataclass(frozen=True)
class RatedPairs:
    """Rated pairs, as the parallel sequences `first`, `second` and `gold` (P,), with the rows of each subset."""

    first: list[str]
    second: list[str]
    gold: np.ndarray
    subsets: tuple[tuple[str, slice], ...] = ()

    @classmethod
    def of(cls, subsets: Mapping[str, Sequence[tuple[str, str, float]]]) -> Self:
        """Return the rows (first, second, rating) of subsets, one subset after another."""
        first, second, gold = zip(*(row for rows in subsets.values() for row in rows), strict=True)
        ends = np.cumsum([len(rows) for rows in subsets.values()]).tolist()
        places = zip(subsets, map(slice, [0, *ends], ends), strict=True)
        return cls(list(first), list(second), np.array(gold), tuple(places))

    @property
    def subset_names(self) -> np.ndarray:
        """The subset of each pair, (P,)."""
        return np.repeat([name for name, _ in self.subsets], [where.stop - where.start for _, where in self.subsets])


@dataclass(frozen=True)
class SubsetResult:
    """The scores of one subset of a task, times 100, over its `n` pairs."""

    name: str
    spearman: float
    pearson: float
    n: int


@dataclass(frozen=True)
class PairResult(TaskResult):
    """The scores of a task of rated pairs, all times 100.

    Attributes:
        spearman, pearson: Correlations over all pairs of the task in one list, as in the papers ('all', see SimCSE, Gao
            et al. 2021, appendix B).
        subsets: Results of each subset; empty if the task has only one.
        weighted: Mean of the subsets' Spearman weighted by their pairs ('wmean'); None without subsets.
        mean: Plain mean of the subsets' Spearman ('mean'); None without subsets.
        left_out: Number of pairs that were excluded because STS-B train or dev contains them.
    """

    COLUMNS = (
        ("Task", "title"),
        ("Spearman", "spearman"),
        ("Pearson", "pearson"),
        ("Subsets weighted", "weighted"),
        ("Subsets plain", "mean"),
        ("Pairs", "n"),
    )

    spearman: float
    pearson: float
    subsets: tuple[SubsetResult, ...] = ()
    weighted: float | None = None
    mean: float | None = None
    left_out: int = 0


def prepare_pairs(pairs: RatedPairs, result: Callable[[np.ndarray], TaskResult]) -> Prepared:
    """Return a prepared task of rated pairs, with the result from their cosines or the scores of a pair scorer."""
    # All first sentences stand before all second ones: vectors (2P, D).
    texts = [*pairs.first, *pairs.second]
    return Prepared(texts, lambda vectors: result(pair_cosines(*np.split(vectors, 2))), result)


def score_pairs(
    task: Task, cosines: np.ndarray, gold: np.ndarray, subsets: Sequence[tuple[str, slice]] = ()
) -> PairResult:
    """Return the result of a task from the cosines (P,) of its pairs and their human ratings (P,)."""
    spearman, pearson = correlations(cosines, gold)
    parts = tuple(
        SubsetResult(part, *correlations(cosines[where], gold[where]), n=len(gold[where]))
        for part, where in (subsets if len(subsets) > 1 else ())
    )
    weighted = float(np.average([p.spearman for p in parts], weights=[p.n for p in parts])) if parts else None
    mean = float(np.mean([p.spearman for p in parts])) if parts else None
    items = None if math.isnan(spearman) else Items(cosines, gold)
    scores = (spearman, len(gold), spearman, pearson)
    return PairResult(task.name, task.title, "spearman", *scores, parts, weighted, mean, items=items)


def correlations(cosines: np.ndarray, gold: np.ndarray) -> tuple[float, float]:
    """Return Spearman's and Pearson's correlation times 100; NaN both where either side is constant or too short."""
    from scipy.stats import pearsonr, spearmanr

    if len(gold) < 2 or not np.isfinite(cosines).all():
        return math.nan, math.nan
    with warnings.catch_warnings():
        # The NaN already says that a side is constant; scipy's warning names neither task nor model.
        warnings.simplefilter("ignore")
        return 100 * float(spearmanr(cosines, gold).statistic), 100 * float(pearsonr(cosines, gold).statistic)


def pair_cosines(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine of each pair of rows: (P, D), (P, D) -> (P,) float64; 0 where a row is zero.

    They are rounded to nine digits, so that pairs of equal rows tie: 32 bits have seven.
    """
    first, second = first.astype(np.float64), second.astype(np.float64)
    lengths = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)  # (P,)
    return np.asarray(((first * second).sum(axis=1) / np.maximum(lengths, 1e-12)).round(9))


def cosines(queries: np.ndarray, ranked: np.ndarray) -> Rows:
    """Return a function from a slice of `queries` to its cosines with all of `ranked`: (Q, D), (N, D) -> (B, N)."""
    lengths = np.maximum(np.linalg.norm(ranked, axis=1), 1e-12)  # (N,)

    def of(block: slice) -> np.ndarray:
        rows = queries[block] / np.maximum(np.linalg.norm(queries[block], axis=1, keepdims=True), 1e-12)
        scores: np.ndarray = rows @ ranked.T  # (B, N)
        scores /= lengths
        return scores

    return of


def nearness(first: np.ndarray, second: np.ndarray, distance: Distance) -> np.ndarray:
    """Return the cosine or the negative distance of each pair of rows: (R, D), (R, D) -> (R,)."""
    if distance == "cosine":
        return pair_cosines(first, second)
    order = 2 if distance == "euclidean" else 1
    return -np.linalg.norm(first.astype(np.float64) - second.astype(np.float64), ord=order, axis=1)


def triplet_accuracy(vectors: np.ndarray, distance: Distance) -> float:
    """Return the percentage of triplets whose anchor is nearer to the positive; a tie is wrong.

    Args:
        vectors: (3R, D), the anchors, then the positives, then the negatives.

    >>> triplet_accuracy(np.array([[1.0, 0.0], [9.0, 1.0], [1.0, 1.0]]), "cosine")
    100.0
    """
    anchors, positives, negatives = np.split(vectors, 3)
    return 100 * float((nearness(anchors, positives, distance) > nearness(anchors, negatives, distance)).mean())


def pair_features(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the features of pairs for a classifier, |u - v| and u * v: (P, D), (P, D) -> (P, 2D).

    >>> pair_features(np.array([[1.0, 2.0]]), np.array([[3.0, -1.0]])).tolist()
    [[2.0, 3.0, 3.0, -2.0]]
    """
    return np.concatenate([np.abs(first - second), first * second], axis=1)
