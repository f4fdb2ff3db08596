"""A causal language model on this machine, whose next tokens are scored.

Letters of the shapes: N rows, T tokens, V words of the vocabulary.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from likewise import processor
from likewise.data.bundled import resolve_model
from likewise.encoder.location import LoadError
from likewise.errors import first_line, limit_of
from likewise.transformers_output import no_bar, only_errors

if TYPE_CHECKING:
    from transformers import DynamicCache, PreTrainedModel


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
                f"'{name}' is not a language model: give a folder with config.json that transformers has saved"
            )

    @property
    def identity(self) -> str:
        """The name, and the sizes and times of the files of a folder, which identify the model."""
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
            if limit := limit_of(error):
                raise LoadError(f"'{self.name}' cannot be loaded: {limit}") from None
            raise LoadError(
                f"'{self.name}' cannot be loaded as a causal language model ({first_line(error)}). Give a folder or "
                f"hub name that AutoModelForCausalLM of transformers loads, or bundled:smollm2"
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
        """Return the logits of the next tokens, (N, logits, V); masked tokens are ignored.

        Args:
            ids: (N, T), which follow what is in the cache.
            mask: (N, cached + T), 0 at padding.
            cache: Cache to which the tokens are added.
            logits: Number of tokens, from the end, whose logits are returned.
        """
        positions = (mask.cumsum(dim=1) - 1).clamp(min=0)[:, -ids.shape[1] :]
        arguments = {"position_ids": positions, self.cache_name: cache}
        output = self.model(input_ids=ids, attention_mask=mask, logits_to_keep=logits, **arguments)
        scores: Tensor = output.logits
        return scores
