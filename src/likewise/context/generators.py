"""The generators of equation 2: the probability of a sentence, or of either side of its context, from the other two.

Three families do the same three tasks. Two are trained here; the third is a pretrained language model
(`likewise.context.pretrained`). `LogBilinear`, of the preset `frozen`, gives the words of a text, in any order, by
the vectors of a frozen encoder,

    p(w | a, b) = softmax over w of  e_w . (A v_a + B v_b) + b_w,

where v of a side is the mean vector of its sentences. `Transformers`, of the preset `paper`, has an encoder-decoder for
each task, trained from scratch (`likewise.context.transformer`); its texts end with an end token. Both leave a source
out of a tenth of the training examples, so that the same model gives p(w | b) and p(w) too, and with them
log p(w | a, b) - log p(w | b), what a adds.

Letters: N texts, T words of a target, M tokens of a memory, D width of a vector, R rank, V words.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from likewise.context.states import SentenceReading, Side, States

TASKS: tuple[Side, ...] = ("centre", "left", "right")
"""The tasks: to generate the sentence, the left or the right context, from the other two."""
SOURCES: dict[Side, tuple[Side, Side]] = {
    "centre": ("left", "right"),
    "left": ("centre", "right"),
    "right": ("left", "centre"),
}
"""The texts that each task reads, in their order."""
SentenceReadings = Sequence[SentenceReading]
"""The sentences of one side of a context, or one sentence."""
Texts = Mapping[Side, Sequence[SentenceReadings]]
"""What stands at each side of N contexts."""
_LEFT_OUT = 0.1
_CONTEXTS = 256
"""Contexts whose memories are held at a time."""


class Memory(NamedTuple):
    """The states of N texts that a decoder reads: values (N, M, width), and where there is a token (N, M)."""

    values: Tensor
    mask: Tensor

    def take(self, rows: Tensor) -> Memory:
        """Return the memory of the texts of the given rows."""
        mask = self.mask[rows]
        longest = int(mask.sum(dim=1).max()) if len(mask) else 0
        return Memory(self.values[rows, :longest], mask[:, :longest])

    def without(self, left_out: Tensor | bool) -> Memory:
        """Return the memory with the texts left out where (N,) is True, or all of them."""
        return Memory(self.values, self.mask & ~torch.as_tensor(left_out, device=self.mask.device).reshape(-1, 1))


class Generating(Protocol):
    """A source of the generators' terms."""

    sample: int
    """Contexts of the corpus over which it can afford to take a sentence's mean."""

    def terms(
        self,
        states: States,
        sentences: Sequence[str],
        cells: np.ndarray,
        wanted: Sequence[bool],
        pmi: bool,
        advance: Callable[[int], object],
    ) -> np.ndarray:
        """Return the terms of the centre, the left and the right (K, 3) of sentences in contexts of a store.

        Args:
            states: those of the store.
            sentences: S sentences.
            cells: (K, 2), the index of a sentence and the number of a context, in the order of the contexts.
            wanted: which of the three; the others are 0.
            pmi: less what each is without the sentence.
            advance: told how many cells were done.
        """
        ...


class Generators(nn.Module):
    """Three conditional models: p(centre | left, right), p(left | centre, right), p(right | left, centre).

    Args:
        pieces: ids of the known words (V,), the most frequent word pieces of a corpus; others are passed over.
        size: how many ids there are.
    """

    at_once: int
    """Words whose distributions over all words are held at a time."""
    sample = 64

    def __init__(self, pieces: np.ndarray, size: int) -> None:
        super().__init__()
        self.register_buffer("pieces", torch.from_numpy(pieces))
        self._number = np.full(size, -1)
        self._number[pieces] = np.arange(len(pieces))

    def words(self, ids: np.ndarray) -> np.ndarray:
        """Return the numbers of those of the ids that are known."""
        found = self._number[ids]
        return found[found >= 0]

    @abstractmethod
    def encode(self, task: Side, side: Side, texts: Sequence[SentenceReadings]) -> Memory:
        """Return the texts of one side as a task reads them."""

    @abstractmethod
    def targets(self, texts: Sequence[SentenceReadings]) -> Tensor:
        """Return the words of texts that are generated, padded with -1: int64 (N, T)."""

    @abstractmethod
    def log_probabilities(self, task: Side, memories: Sequence[Memory], targets: Tensor) -> Tensor:
        """Return log p of each word of targets (N, T) given N texts of each source: (N, T), 0 at padding."""

    def start(self, counts: np.ndarray, embeddings: np.ndarray) -> None:
        """Begin at the counts (V,) of the words in the corpus and the encoder's input vectors (V, any) of them."""

    def memories(self, task: Side, texts: Texts) -> list[Memory]:
        """Return the memories of the sources of a task."""
        return [self.encode(task, side, texts[side]) for side in SOURCES[task]]

    def loss(self, texts: Texts) -> Tensor:
        """Return the mean over the tasks of the mean negative log probability of a word, sources left out at times."""
        losses = []
        for task in TASKS:
            memories = self.memories(task, texts)
            memories = [memory.without(torch.rand(len(memory.mask)) < _LEFT_OUT) for memory in memories]
            targets = self.targets(texts[task])
            logs = self.log_probabilities(task, memories, targets)
            losses.append(-logs.sum() / (targets >= 0).sum().clamp(min=1))
        return torch.stack(losses).mean()

    def terms(
        self,
        states: States,
        sentences: Sequence[str],
        cells: np.ndarray,
        wanted: Sequence[bool],
        pmi: bool,
        advance: Callable[[int], object],
    ) -> np.ndarray:
        """Return the terms of the centre, the left and the right (K, 3), see `Generating`."""
        readings, found = states.read(sentences), np.zeros((len(cells), 3))
        begins = np.flatnonzero(np.diff(cells[:, 1], prepend=-1))[::_CONTEXTS]
        for begin, end in zip(begins, [*begins[1:], len(cells)], strict=True):
            found[begin:end] = self._terms_of(states, readings, cells[begin:end], wanted, pmi)
            advance(end - begin)
        return found

    def _terms_of(
        self, states: States, readings: Sequence[SentenceReading], cells: np.ndarray, wanted: Sequence[bool], pmi: bool
    ) -> np.ndarray:
        said, of_sentence = np.unique(cells[:, 0], return_inverse=True)
        here, of_context = np.unique(cells[:, 1], return_inverse=True)
        texts = states.sides(here) | {"centre": [[readings[i]] for i in said]}
        rows = {"left": of_context, "centre": of_sentence, "right": of_context}
        found = np.zeros((len(cells), 3))
        for i, task in enumerate(TASKS):
            if not wanted[i]:
                continue
            memories, targets = self.memories(task, texts), self.targets(texts[task])
            terms = self.means(task, memories, targets, rows)
            if pmi:
                # Without the sentence, and for the sentence itself without its context: the same in many cells.
                side: Any = {"centre": "centre", "left": "right", "right": "left"}[task]
                kept = [memory.without(own != side) for own, memory in zip(SOURCES[task], memories, strict=True)]
                distinct, inverse = np.unique(rows[side], return_inverse=True)
                alone = dict.fromkeys(TASKS, distinct * 0) | {task: distinct, side: distinct}
                terms = terms - self.means(task, kept, targets, alone)[inverse]
            found[:, i] = terms.numpy()
        return found

    @torch.no_grad()
    def means(self, task: Side, memories: Sequence[Memory], targets: Tensor, rows: Mapping[Any, Any]) -> Tensor:
        """Return the mean log p of a word of K cells: (K,) float64; 0 for a target of no word.

        Args:
            memories: of the distinct texts of each source of the task.
            targets: of the distinct texts (N, T).
            rows: (K,) of each side, the text of every cell.
        """
        lengths = (targets >= 0).sum(dim=1)
        own = torch.as_tensor(rows[task])
        of = [torch.as_tensor(rows[side]) for side in SOURCES[task]]
        order = torch.argsort(lengths[own], stable=True)  # near-equal lengths share a batch
        found = torch.zeros(len(own), dtype=torch.float64)
        begin = 0
        while begin < len(order):
            longest = int(lengths[own[order[min(begin + self.at_once, len(order)) - 1]]])
            cells = order[begin : begin + max(1, self.at_once // max(1, longest))]
            begin += len(cells)
            longest = int(lengths[own[cells]].max())
            given = [memory.take(of[i][cells]) for i, memory in enumerate(memories)]
            logs = self.log_probabilities(task, given, targets[own[cells], :longest]).double().cpu()
            found[cells] = logs.sum(dim=1) / lengths[own[cells]].clamp(min=1)
        return found


class LogBilinear(Generators):
    """Log-bilinear models with common word vectors.

    Args:
        width: D.
        rank: R.
    """

    at_once = 20_000

    def __init__(self, pieces: np.ndarray, size: int, width: int, rank: int) -> None:
        super().__init__(pieces, size)
        self.width, self.rank = width, rank
        self.vectors = nn.Parameter(torch.randn(len(pieces), rank) * rank**-0.5)
        self.bias = nn.Parameter(torch.zeros(len(pieces)))
        self.read = nn.ModuleDict(
            {f"{task} {side}": nn.Linear(width, rank, bias=False) for task in TASKS for side in SOURCES[task]}
        )
        for weight in self.read.parameters():
            nn.init.normal_(weight, std=0.02)

    @torch.no_grad()
    def start(self, counts: np.ndarray, embeddings: np.ndarray) -> None:
        """Set the bias to log frequencies, and word vectors to the principal directions of given ones."""
        self.bias.copy_(torch.from_numpy(np.log((counts + 1) / (counts + 1).sum())))
        left, values, _ = np.linalg.svd(embeddings - embeddings.mean(axis=0), full_matrices=False)
        leading = (left * values)[:, : self.rank]
        rows = torch.from_numpy(leading / np.linalg.norm(leading, axis=1).mean())
        self.vectors[:, : rows.shape[1]].copy_(rows)

    def encode(self, task: Side, side: Side, texts: Sequence[SentenceReadings]) -> Memory:
        """Return one token a text, the map of its mean vector."""
        nothing = np.zeros(self.width, np.float32)
        means = [np.mean([one.vector for one in text], axis=0) if text else nothing for text in texts]
        values = self.read[f"{task} {side}"](torch.from_numpy(np.stack(means)))
        return Memory(values[:, None], torch.ones(len(texts), 1, dtype=torch.bool))

    def targets(self, texts: Sequence[SentenceReadings]) -> Tensor:
        """Return the words of all sentences of each text."""
        return padded([np.concatenate([self.words(one.ids) for one in text] or [np.zeros(0, int)]) for text in texts])

    def log_probabilities(self, task: Side, memories: Sequence[Memory], targets: Tensor) -> Tensor:
        """Return log p of each word, by one distribution a text."""
        hidden = torch.stack([(memory.values * memory.mask[..., None]).sum(dim=1) for memory in memories]).sum(dim=0)
        found = [
            torch.log_softmax(part @ self.vectors.T + self.bias, dim=1).gather(1, words.clamp(min=0)) * (words >= 0)
            for part, words in zip(hidden.split(1024), targets.split(1024), strict=True)
        ]
        return torch.cat(found) if found else torch.zeros(targets.shape)


def padded(rows: Sequence[np.ndarray]) -> Tensor:
    """Pad the words of N texts with -1: int64 (N, T)."""
    return pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True, padding_value=-1)
