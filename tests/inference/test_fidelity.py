import numpy as np
import pytest

from likewise.inference.engines.store import ENOUGH
from likewise.inference.sample import compare


def test_by_hand():
    found = compare(np.array([[3.0, 4.0], [0.0, 2.0]]), np.array([[4.0, 3.0], [0.0, 1.0]]))
    assert found.cosine == pytest.approx((24 / 25 + 1) / 2)
    assert found.lowest == pytest.approx(24 / 25)
    assert found.difference == pytest.approx(1.0)  # |2 - 1| of a vector of length 1
    assert found.rank == 1.0  # not measured
    assert not found.same


def test_ranks_of_pairs():
    rng = np.random.default_rng(0)
    wanted = rng.normal(size=(ENOUGH, 6))
    assert compare(wanted * 3, wanted).rank == pytest.approx(1.0)
    units = wanted / np.linalg.norm(wanted, axis=1, keepdims=True)
    noisy = wanted + rng.normal(size=wanted.shape)
    noisy_units = noisy / np.linalg.norm(noisy, axis=1, keepdims=True)
    # Spearman by its definition: Pearson of ranks.
    pairs = np.triu_indices(ENOUGH, 1)
    ranks = [np.argsort(np.argsort((rows @ rows.T)[pairs])) for rows in (units, noisy_units)]
    assert compare(noisy, wanted).rank == pytest.approx(np.corrcoef(*ranks)[0, 1], abs=1e-9)


def test_equal_and_zero():
    rows = np.array([[0.0, 0.0], [1.0, 1.0]])
    same = compare(rows, rows)
    assert same.cosine == pytest.approx(1.0)
    assert same.same
    assert same.near
    assert str(compare(rows[:1], rows[:1])) == "mean cosine 1.0000 (minimum 1.0000), 1 sentence"
