"""The discriminator over a whole index: what contexts bring to a score is computed once and mapped from disk."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import torch

from likewise.context.chunks import ChunkStore
from likewise.context.coherence import examples_of
from likewise.context.discriminator import Discriminator, load_discriminator
from likewise.context.errors import ContextError
from likewise.context.token_ids import encode_cut
from likewise.context.vocabulary import Vocabulary
from likewise.runs.whole_files import write_text

_PARTS, _DONE = "contexts.npy", "contexts.json"
_AT_ONCE = 200
"""Chunks represented at once, about 2,000 sentences."""


@torch.no_grad()
def cache_contexts(
    folder: Path,
    model: Discriminator,
    store: ChunkStore,
    encode: Callable[[list[str]], list[list[int]]],
    tell: Callable[[int], None] = lambda chunks: None,
) -> None:
    """Write the context parts (C, K) of a whole store; goes on where it was stopped.

    Args:
        folder: where `contexts.npy` is written.
        model: in evaluation mode.
        store: the chunks.
        encode: sentences to ids, cut as in training.
        tell: told how many chunks were done since the last call.
    """
    path, done_path = folder / _PARTS, folder / _DONE
    shape = (store.n_contexts, model.width)
    done = json.loads(done_path.read_text(encoding="utf-8"))["chunks"] if done_path.exists() and path.exists() else 0
    if not done:
        parts = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    else:
        parts = np.lib.format.open_memmap(path, mode="r+")
    tell(done)
    for begin in range(done, len(store), _AT_ONCE):
        end = min(begin + _AT_ONCE, len(store))
        examples = examples_of(store, np.arange(begin, end))
        texts = [sentence for part in store.sentences(begin, end) for sentence in part]
        found = model.context_part(model.represent(encode(texts)), torch.from_numpy(examples.places))
        parts[store.first_context[begin] : store.first_context[end]] = found.numpy()
        parts.flush()
        write_text(done_path, json.dumps({"chunks": end}))
        tell(end - begin)


class CachedRanker:
    """Scores of sentences in the contexts of an index.

    The parts of the contexts come from disk and those of a sentence are computed at its first use; the rest is
    `Discriminator.combine`, one matrix product for the default head.

    Args:
        folder: of the finished stage `discriminator`.
    """

    def __init__(self, folder: Path) -> None:
        self.model, self.max_tokens = load_discriminator(folder)
        self.vocabulary = Vocabulary.load(folder / "vocabulary")
        try:
            self.parts = np.load(folder / _PARTS, mmap_mode="r")
        except (OSError, ValueError) as error:
            raise ContextError(f"{folder / _PARTS}: cannot be read ({error}): train the discriminator again") from None

    def encode(self, sentences: list[str]) -> list[list[int]]:
        """Ids of sentences, cut as in training."""
        return encode_cut(self.vocabulary, sentences, self.max_tokens)

    @torch.no_grad()
    def sentence_parts(self, sentences: Sequence[str]) -> torch.Tensor:
        """What sentences bring to every context: (S, K)."""
        return self.model.sentence_part(self.model.represent(self.encode(list(sentences))))

    @torch.no_grad()
    def log_probabilities(self, sentences: torch.Tensor, contexts: np.ndarray) -> np.ndarray:
        """log p(y = 1 | s, c) of equation 1, float32 [S, C].

        Args:
            sentences: (S, K), from `sentence_parts`.
            contexts: [C], numbers in the store.
        """
        parts = torch.from_numpy(np.ascontiguousarray(self.parts[contexts]))  # (C, K)
        return torch.nn.functional.logsigmoid(self.model.combine(sentences, parts)).numpy()

    def scores(self, sentence: str, contexts: np.ndarray) -> np.ndarray:
        """log p(y = 1 | s, c) of one sentence, float32 [C]."""
        return self.log_probabilities(self.sentence_parts([sentence]), contexts)[0]
