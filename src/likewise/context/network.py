"""The Transformer behind the generators (Vaswani et al. 2017), with the shared parts of pairs computed once.

Letters of the shapes: B texts, T target tokens, M memory tokens, D width, H heads, L layers that read the memory,
V vocabulary.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from likewise.context.options import GeneratorOptions
from likewise.context.subwords import Padded


class Attention(nn.Module):
    """Multi-head attention whose keys and values can be projected in advance."""

    def __init__(self, width: int, heads: int, dropout: float) -> None:
        super().__init__()
        self.heads = heads
        self.dropout = dropout
        self.query = nn.Linear(width, width)
        self.key_value = nn.Linear(width, 2 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x: Tensor, key_value: Tensor, mask: Tensor | None = None, causal: bool = False) -> Tensor:
        """Attend from x (B, T, D) to projected keys and values (B, M, 2D), where the mask (B, M) is True."""
        query, key, value = (self._split(part) for part in (self.query(x), *key_value.chunk(2, dim=-1)))
        attended = F.scaled_dot_product_attention(
            query,
            key,
            value,
            attn_mask=None if mask is None else mask[:, None, None, :],
            is_causal=causal,
            dropout_p=self.dropout if self.training else 0.0,
        )  # (B, H, T, D / H)
        return self.out(attended.transpose(1, 2).flatten(2))

    def _split(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, T, D) -> (B, H, T, D / H)


class Layer(nn.Module):
    """A pre-norm layer: self-attention, attention to the memory if `reads` is True, and feed-forward."""

    def __init__(self, options: GeneratorOptions, *, causal: bool, reads: bool) -> None:
        super().__init__()
        width, dropout = options.width, options.dropout
        self.causal = causal
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3 if reads else 2))
        self.attention = Attention(width, options.heads, dropout)
        self.cross = Attention(width, options.heads, dropout) if reads else None
        self.feed_forward = nn.Sequential(
            nn.Linear(width, options.feed_forward), nn.GELU(), nn.Linear(options.feed_forward, width)
        )
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Tensor, mask: Tensor | None, memory: Tensor | None = None, memory_mask: Tensor | None = None
    ) -> Tensor:
        """Return states (B, T, D) of x and its mask (B, T), and keys and values (B, M, 2D) of a memory and its mask."""
        return self.read(self.attend(x, mask), memory, memory_mask)

    def attend(self, x: Tensor, mask: Tensor | None) -> Tensor:
        """Return the states after self-attention, which does not depend on a memory: (B, T, D)."""
        normed = self.norms[0](x)
        # Padding stands at the end, so a causal layer cannot see it.
        key_value = self.attention.key_value(normed)
        return x + self.dropout(self.attention(normed, key_value, None if self.causal else mask, self.causal))

    def read(self, x: Tensor, memory: Tensor | None, memory_mask: Tensor | None) -> Tensor:
        """Return the states after attention to the memory and feed-forward: (B, T, D)."""
        if self.cross is not None:
            assert memory is not None
            x = x + self.dropout(self.cross(self.norms[1](x), memory, memory_mask))
        return x + self.dropout(self.feed_forward(self.norms[-1](x)))


class Transformer(nn.Module):
    """An encoder-decoder with embeddings of token position and sentence position (section 4.1).

    The decoder's first `options.late` layers read the target alone, so that their states are computed once a target,
    whatever memories it is then generated from.
    """

    def __init__(self, options: GeneratorOptions, size: int) -> None:
        super().__init__()
        width = options.width
        self.options = options
        self.words = nn.Embedding(size, width)
        self.tokens = nn.Embedding(options.max_tokens + 1, width)
        # Sources count from the centre, targets from their first sentence: a decoder must not know how many follow.
        self.sentences = nn.Embedding(2 * options.max_sentences + 1, width)
        self.target_sentences = nn.Embedding(options.max_sentences, width)
        self.dropout = nn.Dropout(options.dropout)
        self.encoder = nn.ModuleList(Layer(options, causal=False, reads=False) for _ in range(options.encoder_layers))
        self.encoder_norm = nn.LayerNorm(width)
        self.decoder = nn.ModuleList(
            Layer(options, causal=True, reads=i >= options.late) for i in range(options.decoder_layers)
        )
        self.decoder_norm = nn.LayerNorm(width)
        self.bias = nn.Parameter(torch.zeros(size)) if options.softmax == "full" else None
        self.adaptive = None
        if options.softmax == "adaptive":
            self.adaptive = nn.AdaptiveLogSoftmaxWithLoss(width, size, options.cutoffs(size), div_value=options.shrink)
        self.apply(_initialise)

    def encode(self, source: Padded) -> Tensor:
        """Return the states of texts: (B, T, D)."""
        places = source.sentences + self.options.max_sentences
        x = self.dropout(self.words(source.ids) + self.tokens(source.tokens) + self.sentences(places))
        for layer in self.encoder:
            x = layer(x, source.mask)
        return self.encoder_norm(x)

    def remember(self, states: Tensor) -> Tensor:
        """Return the keys and values (B, M, 2DL) of the decoder's reading layers for states (B, M, D)."""
        reading: list[Any] = [layer.cross for layer in self.decoder if layer.cross is not None]
        return torch.cat([cross.key_value(states) for cross in reading], dim=-1)

    def start(self, target: Padded, first: int) -> Tensor:
        """Return the part of a target's states that does not depend on a memory: (B, T, D).

        State t stands for the probability of token t and sees those before, including the start token `first`.
        """
        places = target_places(target, self.options.max_sentences)
        x = self.dropout(
            self.words(shifted(target, first)) + self.tokens(target.tokens) + self.target_sentences(places)
        )
        for layer in self.decoder[: self.options.late]:
            x = layer(x, None)
        reader: Any = self.decoder[self.options.late]
        return reader.attend(x, None)

    def finish(self, started: Tensor, memory: Tensor, memory_mask: Tensor) -> Tensor:
        """Return the decoder's last states (B, T, D), from `start`, the memory (B, M, 2DL) and its mask (B, M)."""
        layers: list[Any] = list(self.decoder[self.options.late :])
        first, *rest = layers
        parts = memory.chunk(1 + len(rest), dim=-1)
        x = first.read(started, parts[0], memory_mask)
        for layer, part in zip(rest, parts[1:], strict=True):
            x = layer(x, None, part, memory_mask)
        return self.decoder_norm(x)

    def log_probabilities(self, last: Tensor, ids: Tensor) -> Tensor:
        """Return the log probability of each id (N,) at its last state (N, D): (N,)."""
        if self.adaptive is not None:
            # Its own tables are small; in bfloat16 their log probabilities would be too coarse to be summed.
            with torch.autocast(last.device.type, enabled=False):
                return self.adaptive(last.float(), ids).output
        return -F.cross_entropy(self._logits(last), ids, reduction="none")

    def _logits(self, last: Tensor) -> Tensor:
        # Input and output share the word vectors (Vaswani et al. 2017, section 3.4).
        return F.linear(last, self.words.weight, self.bias).float()


def target_places(target: Padded, most: int) -> Tensor:
    """Return the sentence positions of a target, counted from its first: (B, T); arbitrary for padding."""
    return (target.sentences - target.sentences[:, :1]).clamp(0, most - 1)


def shifted(target: Padded, first: int) -> Tensor:
    """Return the target's ids shifted right, with `first` in front: (B, T)."""
    return torch.cat([torch.full_like(target.ids[:, :1], first), target.ids[:, :-1]], dim=1)


def _initialise(module: nn.Module) -> None:
    if isinstance(module, (nn.Linear, nn.Embedding)):
        nn.init.normal_(module.weight, std=0.02)
    if isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)
