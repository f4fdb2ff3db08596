"""The collator, which turns corpus rows into the token tensors of a training batch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from torch import Tensor

from likewise.runs.options import OptionError

Views = Callable[[list[dict[str, Any]]], Mapping[str, Any]]


class Reading(NamedTuple):
    """The way in which the texts of a column are tokenised.

    Attributes:
        prompt: put before each text.
        unpooled: tokens of the prompt that the pooling leaves out; 0 where it takes them all.
    """

    tokenizer: Any
    length: int
    prompt: str = ""
    unpooled: int = 0

    @classmethod
    def of(cls, encoder: Any, length: int = 0) -> Reading:
        """Return an encoder's own, with its default prompt, of at most `length` tokens (0: all that it reads)."""
        prompt = encoder.prompts.get(encoder.default_prompt_name) or ""
        left_out = prompt and any(getattr(module, "include_prompt", True) is False for module in encoder)
        unpooled = encoder.preprocess([""], prompt=prompt)["prompt_length"] if left_out else 0
        return cls(encoder.tokenizer, tokens_read(encoder, length), prompt, unpooled)

    def tokens(self, texts: list[Any]) -> dict[str, Any]:
        """Tokenise texts, or take lists of token numbers, and pad them to the longest, (B, T)."""
        if isinstance(texts[0], str):
            texts = [self.prompt + text for text in texts]
            found = self.tokenizer(texts, padding=True, truncation=True, max_length=self.length, return_tensors="pt")
        else:
            found = self.tokenizer.pad({"input_ids": texts}, padding=True, return_tensors="pt")
        return {**found, "prompt_length": self.unpooled} if self.unpooled else found


@dataclass
class TextCollator:
    """A collator that makes the views of a batch and tokenises them.

    Args:
        views: rows to texts by column (or to lists of token numbers), and to tensors, which go into the batch as they
            are; an empty column is left out. The loss gets one set of features for each column, in this order.
        reading: how texts are tokenised.
        others: the columns that are tokenised in another way.
    """

    views: Views
    reading: Reading | None = None
    others: Mapping[str, Reading] = field(default_factory=dict)
    # Read by sentence-transformers' trainer; the corpus has no labels.
    valid_label_columns: tuple[str, ...] = ()

    def __call__(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Return {'<column>_input_ids': (rows, T), ...} for rows, padded to the longest text of each column."""
        batch: dict[str, Any] = {}
        for column, texts in self.views(rows).items():
            reading = self.others.get(column, self.reading)
            if isinstance(texts, Tensor) or reading is None:
                batch[column] = texts
            elif texts:
                found = reading.tokens(texts)
                batch |= {f"{column}_{name}": value for name, value in found.items()}
        return batch


def sentences_of(rows: list[dict[str, Any]]) -> dict[str, list[str]]:
    """Return the view of the unchanged sentences."""
    return {"sentence": [row["sentence"] for row in rows]}


def tokens_read(encoder: Any, wanted: int = 0) -> int:
    """Return the length to truncate to: `wanted`, limited to what the encoder reads; 0 is no limit."""
    most: int = encoder.max_seq_length or encoder.tokenizer.model_max_length
    return min(wanted or most, most)


def prompt_length(encoder: Any, max_length: int) -> tuple[int, int]:
    """Return the length to truncate to, including the prompt, and the length of the prompt."""
    length = tokens_read(encoder, max_length)
    taken = len(encoder.tokenizer("")["input_ids"])
    if length <= taken:
        raise OptionError(f"max_length {length} leaves no room: the template alone has {taken} tokens")
    return length, taken


def distillation_readings(encoder: Any, teacher: Any, max_length: int) -> tuple[Reading, Reading]:
    """Return the readings of an encoder and of its teacher, which sees the tokens that the encoder's prompt leaves."""
    length, taken = prompt_length(encoder, max_length)
    plain = Reading.of(teacher)
    room = length - taken + len(plain.tokenizer(plain.prompt)["input_ids"])
    return Reading.of(encoder, length), plain._replace(length=min(room, plain.length))
