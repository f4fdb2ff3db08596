"""A sentence's context set (section 3.3): retrieved, ranked, chosen one at a time.

1. Retrieval brings the chunks nearest to the sentence (20,000).
2. The discriminator ranks all contexts of these chunks; the best ones are left (`screened`).
3. A scorer, equation 3 where generators are at hand and else the discriminator's log p, ranks what is left, and
   contexts are taken one at a time, the best first, unless their chunk has given one already or the sentence before
   the place is too like the sentence before a place already taken (Jaccard similarity of their words of 0.5 or more).

A context's score does not depend on what was taken before it, so one pass down the ranking is the same as a search for
the best allowed context at every step.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Self

import numpy as np

from likewise.context.chunks import ChunkStore, Context
from likewise.context.indexing import open_retrieval, open_store
from likewise.context.options import SelectionOptions
from likewise.context.ranking import CachedRanker
from likewise.context.retrieval import Retrieval
from likewise.context.workspace import ContextError, Workspace

Scorer = Callable[[str, Sequence[Context]], np.ndarray]
"""A sentence and C contexts to C scores, higher where it fits better."""

_WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class ContextSet:
    """The C contexts chosen for a sentence, in the order of choice.

    Attributes:
        numbers: int64 [C], their numbers in the store.
        scores: float32 [C], what they were chosen by; log p of the discriminator for random ones.
        contexts: the same C contexts as text.
    """

    numbers: np.ndarray
    scores: np.ndarray
    contexts: tuple[Context, ...]

    def __len__(self) -> int:
        return len(self.contexts)


@dataclass(frozen=True)
class ContextFinder:
    """The context sets of sentences, from the chunks of an index, their retrieval and a discriminator."""

    store: ChunkStore
    retrieval: Retrieval
    ranker: CachedRanker

    @classmethod
    def open(cls, work: str | Path) -> Self:
        """Return the finder of a workspace, its files mapped from disk.

        Raises:
            ContextError: index or discriminator was not made, or is stale.
        """
        workspace = Workspace(work)
        discriminator, index = workspace.require("discriminator"), workspace.require("index")
        store = open_store(index)
        return cls(store, open_retrieval(index), CachedRanker(discriminator.folder, store))

    def find(self, sentence: str, options: SelectionOptions | None = None, scorer: Scorer | None = None) -> ContextSet:
        """Return the context set of a sentence.

        It is smaller than asked for where retrieval finds too few chunks or the rules leave too few contexts.

        Args:
            sentence: the sentence.
            options: sizes and rules.
            scorer: equation 3; without it the discriminator's score decides alone.

        Raises:
            ContextError: the scorer does not give a score a context.
        """
        options, store = options or SelectionOptions(), self.store
        if options.strategy == "random":
            numbers = random_contexts(sentence, store.n_contexts, options.size, options.seed)
            return ContextSet(numbers, self.ranker.scores(sentence, numbers), tuple(store.contexts(numbers)))
        chunks, _ = self.retrieval.candidates(sentence, options.candidates)
        # In the order of the store, so that equal scores do not hang on the order of retrieval.
        numbers = store.contexts_of(np.sort(chunks))
        scores = self.ranker.scores(sentence, numbers)
        if scorer is not None:
            if options.screened and options.screened < len(numbers):
                numbers = numbers[np.sort(np.argsort(-scores, kind="stable")[: options.screened])]
            scores = np.asarray(scorer(sentence, store.contexts(numbers)), np.float32)
            if scores.shape != numbers.shape:
                raise ContextError(f"the scorer gave {scores.shape} scores for {len(numbers)} contexts")
        chosen = self._choose(numbers, scores, options)
        return ContextSet(numbers[chosen], scores[chosen], tuple(store.contexts(numbers[chosen])))

    def _choose(self, numbers: np.ndarray, scores: np.ndarray, options: SelectionOptions) -> np.ndarray:
        """Return the indices of the chosen contexts; words are read only of as many as it takes."""
        order = np.argsort(-scores, kind="stable")
        if not options.diversity:
            return order[: options.size]
        chunks, _ = self.store.positions(numbers)
        # Of a chunk only its best context can be taken first, but the next may follow where that one is refused.
        most = 4 * options.size  # usually enough
        while True:
            top = order[:most]
            preceding = [frozenset(_WORD.findall(text.lower())) for text in self.store.preceding(numbers[top])]
            chosen = choose(scores[top], chunks[top], preceding, options.size, options.max_overlap)
            if len(chosen) == options.size or len(top) == len(order):
                return top[chosen]
            most *= 4


def choose(
    scores: np.ndarray, chunks: np.ndarray, preceding: Sequence[frozenset[str]], size: int, max_overlap: float = 0.5
) -> np.ndarray:
    """Take contexts one at a time, the best first, under the two rules of section 3.3.

    Args:
        scores: [C], higher is better; of equal ones the first is taken first.
        chunks: [C], the chunk of each.
        preceding: C word sets, of the sentence before each place.
        size: stop after this many.
        max_overlap: Jaccard similarity with every one taken must be below it.

    Returns:
        int64, at most `size` indices into the arguments, in the order of choice.
    """
    column = {word: i for i, word in enumerate(dict.fromkeys(word for words in preceding for word in words))}
    held = np.zeros((len(column), size), bool)  # [words, taken]: which of the taken sets hold a word
    sizes = np.zeros(size, np.int64)
    taken: list[int] = []
    chunks_taken: set[int] = set()
    for index in np.argsort(-scores, kind="stable").tolist():
        n = len(taken)
        if n == size:
            break
        if int(chunks[index]) in chunks_taken:
            continue
        words = [column[word] for word in preceding[index]]
        shared = held[words, :n].sum(axis=0)
        union = sizes[:n] + len(words) - shared
        # Two sentences of no word are the same sentence.
        if (np.where(union == 0, 1.0, shared / np.maximum(union, 1)) >= max_overlap).any():
            continue
        held[words, n] = True
        sizes[n] = len(words)
        taken.append(index)
        chunks_taken.add(int(chunks[index]))
    return np.array(taken, np.int64)


def random_contexts(sentence: str, n_contexts: int, size: int, seed: int) -> np.ndarray:
    """Draw contexts for a sentence, none twice: the same ones for the same sentence and seed, in any order of work."""
    digest = blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    rng = np.random.default_rng([seed, int.from_bytes(digest)])
    return rng.choice(n_contexts, size=min(size, n_contexts), replace=False)
