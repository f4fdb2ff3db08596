"""Rank errors: the pairs of an STS task that an encoder ranks most wrongly (SNCSE, section 5, table 4).

Wang et al. 2022, "SNCSE", equations 10 and 11. Ranks run from 1 for the least similar pair to P for the most similar.
Letters of the shapes: P pairs.
"""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.evaluation.pairs import RatedPairs, correlations, pair_cosines
from likewise.evaluation.registry import rated_task
from likewise.evaluation.task import EvaluationError, plain
from likewise.evaluation.tasks.sts import StsTask
from likewise.runs.progress import Progress

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.inference.vectors import Precision


def ranks(values: np.ndarray) -> np.ndarray:
    """Return the ranks (P,) of P values: 1 for the lowest, and for equal values the mean of their ranks.

    >>> ranks(np.array([0.3, 0.1, 0.3])).tolist()
    [2.5, 1.0, 2.5]
    """
    from scipy.stats import rankdata

    if not np.isfinite(values).all():
        raise EvaluationError("Some cosines are not finite: the model's vectors are broken (NaN or infinite).")
    return np.asarray(rankdata(values, method="average"), dtype=np.float64)


def rank_errors(estimated: np.ndarray, gold: np.ndarray) -> np.ndarray:
    """Return (R_E^i - R_G^i)^2 for each pair i, SNCSE's equation 11, from the ranks (P,) by cosine and by rating."""
    return (estimated - gold) ** 2


def spearman_of_ranks(estimated: np.ndarray, gold: np.ndarray) -> float:
    """Return Spearman's rho = 1 - sum_i (R_E^i - R_G^i)^2 / ((P^3 - P) / 6), SNCSE's equation 10, from -1 to 1.

    It is exact only where no two of the pairs (P, at least 2) share a rank. Human ratings do, so `likewise evaluate`
    gives the correlation of the ranks themselves, which is right with ties too.

    >>> spearman_of_ranks(np.array([1.0, 2.0, 3.0]), np.array([3.0, 2.0, 1.0]))
    -1.0
    """
    count = len(gold)
    return 1.0 - float(rank_errors(estimated, gold).sum()) / ((count**3 - count) / 6)


@dataclass(frozen=True)
class MisrankedPair:
    """A pair and its rank error.

    Attributes:
        gold_rank, estimated_rank: R_G by the rating and R_E by the cosine, 1 for the least similar pair.
        error: (R_E - R_G)^2, equation 11.
        direction: 'overestimated' if the model ranks the pair higher than people do, 'underestimated' or 'exact'.
    """

    index: int
    subset: str
    first: str
    second: str
    gold: float
    cosine: float
    gold_rank: float
    estimated_rank: float
    error: float
    direction: str


@dataclass(frozen=True)
class ErrorAnalysis:
    """The rank errors of a model on a task.

    Attributes:
        model: its name or folder.
        task, title: the task's name in the registry and in a table.
        scale: lowest and highest rating.
        pairs: P, the number of ranked pairs.
        spearman: as `likewise evaluate` gives it, times 100 (ties corrected).
        spearman_equation_10: by `spearman_of_ranks`, times 100.
        gold_ranks, estimated_ranks: (P,) R_G and R_E of all pairs, in the order of the task.
        worst: the pairs with the largest errors, the largest first; among equals the first of the task.
    """

    model: str
    task: str
    title: str
    scale: tuple[float, float]
    pairs: int
    spearman: float
    spearman_equation_10: float
    gold_ranks: np.ndarray
    estimated_ranks: np.ndarray
    worst: tuple[MisrankedPair, ...]

    @property
    def overestimated(self) -> int:
        """The number of overestimated pairs among the worst."""
        return sum(pair.direction == "overestimated" for pair in self.worst)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON, with the ranks of the worst pairs only."""
        return plain({name: value for name, value in asdict(self).items() if not name.endswith("_ranks")})


def ranked(cosines: np.ndarray, pairs: RatedPairs, task: StsTask, worst: int, model: str = "") -> ErrorAnalysis:
    """Rank the rated pairs of a task by their cosines (P,), and keep the `worst` pairs with the largest errors."""
    gold, estimated = ranks(pairs.gold), ranks(cosines)
    errors = rank_errors(estimated, gold)
    directions = ("underestimated", "exact", "overestimated")
    names = pairs.subset_names
    picked = tuple(
        MisrankedPair(
            index=i,
            subset=names[i],
            first=pairs.first[i],
            second=pairs.second[i],
            gold=float(pairs.gold[i]),
            cosine=float(cosines[i]),
            gold_rank=float(gold[i]),
            estimated_rank=float(estimated[i]),
            error=float(errors[i]),
            direction=directions[1 + int(np.sign(estimated[i] - gold[i]))],
        )
        for i in np.argsort(-errors, kind="stable")[:worst].tolist()
    )
    spearman, by_equation = correlations(cosines, pairs.gold)[0], 100 * spearman_of_ranks(estimated, gold)
    return ErrorAnalysis(
        model, task.name, task.title, task.scale, len(gold), spearman, by_equation, gold, estimated, picked
    )


def analyze_errors(
    model: SentenceTransformer | str | os.PathLike[str],
    task: str,
    *,
    data: str | os.PathLike[str] | None = None,
    worst: int = 20,
    batch_size: int = 64,
    precision: Precision | None = None,
    quiet: bool = True,
) -> ErrorAnalysis:
    """Rank the pairs of a task by rating and by cosine, and find those whose two ranks differ most.

    Args:
        model: a SentenceTransformer, or what `likewise.load` takes.
        task: one task of rated pairs: sts12 to sts16, sts-b, sick-r, sts-b-dev, sts-b-train.
        worst: number of pairs to keep.
        data, batch_size, precision, quiet: as in `likewise.evaluate`.

    Raises:
        EvaluationError: there is no such task, it has no rated pairs, or `worst` is below 1.
        DataError: there is no data folder, or a file is missing or malformed.
        LoadError: the model cannot be loaded.
    """
    if worst < 1:
        raise EvaluationError(f"worst is {worst}; give 1 or more.")
    chosen = rated_task(task)
    pairs = chosen.pairs(data)

    # Imported here, as torch is not needed above.
    from likewise.inference.load_model import opened
    from likewise.inference.vectors import encode

    encoder, name = opened(model)
    texts = [*pairs.first, *pairs.second]
    vectors = encode(encoder, texts, batch_size=batch_size, precision=precision, progress=Progress(quiet))  # (2P, D)
    return ranked(pair_cosines(*np.split(vectors, 2)), pairs, chosen, worst, name)
