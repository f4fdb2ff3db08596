"""Classification of frozen vectors, as in SentEval (Conneau and Kiela 2018, section 3).

A logistic regression is trained on the vectors; its regularisation is chosen on its training rows alone, by
cross-validation inside of them or on a dev set. Cross-validation inside of cross-validation fits some hundred
classifiers whose training parts overlap almost wholly: fitted together they share each product with the vectors and one
preconditioner, which takes less than a third of the time of scikit-learn's LogisticRegression (benchmarks/README.md,
transfer tasks). The optimum is the same: it is unique.

Letters of the shapes: N rows, D embedding, F = D + 1 features with the intercept, P parts of the rows, C columns of
scores that a classifier has (1 for two classes, otherwise one per class), R strengths, T trials.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit, log_softmax

from likewise.evaluation.task import EvaluationError

FOLDS = 10
SEED = 1111  # SentEval's
_MOST_STEPS = 500
_SLOPE = 1e-6  # of the mean loss, in coordinates in which its curvature is at most about 1: 1e-9 nats from the lowest


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to test on, as indices.

    Attributes:
        name: for tables.
        checks: parts of the training rows by which the regularisation is chosen.
    """

    train: np.ndarray
    test: np.ndarray
    name: str = ""
    checks: tuple[Fold, ...] = ()


@dataclass(frozen=True)
class Probed:
    """The result of a probe.

    Attributes:
        accuracy: mean over the trials of the accuracy on the test rows.
        dev: mean over the trials of the best mean accuracy over the checks.
        strengths: C of scikit-learn that each trial chose.
        predictions: (N,) the class predicted for each tested row; the first class elsewhere.
        tested: (N,) bool, True for the tested rows.
    """

    accuracy: float
    dev: float
    strengths: tuple[float, ...]
    predictions: np.ndarray
    tested: np.ndarray


def folds(labels: np.ndarray, rows: np.ndarray, count: int = FOLDS, seed: int = SEED) -> tuple[Fold, ...]:
    """Split rows into shuffled, stratified folds."""
    from sklearn.model_selection import StratifiedKFold

    cut = StratifiedKFold(count, shuffle=True, random_state=seed).split(rows, labels[rows])
    return tuple(Fold(rows[train], rows[test]) for train, test in cut)


def nested(labels: np.ndarray, count: int = FOLDS, seed: int = SEED) -> tuple[Fold, ...]:
    """Return nested cross-validation trials: each fold is tested once, inner folds select C (MR, CR, SUBJ, MPQA)."""
    return tuple(
        replace(outer, checks=folds(labels, outer.train, count, seed))
        for outer in folds(labels, np.arange(len(labels)), count, seed)
    )


def probe(vectors: np.ndarray, labels: np.ndarray, trials: Sequence[Fold], strengths: Sequence[float]) -> Probed:
    """Train and test classifiers on vectors.

    Args:
        vectors: (N, D).
        labels: (N,).
        strengths: the values of C to choose from. Of equals the smallest is taken, as by SentEval.
    """
    rows = ProbeRows.of(vectors, labels)
    # Trials and checks that are trained on the same rows share a classifier.
    checks = [check for trial in trials for check in trial.checks]
    fitted = {fold.train.tobytes(): fold.train for fold in (*trials, *checks)}
    place = {key: i for i, key in enumerate(fitted)}
    parts = np.zeros((len(fitted), len(labels)), dtype=bool)  # (P, N)
    for part, train in zip(parts, fitted.values(), strict=True):
        part[train] = True

    def tested(values: np.ndarray, fold: Fold) -> np.ndarray:
        return values[place[fold.train.tobytes()], fold.test]

    # From the strongest regularisation to the weakest: each optimum is a good start for the next.
    ordered = sorted(strengths)
    dev = np.empty((len(ordered), len(trials)))  # (R, T)
    given: list[list[np.ndarray]] = []  # R lists of T predictions of test rows
    weights = None
    for i, strength in enumerate(ordered):
        weights = fit(rows, parts, strength, weights)
        predicted = rows.predict(weights)  # (P, N)
        right = predicted == labels
        dev[i] = [np.mean([tested(right, check).mean() for check in trial.checks]) for trial in trials]
        given.append([tested(predicted, trial) for trial in trials])
    # Rounded as SentEval does, so that differences of less than a row do not decide.
    best = np.round(100 * dev, 2).argmax(axis=0)  # (T,)
    predictions, covered = np.full(len(labels), rows.classes[0]), np.zeros(len(labels), dtype=bool)
    shares = []
    for t, trial in enumerate(trials):
        predictions[trial.test], covered[trial.test] = given[best[t]][t], True
        shares.append((given[best[t]][t] == labels[trial.test]).mean())
    accuracy, choice = float(np.mean(shares)), float(dev.max(axis=0).mean())
    return Probed(accuracy, choice, tuple(ordered[i] for i in best), predictions, covered)


@dataclass(frozen=True)
class ProbeRows:
    """The rows of a probe, prepared for all its fits.

    Attributes:
        features: (N, F) float64, the last column 1.
        targets: (N, C): 1 where a row has the class; two classes have one column, for the second.
        gram: (F, F), the mean of x x^T over the rows.
    """

    features: np.ndarray
    classes: np.ndarray
    targets: np.ndarray
    gram: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray, labels: np.ndarray) -> ProbeRows:
        """Prepare vectors (N, D) and their labels (N,)."""
        if len(vectors) != len(labels):
            raise EvaluationError(f"{len(vectors)} vectors and {len(labels)} labels do not match.")
        if not np.isfinite(vectors).all():
            raise EvaluationError(
                "Some vectors are not finite (NaN or infinite): the model is broken, so train it again."
            )
        classes, index = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise EvaluationError("A classifier needs two classes or more.")
        features = np.column_stack([vectors.astype(np.float64), np.ones(len(vectors))])
        targets = np.eye(len(classes))[index] if len(classes) > 2 else index[:, None].astype(np.float64)
        return cls(features, classes, targets, features.T @ features / len(features))

    def predict(self, weights: np.ndarray) -> np.ndarray:
        """Return the class that each classifier predicts for each row: weights (P, F, C) -> (P, N)."""
        scores = np.moveaxis(self._scores(weights), 1, 0)  # (P, N, C)
        chosen = scores.argmax(axis=2) if scores.shape[2] > 1 else (scores[:, :, 0] > 0).astype(np.int64)
        return self.classes[chosen]

    def losses(self, weights: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the losses (P,) of weights (P, F, C) on rows weighted by `shares` (N, P), and the gradient."""
        scores = self._scores(weights)  # (N, P, C)
        targets = self.targets[:, None, :]  # (N, 1, C)
        if scores.shape[2] == 1:
            losses = np.logaddexp(0, scores) - targets * scores
            odds = expit(scores)
        else:
            odds = log_softmax(scores, axis=2)
            losses = -(targets * odds).sum(axis=2, keepdims=True)
            np.exp(odds, out=odds)
        odds -= targets
        odds *= shares[:, :, None]
        gradient = (self.features.T @ odds.reshape(len(odds), -1)).reshape(-1, *odds.shape[1:])  # (F, P, C)
        return np.einsum("npc,np->p", losses, shares), gradient.transpose(1, 0, 2)

    def _scores(self, weights: np.ndarray) -> np.ndarray:
        """Return the scores in one product: (N, F), (P, F, C) -> (N, P, C)."""
        parts, features, columns = weights.shape
        stacked = weights.transpose(1, 0, 2).reshape(features, -1)  # (F, P * C)
        return (self.features @ stacked).reshape(len(self.features), parts, columns)


def fit(rows: ProbeRows, parts: np.ndarray, strength: float, start: np.ndarray | None = None) -> np.ndarray:
    """Fit a classifier to each part of the rows: argmin_w C sum_i loss(w, x_i) + |w|^2 / 2, intercept unpenalised.

    The loss is the logistic one for two classes and the softmax cross-entropy for more: scikit-learn's
    LogisticRegression(C). Solved by L-BFGS on all parts together, in the metric of XᵀX / 4N + I / CN, which bounds the
    Hessian of two classes from above.

    Args:
        parts: (P, N) bool, the rows that each classifier is fitted to.
        strength: C of scikit-learn, the inverse of the regularisation.
        start: (P, F, C) weights to begin at, as those of another strength; zeros by default.

    Returns:
        (P, F, C) weights, the last of F the intercept.
    """
    if strength <= 0:
        raise EvaluationError(f"The strength C is {strength:g}; give a positive number.")
    sizes = parts.sum(axis=1).astype(np.float64)  # (P,)
    if not sizes.all():
        raise EvaluationError("One part of the rows is empty: give each classifier rows to be fitted to.")
    shape = (len(parts), rows.features.shape[1], rows.targets.shape[1])
    decay = np.ones(shape[1:]) / (strength * sizes)[:, None, None]  # (P, F, C)
    decay[:, -1] = 0
    metric = rows.gram / 4 + np.diag([*np.full(shape[1] - 1, 1.0 / (strength * sizes.mean())), 1e-9])
    root = np.linalg.cholesky(metric)  # metric = root root^T, weights = root^-T point
    inverse = np.linalg.inv(root)
    shares = parts.T / sizes

    def at(point: np.ndarray) -> tuple[float, np.ndarray]:
        weights = inverse.T @ point.reshape(shape)
        losses, gradient = rows.losses(weights, shares)
        gradient = gradient + decay * weights
        value = losses.sum() + (decay * weights**2).sum() / 2
        return float(value), (inverse @ gradient).ravel()

    point = np.zeros(shape) if start is None else root.T @ start
    options = {"maxiter": _MOST_STEPS, "maxfun": 2 * _MOST_STEPS, "maxcor": 8, "gtol": _SLOPE, "ftol": 0.0}
    found = minimize(at, point.ravel(), jac=True, method="L-BFGS-B", options=options)
    if np.abs(found.jac).max() > 100 * _SLOPE:  # rounding may end the search just before
        raise EvaluationError(f"The classifiers did not converge in {_MOST_STEPS} steps ({found.message}).")
    return inverse.T @ found.x.reshape(shape)
