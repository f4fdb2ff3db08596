"""A sentence's context set (section 3.3): retrieved, ranked, chosen one at a time.

1. Retrieval brings the chunks nearest to the sentence (20,000).
2. The discriminator ranks all contexts of these chunks; the best ones are left (`screened`).
3. A scorer, equation 3 if there are generators and otherwise the discriminator's log p, ranks what is left, and
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

from likewise.context.chunks import ChunkStore, Context
from likewise.context.discriminator import Discriminator, load_discriminator
from likewise.context.discriminator_data import batch_of_chunks
from likewise.context.indexing import Retrieval, open_retrieval, open_store
from likewise.context.options import SelectionOptions
from likewise.context.states import FrozenEncoder, open_states
from likewise.context.subwords import Vocabulary
from likewise.context.workspace import ContextError, Workspace
from likewise.runs.job import Job
from likewise.runs.parts import Parts
from likewise.runs.progress import Progress
from likewise.runs.stopping import StopRequest

Scorer = Callable[[str, Sequence[Context]], np.ndarray]
"""A sentence and C contexts to C scores, higher where it fits better."""

_WORD = re.compile(r"\w+")
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
    """The scores of sentences in the contexts of an index.

    The parts of the contexts come from disk and those of a sentence are computed at its first use; the rest is
    `Discriminator.combine`, one matrix product for the default head.
    """

    def __init__(self, folder: Path, store: ChunkStore, encoder: FrozenEncoder | None = None) -> None:
        self.store, self.encoder = store, encoder
        self.model, self.max_tokens = load_discriminator(folder)
        self.vocabulary = Vocabulary.load(folder / "vocabulary") if self.model.reader is not None else None
        try:
            self.parts = np.load(folder / _CONTEXTS, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise ContextError(
                f"{folder / _CONTEXTS} cannot be read ({error}): train the discriminator again"
            ) from None

    def encode(self, sentences: list[str]) -> Any:
        """Return what the model represents: ids of sentences, truncated as in training, or their vectors."""
        if self.vocabulary is not None:
            return self.vocabulary.encode_batch(sentences, self.max_tokens)
        assert self.encoder is not None
        return self.encoder.vectors(sentences)

    @torch.no_grad()
    def sentence_parts(self, sentences: Sequence[str]) -> torch.Tensor:
        """Return the head's part of sentences, the same for every context: (S, K)."""
        return self.model.sentence_part(self.model.represent(self.encode(list(sentences))))

    @torch.no_grad()
    def log_probabilities(self, sentences: torch.Tensor, contexts: np.ndarray) -> np.ndarray:
        """Return log p(y = 1 | s, c) of equation 1, float32 [S, C].

        Args:
            sentences: (S, K), from `sentence_parts`.
            contexts: [C], numbers in the store.
        """
        parts = torch.from_numpy(np.ascontiguousarray(self.parts[contexts]))  # (C, K)
        return torch.nn.functional.logsigmoid(self.model.combine(sentences, parts)).numpy()

    def scores(self, sentence: str, contexts: np.ndarray) -> np.ndarray:
        """Return log p(y = 1 | s, c) of one sentence, float32 [C]."""
        return self.log_probabilities(self.sentence_parts([sentence]), contexts)[0]

    def coherence(self, sentences: Sequence[str], contexts: Sequence[Context]) -> np.ndarray:
        """Return log p(y = 1) of each sentence in each context, float32 [S, C]: the first term of equation 3."""
        return self.log_probabilities(self.sentence_parts(sentences), self.numbers(contexts))

    def numbers(self, contexts: Sequence[Context]) -> np.ndarray:
        """Return the numbers of contexts in the store, int64 [C]."""
        chunks = np.array([context.chunk for context in contexts], np.int64)
        places = np.array([context.position for context in contexts], np.int64)
        return self.store.first_context[chunks] + places - 1  # a chunk's first context is at position 1


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
    def open(cls, work: str | Path, encoder: FrozenEncoder | None = None) -> Self:
        """Return the finder of a workspace, its files mapped from disk.

        Args:
            work: the workspace's folder.
            encoder: that of the states, if it is open already.

        Raises:
            ContextError: index or discriminator was not made, or is stale.
        """
        workspace = Workspace(work)
        discriminator, index = workspace.require("discriminator"), workspace.require("index")
        store = open_store(index)
        frozen = discriminator.record["plan"]["options"]["reads"] == "states"
        if frozen and encoder is None:
            encoder = open_states(workspace.require("states")).encoder
        return cls(store, open_retrieval(index), CachedRanker(discriminator.folder, store, encoder))

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
            numbers = numbers[self._of_others(sentence, numbers, options)]
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
        chosen = self._choose(sentence, numbers, scores, options)
        return ContextSet(numbers[chosen], scores[chosen], tuple(store.contexts(numbers[chosen])))

    def _choose(self, sentence: str, numbers: np.ndarray, scores: np.ndarray, options: SelectionOptions) -> np.ndarray:
        """Return the indices of the chosen contexts, reading the words of no more than needed."""
        order = np.argsort(-scores, kind="stable")
        chunks, _ = self.store.positions(numbers)
        # Of a chunk only its best context can be taken first, but the next may follow where that one is refused.
        most = 4 * options.size  # usually enough
        while True:
            top = order[:most]
            top = top[self._of_others(sentence, numbers[top], options)]
            if options.diversity:
                preceding = [words_of(text) for text in self.store.preceding(numbers[top])]
                top = top[choose(scores[top], chunks[top], preceding, options.size, options.max_overlap)]
            if len(top) >= options.size or most >= len(order):
                return top[: options.size]
            most *= 4

    def _of_others(self, sentence: str, numbers: np.ndarray, options: SelectionOptions) -> np.ndarray:
        """Return bool [C]: False where the sentence, or one very like it, stands in the context or in its gap."""
        if options.same > 1:
            return np.ones(len(numbers), bool)
        own = words_of(sentence)
        found = np.ones(len(numbers), bool)
        for i, texts in enumerate(self.store.around(numbers)):
            found[i] = all(jaccard(own, words_of(text)) < options.same for text in texts)
        return found


def words_of(text: str) -> frozenset[str]:
    """Return the lower-cased words of a text."""
    return frozenset(_WORD.findall(text.lower()))


def jaccard(one: frozenset[str], other: frozenset[str]) -> float:
    """Return the share of the words of two sets that are in both; 1 for two empty sets.

    >>> jaccard(frozenset("abc"), frozenset("bcd"))
    0.5
    """
    return len(one & other) / len(one | other) if one or other else 1.0


def choose(
    scores: np.ndarray, chunks: np.ndarray, preceding: Sequence[frozenset[str]], size: int, max_overlap: float = 0.5
) -> np.ndarray:
    """Choose contexts greedily, the best first, under the two rules of section 3.3.

    Args:
        scores: [C], higher is better; of equal ones the first is taken first.
        chunks: [C], the chunk of each.
        preceding: C word sets, of the sentence before each place.
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
    """Draw distinct contexts for a sentence, which depend on the sentence and the seed alone."""
    digest = blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    rng = np.random.default_rng([seed, int.from_bytes(digest)])
    return rng.choice(n_contexts, size=min(size, n_contexts), replace=False)
