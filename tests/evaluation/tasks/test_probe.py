import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from likewise.evaluation.tasks.transfer import Fold, folds, nested, probe

STRENGTHS = (0.01, 1.0, 100.0)


def made(rows=200, size=5, noise=1.0, seed=0):
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(rows, size))
    labels = np.where(vectors @ rng.normal(size=size) + noise * rng.normal(size=rows) > 0.5, "1", "0")
    return vectors, labels


def test_folds_are_stratified_seeded_and_a_partition():
    labels = np.array(["1"] * 60 + ["0"] * 150)
    rows = np.arange(5, 205)  # a part of all rows: 55 and 145
    cut = folds(labels, rows, 10, seed=3)
    assert sorted(np.concatenate([check.test for check in cut])) == rows.tolist()
    for check in cut:
        assert sorted([*check.train, *check.test]) == rows.tolist()
        assert (labels[check.test] == "1").sum() in (5, 6)
    again, other = folds(labels, rows, 10, seed=3), folds(labels, rows, 10, seed=4)
    assert all((a.test == b.test).all() for a, b in zip(cut, again, strict=True))
    assert any(len(a.test) != len(b.test) or (a.test != b.test).any() for a, b in zip(cut, other, strict=True))


def test_a_choice_never_sees_the_rows_it_is_tested_on():
    _, labels = made()
    trials = nested(labels, 5)
    assert sorted(np.concatenate([trial.test for trial in trials])) == list(range(200))
    for trial in trials:
        assert len(trial.checks) == 5
        for check in trial.checks:
            assert not set(trial.test) & {*check.train, *check.test}
            assert set(check.train) | set(check.test) == set(trial.train)


def test_nested_folds_beside_a_loop_with_scikit_learn():
    vectors, labels = made()
    trials = nested(labels, 4)
    found = probe(vectors, labels, trials, STRENGTHS)
    shares, best, chosen = [], [], []
    for trial in trials:
        scores = []
        for strength in STRENGTHS:
            each = []
            for check in trial.checks:
                model = LogisticRegression(C=strength, tol=1e-9, max_iter=2000).fit(
                    vectors[check.train], labels[check.train]
                )
                each.append(model.score(vectors[check.test], labels[check.test]))
            scores.append(np.mean(each))
        chosen.append(STRENGTHS[int(np.argmax(np.round(scores, 4)))])
        best.append(max(scores))
        model = LogisticRegression(C=chosen[-1], tol=1e-9, max_iter=2000).fit(vectors[trial.train], labels[trial.train])
        shares.append(model.score(vectors[trial.test], labels[trial.test]))
        assert (found.predictions[trial.test] == model.predict(vectors[trial.test])).all()
    assert found.accuracy == pytest.approx(np.mean(shares))
    assert found.dev == pytest.approx(np.mean(best))
    assert found.strengths == tuple(chosen)
    assert found.tested.all()


def test_a_dev_set_chooses():
    """Rows where only the weakest regularisation is right, as dev: it is taken, whatever the test rows would like."""
    vectors, labels = made(rows=300, noise=0.1)
    train, dev, test = np.arange(100), np.arange(100, 200), np.arange(200, 300)
    found = probe(vectors, labels, [Fold(train, test, checks=(Fold(train, dev),))], (1e-4, 1e4))
    assert found.strengths == (1e4,)
    assert found.tested.tolist() == [False] * 200 + [True] * 100
    assert found.accuracy == (found.predictions[test] == labels[test]).mean() > 0.9
    # Of equals the strongest regularisation.
    same = probe(vectors * 1e-9, labels, [Fold(train, test, checks=(Fold(train, dev),))], (1e-4, 1e-3))
    assert same.strengths == (1e-4,)


def test_separable_rows_are_all_right_and_noise_is_chance():
    rng = np.random.default_rng(0)
    labels = np.array(["x", "y", "z"] * 100)
    vectors = np.eye(3)[np.tile([0, 1, 2], 100)] + 0.01 * rng.normal(size=(300, 3))
    assert probe(vectors, labels, nested(labels), STRENGTHS).accuracy == 1.0
    noise = probe(rng.normal(size=(300, 3)), labels, nested(labels), STRENGTHS)
    assert noise.accuracy == pytest.approx(1 / 3, abs=0.1)


def test_the_same_result_for_the_same_seed():
    vectors, labels = made()
    one, same, other = (probe(vectors, labels, nested(labels, seed=s), STRENGTHS) for s in (1, 1, 2))
    assert one.accuracy == same.accuracy
    assert one.strengths == same.strengths
    assert (one.predictions != other.predictions).any()
