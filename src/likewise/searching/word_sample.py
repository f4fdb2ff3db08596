"""A sample of the passages of a large index, from which the spread of all their BM25 scores is estimated.

A score counts by the number of standard deviations that it lies above the mean of all passages. In a small index the
scores of all passages are read. In a large one only the best are read, which make up most of the spread; what the
others add to it is estimated from the scores of a sample, whose words lie in a table of their own.

Letters of the shapes: S passages, O passages of a sample.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likewise.searching.passages import IndexedPassage
from likewise.searching.table import Table, WordScores

SCANNED = 10_000
"""The most passages of an index whose BM25 scores are all read: it has no sample."""
READ = 1000
"""BM25 scores that are read of a larger index: of a passage below them, the score is looked up if it is needed."""
SIZE = 1000
"""Passages of a sample."""
_NAME = "sample"


def moments(best: np.ndarray, others: np.ndarray, total: int, weights: np.ndarray | None = None) -> tuple[float, float]:
    """Estimate the mean and the deviation of the scores of all passages, or documents.

    The deviation is 1 where all scores are equal.

    Args:
        best: (S,) the scores of the best.
        others: (O,) those of a sample of the others; none: they are 0.
        total: how many there are.
        weights: (O,) of the sample, where some of the others are more likely to be in it; None weighs all alike.

    >>> moments(np.array([4.0, 2.0]), np.array([0.0, 1.0]), 6)  # as of 4, 2, and four passages like these two
    (1.3333333333333333, 1.3743685418725535)
    """
    each = np.ones(len(others)) if weights is None else weights
    each = each * (total - len(best)) / max(1e-9, each.sum())
    count = max(1, total)
    mean = (best.sum() + (each * others).sum()) / count
    deviation = np.sqrt(max(0.0, ((best**2).sum() + (each * others**2).sum()) / count - mean**2))
    return float(mean), float(deviation) or 1.0


@dataclass(frozen=True)
class WordSample:
    """The words of some passages of an index.

    Attributes:
        table: these passages.
        rows: (O,) their row ids in it, ascending.
        positions: (O,) their positions in the geometry.
    """

    table: Table
    rows: np.ndarray
    positions: np.ndarray

    @classmethod
    def save(cls, folder: Path, table: Table, rows: np.ndarray, language: str) -> None:
        """Write the sample of a large index to a folder; a small one has none.

        Args:
            table: the index.
            rows: (N,) the row ids of its passages, ascending.
            language: of its words.
        """
        if len(rows) <= SCANNED:
            return
        sample = Table.create(folder, _NAME, 1)
        places = np.unique(np.linspace(0, len(rows) - 1, num=min(SIZE, len(rows))).astype(np.int64))
        passages = [("", "", True, IndexedPassage(text, 0)) for text in table.searched(rows[places])]
        keys = [f"{place:016x}" for place in places.tolist()]
        sample.add(passages, keys, [(np.zeros(1, dtype=np.float32), b"")] * len(passages))
        sample.index_words(language)

    @classmethod
    def open(cls, folder: Path, count: int) -> WordSample | None:
        """Open the sample of an index of `count` passages; None if that is a small one, or has none.

        Raises:
            SearchError: it is damaged.
        """
        if count <= SCANNED or not (folder / f"{_NAME}.lance").is_dir():
            return None
        table = Table(folder, _NAME)
        rows, keys = table.keys()
        return cls(table, rows, keys.astype(np.int64))

    def scores_soon(self, text: str) -> Callable[[], WordScores]:
        """Begin to search the sample, and return what waits for the row ids and BM25 scores of those with the words."""
        return self.table.by_words_soon(text, len(self.positions))

    def others(self, of_sample: WordScores, best: np.ndarray, scores: np.ndarray) -> WordScores:
        """Return the positions (O,) and BM25 scores (O,) of the passages of the sample that are not among the best.

        Args:
            of_sample: what `scores_soon` has found.
            best: (S,) positions of the best passages.
            scores: (S,) their scores, the highest first: none of the others has a higher one than the last.
        """
        rows, values = of_sample
        all_values = np.zeros(len(self.positions))
        all_values[np.searchsorted(self.rows, rows)] = values
        apart = ~np.isin(self.positions, best)
        return self.positions[apart], np.minimum(all_values[apart], scores[-1])
