"""Generators of equation 2 by a pretrained causal language model, of which nothing is trained.

A causal model reads from left to right. What it is asked depends on `given`:

    near   log p(s | l), l the sentence before the gap, and log p(r | s), r the one behind it. By Bayes' rule
           log p(l | s) = log p(l) + log p(s | l) - log p(s), so the left term costs nothing more.
    both   all of either side, as in equation 2, again by Bayes' rule:
           log p(s | l, r) = log p(s | l) + log p(r | l, s) - log p(r | l)
           log p(l | s, r) = log p(l) + log p(s | l) + log p(r | l, s) - log p(s) - log p(r | s)
           log p(r | l, s)

As pointwise mutual information, log p(s), log p(l | r) and log p(r | l) are taken off (`near`: log p(l) and log p(r)).
All are per token of what is generated.

Letters: S sentences, C contexts, K cells (a sentence in a context).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np

from likewise.context.causal import CausalScorer
from likewise.context.generators import TASKS
from likewise.queries.causal import CausalModel

if TYPE_CHECKING:
    from likewise.context.states import States

Conditioning = Literal["near", "both"]
Logs = tuple[np.ndarray, np.ndarray, np.ndarray]


class PretrainedGenerators:
    """The three tasks by one causal model.

    Args:
        name: of the model, as `CausalModel` takes it.
        given: "near" or "both".
        keep: keep what was computed in likewise's cache.
    """

    sample = 8

    def __init__(self, name: str, given: Conditioning = "near", keep: bool = True) -> None:
        self.given, self.scorer = given, CausalScorer(CausalModel(name), keep)
        self._progress = SharedProgress(lambda count: None, 1)

    @property
    def identity(self) -> str:
        """On these the terms depend: the model's files, and what it is given."""
        return f"{self.scorer.causal.identity} {self.given}"

    def terms(
        self,
        states: States,
        sentences: Sequence[str],
        cells: np.ndarray,
        wanted: Sequence[bool],
        pmi: bool,
        advance: Callable[[int], object] = lambda count: None,
    ) -> np.ndarray:
        """Return the terms of the centre, the left and the right (K, 3), see `Generating`."""
        contexts, of = np.unique(cells[:, 1], return_inverse=True)
        lefts, rights = states.store.side_texts(contexts, 1 if self.given == "near" else None)
        rows = np.stack([cells[:, 0], of.reshape(-1)], axis=1)
        return self.of_texts(sentences, lefts, rights, rows, wanted, pmi, advance)

    def of_texts(
        self,
        sentences: Sequence[str],
        lefts: Sequence[str],
        rights: Sequence[str],
        cells: np.ndarray,
        wanted: Sequence[bool] = (True,) * 3,
        pmi: bool = True,
        advance: Callable[[int], object] = lambda count: None,
    ) -> np.ndarray:
        """Return the terms (K, 3) of S sentences in C contexts, whose texts are given.

        Args:
            cells: (K, 2), the index of a sentence and of a context.
            wanted: which of the three; the others are 0.
            pmi: less what each is without the sentence.
            advance: told how many cells were done.
        """
        self._progress = SharedProgress(advance, {"near": 2, "both": 3}[self.given])
        logs = (self._near if self.given == "near" else self._both)(sentences, lefts, rights, cells, wanted, pmi)
        s, c = cells.T
        lengths = [self.scorer.lengths(texts)[rows] for texts, rows in ((sentences, s), (lefts, c), (rights, c))]
        self._progress.finish(len(cells))
        found = np.stack([log / np.maximum(length, 1) for log, length in zip(logs, lengths, strict=True)], axis=1)
        return np.where(np.asarray(wanted), found, 0.0)

    def _alone(self, texts: Sequence[str], rows: np.ndarray) -> np.ndarray:
        """Return log p of the texts of some rows with nothing before them: (K,)."""
        cells = np.stack([np.zeros_like(rows), rows], axis=1)
        return self._behind([""], texts, cells, advance=lambda count: None)[:, 0]

    def _behind(
        self,
        before: Sequence[str],
        texts: Sequence[str],
        rows: np.ndarray,
        advance: Callable[[int], object] | None = None,
    ) -> np.ndarray:
        """Return log p of texts behind others (K, P) for rows (K, 1 + P), each computed once."""
        distinct, inverse = np.unique(rows, axis=0, return_inverse=True)
        sums = self.scorer.sums(before, texts, distinct, advance or self._progress.advance)
        return sums[inverse.reshape(-1)]

    def _near(
        self,
        sentences: Sequence[str],
        lefts: Sequence[str],
        rights: Sequence[str],
        cells: np.ndarray,
        wanted: Sequence[bool],
        pmi: bool,
    ) -> Logs:
        nothing = np.zeros(len(cells))
        s, c = cells.T
        centre = left = right = nothing
        if wanted[0] or wanted[1]:
            centre = self._behind(lefts, sentences, cells[:, ::-1])[:, 0]
            gained = centre - self._alone(sentences, s)
            left = gained if pmi or not wanted[1] else gained + self._alone(lefts, c)
            centre = gained if pmi else centre
        if wanted[2]:
            right = self._behind(sentences, rights, cells)[:, 0]
            right = right - self._alone(rights, c) if pmi else right
        return centre, left, right

    def _both(
        self,
        sentences: Sequence[str],
        lefts: Sequence[str],
        rights: Sequence[str],
        cells: np.ndarray,
        wanted: Sequence[bool],
        pmi: bool,
    ) -> Logs:
        s, c = cells.T
        texts, n = [*sentences, *rights], len(sentences)
        # The sentence and then the right side behind the left one: (K, 2).
        centre, right = self._behind(lefts, texts, np.stack([c, s, n + c], axis=1)).T
        right_of_left = self._behind(lefts, rights, np.stack([c, c], axis=1))[:, 0]
        alone = self._alone(sentences, s)
        left = np.zeros(len(cells))
        if wanted[1]:
            left = self._alone(lefts, c) + centre + right - alone - self._behind(sentences, rights, cells)[:, 0]
            if pmi:
                left -= self._alone(lefts, c) + right_of_left - self._alone(rights, c)
        centre = centre + right - right_of_left
        return (centre - alone, left, right - right_of_left) if pmi else (centre, left, right)

    def perplexities(
        self, lefts: Sequence[str], centres: Sequence[str], rights: Sequence[str], shift: int
    ) -> dict[str, dict[str, float]]:
        """Return the perplexity of a token by task, in the right contexts, shuffled ones and none.

        Args:
            lefts, centres, rights: the texts of N contexts.
            shift: how far shuffled contexts stand from their own.
        """
        n = len(centres)
        own = np.arange(n)
        found: dict[str, dict[str, float]] = {}
        lengths = {"centre": self.scorer.lengths(centres), "right": self.scorer.lengths(rights)}
        lengths["left"] = self.scorer.lengths(lefts)
        for kind, other in (("right", own), ("shuffled", np.roll(own, shift))):
            # What is generated stays; what it is given is that of another context.
            centre = self.of_texts(centres, lefts, rights, np.stack([own, other], axis=1), (True, False, False), False)
            sides = self.of_texts(centres, lefts, rights, np.stack([other, own], axis=1), (False, True, True), False)
            means = {"centre": centre[:, 0], "left": sides[:, 1], "right": sides[:, 2]}
            found[kind] = {task: _perplexity(means[task], lengths[task]) for task in TASKS}
        texts = {"centre": centres, "left": lefts, "right": rights}
        found["none"] = {
            task: _perplexity(self._alone(texts[task], own) / np.maximum(lengths[task], 1), lengths[task])
            for task in TASKS
        }
        return found


def _perplexity(means: np.ndarray, lengths: np.ndarray) -> float:
    return float(np.exp(-(means * lengths).sum() / max(1, lengths.sum())))


class SharedProgress:
    """The progress of cells that are done when several calls have done them.

    >>> told = []
    >>> progress = SharedProgress(told.append, 2)
    >>> progress.advance(3), progress.advance(3), progress.finish(4)
    (None, None, None)
    >>> told
    [1, 2, 1]
    """

    def __init__(self, advance: Callable[[int], object], calls: int) -> None:
        self._advance, self._calls = advance, calls
        self._done = self._told = 0

    def advance(self, count: int) -> None:
        """Count cells that one call has done."""
        self._done += count
        self.finish(self._done // self._calls)

    def finish(self, total: int) -> None:
        """Tell that so many cells are done in all."""
        self._advance(total - self._told)
        self._told = total
