"""The choice between adapted encoders without labels: retrieval on held-out passages, with STS-B dev as a guard.

Letters of the shapes: Q held-out sentences, N passages, D embedding.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.adaptation.head import FrozenTexts, Head
from likewise.adaptation.texts import OwnText
from likewise.evaluation.geometry import reciprocal_ranks
from likewise.evaluation.pairs import RatedPairs, correlations, pair_cosines
from likewise.evaluation.registry import rated_task
from likewise.evaluation.task import DataError, number
from likewise.runs.progress import Progress

GUARD = 1.0
"""Points of STS-B dev that an adapted encoder may lose."""

LEAST = 0.05
"""Share of the base's MRR that a candidate has to gain.

A sentence shares words with the rest of its passage, more than a query does: smaller gains did not carry over to
judged queries (docs/adapt.md).
"""


COLUMNS = ("Candidate", "MRR", "Gain", "Noise", "STS-B dev", "Negation")


@dataclass(frozen=True)
class Candidate:
    """One adapted encoder and its scores.

    Attributes:
        name: what was done, in a few words.
        mrr: mean reciprocal rank, times 100, of a held-out sentence's passage; None if nothing can be measured.
        gain: `mrr` minus that of the base.
        noise: two standard errors of `gain`.
        sts_dev: Spearman on STS-B dev, times 100; None without its data.
        negation: 100 (1 - cosine) of held-out sentences and their negations; None without them.
    """

    name: str
    mrr: float | None
    gain: float | None
    noise: float | None
    sts_dev: float | None
    negation: float | None = None

    def cells(self) -> list[str]:
        """Return its row of a table, in the order of `COLUMNS`."""
        gain = "-" if self.gain is None else f"{self.gain:+.2f}"
        scores = (self.noise, self.sts_dev, self.negation)
        return [self.name, number(self.mrr), gain, *(number(score) for score in scores)]


class Judge:
    """The scores of candidates beside those of the base.

    Args:
        base: reciprocal ranks of the base, (Q,); None if nothing can be measured.
        sts_dev: of the base; None without data.
    """

    def __init__(self, base: np.ndarray | None, sts_dev: float | None) -> None:
        self.base, self.sts_dev = base, sts_dev

    def score(
        self, name: str, ranks: np.ndarray | None, sts_dev: float | None, negation: float | None = None
    ) -> Candidate:
        """Return the scores of a candidate, from its reciprocal ranks (Q,), STS-B dev, and distance of negations."""
        if ranks is None or self.base is None:
            return Candidate(name, None, None, None, sts_dev, negation)
        change = 100 * (ranks - self.base)
        noise = 2 * float(change.std()) / math.sqrt(len(change))
        return Candidate(name, 100 * float(ranks.mean()), float(change.mean()), noise, sts_dev, negation)

    def keeps_sts(self, candidate: Candidate) -> bool:
        """Return whether a candidate loses no more of STS-B dev than the guard allows; True without its data."""
        return candidate.sts_dev is None or self.sts_dev is None or candidate.sts_dev >= self.sts_dev - GUARD

    def best(self, candidates: Sequence[Candidate]) -> tuple[Candidate | None, str]:
        """Return the best candidate, None if the base is to stay, and the reason in a sentence."""
        kept = [one for one in candidates if self.keeps_sts(one)]
        if not kept:
            return None, f"every candidate loses more than {GUARD:.0f} point of STS-B dev"
        best = max(kept, key=lambda one: one.gain or 0.0)
        gain, noise = best.gain or 0.0, best.noise or 0.0
        least = 0.0 if self.base is None else 100 * LEAST * float(self.base.mean())
        if gain <= max(noise, least):
            return None, (
                f"no candidate finds the passages of held-out sentences enough better (best: {best.name}, "
                f"{gain:+.2f} points of MRR; noise {noise:.2f}, smallest gain that counts {least:.2f})"
            )
        return best, (
            f"it finds the passage of a held-out sentence best: MRR {best.mrr:.2f}, {best.gain:+.2f} over the base "
            f"(noise {best.noise:.2f})"
        )


class Contest:
    """The candidates for a text, scored as they come in; the base is the first.

    Args:
        space: all texts under the base.
        text: what is measured on.
        negated: sentences and their negations, to measure on.
        sts: rated pairs for the guard; None without data.
        progress: told each score.
    """

    def __init__(
        self,
        space: FrozenTexts,
        text: OwnText,
        negated: Sequence[tuple[str, str]],
        sts: RatedPairs | None,
        progress: Progress,
    ) -> None:
        self.space, self.text, self.negated, self.sts, self.progress = space, text, negated, sts, progress
        self.heads = {"base": Head(space.vectors.shape[1])}
        ranks, sts_dev, negation = self._measured("base")
        self.judge = Judge(ranks, sts_dev)
        self.candidates = [self._told(self.judge.score("base", ranks, sts_dev, negation))]

    def enter(self, name: str, head: Head) -> Candidate:
        """Score a candidate and keep it."""
        self.heads[name] = head
        self.candidates.append(self._told(self.judge.score(name, *self._measured(name))))
        return self.candidates[-1]

    def best_of(self, candidates: Sequence[Candidate]) -> Candidate:
        """Return the candidate with the largest gain, of those that pass the guard if any does."""
        kept = [one for one in candidates if self.judge.keeps_sts(one)] or candidates
        return max(kept, key=lambda one: one.gain or 0.0)

    def choose(self, keep_base_if_better: bool) -> tuple[str, str]:
        """Return the name of the candidate to save, "base" for the base, and the reason in a sentence."""
        others = self.candidates[1:]
        best, reason = self.judge.best(others)
        if best is None and not keep_base_if_better:
            best = max(others, key=lambda one: one.gain or 0.0)
        return best.name if best else "base", reason

    def cosines(self, name: str) -> np.ndarray:
        """Return the cosines (Q, N) of the held-out queries with all passages, by a candidate."""
        queries, pool = self._sides(name)
        return queries @ pool.T

    def _sides(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        head = self.heads[name]
        return self.space.under(head, self.text.queries), self.space.under(head, self.text.pool)

    def _measured(self, name: str) -> tuple[np.ndarray, float | None, float | None]:
        """Return reciprocal ranks (Q,), STS-B dev, and the distance of negations."""
        head = self.heads[name]
        ranks = reciprocal_ranks(*self._sides(name), np.array(self.text.own))
        sts = negation = None
        if self.sts is not None:
            sides = self.space.under(head, self.sts.first), self.space.under(head, self.sts.second)
            sts, _ = correlations(pair_cosines(*sides), self.sts.gold)
        if self.negated:
            both = (self.space.under(head, side) for side in zip(*self.negated, strict=True))
            negation = 100 * (1 - float(pair_cosines(*both).mean()))
        return ranks, sts, negation

    def _told(self, one: Candidate) -> Candidate:
        sts = "" if one.sts_dev is None else f", STS-B dev {one.sts_dev:.2f}"
        self.progress.tell(f"{one.name}: MRR {one.mrr:.2f}{sts}")
        return one


def sts_dev_pairs(data: str | os.PathLike[str] | None) -> RatedPairs | None:
    """Return the pairs of STS-B dev; None if there is no data.

    Raises:
        DataError: `data` is given and holds none, or the file is malformed.
    """
    try:
        return rated_task("sts-b-dev").pairs(data)
    except DataError:
        if data is not None:
            raise
        return None
