"""Classification of frozen vectors, as in SentEval (Conneau and Kiela 2018, section 3).

A logistic regression is trained on the vectors; its regularisation is chosen on its training rows alone, by
cross-validation inside of them or on a dev set.

Letters of the shapes: N rows, D embedding, R strengths.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from likewise.evaluation.task import EvaluationError

FOLDS = 10
SEED = 1111  # SentEval's


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to test on, as indices.

    Attributes:
        checks: parts of the training rows by which the regularisation is chosen.
    """

    train: np.ndarray
    test: np.ndarray
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

    Raises:
        EvaluationError: the two do not match, a vector is not finite, or there is one class alone.
    """
    if len(vectors) != len(labels):
        raise EvaluationError(f"{len(vectors)} vectors and {len(labels)} labels do not match.")
    if not np.isfinite(vectors).all():
        raise EvaluationError("Some vectors are not finite (NaN or infinite): the model is broken, so train it again.")
    classes = np.unique(labels)
    if len(classes) < 2:
        raise EvaluationError("A classifier needs two classes or more.")
    vectors, ordered = vectors.astype(np.float64), sorted(strengths)
    predictions, covered = np.full(len(labels), classes[0]), np.zeros(len(labels), dtype=bool)
    shares, chosen, dev = [], [], []
    for trial in trials:
        checked = np.mean([_accuracies(vectors, labels, check, ordered) for check in trial.checks], axis=0)  # (R,)
        # Rounded as SentEval does, so that differences of less than a row do not decide.
        best = int(np.round(100 * checked, 2).argmax())
        model = _classifier(ordered[best]).fit(vectors[trial.train], labels[trial.train])
        predictions[trial.test], covered[trial.test] = model.predict(vectors[trial.test]), True
        shares.append((predictions[trial.test] == labels[trial.test]).mean())
        chosen.append(ordered[best])
        dev.append(checked.max())
    return Probed(float(np.mean(shares)), float(np.mean(dev)), tuple(chosen), predictions, covered)


def _accuracies(vectors: np.ndarray, labels: np.ndarray, fold: Fold, strengths: Sequence[float]) -> list[float]:
    """Return the accuracy on the test rows of a fold for each strength (R,), from the strongest regularisation on.

    Each optimum is the start of the search for the next.
    """
    model = _classifier(strengths[0])
    train, right = (vectors[fold.train], labels[fold.train]), (vectors[fold.test], labels[fold.test])
    return [model.set_params(C=strength).fit(*train).score(*right) for strength in strengths]


def _classifier(strength: float) -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression(C=strength, tol=1e-4, max_iter=2000, warm_start=True)
