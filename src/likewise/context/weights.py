"""The weights of the terms of a similarity: those that were chosen, and the choice on rated pairs for equation 4.

Letters of the shapes: P pairs, C contexts of a pair, W settings of the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from likewise.context.options import TERMS, ScoreOptions
from likewise.context.workspace import ContextError
from likewise.runs.whole_files import read_json, write_json

WEIGHTS = "weights.json"
Metric = Literal["cosine", "correlation"]


@dataclass(frozen=True)
class PairTerms:
    """The terms of equation 3 of both sentences in the contexts of both, (C, 4) each."""

    first: np.ndarray
    second: np.ndarray


@dataclass(frozen=True)
class Weights:
    """Chosen weights, and how they were chosen.

    Attributes:
        values: of the seven features of the form `pmi`, or of the four terms of equation 3.
        metric: of equation 4: its cosine, or the cosine of what differs from their mean ("correlation").
        spearman: times 100, on the pairs they were chosen on.
        pairs, source: how many those were, and which.
        form: "pmi" or "paper".
    """

    values: tuple[float, ...]
    metric: Metric
    spearman: float
    pairs: int
    source: str
    form: Literal["pmi", "paper"] = "paper"

    def save(self, path: str | Path) -> None:
        """Write the weights as JSON, atomically."""
        write_json(Path(path), asdict(self))

    @classmethod
    def load(cls, path: str | Path) -> Weights:
        """Read saved weights.

        Raises:
            ContextError: there are none, or the file is damaged.
        """
        try:
            content = read_json(Path(path))
            return cls(**{**content, "values": tuple(float(value) for value in content["values"])})
        except FileNotFoundError:
            raise ContextError(f"there are no weights in '{path}': choose them first") from None
        except (ValueError, TypeError, KeyError) as error:
            raise ContextError(f"'{path}' holds no weights ({error!r}): choose them again") from None


def similarities(
    terms: Sequence[PairTerms], weights: Sequence[float] | np.ndarray, metric: Metric = "cosine"
) -> np.ndarray:
    """Return the similarity (equation 4) of each pair: (P,)."""
    return _similarities(_moments(terms, metric), np.asarray([weights], dtype=np.float64))[0]


def with_chosen_weights(work: str | Path, options: ScoreOptions) -> ScoreOptions:
    """Return the options, with the weights that were chosen for the workspace if they name none."""
    path = Path(work) / WEIGHTS
    if options.weights or not path.is_file():
        return options
    chosen = Weights.load(path)
    if chosen.form != options.form:
        raise ContextError(f"{path} was chosen for form={chosen.form}, not {options.form}: choose weights again")
    if chosen.form == "paper" and chosen.metric != options.metric:
        raise ContextError(f"{path} was chosen for metric={chosen.metric}, not {options.metric}: choose weights again")
    return options.updated(weights=chosen.values)


def choose_weights(
    terms: Sequence[PairTerms],
    gold: Sequence[float] | np.ndarray,
    *,
    metric: Metric = "cosine",
    steps: int = 20,
    source: str = "STS-B dev",
    without: Sequence[str] = (),
) -> Weights:
    """Choose the weights under which equation 4 agrees best with human ratings, by Spearman correlation.

    Equation 4 does not change when all weights are multiplied, so those that sum to one are tried, in steps of
    1 / `steps` (20: 1,771 settings); of equal ones the most even is taken.

    Args:
        terms: all four terms of P pairs.
        gold: their ratings (P,).
        without: names of `TERMS` whose weight stays 0 (table 9).
    """
    from scipy.stats import rankdata

    if len(terms) != len(gold) or len(gold) < 2:
        raise ContextError(f"weights need two rated pairs or more, not {len(terms)} with {len(gold)} ratings")
    if unknown := set(without) - set(TERMS):
        raise ContextError(f"there is no term {', '.join(sorted(unknown))}; there are {', '.join(TERMS)}")
    grid = np.array([w for w in _compositions(steps, len(TERMS)) if not any(w[TERMS.index(name)] for name in without)])
    grid = grid[np.argsort(grid.max(axis=1), kind="stable")] / steps  # (W, 4), the most even first
    found = _similarities(_moments(terms, metric), grid)  # (W, P)
    ranks, wanted = rankdata(found, axis=1), rankdata(np.asarray(gold))
    ranks, wanted = ranks - ranks.mean(axis=1, keepdims=True), wanted - wanted.mean()
    norms = np.linalg.norm(ranks, axis=1) * np.linalg.norm(wanted)
    spearman = np.where(norms > 0, ranks @ wanted / np.where(norms > 0, norms, 1), -1.0)
    best = int(np.argmax(np.round(spearman, 12)))
    values = tuple(float(value) for value in grid[best])
    return Weights(values, metric, 100 * float(spearman[best]), len(gold), source)


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    """Return all ways to write a number as an ordered sum of `parts` numbers of 0 or more."""
    if parts == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in _compositions(total - first, parts - 1)]


def _moments(terms: Sequence[PairTerms], metric: Metric) -> np.ndarray:
    """Return, for each pair, the sums over its contexts of products of two terms: (P, 3, 4, 4).

    A vector of scores is (terms) (weights), so that its products with another need these sums alone.
    """
    found = np.empty((len(terms), 3, len(TERMS), len(TERMS)))
    for i, pair in enumerate(terms):
        a, b = pair.first.astype(np.float64), pair.second.astype(np.float64)
        if metric == "correlation" and len(a):
            a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        found[i] = a.T @ b, a.T @ a, b.T @ b
    return found


def _similarities(moments: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the similarities (equation 4) from moments (P, 3, 4, 4) for weights (W, 4): (W, P)."""
    both, first, second = np.einsum("wi,pkij,wj->kwp", weights, moments, weights, optimize=True)
    norms = np.sqrt(np.maximum(first, 0) * np.maximum(second, 0))
    return np.where(norms > 1e-300, both / np.maximum(norms, 1e-300), 0.0)
