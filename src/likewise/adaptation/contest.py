"""The candidates for a text: proposed, and judged by retrieval on held-out passages, with STS-B dev as a guard.

Letters of the shapes: Q held-out sentences, N passages, D embedding.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import numpy as np

from likewise.adaptation.head import FrozenTexts, Head, HeadTrainingOptions, train_head
from likewise.adaptation.result import Candidate
from likewise.adaptation.texts import OwnText
from likewise.encoder.word_part import WordPart
from likewise.evaluation.geometry import ranks_by_scores
from likewise.evaluation.pairs import RatedPairs, correlations, pair_cosines
from likewise.evaluation.registry import rated_task
from likewise.evaluation.task import DataError
from likewise.retrieval.fusion import standardised
from likewise.retrieval.words import bm25
from likewise.runs.progress import Progress

GUARD = 1.0
"""Points of STS-B dev that an adapted encoder may lose."""

LEAST = 0.05
"""Share of the base's MRR that a candidate has to gain.

A sentence shares words with the rest of its passage, more than a query does: smaller gains did not carry over to
judged queries (docs/adapt-measured.md).
"""


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
        self.heads: dict[str, Head] = {}
        self.candidates: list[Candidate] = []
        self.enter("base", Head(space.vectors.shape[1]))

    def propose(self, words: WordPart | None, negated: list[tuple[str, str]], seed: int) -> None:
        """Enter the words of the corpus, a map that is trained on top of them, and one that is trained with them.

        Args:
            words: the part of words; None for none, so that the map is trained alone.
            negated: sentences and their negations, to learn from.
            seed: fixes the batches.
        """
        pairs = self.space.rows([(pair.first, pair.second) for pair in self.text.training])  # (P, 2)
        start, first, trained = Head(self.space.vectors.shape[1], words), "", {"map": {"word_rate": 0.0}}
        if words is not None:
            first = f"words {words.weight}"
            self.enter(first, start)
            first, trained["map and words"] = f"{first}, ", {}
        for what, changes in trained.items():
            options = HeadTrainingOptions().updated(**changes)
            head = train_head(start, self.space, pairs, options, seed, self.progress, self.space.rows(negated))
            self.enter(f"{first}trained {what}", head)

    def enter(self, name: str, head: Head) -> None:
        """Score a candidate and keep it."""
        self.heads[name] = head
        ranks = self._ranks(self.scores(name))
        if name == "base":
            self._base_ranks = ranks
        sts = negation = None
        if self.sts is not None:
            sides = self.space.under(head, self.sts.first), self.space.under(head, self.sts.second)
            sts, _ = correlations(pair_cosines(*sides), self.sts.gold)
        if self.negated:
            both = (self.space.under(head, side) for side in zip(*self.negated, strict=True))
            negation = 100 * (1 - float(pair_cosines(*both).mean()))
        scored = Candidate(name, 100 * float(ranks.mean()), *gained(ranks, self._base_ranks), sts, negation)
        self.candidates.append(scored)
        self.progress.tell(f"{name}: MRR {scored.mrr:.2f}" + ("" if sts is None else f", STS-B dev {sts:.2f}"))

    def choose(self, keep_base_if_better: bool) -> tuple[str, str]:
        """Return the name of the candidate to save, "base" for the base, and the reason in a sentence."""
        best, reason = best_of(self.candidates)
        if best == "base" and not keep_base_if_better:
            best = max(self.candidates[1:], key=_gain).name
        return best, reason

    def scores(self, name: str) -> np.ndarray:
        """Return the cosines (Q, N) of the held-out sentences with all passages, by a candidate."""
        head = self.heads[name]
        return self.space.under(head, self.text.queries) @ self.space.under(head, self.text.pool).T

    def beside_bm25(self, name: str, language: str) -> tuple[float, float]:
        """Return what a candidate gains over the base if BM25 stands beside both, in points of MRR, and the noise."""
        words = standardised(bm25(self.text.queries, self.text.pool, language))
        base, other = (self._ranks(standardised(self.scores(one)) + words) for one in ("base", name))
        return gained(other, base)

    def _ranks(self, scores: np.ndarray) -> np.ndarray:
        """Return the reciprocal ranks (Q,) of the passages that the sentences were taken from."""
        return ranks_by_scores(scores, np.array(self.text.own))


def gained(ranks: np.ndarray, base: np.ndarray) -> tuple[float, float]:
    """Return the mean gain of reciprocal ranks (Q,) over those of the base, and two standard errors of it, times 100.

    >>> gained(np.array([1.0, 0.5]), np.array([0.5, 0.5]))[0]
    25.0
    """
    change = 100 * (ranks - base)
    return float(change.mean()), 2 * float(change.std()) / math.sqrt(len(change))


def best_of(candidates: Sequence[Candidate]) -> tuple[str, str]:
    """Return the name of the best candidate, "base" if the base is to stay, and the reason in a sentence.

    Args:
        candidates: all that were scored, the base first.
    """
    base, *others = candidates
    kept = [one for one in others if _keeps_sts(one, base)]
    if not kept:
        return "base", f"every candidate loses more than {GUARD:.0f} point of STS-B dev"
    best = max(kept, key=_gain)
    gain, noise, least = _gain(best), best.noise or 0.0, LEAST * (base.mrr or 0.0)
    if gain <= max(noise, least):
        return "base", (
            f"no candidate finds the passages of held-out sentences enough better (best: {best.name}, "
            f"{gain:+.2f} points of MRR; noise {noise:.2f}, smallest gain that counts {least:.2f})"
        )
    return best.name, (
        f"it finds the passage of a held-out sentence best: MRR {best.mrr:.2f}, {gain:+.2f} over the base "
        f"(noise {noise:.2f})"
    )


def _gain(candidate: Candidate) -> float:
    return candidate.gain or 0.0


def _keeps_sts(candidate: Candidate, base: Candidate) -> bool:
    """Return whether a candidate loses no more of STS-B dev than the guard allows; True without its data."""
    return candidate.sts_dev is None or base.sts_dev is None or candidate.sts_dev >= base.sts_dev - GUARD


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
