"""The weights of the terms of a similarity: those that were chosen, and the choice on rated pairs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np

from likewise.context.options import ScoreOptions
from likewise.context.workspace import ContextError
from likewise.runs.whole_files import read_json, write_json

WEIGHTS = "weights.json"


@dataclass(frozen=True)
class Weights:
    """Chosen weights, and how they were chosen.

    Attributes:
        values: of the seven features of the form `pmi`, or of the four terms of equation 3.
        spearman: times 100, on the pairs they were chosen on.
        pairs, source: how many those were, and which.
        form: "pmi" or "paper".
    """

    values: tuple[float, ...]
    spearman: float
    pairs: int
    source: str
    form: Literal["pmi", "paper"]

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


def with_chosen_weights(work: str | Path, options: ScoreOptions) -> ScoreOptions:
    """Return the options, with the weights that were chosen for the workspace if they name none."""
    path = Path(work) / WEIGHTS
    if options.weights or not path.is_file():
        return options
    chosen = Weights.load(path)
    if chosen.form != options.form:
        raise ContextError(f"{path} was chosen for form={chosen.form}, not {options.form}: choose weights again")
    return options.updated(weights=chosen.values)


def choose_weights(
    similarities: Callable[[np.ndarray], np.ndarray],
    gold: Sequence[float] | np.ndarray,
    start: Sequence[float] | np.ndarray,
    free: Sequence[int],
    least: float = -np.inf,
) -> tuple[np.ndarray, float]:
    """Choose weights under which similarities agree best with ratings, by Spearman.

    One weight at a time is moved by 0.4, then 0.2, 0.1 and 0.05, as long as Spearman's correlation rises by 0.0001.
    Then the weights are moved back to where they began by 0.05 at a time, as long as it stays within 0.0002 of the
    best: of weights that a small dev set cannot tell apart, these change least.

    Args:
        similarities: weights to the similarities (P,) of the rated pairs.
        gold: their ratings (P,).
        start: the weights that are tried first.
        free: which may be moved.
        least: none is moved below it.

    Returns:
        The weights, and Spearman's correlation times 100.
    """
    from scipy.stats import spearmanr

    def spearman(weights: np.ndarray) -> float:
        value = float(spearmanr(similarities(weights), gold).statistic)
        return value if np.isfinite(value) else -1.0

    start = np.asarray(start, dtype=np.float64)
    weights, best = start.copy(), spearman(start)

    def moved(i: int, change: float) -> np.ndarray:
        tried = weights.copy()
        tried[i] = max(least, round(tried[i] + change, 2))
        return tried

    for step in (0.4, 0.2, 0.1, 0.05):
        rising = True
        while rising:
            rising = False
            for i in free:
                for change in (step, -step):
                    tried = moved(i, change)
                    if tried.any() and (value := spearman(tried)) > best + 1e-4:
                        best, weights, rising = value, tried, True
    lowest, falling = best - 2e-4, True
    while falling:
        falling = False
        for i in free:
            if abs(weights[i] - start[i]) > 0.04:
                tried = moved(i, 0.05 * float(np.sign(start[i] - weights[i])))
                if (value := spearman(tried)) >= lowest:
                    best, weights, falling = value, tried, True
    return weights, 100 * best
