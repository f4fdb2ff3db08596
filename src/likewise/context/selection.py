"""A sentence's context set (section 3.3): retrieved, ranked, chosen one at a time.

1. Retrieval brings the chunks nearest to the sentence (20,000).
2. The discriminator ranks all contexts of these chunks; the best ones are left (`screened`).
3. Equation 3 ranks what is left, if a scorer is given and `screened` above 0, otherwise the discriminator; and
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
from typing import Any, Self

import numpy as np
import torch

from likewise.context.chunks import ChunkStore
from likewise.context.discriminator import Discriminator, load_discriminator
from likewise.context.discriminator_data import batch_of_chunks
from likewise.context.indexing import Retrieval, open_retrieval, open_store
from likewise.context.options import SelectionOptions
from likewise.context.states import SentenceReading, States, open_states
from likewise.context.workspace import ContextError, Workspace
from likewise.runs.job import Job
from likewise.runs.parts import Parts
from likewise.runs.progress import Progress
from likewise.runs.stopping import StopRequest

Scorer = Callable[[str, np.ndarray], np.ndarray]
"""A sentence and the numbers of C contexts to C scores, higher where it fits better."""

_WORD = re.compile(r"\w+")
MAX_OVERLAP = 0.5
"""Jaccard similarity of the sentences before two gaps must be below it (section 3.3)."""
_CONTEXTS = "contexts.npy"
_AT_ONCE = 200
"""Chunks represented at once, about 2,000 sentences."""


@torch.no_grad()
def cache_contexts(
    job: Job,
    model: Discriminator,
    store: ChunkStore,
    sentences: Any,
    progress: Progress,
    stop: StopRequest,
) -> None:
    """Write the head's context parts (C, K) of a whole store into a job's result, block by block.

    The model is in evaluation mode; `sentences[rows]` is what it represents, of sentences of the store by number.
    """
    blocks = Parts(job.work / "contexts")
    begins = range(0, len(store), _AT_ONCE)
    with progress.bar("caching the contexts", len(begins), done=len(blocks)) as bar:
        for begin in begins:
            if f"{begin}.npy" in blocks:
                continue
            end = min(begin + _AT_ONCE, len(store))
            batch = batch_of_chunks(store, np.arange(begin, end))
            found = model.context_part(model.represent(sentences[batch.sentences]), torch.from_numpy(batch.places))
            with blocks.new(f"{begin}.npy") as path, path.open("wb") as file:
                np.save(file, found.numpy())
            bar.advance()
            stop.check(f"after {len(blocks)} of {len(begins)} blocks of contexts")
    shape = (store.n_contexts, model.width)
    parts = np.lib.format.open_memmap(job.result / _CONTEXTS, mode="w+", dtype=np.float32, shape=shape)
    for begin in begins:
        end = min(begin + _AT_ONCE, len(store))
        parts[store.first_context[begin] : store.first_context[end]] = np.load(blocks.path(f"{begin}.npy"))
    parts.flush()


class CachedRanker:
    """The discriminator's scores of sentences in the contexts of an index.

    The parts of the contexts come from disk and those of a sentence are computed at its first use; the rest is one
    matrix product.
    """

    def __init__(self, folder: Path, store: ChunkStore, states: States) -> None:
        self.store, self.states = store, states
        self.model = load_discriminator(folder)
        try:
            self.parts = np.load(folder / _CONTEXTS, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise ContextError(
                f"{folder / _CONTEXTS} cannot be read ({error}): train the discriminator again"
            ) from None

    @torch.no_grad()
    def sentence_parts(self, readings: Sequence[SentenceReading]) -> torch.Tensor:
        """Return the head's part of sentences, the same for every context: (S, K)."""
        if self.model.reader is None:
            return self.model.sentence_part(torch.from_numpy(np.stack([one.vector for one in readings])))
        return self.model.sentence_part(self.model.represent([one.ids for one in readings]))

    def scores(self, sentence: str, contexts: np.ndarray) -> np.ndarray:
        """Return log p(y = 1 | s, c) of equation 1 of a sentence in contexts by number, float32 [C]."""
        parts = torch.from_numpy(np.ascontiguousarray(self.parts[contexts]))  # (C, K)
        logits = (self.sentence_parts(self.states.read([sentence])) @ parts.T)[0]
        return torch.nn.functional.logsigmoid(logits).numpy()


@dataclass(frozen=True)
class ContextFinder:
    """The context sets of sentences, from the chunks of an index, their retrieval and a discriminator."""

    store: ChunkStore
    retrieval: Retrieval
    ranker: CachedRanker

    @classmethod
    def open(cls, work: str | Path, states: States | None = None) -> Self:
        """Return the finder of a workspace, its files mapped from disk.

        Args:
            work: the workspace's folder.
            states: those of the workspace, if they are open already.

        Raises:
            ContextError: index or discriminator was not made, or is stale.
        """
        workspace = Workspace(work)
        discriminator, index = workspace.require("discriminator"), workspace.require("index")
        store, states = open_store(index), states or open_states(workspace.require("states"))
        return cls(store, open_retrieval(index), CachedRanker(discriminator.folder, store, states))

    def find(self, sentence: str, options: SelectionOptions | None = None, scorer: Scorer | None = None) -> np.ndarray:
        """Return the context set of a sentence: int64 [C], numbers in the store, in the order of choice.

        It is smaller than asked for where retrieval finds too few chunks or the rules leave too few contexts.

        Args:
            sentence: the sentence.
            options: sizes and rules.
            scorer: equation 3, asked where `screened` is above 0.
        """
        options, store = options or SelectionOptions(), self.store
        if options.strategy == "random":
            numbers = random_contexts(sentence, store.n_contexts, options.size)
            own = words_of(sentence)
            return numbers[[self._is_of_others(own, numbers[i : i + 1], options) for i in range(len(numbers))]]
        chunks, _ = self.retrieval.candidates(sentence, options.candidates)
        # In the order of the store, so that equal scores do not hang on the order of retrieval.
        numbers = store.contexts_of(np.sort(chunks))
        scores = self.ranker.scores(sentence, numbers)
        if options.screened and scorer is not None:
            numbers = numbers[np.sort(np.argsort(-scores, kind="stable")[: options.screened])]
            scores = np.asarray(scorer(sentence, numbers), np.float32)
        return numbers[self._choose(sentence, numbers, scores, options)]

    def _choose(self, sentence: str, numbers: np.ndarray, scores: np.ndarray, options: SelectionOptions) -> np.ndarray:
        """Return the indices of the chosen contexts, reading the words of no more than needed."""
        chunks, _ = self.store.positions(numbers)
        own, taken = words_of(sentence), list[int]()
        given: set[int] = set()
        before: list[frozenset[str]] = []
        for index in np.argsort(-scores, kind="stable").tolist():
            if len(taken) == options.size:
                break
            if options.diversity and chunks[index] in given:
                continue
            number = numbers[index : index + 1]
            if not self._is_of_others(own, number, options):
                continue
            if options.diversity:
                words = words_of(self.store.preceding(number)[0])
                if any(jaccard(words, other) >= MAX_OVERLAP for other in before):
                    continue
                before.append(words)
            taken.append(index)
            given.add(chunks[index])
        return np.array(taken, np.int64)

    def _is_of_others(self, own: frozenset[str], number: np.ndarray, options: SelectionOptions) -> bool:
        """Return False if the sentence, or one very like it, stands in a context or in its gap."""
        texts = self.store.around(number)[0] if options.same <= 1 else ()
        return all(jaccard(own, words_of(text)) < options.same for text in texts)


def words_of(text: str) -> frozenset[str]:
    """Return the lower-cased words of a text."""
    return frozenset(_WORD.findall(text.lower()))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the words of two sets that are in both; 1 for two empty sets.

    >>> jaccard(frozenset("abc"), frozenset("bcd"))
    0.5
    """
    return len(one & other) / len(one | other) if one or other else 1.0


def random_contexts(sentence: str, n_contexts: int, size: int) -> np.ndarray:
    """Draw distinct contexts for a sentence, which depend on the sentence alone."""
    digest = blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest)).choice(n_contexts, min(size, n_contexts), replace=False)
