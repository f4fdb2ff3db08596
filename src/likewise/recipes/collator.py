"""The collator of a batch: the views of its sentences, and how the texts of a column are tokenized."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from likewise.runs.options import OptionError
from likewise.runs.whole_files import Record, Values

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from transformers import PreTrainedTokenizerBase

Views = Callable[[list[Record]], Values]
Collator = Callable[[list[Record]], Record]


class Reading(NamedTuple):
    """The tokenization of the texts of a column.

    Attributes:
        tokenizer: Tokenizer of the encoder.
        length: Maximum number of tokens.
        prompt: Text before each text.
        unpooled: Number of tokens of the prompt that the pooling excludes.
    """

    tokenizer: PreTrainedTokenizerBase
    length: int
    prompt: str = ""
    unpooled: int = 0

    @classmethod
    def of(cls, encoder: Any, length: int = 0) -> Reading:
        """Return the reading of an encoder with its default prompt and at most `length` tokens (0: its maximum)."""
        prompt = encoder.prompts.get(encoder.default_prompt_name) or ""
        left_out = prompt and any(getattr(module, "include_prompt", True) is False for module in encoder)
        unpooled = encoder.preprocess([""], prompt=prompt)["prompt_length"] if left_out else 0
        most = encoder.max_seq_length or encoder.tokenizer.model_max_length
        return cls(encoder.tokenizer, min(length or most, most), prompt, unpooled)

    @classmethod
    def prompted(cls, encoder: SentenceTransformer, length: int, template: str = "") -> Reading:
        """Return the reading of an encoder with at most `length` tokens, including its prompt, which must be shorter.

        Args:
            template: Template of a prompt that replaces the encoder's prompt.
        """
        own = cls.of(encoder, length)
        if template:
            from likewise.encoder.build import prompt_tokenizer

            own = own._replace(tokenizer=prompt_tokenizer(own.tokenizer, template))
        if own.length <= own.taken:
            raise OptionError(f"max_length {own.length} is too small: the template alone has {own.taken} tokens")
        return own

    @property
    def taken(self) -> int:
        """The number of tokens of an empty text: the prompt and the special tokens."""
        return len(self.tokenizer(self.prompt)["input_ids"])

    def tokens(self, texts: list[Any]) -> Record:
        """Tokenize texts, or accept lists of token ids, and pad them to the longest text, (B, T)."""
        if isinstance(texts[0], str):
            texts = [self.prompt + text for text in texts]
            tokens = self.tokenizer(texts, padding=True, truncation=True, max_length=self.length, return_tensors="pt")
        else:
            tokens = self.tokenizer.pad({"input_ids": texts}, padding=True, return_tensors="pt")
        return {**tokens, "prompt_length": self.unpooled} if self.unpooled else tokens


@dataclass
class TextCollator:
    """A collator that creates the views of a batch and tokenizes them.

    Args:
        views: Function from rows to texts by column (or to lists of token ids), and to tensors, which are added to the
            batch unchanged; an empty column is skipped. The loss receives one set of features for each column, in this
            order.
        reading: Reading by which texts are tokenized.
        others: Readings of the columns that are tokenized differently.
        recipe: Name of the recipe in error messages.
        alike: Whether all columns of texts must have the same number of texts.
    """

    views: Views
    reading: Reading | None = None
    others: Mapping[str, Reading] = field(default_factory=dict)
    # Read by sentence-transformers' trainer; the corpus has no labels.
    valid_label_columns: tuple[str, ...] = ()
    recipe: str = ""
    alike: bool = False

    def __call__(self, rows: list[Record]) -> Record:
        """Return {'<column>_input_ids': (rows, T), ...} for rows, padded to the longest text of each column.

        Raises:
            OptionError: `views` reads a field that a row does not have, or its columns have unlike lengths.
        """
        from torch import Tensor

        batch: Record = {}
        for column, texts in self._columns(rows).items():
            reading = self.others.get(column, self.reading)
            if isinstance(texts, Tensor) or reading is None:
                batch[column] = texts
            elif texts:
                batch |= {f"{column}_{name}": value for name, value in reading.tokens(texts).items()}
        return batch

    def _columns(self, rows: list[Record]) -> Values:
        named = f"views of the recipe {self.recipe}" if self.recipe else "views"
        try:
            columns = self.views(rows)
        except KeyError as error:
            name = error.args[0] if error.args else ""
            place = next((place for place, row in enumerate(rows) if name not in row), None)
            if place is None:  # of something else than a row
                raise
            row = rows[place]
            raise OptionError(
                f"{named}: there is no field {name!r} in row {place + 1} of the batch, {row.get('sentence', '')!r}: a "
                f"row has {', '.join(row)}; a stage of the recipe can add fields"
            ) from error
        lengths = {name: len(texts) for name, texts in columns.items() if isinstance(texts, list) and texts}
        if self.alike and len(set(lengths.values())) > 1:
            said = ", ".join(f"{number} in {name!r}" for name, number in lengths.items())
            raise OptionError(
                f"{named}: the columns have different numbers of texts, {said}, for {len(rows)} rows: give each "
                f"column one text per row, or a build_collator instead of views"
            )
        return columns


def distillation_readings(
    encoder: SentenceTransformer, teacher: SentenceTransformer, max_length: int
) -> tuple[Reading, Reading]:
    """Return the readings of an encoder and of its teacher, which reads as many tokens without the prompt."""
    own, plain = Reading.prompted(encoder, max_length), Reading.of(teacher)
    return own, plain._replace(length=min(own.length - own.taken + plain.taken, plain.length))
