"""A causal language model on this machine, and the queries that it writes for many passages at a time.

Letters of the shapes: B passages, H heads (what is asked of each passage), T tokens.
"""

from __future__ import annotations

import copy
import inspect
import math
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from likewise import processor
from likewise.corpus.bundled import resolve_model
from likewise.encoder.location import LoadError
from likewise.errors import first_line
from likewise.queries.prompts import HEADS, cleaned, continued, head, messages, shown
from likewise.transformers_output import no_bar, only_errors

if TYPE_CHECKING:
    from transformers import DynamicCache, PreTrainedModel

_NEW_TOKENS = 24
"""Of a query at most."""
_PLACE = "PASSAGE"
_CONTRAST, _PLAUSIBLE = 1.0, 0.1
_DENSE = 0.75
"""Share of the queries that are still being written, below which the others are left out."""


class CausalModel:
    """A causal model of transformers, in bfloat16 where the machine has it; it is opened when it is first needed.

    Args:
        name: `bundled:smollm2`, a folder, or a name of the model hub.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.folder = resolve_model(name)
        path = Path(self.folder).expanduser()
        if path.is_dir() and not (path / "config.json").is_file():
            raise LoadError(
                f"'{name}' is not a language model: give a folder that transformers has saved, with its config.json"
            )

    @property
    def identity(self) -> str:
        """The name, and the files of a folder by their sizes and times: on these depends what the model says."""
        files = sorted(Path(self.folder).expanduser().glob("*")) if Path(self.folder).expanduser().is_dir() else []
        stats = [(file.name, file.stat().st_size, file.stat().st_mtime_ns) for file in files if file.is_file()]
        return f"{self.folder} {stats}"

    @cached_property
    def _opened(self) -> tuple[PreTrainedModel, Any]:
        from transformers import AutoModelForCausalLM, AutoTokenizer

        gpu = torch.cuda.is_available()
        dtype = torch.bfloat16 if gpu or processor.has_bf16() else torch.float32
        try:
            with no_bar(), only_errors():
                tokenizer = AutoTokenizer.from_pretrained(self.folder)
                model: Any = AutoModelForCausalLM.from_pretrained(self.folder, dtype=dtype)
        except (OSError, ValueError, KeyError, RuntimeError) as error:
            raise LoadError(
                f"'{self.name}' cannot be loaded as a causal language model ({first_line(error)}). Give a folder or a "
                "name of the model hub that transformers' AutoModelForCausalLM loads, or bundled:smollm2"
            ) from None
        return model.to("cuda" if gpu else "cpu").eval(), tokenizer

    @property
    def model(self) -> PreTrainedModel:
        """The model, in evaluation mode."""
        return self._opened[0]

    @property
    def tokenizer(self) -> Any:
        """Its tokenizer."""
        return self._opened[1]

    @cached_property
    def cache_name(self) -> str:
        """The name of the parameter that takes the cache, which changed in transformers 5."""
        names = inspect.signature(self.model.forward).parameters
        return "cache" if "cache" in names else "past_key_values"

    def ids(self, text: str) -> list[int]:
        """Return the tokens of a text, without special ones."""
        token_ids: list[int] = self.tokenizer(text, add_special_tokens=False)["input_ids"]
        return token_ids

    def padded(self, rows: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """Return the tokens of N rows (N, T), with padding before them, and where there is no padding (N, T)."""
        longest = max(map(len, rows))
        ids = [[0] * (longest - len(row)) + list(row) for row in rows]
        mask = [[0] * (longest - len(row)) + [1] * len(row) for row in rows]
        device = self.model.device
        return torch.tensor(ids, dtype=torch.int64, device=device), torch.tensor(mask, dtype=torch.int64, device=device)

    def forward(self, ids: Tensor, mask: Tensor, cache: DynamicCache, logits: int = 1) -> Tensor:
        """Return the scores of the tokens behind the last ones, (N, logits, V); what is masked is not seen.

        Args:
            ids: (N, T), which follow what is in the cache.
            mask: (N, cached + T), 0 at padding.
            cache: the tokens are added to it.
            logits: of how many tokens, from the end.
        """
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        kept = {"position_ids": positions, self.cache_name: cache}
        output = self.model(input_ids=ids, attention_mask=mask, logits_to_keep=logits, **kept)
        scores: Tensor = output.logits
        return scores


class LocalWriter:
    """A `CausalModel` that writes queries.

    The examples are read once, a passage once for all that is asked of it, and all of that is written side by side. The
    likeliest token is taken each time, so that the same model writes the same again.
    """

    batch = 8
    """Passages that are written for at a time."""

    def __init__(self, name: str) -> None:
        self.causal = CausalModel(name)
        self.told = f"{name} writes the queries on this machine"

    @property
    def identity(self) -> str:
        """What the queries depend on."""
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
    def _examples(self) -> tuple[DynamicCache, DynamicCache]:
        """The cache of the examples, which stand before every passage, and that of an empty passage."""
        from transformers import DynamicCache

        before, empty = DynamicCache(), DynamicCache()
        self.causal.forward(*self._padded([self._frame[0]]), before)
        self.causal.forward(*self._padded(["".join(self._frame)]), empty)
        return before, empty

    @torch.inference_mode()
    def write(self, texts: Sequence[str]) -> list[list[tuple[str, str]]]:
        """Return the kinds and texts of the queries for each of B passages."""
        tokenizer = self.causal.tokenizer
        before, empty = self._examples
        passages, there = self._padded([shown(text) + self._frame[1] for text in texts])  # (B, T)
        cache = copy.deepcopy(before)
        cache.batch_repeat_interleave(len(texts))
        mask = torch.cat([there.new_ones(len(texts), before.get_seq_length()), there], dim=1)
        self.causal.forward(passages, mask, cache)
        heads, asked = self._padded([head(*asked) for asked in HEADS])  # (H, T)
        cache.batch_repeat_interleave(len(HEADS))
        mask = mask.repeat_interleave(len(HEADS), dim=0)
        blind, blind_mask = copy.deepcopy(empty), mask.new_ones(len(mask), empty.get_seq_length())
        blind.batch_repeat_interleave(len(mask))
        ids, more = heads.repeat(len(texts), 1), asked.repeat(len(texts), 1)  # (B H, T)
        ends = {tokenizer.eos_token_id, *self.causal.ids("\n")[-1:]}
        written: list[list[int]] = [[] for _ in ids]
        rows = list(range(len(ids)))  # those that are still written, and some that have ended
        ended = set[int]()
        for _ in range(_NEW_TOKENS):
            mask, blind_mask = torch.cat([mask, more], dim=1), torch.cat([blind_mask, more], dim=1)
            seen, unseen = self.causal.forward(ids, mask, cache), self.causal.forward(ids, blind_mask, blind)
            chosen = surest(seen[:, -1], unseen[:, -1])
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
    seen, blind = seen.float().log_softmax(dim=1), blind.float().log_softmax(dim=1)
    scores = (1 + _CONTRAST) * seen - _CONTRAST * blind
    unlikely = seen < seen.amax(dim=1, keepdim=True) + math.log(_PLAUSIBLE)
    return scores.masked_fill(unlikely, -torch.inf).argmax(dim=1)
