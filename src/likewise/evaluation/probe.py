"""Classification of frozen vectors, as in SentEval (Conneau and Kiela 2018, section 3).

A logistic regression is trained on the vectors; its regularisation is chosen on its training rows alone, by
cross-validation inside of them or on a dev set. All choices are fitted on all folds together (see `logistic.py`).

Letters of the shapes: N rows, D embedding, P parts of the rows, R strengths, T trials.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.evaluation.logistic import ProbeRows, fit

FOLDS = 10
SEED = 1111  # SentEval's


@dataclass(frozen=True)
class Fold:
    """Rows to train on and rows to test on, as indices, with a name for tables."""

    train: np.ndarray
    test: np.ndarray
    name: str = ""


@dataclass(frozen=True)
class Trial:
    """A trial: rows to train a classifier on, folds to select its regularisation, and rows to test it."""

    train: np.ndarray
    test: np.ndarray
    checks: tuple[Fold, ...]


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


def nested(labels: np.ndarray, count: int = FOLDS, seed: int = SEED) -> tuple[Trial, ...]:
    """Return nested cross-validation trials: each fold is tested once, inner folds select C (MR, CR, SUBJ, MPQA)."""
    return tuple(
        Trial(outer.train, outer.test, folds(labels, outer.train, count, seed))
        for outer in folds(labels, np.arange(len(labels)), count, seed)
    )


def probe(vectors: np.ndarray, labels: np.ndarray, trials: Sequence[Trial], strengths: Sequence[float]) -> Probed:
    """Train and test classifiers on vectors.

    Args:
        vectors: (N, D).
        labels: (N,).
        strengths: the values of C to choose from. Of equals the smallest is taken, as by SentEval.
    """
    rows = ProbeRows.of(vectors, labels)
    parts: dict[bytes, int] = {}  # trials and checks that are trained on the same rows share a classifier
    masks: list[np.ndarray] = []

    def part(train: np.ndarray) -> int:
        mask = np.zeros(len(labels), dtype=bool)
        mask[train] = True
        if mask.tobytes() not in parts:
            parts[mask.tobytes()] = len(masks)
            masks.append(mask)
        return parts[mask.tobytes()]

    final = [part(trial.train) for trial in trials]
    checked = [[(part(check.train), check.test) for check in trial.checks] for trial in trials]
    # From the strongest regularisation to the weakest: each optimum is a good start for the next.
    ordered = sorted(strengths)
    dev = np.empty((len(ordered), len(trials)))  # (R, T)
    given: list[list[np.ndarray]] = []  # R lists of T predictions of test rows
    weights = None
    for i, strength in enumerate(ordered):
        weights = fit(rows, np.stack(masks), strength, weights)
        predicted = rows.predict(weights)  # (P, N)
        right = predicted == labels
        dev[i] = [np.mean([right[where, test].mean() for where, test in checks]) for checks in checked]
        given.append([predicted[where, trial.test] for where, trial in zip(final, trials, strict=True)])
    # Rounded as SentEval does, so that differences of less than a row do not decide.
    best = np.round(100 * dev, 2).argmax(axis=0)  # (T,)
    predictions, tested = np.full(len(labels), rows.classes[0]), np.zeros(len(labels), dtype=bool)
    shares = []
    for t, trial in enumerate(trials):
        predictions[trial.test], tested[trial.test] = given[best[t]][t], True
        shares.append((given[best[t]][t] == labels[trial.test]).mean())
    return Probed(
        accuracy=float(np.mean(shares)),
        dev=float(dev.max(axis=0).mean()),
        strengths=tuple(ordered[i] for i in best),
        predictions=predictions,
        tested=tested,
    )
