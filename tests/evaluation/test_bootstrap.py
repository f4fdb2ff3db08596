"""The paired bootstrap beside closed forms and beside samples that are drawn one by one."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from likewise.evaluation.bootstrap import mid_ranks, paired_difference, sampled_scores
from likewise.evaluation.task import Items

MANY = 4000


def samples(task, **items):
    return dict(zip(items, sampled_scores(task, [*items.values()], MANY), strict=True))


def test_the_deviation_of_a_difference_of_means_is_that_of_its_items():
    rng = np.random.default_rng(0)
    shared, own = rng.normal(size=(2, 400))
    ours, theirs = shared + 0.3 * own + 0.05, shared  # the shared part of both cancels
    found = samples("task", ours=Items(ours), theirs=Items(theirs))
    scores = {"ours": 100 * ours.mean(), "theirs": 100 * theirs.mean()}
    difference = paired_difference({1: scores["ours"]}, {1: scores["theirs"]}, {1: found["ours"]}, {1: found["theirs"]})
    error = 100 * np.std(ours - theirs) / np.sqrt(400)
    assert difference.value == pytest.approx(scores["ours"] - scores["theirs"])
    assert (difference.high - difference.low) / (2 * 1.96) == pytest.approx(error, rel=0.06)


def test_items_and_seeds_add_their_variances():
    rng = np.random.default_rng(1)
    items, seeds = rng.normal(size=(500,)), np.array([-2.0, 0.5, 1.5])
    zero = Items(np.zeros(500))
    values = {seed: Items(items + move) for seed, move in enumerate(seeds)}
    rows = sampled_scores("task", [*values.values(), zero], MANY)
    found = paired_difference(
        {seed: 100 * one.values.mean() for seed, one in values.items()},
        {0: 0.0},
        dict(enumerate(rows[:3])),
        {0: rows[3]},
    )
    error = 100 * np.sqrt(items.var() / 500 + seeds.var(ddof=1) / 3)
    # Three seeds give ten means only, so that the interval is coarse.
    assert (found.high - found.low) / (2 * 1.96) == pytest.approx(error, rel=0.15)


def test_a_correlation_of_a_sample_is_that_of_its_items_written_out():
    rng = np.random.default_rng(2)
    gold = rng.integers(0, 6, size=60).astype(float)  # many ties
    values = np.round(gold + 2 * rng.normal(size=60), 1)
    weights = rng.multinomial(60, np.full(60, 1 / 60), size=5)
    from likewise.evaluation.bootstrap import _score

    found = _score(Items(values, gold), weights.astype(float))
    for row, score in zip(weights, found, strict=True):
        drawn = np.repeat(np.arange(60), row)
        correlation = spearmanr(values[drawn], gold[drawn]).statistic
        assert score == pytest.approx(100 * correlation, abs=1e-9)


def test_ranks_of_a_sample_are_scipys():
    from scipy.stats import rankdata

    values, weights = np.array([3.0, 1.0, 3.0, 2.0]), np.array([[2, 1, 1, 0], [0, 3, 0, 1]])
    for row, ranks in zip(weights, mid_ranks(values, weights), strict=True):
        drawn = np.repeat(np.arange(4), row)
        assert np.repeat(ranks, row).tolist() == rankdata(values[drawn]).tolist()


def test_chance_alone_is_sure_in_one_of_twenty():
    rng = np.random.default_rng(3)
    sure = 0
    for trial in range(200):
        ours, theirs = rng.normal(size=(2, 60))
        rows = sampled_scores(f"task {trial}", [Items(ours), Items(theirs)], 400)
        found = paired_difference({1: 100 * ours.mean()}, {1: 100 * theirs.mean()}, {1: rows[0]}, {1: rows[1]})
        sure += found.is_sure
        assert found.is_sure == (found.p < 0.05) or 0.03 < found.p < 0.07
    assert 3 <= sure <= 22


def test_two_equal_models_do_not_differ_and_one_seed_without_items_says_nothing():
    rows = sampled_scores("task", [Items(np.arange(9.0)), Items(np.arange(9.0))])
    same = paired_difference({1: 400.0}, {1: 400.0}, {1: rows[0]}, {1: rows[1]})
    assert (same.value, same.low, same.high, same.p) == (0, 0, 0, 1)
    assert not same.is_sure
    assert paired_difference({1: 70.0}, {1: 71.0}, {}, {}) is None


def test_seeds_alone_are_drawn_where_items_are_not_known():
    found = paired_difference({1: 72.0, 2: 73.0, 3: 74.0}, {1: 70.0}, {}, {})
    assert found.value == 3
    assert 0 < found.low < 3 < found.high
