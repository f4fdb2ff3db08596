"""The context sets of sentences: retrieved, ranked, and chosen one at a time (section 3.3).

1. Retrieval returns the chunks nearest to the sentence (20,000). 2. The discriminator ranks all contexts of these
chunks and selects the best contexts (`screened`). 3. Equation 3 ranks these contexts if there is a scorer and
`screened` is above 0; otherwise, the discriminator does. Contexts are selected one at a time in this order, unless
their chunk already provides a context, or the sentence before the gap is too similar to the sentence before a selected
gap (a Jaccard similarity of the words of 0.5 or more).

The score of a context does not depend on the selected contexts, so one pass over the ranking is equivalent to a search
for the best allowed context in every step.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Self

import numpy as np

from likewise.context.discriminator_stage import CachedRanker
from likewise.context.index import RETRIEVAL, ChunkStore, Retrieval
from likewise.context.stage_options import SelectionOptions
from likewise.context.states import States
from likewise.context.workspace import Workspace

_WORD = re.compile(r"\w+")
MAX_OVERLAP = 0.5
"""Jaccard similarity of the sentences before two gaps must be below it (section 3.3)."""


@dataclass(frozen=True)
class ContextFinder:
    """A finder of the context sets of sentences by the chunks of an index, their retrieval and a discriminator."""

    store: ChunkStore
    retrieval: Retrieval
    ranker: CachedRanker

    @classmethod
    def open(cls, work: str | Path, states: States | None = None) -> Self:
        """Return the finder of a workspace with memory-mapped files; `states` can be passed if they are already open.

        Raises:
            ContextError: If the index or the discriminator is missing or stale.
        """
        workspace = Workspace(work)
        states = states or States(workspace)
        ranker = CachedRanker(workspace.require("discriminator"), states)
        return cls(states.store, Retrieval(workspace.path / "index" / RETRIEVAL), ranker)

    def find(
        self,
        sentence: str,
        options: SelectionOptions | None = None,
        scorer: Callable[[str, np.ndarray], np.ndarray] | None = None,
    ) -> np.ndarray:
        """Return the context set of a sentence, as numbers in the store in the order of selection: int64 [C].

        The set is smaller than requested if retrieval finds too few chunks or the rules exclude too many contexts. The
        scorer (equation 3) is used if `screened` is above 0.
        """
        options, store = options or SelectionOptions(), self.store
        if options.strategy == "random":
            numbers = random_contexts(sentence, store.n_contexts, options.size)
            return numbers[self._of_others(words_of(sentence), numbers, options)]
        # In the order of the store, so that equal scores do not hang on the order of retrieval.
        numbers = store.contexts_of(np.sort(self.retrieval.candidates(sentence, options.candidates)))
        scores = self.ranker.scores(sentence, numbers)
        if options.screened and scorer is not None:
            numbers = numbers[np.sort(np.argsort(-scores, kind="stable")[: options.screened])]
            scores = np.asarray(scorer(sentence, numbers), np.float32)
        return numbers[self._choose(sentence, numbers, scores, options)]

    def _choose(self, sentence: str, numbers: np.ndarray, scores: np.ndarray, options: SelectionOptions) -> np.ndarray:
        """Return the indices of the chosen contexts, reading the words of no more than needed."""
        chunks, _ = self.store.positions(numbers)
        own = words_of(sentence)
        taken: list[int] = []
        before: list[frozenset[str]] = []
        order = np.argsort(-scores, kind="stable")
        for begin in range(0, len(order), step := 2 * options.size):  # reading one context at a time is slow
            rows = order[begin : begin + step]
            of_others, texts = self._of_others(own, numbers[rows], options), self.store.preceding(numbers[rows])
            for index, allowed, text in zip(rows.tolist(), of_others, texts, strict=True):
                words = words_of(text)
                repeats = chunks[index] in chunks[taken] or any(jaccard(words, one) >= MAX_OVERLAP for one in before)
                if allowed and not (options.diversity and repeats):
                    taken.append(index)
                    before.append(words)
                if len(taken) == options.size:
                    return np.array(taken, np.int64)
        return np.array(taken, np.int64)

    def _of_others(self, own: frozenset[str], numbers: np.ndarray, options: SelectionOptions) -> list[bool]:
        """Return for each context whether neither it nor its gap contains the sentence or a near-copy."""
        if options.same > 1:
            return [True] * len(numbers)
        texts = self.store.around(numbers)
        return [all(jaccard(own, words_of(text)) < options.same for text in around) for around in texts]


@lru_cache(50_000)
def words_of(text: str) -> frozenset[str]:
    """Return the lower-cased words of a text."""
    return frozenset(_WORD.findall(text.lower()))


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the share of the words of two sets that are in both; 1 for two empty sets.

    >>> jaccard(frozenset("abc"), frozenset("bcd"))
    0.5
    """
    return len(first & second) / len(first | second) if first or second else 1.0


def random_contexts(sentence: str, n_contexts: int, size: int) -> np.ndarray:
    """Draw distinct contexts for a sentence, which depend on the sentence alone."""
    digest = blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest)).choice(n_contexts, min(size, n_contexts), replace=False)
