"""A paired bootstrap of the difference of two models, over the items of a task and the seeds.

Letters of the shapes: N items, B samples of them, S seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from likewise.evaluation.task import Items

DRAWS = 1000
"""Samples of the items. The ends of a 95% interval then move by about a twentieth of its length."""
_AT_A_TIME = 100


@dataclass(frozen=True)
class Difference:
    """How much more one model scores than another.

    Attributes:
        value: Difference of the means over the seeds, in points.
        low, high: 95% interval.
        p: Two-sided p-value of the difference.
    """

    value: float
    low: float
    high: float
    p: float

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low > 0 or self.high < 0

    def __str__(self) -> str:
        return f"{self.value:+.2f} ({self.low:+.2f} to {self.high:+.2f}){'*' if self.is_sure else ''}"


def sampled_scores(task: str, items: Sequence[Items], draws: int = DRAWS) -> np.ndarray:
    """Return the score of each model on samples of its N items, drawn with replacement: (models, B).

    All models have the same samples of a task, also in another call, so that their differences are paired.
    """
    count = len(items[0].values)
    rng = np.random.default_rng(crc32(task.encode()))
    scores = np.empty((len(items), draws))
    for start in range(0, draws, _AT_A_TIME):
        stop = min(start + _AT_A_TIME, draws)
        weights = rng.multinomial(count, np.full(count, 1 / count), size=stop - start).astype(np.float64)  # (b, N)
        for model, values in enumerate(items):
            scores[model, start:stop] = _score(values, weights)
    return scores


def mid_ranks(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the rank of each value in samples that contain it `weights` times; equal values share their mean rank.

    Args:
        values: (N,).
        weights: (b, N), each row with the sum N.

    Returns:
        (b, N) ranks from 1; a value that a sample does not contain has a rank between its neighbors.

    >>> mid_ranks(np.array([5.0, 7.0, 9.0]), np.array([[1, 2, 0]])).tolist()
    [[1.0, 2.5, 3.5]]
    """
    _, place = np.unique(values, return_inverse=True)
    order = np.argsort(place, kind="stable")
    starts = np.flatnonzero(np.diff(place[order], prepend=-1))
    counts = np.add.reduceat(weights[:, order], starts, axis=1)  # (b, different values)
    ranks: np.ndarray = np.cumsum(counts, axis=1) - (counts - 1) / 2
    return ranks[:, place]


def paired_difference(
    ours: Mapping[int, float],
    theirs: Mapping[int, float],
    our_samples: Mapping[int, np.ndarray],
    their_samples: Mapping[int, np.ndarray],
) -> Difference | None:
    """Return the difference of two models' means over the seeds, with its interval over the items and the seeds.

    Items and seeds are resampled together. Seeds that both models have are drawn together. Few seeds deviate too
    little from their own mean: their deviations are scaled by the root of S / (S - 1), as in a standard deviation with
    S - 1.

    Args:
        ours, theirs: Seed to score.
        our_samples, their_samples: Seed to the scores (B,) on samples of the items, from `sampled_scores`; empty if the
            items are not known, so that only the seeds are drawn.

    Returns:
        None if there is nothing to draw: no items, and one seed.
    """
    together = set(ours) == set(theirs) and len(ours) > 1
    if not our_samples and max(len(ours), len(theirs)) < 2:
        return None
    draws = len(next(iter(our_samples.values()))) if our_samples else DRAWS
    rng = np.random.default_rng(0)
    sides, drawn = [], None
    for scores, samples in ((ours, our_samples), (theirs, their_samples)):
        count = len(scores)
        rows = [samples[seed] if samples else np.full(draws, scores[seed]) for seed in sorted(scores)]
        every = np.stack(rows)  # (S, B)
        if drawn is None or not together:
            drawn = rng.integers(count, size=(count, draws))
        mean = every.mean(axis=0)
        moved = np.take_along_axis(every, drawn, axis=0).mean(axis=0) - mean
        sides.append(mean + moved * math.sqrt(count / max(count - 1, 1)))
    differences = sides[0] - sides[1]  # (B,)
    value = float(np.mean([*ours.values()]) - np.mean([*theirs.values()]))
    low, high = np.quantile(differences, (0.025, 0.975))
    tail = min((differences <= 0).sum(), (differences >= 0).sum())
    return Difference(value, float(low), float(high), min(1.0, 2 * (1 + float(tail)) / (1 + draws)))


def _score(items: Items, weights: np.ndarray) -> np.ndarray:
    """Return the score of each sample (b,), whose items count `weights` (b, N) times."""
    if items.gold is None:
        return 100 * (weights @ items.values) / len(items.values)
    ranks = [mid_ranks(side, weights) for side in (items.values, items.gold)]
    x, y = (side - (weights * side).mean(axis=1, keepdims=True) for side in ranks)
    spread = np.sqrt((weights * x * x).sum(axis=1) * (weights * y * y).sum(axis=1))
    return 100 * (weights * x * y).sum(axis=1) / np.maximum(spread, 1e-12)
