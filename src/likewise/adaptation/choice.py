"""The choice between adapted encoders without labels: retrieval on held-out passages, with STS-B dev as a guard.

Letters of the shapes: Q held-out sentences, N passages, D embedding.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from likewise.adaptation.adapt_options import AdaptOptions
from likewise.adaptation.head import FrozenTexts, Head
from likewise.adaptation.texts import OwnText
from likewise.evaluation.geometry import ranks_by_scores
from likewise.evaluation.pairs import RatedPairs, correlations, pair_cosines
from likewise.evaluation.registry import rated_task
from likewise.evaluation.task import DataError, number
from likewise.retrieval.fusion import exhaustive, nearest
from likewise.retrieval.pipeline import WITHOUT_TOKENS
from likewise.retrieval.words import bm25
from likewise.runs.progress import Progress

GUARD = 1.0
"""Points of STS-B dev that an adapted encoder may lose."""

LEAST = 0.05
"""Share of the base's MRR that a candidate has to gain.

A sentence shares words with the rest of its passage, more than a query does: smaller gains did not carry over to
judged queries (docs/adapt-measured.md).
"""

COLUMNS = ("Candidate", "Beside BM25", "Gain", "Noise", "Alone", "Gain", "Noise", "STS-B dev", "Negation")


@dataclass(frozen=True)
class Candidate:
    """One adapted encoder and its scores.

    Ranks are of the passage that a held-out sentence was taken from, their mean reciprocal (MRR) times 100.

    Attributes:
        name: what was done, in a few words.
        mrr: by the vectors alone; None if nothing can be measured.
        gain: `mrr` minus that of the base.
        noise: two standard errors of `gain`.
        sts_dev: Spearman on STS-B dev, times 100; None without its data.
        negation: 100 (1 - cosine) of held-out sentences and their negations; None without them.
        beside_mrr: with BM25 beside the vectors and the neighbours of each passage, as `likewise search` has them.
        beside_gain: `beside_mrr` minus that of the base there.
        beside_noise: two standard errors of `beside_gain`.
    """

    name: str
    mrr: float | None = None
    gain: float | None = None
    noise: float | None = None
    sts_dev: float | None = None
    negation: float | None = None
    beside_mrr: float | None = None
    beside_gain: float | None = None
    beside_noise: float | None = None

    def cells(self) -> list[str]:
        """Return its row of a table, in the order of `COLUMNS`."""
        cells = [self.name]
        for mrr, gain, noise in (
            (self.beside_mrr, self.beside_gain, self.beside_noise),
            (self.mrr, self.gain, self.noise),
        ):
            cells += [number(mrr), "-" if gain is None else f"{gain:+.2f}", number(noise)]
        return [*cells, number(self.sts_dev), number(self.negation)]


class Judge:
    """The scores of candidates against those of the base.

    Args:
        alone: reciprocal ranks of the base by its vectors, (Q,).
        beside: the same with BM25 beside them, (Q,).
        sts_dev: of the base; None without data.
        by_vectors: choose by the vectors alone, and not by what they add to BM25.
    """

    def __init__(
        self, alone: np.ndarray, beside: np.ndarray, sts_dev: float | None = None, by_vectors: bool = False
    ) -> None:
        self.alone, self.beside, self.sts_dev, self.by_vectors = alone, beside, sts_dev, by_vectors

    def score(
        self,
        name: str,
        alone: np.ndarray,
        beside: np.ndarray,
        sts_dev: float | None = None,
        negation: float | None = None,
    ) -> Candidate:
        """Return the scores of a candidate, from its reciprocal ranks (Q,), STS-B dev, and distance of negations."""
        by_vectors, hybrid = _gained(alone, self.alone), _gained(beside, self.beside)
        return Candidate(name, *by_vectors, sts_dev, negation, *hybrid)

    def keeps_sts(self, candidate: Candidate) -> bool:
        """Return whether a candidate loses no more of STS-B dev than the guard allows; True without its data."""
        return candidate.sts_dev is None or self.sts_dev is None or candidate.sts_dev >= self.sts_dev - GUARD

    def gain(self, candidate: Candidate) -> float:
        """Return the gain that decides."""
        return (candidate.gain if self.by_vectors else candidate.beside_gain) or 0.0

    def best(self, candidates: Sequence[Candidate]) -> tuple[Candidate | None, str]:
        """Return the best candidate, None if the base is to stay, and the reason in a sentence."""
        kept = [one for one in candidates if self.keeps_sts(one)]
        if not kept:
            return None, f"every candidate loses more than {GUARD:.0f} point of STS-B dev"
        best = max(kept, key=self.gain)
        gain, noise = self.gain(best), (best.noise if self.by_vectors else best.beside_noise) or 0.0
        mrr = best.mrr if self.by_vectors else best.beside_mrr
        least = 100 * LEAST * float((self.alone if self.by_vectors else self.beside).mean())
        how = "" if self.by_vectors else ", with BM25 beside it,"
        if gain <= max(noise, least):
            return None, (
                f"no candidate{how} finds the passages of held-out sentences enough better (best: {best.name}, "
                f"{gain:+.2f} points of MRR; noise {noise:.2f}, smallest gain that counts {least:.2f})"
            )
        return best, (
            f"it{how} finds the passage of a held-out sentence best: MRR {mrr:.2f}, {gain:+.2f} over the base "
            f"(noise {noise:.2f})"
        )


def _gained(ranks: np.ndarray, base: np.ndarray) -> tuple[float, float, float]:
    """Return MRR, gain, and two standard errors of the gain, of reciprocal ranks (Q,), all times 100."""
    change = 100 * (ranks - base)
    return 100 * float(ranks.mean()), float(change.mean()), 2 * float(change.std()) / math.sqrt(len(change))


class Contest:
    """The candidates for a text, scored as they come in; the base is the first.

    Args:
        space: all texts under the base.
        text: what is measured on.
        negated: sentences and their negations, to measure on.
        sts: rated pairs for the guard; None without data.
        options: how it is judged.
        progress: told each score.
    """

    def __init__(
        self,
        space: FrozenTexts,
        text: OwnText,
        negated: Sequence[tuple[str, str]],
        sts: RatedPairs | None,
        options: AdaptOptions,
        progress: Progress,
    ) -> None:
        self.space, self.text, self.negated, self.sts, self.progress = space, text, negated, sts, progress
        self.heads = {"base": Head(space.vectors.shape[1])}
        self.words = bm25(text.queries, text.pool, options.language)  # (Q, N)
        alone, beside, sts_dev, negation = self._measured("base")
        self.judge = Judge(alone, beside, sts_dev, options.alone)
        self.candidates = [self._told(self.judge.score("base", alone, beside, sts_dev, negation))]

    def enter(self, name: str, head: Head) -> Candidate:
        """Score a candidate and keep it."""
        self.heads[name] = head
        self.candidates.append(self._told(self.judge.score(name, *self._measured(name))))
        return self.candidates[-1]

    def best_of(self, candidates: Sequence[Candidate]) -> Candidate:
        """Return the candidate with the largest gain, of those that pass the guard if any does."""
        kept = [one for one in candidates if self.judge.keeps_sts(one)] or candidates
        return max(kept, key=self.judge.gain)

    def choose(self, keep_base_if_better: bool) -> tuple[str, str]:
        """Return the name of the candidate to save, "base" for the base, and the reason in a sentence."""
        others = self.candidates[1:]
        best, reason = self.judge.best(others)
        if best is None and not keep_base_if_better:
            best = max(others, key=self.judge.gain)
        return best.name if best else "base", reason

    def scores(self, name: str) -> np.ndarray:
        """Return the scores (Q, N) of the held-out queries with all passages that decide, by a candidate."""
        alone, beside = self._scores(name)
        return alone if self.judge.by_vectors else beside

    def _scores(self, name: str) -> tuple[np.ndarray, np.ndarray]:
        """Return the scores (Q, N) by the vectors alone, and in the pipeline of a search.

        The fit of tokens is left out: a head does not change the vectors of tokens.
        """
        head = self.heads[name]
        passages = self.space.under(head, self.text.pool)
        cosines = self.space.under(head, self.text.queries) @ passages.T
        near = nearest(passages, WITHOUT_TOKENS.nearest)
        return cosines, exhaustive(WITHOUT_TOKENS, cosines, self.words, near)

    def _measured(self, name: str) -> tuple[np.ndarray, np.ndarray, float | None, float | None]:
        """Return reciprocal ranks by the vectors and beside BM25, (Q,) each, STS-B dev, and negations' distance."""
        head, own = self.heads[name], np.array(self.text.own)
        alone, beside = (ranks_by_scores(one, own) for one in self._scores(name))
        sts = negation = None
        if self.sts is not None:
            sides = self.space.under(head, self.sts.first), self.space.under(head, self.sts.second)
            sts, _ = correlations(pair_cosines(*sides), self.sts.gold)
        if self.negated:
            both = (self.space.under(head, side) for side in zip(*self.negated, strict=True))
            negation = 100 * (1 - float(pair_cosines(*both).mean()))
        return alone, beside, sts, negation

    def _told(self, one: Candidate) -> Candidate:
        sts = "" if one.sts_dev is None else f", STS-B dev {one.sts_dev:.2f}"
        self.progress.tell(f"{one.name}: MRR {one.beside_mrr:.2f} beside BM25, {one.mrr:.2f} alone{sts}")
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
