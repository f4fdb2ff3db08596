"""Batches of sentences of similar length, determined by the seed and the epoch."""

from collections.abc import Iterator, Sequence

import numpy as np
from torch.utils.data import BatchSampler, RandomSampler

BATCHES_IN_A_POOL = 50
"""How many batches are cut from one length-sorted pool. More: less padding; fewer: more chance in who meets whom."""


class LengthBatchSampler(BatchSampler):
    """A sampler of batches by length: rows are shuffled, sorted inside pools, cut, and the batches shuffled.

    A batch then wastes little on padding, and a sentence meets other negatives in every epoch. A last, smaller batch is
    dropped, since it would have fewer negatives.

    Args:
        lengths: a length for each row, in any unit; kept as one small integer a row.
        by_length: False gives plain shuffled batches.
    """

    def __init__(self, lengths: Sequence[int] | np.ndarray, batch_size: int, seed: int, by_length: bool = True) -> None:
        super().__init__(RandomSampler(range(max(1, len(lengths)))), batch_size, drop_last=True)
        # accelerate, which gives each process its part of a batch, tells the epoch to the sampler below this one.
        self.sampler.set_epoch = self.set_epoch  # type: ignore[union-attr]
        self.lengths = np.asarray(lengths, dtype=np.int32)
        self.batch_size, self.seed, self.by_length, self.epoch = batch_size, seed, by_length, 0

    def set_epoch(self, epoch: int) -> None:
        """Set the epoch; called by the trainer."""
        self.epoch = epoch

    def __len__(self) -> int:
        return len(self.lengths) // self.batch_size

    def __iter__(self) -> Iterator[list[int]]:
        rng = np.random.default_rng([self.seed, self.epoch])
        order = rng.permutation(len(self.lengths))
        pool = self.batch_size * BATCHES_IN_A_POOL
        for start in range(0, len(order), pool):
            rows = order[start : start + pool]
            n_batches = len(rows) // self.batch_size
            if self.by_length:
                # The rows that fill no batch are left out before sorting, or they would always be the longest.
                rows = rows[: n_batches * self.batch_size]
                rows = rows[np.argsort(self.lengths[rows], kind="stable")]
            for batch in rng.permutation(n_batches):
                yield rows[batch * self.batch_size : (batch + 1) * self.batch_size].tolist()
