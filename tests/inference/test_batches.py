import numpy as np
import pytest

from likewise.inference.tokens import WASTE, by_budget


@pytest.mark.parametrize("at_most", [None, 1, 7])
@pytest.mark.parametrize("seed", range(5))
def test_each_once_and_within_the_budget(seed, at_most):
    lengths = np.random.default_rng(seed).integers(0, 90, size=300)
    batches = by_budget(lengths, 256, at_most)
    assert sorted(np.concatenate(batches).tolist()) == list(range(300))
    for batch in batches:
        cells = len(batch) * max(1, lengths[batch].max())
        assert len(batch) == 1 or cells <= 256
        assert cells - lengths[batch].sum() < WASTE + len(batch)  # an empty text counts as one token
        assert at_most is None or len(batch) <= at_most


def test_longest_first_and_equal_lengths_in_the_order_given():
    assert [b.tolist() for b in by_budget(np.array([2, 5, 2, 2]), 4)] == [[1], [0, 2], [3]]
    assert by_budget(np.array([], dtype=int), 10) == []
    assert [b.tolist() for b in by_budget(np.array([1000]), 10)] == [[0]]
