"""Logistic regressions on many parts of one set of vectors at once: what probing a frozen encoder needs.

Choosing a regularisation by cross-validation inside of cross-validation fits some hundred classifiers whose training
parts overlap almost wholly. Fitted side by side they share each product with the vectors, which is then one large
matrix product, and one preconditioner. They end where scikit-learn's LogisticRegression ends: the optimum is unique.

Letters of the shapes: N rows, D features, F = D + 1 with the intercept, P parts, C columns of scores a classifier has
(1 for two classes, else one a class).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from likewise.evaluation.task import EvaluationError

_MEMORY = 8  # pairs of steps and gradient changes that L-BFGS keeps
_GAP = 1e-9  # nats of the mean loss; accuracies stop changing at about 1e-6
_MOST_STEPS = 500
_ARMIJO = 1e-4  # of Nocedal and Wright 2006, section 3.1


@dataclass(frozen=True)
class Rows:
    """The rows of a probe, checked, and what all its fits share.

    Attributes:
        features: (N, F) float64, the last column 1.
        classes: the labels there are, in order.
        targets: (N, C): 1 where a row has the class; two classes have one column, for the second.
        gram: (F, F), the mean of x x^T over the rows.
    """

    features: np.ndarray
    classes: np.ndarray
    targets: np.ndarray
    gram: np.ndarray

    @classmethod
    def of(cls, vectors: np.ndarray, labels: np.ndarray) -> Rows:
        """Prepare vectors (N, D) and their labels (N,).

        Raises:
            EvaluationError: a vector is not finite, the sizes differ, or there are fewer than two classes.
        """
        if len(vectors) != len(labels):
            raise EvaluationError(f"{len(vectors)} vectors and {len(labels)} labels do not go together.")
        if not np.isfinite(vectors).all():
            raise EvaluationError("Some vectors are not finite (NaN or infinite): the model is broken.")
        classes, index = np.unique(labels, return_inverse=True)
        if len(classes) < 2:
            raise EvaluationError("A classifier needs two classes at least.")
        features = np.empty((len(vectors), vectors.shape[1] + 1))
        features[:, :-1], features[:, -1] = vectors, 1.0
        targets = np.eye(len(classes))[index] if len(classes) > 2 else index[:, None].astype(np.float64)
        return cls(features, classes, targets, features.T @ features / len(features))

    def predict(self, weights: np.ndarray) -> np.ndarray:
        """The class each classifier gives each row: weights (P, F, C) -> (P, N)."""
        scores = np.moveaxis(_scores(self.features, weights), 1, 0)  # (P, N, C)
        chosen = scores.argmax(axis=2) if scores.shape[2] > 1 else (scores[:, :, 0] > 0).astype(np.int64)
        return self.classes[chosen]


def fit(rows: Rows, parts: np.ndarray, strength: float, start: np.ndarray | None = None) -> np.ndarray:
    """Fit one classifier to each part of the rows: argmin_w C sum_i loss(w, x_i) + |w|^2 / 2, the intercept free.

    The loss is the logistic one for two classes and the softmax cross-entropy for more: scikit-learn's
    LogisticRegression(C). Solved by L-BFGS (Nocedal and Wright 2006, algorithm 7.4) on all parts side by side, in the
    metric of XᵀX / 4N + I / CN, which bounds the Hessian of two classes from above and is shared by all parts.

    Args:
        rows: N rows.
        parts: (P, N) bool, the rows that each classifier is fitted to.
        strength: C of scikit-learn, the inverse of the regularisation.
        start: (P, F, C) weights to begin at, as those of another strength; zeros by default.

    Returns:
        (P, F, C) weights, the last of F the intercept.

    Raises:
        EvaluationError: the strength is not positive, a part is empty, or the optimum is not reached.
    """
    if strength <= 0:
        raise EvaluationError(f"The strength C is {strength:g}; give a positive number.")
    sizes = parts.sum(axis=1).astype(np.float64)  # (P,)
    if not sizes.all():
        raise EvaluationError("A part of the rows is empty.")
    shape = (len(parts), rows.features.shape[1], rows.targets.shape[1])
    problem = _Problem(rows, parts.T / sizes, 1.0 / (strength * sizes))
    inverse = np.linalg.inv(rows.gram / 4 + np.diag([*np.full(shape[1] - 1, 1.0 / (strength * sizes.mean())), 1e-9]))
    found = np.zeros(shape) if start is None else start.copy()
    active = np.arange(shape[0])
    weights = found
    value, gradient = problem.at(weights, active)
    steps: list[np.ndarray] = []
    changes: list[np.ndarray] = []
    for _ in range(_MOST_STEPS):
        direction = -_two_loop(gradient, steps, changes, inverse)
        slope = _dot(gradient, direction)
        # Half the squared length of the gradient in the metric is about how far the loss is from its lowest.
        open_ = -_dot(gradient, -(inverse @ gradient)) / 2 > _GAP
        if not open_.all():
            found[active] = weights
            active, weights, value, gradient = active[open_], weights[open_], value[open_], gradient[open_]
            direction, slope = direction[open_], slope[open_]
            steps, changes = [s[open_] for s in steps], [c[open_] for c in changes]
            if not len(active):
                return found
        step = np.ones(len(active))
        while True:
            trial = weights + step[:, None, None] * direction
            reached, slopes = problem.at(trial, active)
            # The last term is what rounding makes of equal losses.
            short = reached > value + _ARMIJO * step * slope + 1e-14
            if not short.any():
                break
            step[short] /= 2
        steps.append(trial - weights)
        changes.append(slopes - gradient)
        del steps[:-_MEMORY], changes[:-_MEMORY]
        weights, value, gradient = trial, reached, slopes
    raise EvaluationError(f"{len(active)} of {shape[0]} classifiers did not converge in {_MOST_STEPS} steps.")


@dataclass(frozen=True)
class _Problem:
    """The mean losses of the parts: `shares` (N, P) is 1 / N_p in the part and 0 outside, `decay` (P,) is 1 / C N_p."""

    rows: Rows
    shares: np.ndarray
    decay: np.ndarray

    def at(self, weights: np.ndarray, active: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Loss (A,) and gradient (A, F, C) of the active parts at their weights (A, F, C)."""
        shares = self.shares[:, active]  # (N, A)
        scores = _scores(self.rows.features, weights)  # (N, A, C)
        targets = self.rows.targets[:, None, :]  # (N, 1, C)
        if scores.shape[2] == 1:
            # log(1 + e^z) - y z without overflow; the sigmoid is 1 / (1 + e^-z).
            decayed = np.exp(-np.abs(scores))
            losses = np.log1p(decayed) + np.maximum(scores, 0) - targets * scores
            odds = np.where(scores >= 0, 1.0, decayed) / (1.0 + decayed)
        else:
            scores -= scores.max(axis=2, keepdims=True)
            odds = np.exp(scores)
            total = odds.sum(axis=2, keepdims=True)
            losses = np.log(total) - (targets * scores).sum(axis=2, keepdims=True)
            odds /= total
        odds -= targets
        odds *= shares[:, :, None]
        gradient = (self.rows.features.T @ odds.reshape(len(odds), -1)).reshape(-1, *odds.shape[1:])  # (F, A, C)
        gradient = np.ascontiguousarray(gradient.transpose(1, 0, 2))  # (A, F, C)
        penalised = weights.copy()
        penalised[:, -1] = 0
        decay = self.decay[active]
        gradient += decay[:, None, None] * penalised
        value = np.einsum("nac,na->a", losses, shares) + decay * _dot(penalised, penalised) / 2
        return value, gradient


def _scores(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """(N, F), (P, F, C) -> (N, P, C) in one product."""
    parts, _, columns = weights.shape
    stacked = weights.transpose(1, 0, 2).reshape(weights.shape[1], -1)  # (F, P * C)
    return (features @ stacked).reshape(len(features), parts, columns)


def _dot(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The inner product of each classifier's weights: (P, F, C), (P, F, C) -> (P,)."""
    return np.einsum("pfc,pfc->p", a, b)


def _two_loop(
    gradient: np.ndarray, steps: list[np.ndarray], changes: list[np.ndarray], inverse: np.ndarray
) -> np.ndarray:
    """The gradient times L-BFGS's inverse Hessian, which starts from `inverse` (F, F)."""
    result = gradient.copy()
    kept = []
    for step, change in zip(reversed(steps), reversed(changes), strict=True):
        curvature = np.maximum(_dot(step, change), 1e-300)
        share = _dot(step, result) / curvature
        result -= share[:, None, None] * change
        kept.append((step, change, curvature, share))
    result = inverse @ result
    if steps:
        # The metric overstates the curvature; the last change tells by how much (equation 7.20).
        curvature = np.maximum(_dot(steps[-1], changes[-1]), 1e-300)
        result *= (curvature / np.maximum(_dot(changes[-1], inverse @ changes[-1]), 1e-300))[:, None, None]
    for step, change, curvature, share in reversed(kept):
        result += (share - _dot(change, result) / curvature)[:, None, None] * step
    return result
