"""The discriminator over a whole index: what contexts bring to a score is computed once and mapped from disk."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from likewise.context.chunks import ChunkStore, Context
from likewise.context.discriminator import Discriminator, load_discriminator
from likewise.context.discriminator_data import batch_of_chunks
from likewise.context.vocabulary import Vocabulary
from likewise.context.workspace import ContextError
from likewise.runs.job import Job
from likewise.runs.parts import Parts
from likewise.runs.progress import Progress
from likewise.runs.stopping import StopRequest

_CONTEXTS = "contexts.npy"
_AT_ONCE = 200
"""Chunks represented at once, about 2,000 sentences."""


@torch.no_grad()
def cache_contexts(
    job: Job,
    model: Discriminator,
    store: ChunkStore,
    encode: Callable[[list[str]], list[list[int]]],
    progress: Progress,
    stop: StopRequest,
) -> None:
    """Write the context parts (C, K) of a whole store into a job's result, block by block.

    The model is in evaluation mode; `encode` gives the ids of sentences, cut as in training.
    """
    blocks = Parts(job.work / "contexts")
    begins = range(0, len(store), _AT_ONCE)
    with progress.bar("caching the contexts", len(begins), done=len(blocks)) as bar:
        for begin in begins:
            if f"{begin}.npy" in blocks:
                continue
            end = min(begin + _AT_ONCE, len(store))
            batch = batch_of_chunks(store, np.arange(begin, end))
            texts = [sentence for part in store.sentences(begin, end) for sentence in part]
            found = model.context_part(model.represent(encode(texts)), torch.from_numpy(batch.places))
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

    Args:
        folder: of the finished stage `discriminator`.
        store: the chunks that it was trained on.
    """

    def __init__(self, folder: Path, store: ChunkStore) -> None:
        self.store = store
        self.model, self.max_tokens = load_discriminator(folder)
        self.vocabulary = Vocabulary.load(folder / "vocabulary")
        try:
            self.parts = np.load(folder / _CONTEXTS, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise ContextError(
                f"{folder / _CONTEXTS} cannot be read ({error}): train the discriminator again"
            ) from None

    def encode(self, sentences: list[str]) -> list[list[int]]:
        """Return the ids of sentences, cut as in training."""
        return self.vocabulary.encode_batch(sentences, self.max_tokens)

    @torch.no_grad()
    def sentence_parts(self, sentences: Sequence[str]) -> torch.Tensor:
        """Return what sentences bring to every context: (S, K)."""
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
        chunks = np.array([context.chunk for context in contexts])
        places = np.array([context.position for context in contexts])
        numbers = self.store.first_context[chunks] + places - 1  # a chunk's first context is at position 1
        return self.log_probabilities(self.sentence_parts(sentences), numbers)
