"""Batches of texts that are split into tokens. Nothing here imports torch.

Letters of the shapes: S sentences, B sentences of a batch, T tokens.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

CPU_BUDGET = 640
"""Cells of a batch that one core runs: 512 to 768 were the fastest here, 2048 a fifth slower (benchmarks/README.md)."""
WASTE = 64
"""Tokens of padding at which a new batch is cheaper: the fixed cost of a call in tokens (see benchmarks)."""


def padded(ids: Sequence[np.ndarray], pad: int, left: bool, at_least: int) -> tuple[np.ndarray, np.ndarray]:
    """Return ids and mask of a batch, both (B, T) int64, with T the greatest length and `at_least`.

    Args:
        ids: the token ids of each text.
        pad: the id that fills the rows.
        left: fill them on the left.
        at_least: the least T.
    """
    longest = max(at_least, *(len(row) for row in ids))
    filled = np.full((len(ids), longest), pad, dtype=np.int64)
    mask = np.zeros((len(ids), longest), dtype=np.int64)
    for i, row in enumerate(ids):
        where = slice(longest - len(row), None) if left else slice(0, len(row))
        filled[i, where], mask[i, where] = row, 1
    return filled, mask


def by_budget(lengths: np.ndarray, budget: int, at_most: int | None = None) -> list[np.ndarray]:
    """Group sentences into batches, the longest first.

    A batch has at most `budget` cells (sentences times its longest), or one sentence; and less than `WASTE` of them
    are padding.

    Args:
        lengths: tokens of each sentence, (S,).
        budget: cells of a batch.
        at_most: sentences of a batch, if that is limited too.

    Returns:
        The positions of each batch's sentences; each position is in exactly one.

    >>> [batch.tolist() for batch in by_budget(np.array([3, 9, 3, 8]), budget=18)]
    [[1, 3], [0, 2]]
    """
    order = np.argsort(-lengths, kind="stable")
    batches: list[np.ndarray] = []
    start, waste = 0, 0
    for end in range(1, len(order) + 1):
        if end < len(order):
            longest = max(1, int(lengths[order[start]]))
            waste += longest - int(lengths[order[end]])
            size = end - start + 1
            if size * longest <= budget and waste < WASTE and (at_most is None or size <= at_most):
                continue
        batches.append(order[start:end])
        start, waste = end, 0
    return batches
