"""The generators of the paper: a Transformer for each task (Vaswani et al. 2017), trained from scratch.

Letters: N texts, T target tokens, M memory tokens, W width, V words.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.context.generators import TASKS, Generators, Memory, SentenceReadings, padded
from likewise.context.stage_options import GeneratorOptions
from likewise.context.states import Side


class Transformers(Generators):
    """An encoder-decoder for each task, of torch's own layers (pre-norm).

    Embeddings of token position and sentence position are added to those of words (section 4.1). A side is encoded by
    itself, so that its memory is computed once for all that read it; one learnt token stands in every memory, for
    texts that are left out. Ids after those of the V words: end of a text, separator of sentences, start of a target.

    Args:
        options: the sizes of encoder and decoder.
        sentences, max_tokens: most of a side, and most word pieces of a sentence.
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
            sentences = [np.append(self.words(one.ids), self.separator) for one in text] or [np.zeros(1, np.int64)]
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
        """Return log p of each token, given those before it."""
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
        kind: dict[str, Any] = {"activation": F.gelu, "batch_first": True, "norm_first": True}
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
        memory = torch.cat([self.nothing.expand(n, 1, -1), *(one.values for one in memories)], dim=1)
        there = torch.cat(
            [torch.ones(n, 1, dtype=torch.bool, device=ids.device), *(one.mask for one in memories)], dim=1
        )
        x = self.dropout(self.words(ids) + self.tokens(tokens) + self.target_sentences(sentences))
        later = torch.ones(ids.shape[1], ids.shape[1], dtype=torch.bool, device=ids.device).triu(1)
        # Padding stands at the end, so a causal layer cannot see it.
        return self.decoder(x, memory, tgt_mask=later, memory_key_padding_mask=~there)

    def logits(self, states: Tensor) -> Tensor:
        # Input and output share the word vectors (Vaswani et al. 2017, section 3.4).
        return F.linear(states, self.words.weight, self.bias)
