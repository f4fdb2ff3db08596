import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.linear_model import LogisticRegression

from likewise.evaluation.probe import ProbeRows, fit
from likewise.evaluation.task import EvaluationError


def made(n_classes, rows=300, size=6, seed=0):
    """Vectors off the origin, labels that a line does not quite tell apart, and four random parts."""
    rng = np.random.default_rng(seed)
    vectors = rng.normal(size=(rows, size)) + 0.5
    labels = (vectors @ rng.normal(size=(size, n_classes)) + rng.gumbel(size=(rows, n_classes))).argmax(1)
    return vectors.astype(np.float32), np.array(list("abcdef"))[labels], rng.random((4, rows)) < 0.8


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("strength", [0.01, 1.0, 100.0])
def test_the_optimum_is_that_of_scikit_learn(n_classes, strength):
    vectors, labels, parts = made(n_classes)
    rows = ProbeRows.of(vectors, labels)
    weights = fit(rows, parts, strength)
    for mask, found, predicted in zip(parts, weights, rows.predict(weights), strict=True):
        known = LogisticRegression(C=strength, tol=1e-10, max_iter=5000).fit(vectors[mask].astype(float), labels[mask])
        expected = known.decision_function(vectors)
        scores = vectors @ found[:-1] + found[-1]
        # Softmax scores are known up to a number that all classes share.
        scores = scores[:, 0] if n_classes == 2 else scores - scores.mean(1, keepdims=True)
        expected = expected if n_classes == 2 else expected - expected.mean(1, keepdims=True)
        assert np.allclose(scores, expected, atol=2e-3 * np.abs(expected).max())
        assert (predicted == known.predict(vectors)).all()


def test_the_loss_is_that_of_the_equation():
    """A quasi-Newton search on the loss as it is written, with derivatives by differences, ends no lower."""
    vectors, labels, parts = made(2, rows=60, size=3)
    mask, strength = parts[0], 0.7
    x, y = vectors[mask].astype(float), np.where(labels[mask] == "b", 1.0, -1.0)

    def loss(w):
        return strength * np.logaddexp(0, -y * (x @ w[:-1] + w[-1])).sum() + (w[:-1] ** 2).sum() / 2

    lowest = minimize(loss, np.zeros(4), tol=1e-12)
    found = fit(ProbeRows.of(vectors, labels), parts, strength)[0, :, 0]
    assert loss(found) == pytest.approx(lowest.fun, rel=1e-6)
    assert found == pytest.approx(lowest.x, abs=1e-3)


def test_the_beginning_does_not_matter():
    vectors, labels, parts = made(4)
    rows = ProbeRows.of(vectors, labels)
    far = np.random.default_rng(1).normal(size=(4, 7, 4)) * 3
    far[..., -1, :] -= far[..., -1, :].mean(-1, keepdims=True)
    one, other = fit(rows, parts, 1.0), fit(rows, parts, 1.0, far)
    assert np.allclose(one[:, :-1], other[:, :-1], atol=1e-3)
    assert (rows.predict(one) == rows.predict(other)).all()


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_short_and_long_vectors_converge(scale):
    vectors, labels, parts = made(2)
    rows = ProbeRows.of(vectors * scale, labels)
    known = LogisticRegression(C=1.0, solver="newton-cholesky", tol=1e-10).fit(
        vectors[parts[0]].astype(float) * scale, labels[parts[0]]
    )
    assert (rows.predict(fit(rows, parts, 1.0))[0] == known.predict(vectors * scale)).mean() > 0.99


def test_what_cannot_be_fitted_is_told():
    vectors, labels, parts = made(2)
    with pytest.raises(EvaluationError, match="not finite"):
        ProbeRows.of(np.where(vectors > 2, np.nan, vectors), labels)
    with pytest.raises(EvaluationError, match="two classes"):
        ProbeRows.of(vectors, np.full(len(vectors), "a"))
    with pytest.raises(EvaluationError, match="299 labels"):
        ProbeRows.of(vectors, labels[1:])
    rows = ProbeRows.of(vectors, labels)
    with pytest.raises(EvaluationError, match="strength"):
        fit(rows, parts, 0.0)
    with pytest.raises(EvaluationError, match="empty"):
        fit(rows, parts & False, 1.0)
