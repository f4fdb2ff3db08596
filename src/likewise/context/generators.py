"""The stage `generators`: the probability of a sentence, or of either side of its context, from the other two.

Three families of models perform the same three tasks. Two are trained here; the third is a pretrained language model
(`likewise.context.pretrained`). `LogBilinear`, of the preset `frozen`, predicts the words of a text, in any order, from
the vectors of a frozen encoder,

    p(w | a, b) = softmax over w of  e_w . (A v_a + B v_b) + b_w,

where v of a side is the mean vector of its sentences. `Transformers`, of the preset `paper`, has an encoder-decoder for
each task, trained from scratch (Vaswani et al. 2017); its texts end with an end token. Both omit a source in a tenth of
the training examples, so that the same model also estimates p(w | b) and p(w), and thus log p(w | a, b) - log p(w | b),
the contribution of a.

Letters: N texts, T words of a target, M tokens of a memory, D width of a vector, R rank, V words.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pad_sequence

from likewise.context.stage_options import GeneratorOptions
from likewise.context.states import SentenceReading, Side, States
from likewise.context.workspace import QUIET
from likewise.inference.tokens import by_budget
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record

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
"""Texts on each side of N contexts."""
_LEFT_OUT = 0.1
_CONTEXTS = 256
"""Contexts whose memories are held at a time."""


class Memory(NamedTuple):
    """The states of N texts that a decoder reads: values (N, M, width), and a mask of tokens (N, M)."""

    values: Tensor
    mask: Tensor

    def take(self, rows: Tensor) -> Memory:
        """Return the memory of the texts of the given rows."""
        return Memory(self.values[rows], self.mask[rows])

    def without(self, left_out: Tensor | bool) -> Memory:
        """Return the memory without the texts for which (N,) is True, or without all texts."""
        return Memory(self.values, self.mask & ~torch.as_tensor(left_out, device=self.mask.device).reshape(-1, 1))


class Generators(nn.Module):
    """Three conditional models: p(centre | left, right), p(left | centre, right), p(right | left, centre).

    Args:
        pieces: Ids of the known words (V,), the most frequent word pieces of a corpus; others are skipped.
        size: Number of ids.
    """

    at_once: int
    """Words whose distributions over all words are held at a time."""
    sample = 64
    """Contexts of the corpus over which it can afford to take a sentence's mean."""

    def __init__(self, pieces: np.ndarray, size: int) -> None:
        super().__init__()
        self.register_buffer("pieces", torch.from_numpy(pieces))
        self._number = np.full(size, -1)
        self._number[pieces] = np.arange(len(pieces))

    def words(self, ids: np.ndarray) -> np.ndarray:
        """Return the numbers of the known ids."""
        numbers = self._number[ids]
        return numbers[numbers >= 0]

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
        """Return the mean negative log probability of a word over the tasks, with sources omitted at random."""
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
        chosen: Sequence[bool],
        pmi: bool,
        progress: Progress = QUIET,
    ) -> np.ndarray:
        """Return the terms of the centre, the left and the right (K, 3) of sentences in contexts of a store.

        Args:
            cells: (K, 2), the index of a sentence and the number of a context, in the order of the contexts.
            chosen: Names of the requested terms of the three; the others are 0.
            pmi: Whether to subtract each term's value without the sentence.
        """
        readings, terms = states.read(sentences), np.zeros((len(cells), 3))
        begins = np.flatnonzero(np.diff(cells[:, 1], prepend=-1))[::_CONTEXTS]
        with progress.bar("scoring sentences in contexts", len(cells)) as bar:
            for begin, end in zip(begins, [*begins[1:], len(cells)], strict=True):
                terms[begin:end] = self._terms_of(states, readings, cells[begin:end], chosen, pmi)
                bar.update(end)
        return terms

    def _terms_of(
        self, states: States, readings: Sequence[SentenceReading], cells: np.ndarray, chosen: Sequence[bool], pmi: bool
    ) -> np.ndarray:
        said, of_sentence = np.unique(cells[:, 0], return_inverse=True)
        here, of_context = np.unique(cells[:, 1], return_inverse=True)
        texts = states.sides(here) | {"centre": [[readings[i]] for i in said]}
        rows = {"left": of_context, "centre": of_sentence, "right": of_context}
        all_terms = np.zeros((len(cells), 3))
        for i, task in enumerate(TASKS):
            if not chosen[i]:
                continue
            memories, targets = self.memories(task, texts), self.targets(texts[task])
            terms = self.means(task, memories, targets, rows)
            if pmi:
                # Without the sentence, and for the sentence itself without its context: the same in many cells.
                side: Any = {"centre": "centre", "left": "right", "right": "left"}[task]
                sources = [memory.without(own != side) for own, memory in zip(SOURCES[task], memories, strict=True)]
                distinct, inverse = np.unique(rows[side], return_inverse=True)
                alone = dict.fromkeys(TASKS, distinct * 0) | {task: distinct, side: distinct}
                terms = terms - self.means(task, sources, targets, alone)[inverse]
            all_terms[:, i] = terms.numpy()
        return all_terms

    @torch.no_grad()
    def means(self, task: Side, memories: Sequence[Memory], targets: Tensor, rows: Mapping[Any, Any]) -> Tensor:
        """Return the mean log p of a word of K cells: (K,) float64; 0 for a target of no word.

        Args:
            memories: Memories of the distinct texts of each source of the task.
            targets: Distinct target texts (N, T).
            rows: (K,) of each side, the text of every cell.
        """
        lengths = (targets >= 0).sum(dim=1)
        own = torch.as_tensor(rows[task])
        of = [torch.as_tensor(rows[side]) for side in SOURCES[task]]
        means = torch.zeros(len(own), dtype=torch.float64)
        for batch in by_budget(lengths[own].cpu().numpy(), self.at_once):
            cells = torch.from_numpy(batch)
            longest = int(lengths[own[cells]].max())
            sources = [memory.take(of[i][cells]) for i, memory in enumerate(memories)]
            logs = self.log_probabilities(task, sources, targets[own[cells], :longest]).double().cpu()
            means[cells] = logs.sum(dim=1) / lengths[own[cells]].clamp(min=1)
        return means


class LogBilinear(Generators):
    """Log-bilinear models with common word vectors, of rank R, on sentence vectors of width D."""

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
        """Set the bias to log frequencies, and word vectors to the principal directions of the embeddings."""
        self.bias.copy_(torch.from_numpy(np.log((counts + 1) / (counts + 1).sum())))
        left, values, _ = np.linalg.svd(embeddings - embeddings.mean(axis=0), full_matrices=False)
        leading = (left * values)[:, : self.rank]
        rows = torch.from_numpy(leading / np.linalg.norm(leading, axis=1).mean())
        self.vectors[:, : rows.shape[1]].copy_(rows)

    def encode(self, task: Side, side: Side, texts: Sequence[SentenceReadings]) -> Memory:
        """Return one token a text, the map of its mean vector."""
        nothing = np.zeros(self.width, np.float32)
        means = [np.mean([sentence.vector for sentence in text], axis=0) if text else nothing for text in texts]
        values = self.read[f"{task} {side}"](torch.from_numpy(np.stack(means)))
        return Memory(values[:, None], torch.ones(len(texts), 1, dtype=torch.bool))

    def targets(self, texts: Sequence[SentenceReadings]) -> Tensor:
        """Return the words of all sentences of each text."""
        return padded(
            [np.concatenate([self.words(sentence.ids) for sentence in text] or [np.zeros(0, int)]) for text in texts]
        )

    def log_probabilities(self, task: Side, memories: Sequence[Memory], targets: Tensor) -> Tensor:
        """Return log p of each word, by one distribution a text."""
        hidden = torch.stack([(memory.values * memory.mask[..., None]).sum(dim=1) for memory in memories]).sum(dim=0)
        logs = [
            torch.log_softmax(part @ self.vectors.T + self.bias, dim=1).gather(1, words.clamp(min=0)) * (words >= 0)
            for part, words in zip(hidden.split(1024), targets.split(1024), strict=True)
        ]
        return torch.cat(logs) if logs else torch.zeros(targets.shape)


def padded(rows: Sequence[np.ndarray]) -> Tensor:
    """Pad the words of N texts with -1: int64 (N, T)."""
    return pad_sequence([torch.from_numpy(row) for row in rows], batch_first=True, padding_value=-1)


class Transformers(Generators):
    """An encoder-decoder for each task, of torch's own layers (pre-norm).

    Embeddings of token position and sentence position are added to the word embeddings (section 4.1). A side is encoded
    by itself, so that its memory is computed once for all that read it; one learned token is part of every memory, for
    omitted texts. Ids after the V words: end of a text, separator of sentences, start of a target.

    Args:
        options: Sizes of encoder and decoder.
        sentences, max_tokens: Maximum number of sentences of a side, and of word pieces of a sentence.
    """

    at_once = 1_024

    def __init__(
        self, pieces: np.ndarray, size: int, options: GeneratorOptions, sentences: int, max_tokens: int
    ) -> None:
        super().__init__(pieces, size)
        self.end, self.separator, self.begin = range(len(pieces), len(pieces) + 3)
        self.sentences, self.max_tokens = sentences, max_tokens
        self.networks = nn.ModuleDict(
            {task: _Network(len(pieces) + 3, options, 2 * sentences + 1, max_tokens) for task in TASKS}
        )

    def encode(self, task: Side, side: Side, texts: Sequence[SentenceReadings]) -> Memory:
        """Return the encoder's states; sentences count from the centre."""
        network: Any = self.networks[task]
        ids = self.targets(texts).to(network.bias.device)
        first = [self.sentences + {"left": -len(text), "centre": 0, "right": 1}[side] for text in texts]
        return network.encode(ids, *self._places(ids, torch.tensor(first, device=ids.device)[:, None]))

    def targets(self, texts: Sequence[SentenceReadings]) -> Tensor:
        """Return the word pieces of each text, with a separator between two sentences, and the end token."""
        rows = []
        for text in texts:
            sentences = [np.append(self.words(sentence.ids), self.separator) for sentence in text] or [
                np.zeros(1, np.int64)
            ]
            sentences[-1][-1] = self.end
            rows.append(np.concatenate(sentences))
        return padded(rows)

    def _places(self, ids: Tensor, first: Tensor | int = 0) -> tuple[Tensor, Tensor]:
        """Return the places of tokens in their sentences, and of sentences, which count from `first`: (N, T) each."""
        ends = ids == self.separator
        sentences = first + ends.cumsum(dim=1) - ends.long()
        at = torch.arange(ids.shape[1], device=ids.device).expand_as(ids)
        begun = torch.where(F.pad(ends, (1, 0))[:, :-1], at, 0).cummax(dim=1).values
        return (at - begun).clamp(max=self.max_tokens), sentences.clamp(min=0, max=2 * self.sentences)

    def log_probabilities(self, task: Side, memories: Sequence[Memory], targets: Tensor) -> Tensor:
        """Return log p of each token, given the previous tokens."""
        network: Any = self.networks[task]
        targets = targets.to(network.bias.device)
        real = targets >= 0
        ids = targets.clamp(min=0)
        shifted = torch.cat([torch.full_like(ids[:, :1], self.begin), ids[:, :-1]], dim=1)
        states = network.decode(shifted, *self._places(targets), memories)[real]
        logs = -F.cross_entropy(network.logits(states), ids[real], reduction="none")
        return torch.zeros(targets.shape, dtype=logs.dtype, device=logs.device).masked_scatter(real, logs)


class _Network(nn.Module):
    def __init__(self, words: int, options: GeneratorOptions, places: int, most: int) -> None:
        super().__init__()
        width, layers, dropout = options.width, options.layers, options.dropout
        self.words, self.dropout = nn.Embedding(words, width), nn.Dropout(dropout)
        self.tokens, self.sentences = nn.Embedding(most + 1, width), nn.Embedding(places, width)
        self.target_sentences = nn.Embedding(places, width)
        kind: Record = {"activation": F.gelu, "batch_first": True, "norm_first": True}
        encoder = nn.TransformerEncoderLayer(width, options.heads, options.feed_forward, dropout, **kind)
        decoder = nn.TransformerDecoderLayer(width, options.heads, options.feed_forward, dropout, **kind)
        self.encoder = nn.TransformerEncoder(encoder, layers, nn.LayerNorm(width), enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(decoder, layers, nn.LayerNorm(width))
        self.nothing = nn.Parameter(torch.zeros(1, 1, width))
        self.bias = nn.Parameter(torch.zeros(words))
        for module in self.modules():
            if isinstance(module, (nn.Linear, nn.Embedding)):
                nn.init.normal_(module.weight, std=0.02)

    def encode(self, ids: Tensor, tokens: Tensor, sentences: Tensor) -> Memory:
        mask = ids >= 0
        x = self.words(ids.clamp(min=0)) + self.tokens(tokens) + self.sentences(sentences)
        return Memory(self.encoder(self.dropout(x), src_key_padding_mask=~mask), mask)

    def decode(self, ids: Tensor, tokens: Tensor, sentences: Tensor, memories: Sequence[Memory]) -> Tensor:
        n = len(ids)
        memory = torch.cat([self.nothing.expand(n, 1, -1), *(memory.values for memory in memories)], dim=1)
        there = torch.cat(
            [torch.ones(n, 1, dtype=torch.bool, device=ids.device), *(memory.mask for memory in memories)], dim=1
        )
        x = self.dropout(self.words(ids) + self.tokens(tokens) + self.target_sentences(sentences))
        later = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).triu(1)
        # Padding comes at the end, so that a causal layer cannot see it.
        return self.decoder(x, memory, tgt_mask=later, memory_key_padding_mask=~there)

    def logits(self, states: Tensor) -> Tensor:
        # Input and output share the word vectors (Vaswani et al. 2017, section 3.4).
        return F.linear(states, self.words.weight, self.bias)
