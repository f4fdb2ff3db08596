"""A causal language model on this machine, which writes the queries of many passages at a time.

Letters of the shapes: B passages, H heads (what is asked of each passage), T tokens.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from likewise.queries.causal import CausalModel
from likewise.queries.prompts import HEADS, cleaned, continued, head, messages, shown

if TYPE_CHECKING:
    from transformers import DynamicCache

_NEW_TOKENS = 24
"""Of a query at most."""
_PLACE = "PASSAGE"
_CONTRAST, _PLAUSIBLE = 1.0, 0.1
_DENSE = 0.75
"""Share of the queries that are still being written, below which the others are left out."""


class LocalWriter:
    """A causal model of transformers, in bfloat16 where the machine has it.

    The examples are read once, a passage once for all that is asked of it, and all of that is written side by side. The
    likeliest token is taken each time, so that the same model writes the same again.

    Args:
        name: `bundled:smollm2`, a folder, or a name of the model hub.
    """

    batch = 8
    """Passages that are written for at a time."""

    def __init__(self, name: str) -> None:
        self.name, self.causal = name, CausalModel(name)
        self.told = f"{name} writes the queries on this machine"

    @property
    def identity(self) -> str:
        """The name, and the files of a folder by their sizes and times: on these the queries depend."""
        return self.causal.identity

    @cached_property
    def _frame(self) -> tuple[str, str]:
        """The text before and behind each passage: a conversation, if the model has a form of these."""
        tokenizer = self.causal.tokenizer
        if tokenizer.chat_template is None:
            whole = continued(_PLACE)
        else:
            whole = tokenizer.apply_chat_template(messages(_PLACE), tokenize=False, add_generation_prompt=True)
        before, _, after = whole.partition(_PLACE)
        return before, after

    @cached_property
    def _examples(self) -> tuple[DynamicCache, DynamicCache, int, int]:
        """The cache of the examples, which stand before every passage, that of an empty passage, and their lengths."""
        from transformers import DynamicCache

        caches: list[tuple[DynamicCache, int]] = []
        for text in (self._frame[0], "".join(self._frame)):
            ids, mask = self._padded([text])
            cache = DynamicCache()
            self._forward(ids, mask, cache)
            caches.append((cache, ids.shape[1]))
        (before, length), (blind, blind_length) = caches
        return before, blind, length, blind_length

    @torch.inference_mode()
    def write(self, texts: Sequence[str]) -> list[list[tuple[str, str]]]:
        """Return the kinds and texts of the queries for each of B passages."""
        tokenizer = self.causal.tokenizer
        before, empty, length, empty_length = self._examples
        passages, there = self._padded([shown(text) + self._frame[1] for text in texts])  # (B, T)
        cache = copy.deepcopy(before)
        cache.batch_repeat_interleave(len(texts))
        mask = torch.cat([there.new_ones(len(texts), length), there], dim=1)
        self._forward(passages, mask, cache)
        heads, asked = self._padded([head(*asked) for asked in HEADS])  # (H, T)
        cache.batch_repeat_interleave(len(HEADS))
        mask = mask.repeat_interleave(len(HEADS), dim=0)
        blind, blind_mask = copy.deepcopy(empty), mask.new_ones(len(mask), empty_length)
        blind.batch_repeat_interleave(len(mask))
        ids, more = heads.repeat(len(texts), 1), asked.repeat(len(texts), 1)  # (B H, T)
        ends = {tokenizer.eos_token_id, *self.causal.ids("\n")[-1:]}
        written: list[list[int]] = [[] for _ in ids]
        rows = list(range(len(ids)))  # those that are still written, and some that have ended
        ended = set[int]()
        for _ in range(_NEW_TOKENS):
            mask, blind_mask = torch.cat([mask, more], dim=1), torch.cat([blind_mask, more], dim=1)
            chosen = surest(self._forward(ids, mask, cache), self._forward(ids, blind_mask, blind))
            for row, token in zip(rows, chosen.tolist(), strict=True):
                if token in ends:
                    ended.add(row)
                elif row not in ended:
                    written[row].append(token)
            ids, more = chosen[:, None], more.new_ones(len(chosen), 1)
            going = [place for place, row in enumerate(rows) if row not in ended]
            if not going:
                break
            if len(going) <= _DENSE * len(rows):
                kept = torch.tensor(going, device=ids.device)
                cache.batch_select_indices(kept)
                blind.batch_select_indices(kept)
                mask, blind_mask, ids, more = (rest[kept] for rest in (mask, blind_mask, ids, more))
                rows = [rows[place] for place in going]
        queries: list[list[tuple[str, str]]] = [[] for _ in texts]
        for row, tokens in enumerate(written):
            kind, first = HEADS[row % len(HEADS)]
            text = first + tokenizer.decode(tokens, skip_special_tokens=True)
            query, of_passage = cleaned(kind, text, whole=row in ended), queries[row // len(HEADS)]
            if query and (kind, query) not in of_passage:
                of_passage.append((kind, query))
        return queries

    def _forward(self, ids: Tensor, mask: Tensor, cache: DynamicCache) -> Tensor:
        """Return the scores of the token behind the last one; padding stands between what is read, and is not seen."""
        return self.causal.forward(ids, mask, cache)[:, -1].float()

    def _padded(self, texts: Sequence[str]) -> tuple[Tensor, Tensor]:
        """Return the tokens of texts, with padding before them, and where there is no padding."""
        return self.causal.padded([self.causal.ids(text) for text in texts])


def surest(seen: Tensor, blind: Tensor) -> Tensor:
    """Return the tokens (B,) that a passage speaks for most, among those that are likely.

    The scores are (1 + a) log p(token | passage) - a log p(token), as in context-aware decoding (Shi et al. 2023,
    equation 3), of the tokens with a tenth or more of the likeliest one's probability (Li et al. 2022, equation 2).

    Args:
        seen, blind: (B, V) scores of the next token with the passage and without.

    >>> surest(torch.tensor([[2.0, 1.5, -9.0]]), torch.tensor([[3.0, 0.0, -99.0]])).tolist()
    [1]
    """
    seen, blind = seen.log_softmax(dim=1), blind.log_softmax(dim=1)
    scores = (1 + _CONTRAST) * seen - _CONTRAST * blind
    unlikely = seen < seen.amax(dim=1, keepdim=True) + math.log(_PLAUSIBLE)
    return scores.masked_fill(unlikely, -torch.inf).argmax(dim=1)
