"""The earlier text that each text repeats, in one pass over the texts, which compares representatives only.

Letters of the shapes: S texts, B texts of a block, K kept texts, C cells, D embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from likewise.searching.parts import cells

BLOCK = 4096
"""Texts that are compared at a time: 64 MB of cosines."""
EXACT = 100_000
"""Number of texts up to which each is compared with all representatives; from there on with the cells around it."""
LOOKS = 20
"""The nearest kept texts above the threshold whose words are examined: of form letters there may be thousands."""


@dataclass(frozen=True)
class Repeats:
    """The kept text that each text repeats, and the nearest one.

    Attributes:
        of: (S,) the kept text that it repeats; its own number if it is kept itself.
        cosine: (S,) with that text; 1 for a kept one.
        nearest: (S,) the nearest kept text before it, whether or not it counts as the same; -1 for none.
        near: (S,) the cosine with it.
        apart: Nearest pair of each text that the second look distinguished from a representative above the threshold:
            text, representative, cosine and reason.
    """

    of: np.ndarray
    cosine: np.ndarray
    nearest: np.ndarray
    near: np.ndarray
    apart: list[tuple[int, int, float, str]]


def repeats(
    vectors: np.ndarray,
    threshold: float,
    reason: Callable[[int, int], str] = lambda text, other: "",
    *,
    same: Callable[[int], bytes] = lambda text: b"",
    seed: int = 1,
    advance: Callable[[int], None] = lambda done: None,
    exact: int = EXACT,
) -> Repeats:
    """Find the kept text that each text repeats, in their order.

    A text is kept if no kept text before it has a cosine of the threshold or more and no reason against it. So each
    duplicate is that close to its representative, and no chain of small steps joins distant texts.

    Args:
        vectors: (S, D) of length 1.
        threshold: Minimum cosine.
        reason: Function that returns the reason why two texts above the threshold are not duplicates, "" for none.
        same: Function that returns a key shared by texts that are duplicates at any cosine, b"" for a text that is
            compared.
        seed: Random seed of the cells.
        advance: Function that is called with the number of finished texts.
        exact: Number of texts up to which the comparison is exact.
    """
    size = len(vectors)
    result = Repeats(
        np.arange(size),
        np.ones(size, dtype=np.float32),
        np.full(size, -1),
        np.full(size, -1.0, dtype=np.float32),
        [],
    )
    known: dict[bytes, int] = {}
    remaining = _Remaining(vectors, seed, exact)
    for begin in range(0, size, BLOCK):
        block = np.ascontiguousarray(vectors[begin : begin + BLOCK], dtype=np.float32)
        candidates: list[list[tuple[float, int]]] = [[] for _ in block]  # cosines and kept texts above the threshold
        for rows, others in remaining.around(block):
            cosines = block[rows] @ np.asarray(vectors[others], dtype=np.float32).T  # (B, K)
            _raise(result, begin + rows, others[cosines.argmax(axis=1)], cosines.max(axis=1))
            for row, column in zip(*_highest(cosines, threshold), strict=True):
                candidates[rows[row]].append((float(cosines[row, column]), int(others[column])))
        is_selected = np.zeros(len(block), dtype=bool)
        inside = block @ block.T  # (B, B)
        for row, text in enumerate(range(begin, begin + len(block))):  # each may repeat one of the block that is kept
            earlier = np.where(is_selected[:row], inside[row, :row], -1.0)
            if row and earlier.max() > result.near[text]:
                result.near[text], result.nearest[text] = earlier.max(), begin + earlier.argmax()
            _, inner = _highest(earlier[None], threshold)
            candidates[row] += [(float(earlier[place]), begin + int(place)) for place in inner]
            key = same(text)
            if key in known:
                other = result.of[text] = known[key]
                result.cosine[text] = block[row] @ np.asarray(vectors[other], dtype=np.float32)
                continue
            is_selected[row] = _is_remaining(result, text, candidates[row], reason)
            if is_selected[row] and key:
                known[key] = text
        remaining.keep(begin, is_selected)
        advance(len(block))
    return result


def _is_remaining(
    result: Repeats, text: int, candidates: list[tuple[float, int]], reason: Callable[[int, int], str]
) -> bool:
    """Return whether a text repeats none of the candidates, and note the repeated or distinguished candidate."""
    nearest = sorted(candidates, key=lambda pair: (-pair[0], pair[1]))[:LOOKS]
    for number, (cosine, other) in enumerate(nearest):
        why = reason(text, other)
        if not why:
            result.of[text], result.cosine[text] = other, cosine
            return False
        if not number:
            result.apart.append((text, other, cosine, why))
    return True


def _highest(cosines: np.ndarray, threshold: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and columns of the cosines (B, K) at or above a threshold, at most `LOOKS` of each row."""
    above = cosines >= threshold
    for row in np.flatnonzero(above.sum(axis=1) > LOOKS):
        highest = np.argpartition(-cosines[row], LOOKS - 1)[:LOOKS]
        above[row] = False
        above[row, highest] = True
    rows, columns = np.nonzero(above)
    return rows, columns


def _raise(result: Repeats, rows: np.ndarray, others: np.ndarray, cosines: np.ndarray) -> None:
    """Take others as the nearest of texts where they are nearer than what was known."""
    nearer = cosines > result.near[rows]
    result.near[rows[nearer]], result.nearest[rows[nearer]] = cosines[nearer], others[nearer]


class _Remaining:
    """The kept texts by the cell of the vector space in which they are; up to `exact` texts are one cell."""

    def __init__(self, vectors: np.ndarray, seed: int, exact: int) -> None:
        count = -(-len(vectors) // cells.SIZE) if len(vectors) > exact else 1
        self._centres: np.ndarray | None = None
        if count > 1:
            size = min(len(vectors), cells.SAMPLE * count)
            places = np.sort(np.random.default_rng(seed).choice(len(vectors), size, replace=False))
            self._centres = cells.placed(np.asarray(vectors[places], dtype=np.float32), count, seed)
        self._rows = [np.empty(0, dtype=np.int64)] * count
        self._own = np.empty(0, dtype=np.int64)

    def around(self, block: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield rows of a block, and kept texts of a cell that these visit, piece by piece."""
        alone = np.zeros((len(block), 1), dtype=np.int64)
        visited = alone if self._centres is None else cells.around(block, self._centres)
        self._own = visited[:, 0]
        for cell, rows in cells.visitors(visited, len(self._rows)):
            for start in range(0, len(self._rows[cell]), BLOCK):
                yield rows, self._rows[cell][start : start + BLOCK]

    def keep(self, begin: int, selected: np.ndarray) -> None:
        """Keep texts of the block that begins there, each in its own cell."""
        places = np.flatnonzero(selected)
        for cell in np.unique(self._own[places]):
            self._rows[cell] = np.append(self._rows[cell], begin + places[self._own[places] == cell])
