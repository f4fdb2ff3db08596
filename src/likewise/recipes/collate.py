"""From corpus rows to the token tensors of a training batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

Views = Callable[[list[dict[str, Any]]], Mapping[str, list[str]]]


@dataclass
class TextCollator:
    """Makes the views of a batch and tokenises them.

    Args:
        tokenizer: a Hugging Face tokenizer.
        views: rows to texts by column name; a column without texts is left out of the batch. The trainer hands
            the loss one set of features for each column, in this order.
        max_lengths: tokens kept, by column.
    """

    tokenizer: Any
    views: Views
    max_lengths: Mapping[str, int]
    # Read by sentence-transformers' trainer; the corpus has no labels.
    valid_label_columns: tuple[str, ...] = ()

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Rows to {'<column>_input_ids': (rows, T), ...}, padded to the longest text of each column."""
        batch: dict[str, Any] = {}
        for column, texts in self.views(rows).items():
            if not texts:
                continue
            tokens = self.tokenizer(
                texts, padding=True, truncation=True, max_length=self.max_lengths[column], return_tensors="pt"
            )
            batch |= {f"{column}_{name}": value for name, value in tokens.items()}
        return batch
