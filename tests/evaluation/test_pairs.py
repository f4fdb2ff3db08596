import math

import numpy as np
import pytest

from likewise.evaluation.pairs import correlations, pair_cosines, score_pairs
from likewise.evaluation.registry import TASKS


def ranks(values):
    """Ranks from 1, ties share their mean: counted, not sorted."""
    return [sum(w < v for w in values) + (sum(w == v for w in values) + 1) / 2 for v in values]


def pearson(a, b):
    a, b = np.asarray(a, float), np.asarray(b, float)
    a, b = a - a.mean(), b - b.mean()
    return float((a * b).sum() / math.sqrt((a * a).sum() * (b * b).sum()))


def test_correlations_by_hand_with_ties():
    rng = np.random.default_rng(1)
    cosines, gold = rng.normal(size=50), rng.integers(0, 6, size=50).astype(float)
    spearman, linear = correlations(cosines, gold)
    assert spearman == pytest.approx(100 * pearson(ranks(cosines.tolist()), ranks(gold.tolist())))
    assert linear == pytest.approx(100 * pearson(cosines, gold))


def test_undefined_is_nan_and_silent(recwarn):
    assert all(math.isnan(v) for v in correlations(np.ones(5), np.arange(5.0)))
    assert all(math.isnan(v) for v in correlations(np.array([0.1, np.nan, 0.2]), np.arange(3.0)))
    assert not recwarn.list


def test_cosines():
    first, second = (
        np.array([[3.0, 0.0], [1.0, 1.0], [0.0, 0.0]]),
        np.array([[5.0, 0.0], [-1.0, -1.0], [1.0, 0.0]]),
    )
    assert pair_cosines(first, second) == pytest.approx([1.0, -1.0, 0.0])


def test_all_weighted_and_plain_means_are_three_things():
    rng = np.random.default_rng(2)
    cosines, gold = rng.normal(size=30), rng.normal(size=30)
    cosines[:10] = gold[:10]  # a perfect subset of ten, a random one of twenty
    result = score_pairs(TASKS["sts12"], cosines, gold, [("a", slice(0, 10)), ("b", slice(10, 30))])
    b = 100 * pearson(ranks(cosines[10:].tolist()), ranks(gold[10:].tolist()))
    assert [s.spearman for s in result.subsets] == pytest.approx([100.0, b])
    assert result.weighted == pytest.approx((10 * 100 + 20 * b) / 30)
    assert result.mean == pytest.approx((100 + b) / 2)
    assert result.score == result.spearman
    assert result.n == 30
    assert score_pairs(TASKS["sts12"], cosines, gold).weighted is None
