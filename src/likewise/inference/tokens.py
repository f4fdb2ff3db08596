"""Texts as token ids, and ids as padded batches of about the same work. Nothing here imports torch.

Letters of the shapes: S sentences, B sentences of a batch, T tokens.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from likewise.corpus.clean_text import digest_of, without_surrogates
from likewise.corpus.words import with_blanks
from likewise.encoder.location import Role

if TYPE_CHECKING:
    from tokenizers import Tokenizer

Step = Callable[[int], object]
"""A function that is called with the number of texts done."""
FEW = 256
"""The number of texts from which 'auto' opens an export, which takes about as long as encoding them by torch."""
WASTE = 64
"""Tokens of padding at which a new batch is cheaper: the fixed cost of a call in tokens (see benchmarks)."""
SENTENCES = [
    f"{opening} {verb} {ending}"
    for opening in ("The old man", "A report of the committee", "It", "Nobody in the town")
    for verb in ("said that", "did not know", "has found out, after a long search,", "wrote")
    for ending in ("it was late.", "what the cells of the plant need to grow.", "prices rose by 3.5% in May.")
]
"""Sentences on which an engine is compared with torch if there are no texts of the user's own."""
_PIECE = 1024  # texts handed to the tokenizer at a time: its objects are far larger than the ids


class TextSide(NamedTuple):
    """The side of a search that texts are on: the prompt that a model puts before them, and its route for them."""

    prompt: str = ""
    task: Role | None = None


PLAIN = TextSide()
"""The side of texts that are put as they are."""


class WholeText(NamedTuple):
    """A text for sentence-transformers' own `encode`."""

    text: str
    side: TextSide


class WholeTexts:
    """The replacement of `Tokens` for a model with its own preprocessing."""

    def items(self, texts: Sequence[str], side: TextSide) -> list[WholeText]:
        """Return texts with the side that they are on."""
        return [WholeText(text, side) for text in texts]

    def length(self, item: WholeText) -> int:
        """Return about how many tokens a text has: four characters each."""
        return 1 + len(item.text) // 4

    def batch(self, items: Sequence[WholeText], at_least: int = 1) -> tuple[Sequence[WholeText], np.ndarray]:
        """Return the texts unchanged."""
        return items, np.ones((len(items), 1), dtype=np.int64)


class Tokens:
    """A tokenizer, which truncates to a model's length, as a function of texts.

    Args:
        tokenizer: Tokenizer without padding.
        pad: Id that fills the rows of a batch.
        left: Whether to fill them on the left.
        by_words: Whether texts without blanks are first divided into words, as `WordVectors` does.
    """

    def __init__(self, tokenizer: Tokenizer, pad: int, left: bool, by_words: bool = False) -> None:
        self._tokenizer, self.pad, self.left, self.by_words = tokenizer, pad, left, by_words
        self.special = bool(tokenizer.encode_special_tokens)  # those in a text are split as any other words

    def __call__(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the token ids of each text, (T,) int32, cut to the model's length."""
        ids: list[np.ndarray] = []
        for start in range(0, len(texts), _PIECE):
            piece = [without_surrogates(text) for text in texts[start : start + _PIECE]]
            if self.by_words:
                piece = list(map(with_blanks, piece))
            ids.extend(np.array(text.ids, dtype=np.int32) for text in self._tokenizer.encode_batch_fast(piece))
        return ids

    def items(self, texts: Sequence[str], side: TextSide) -> list[np.ndarray]:
        """Return the token ids of texts after the prompt of a side."""
        return self([side.prompt + text for text in texts] if side.prompt else texts)

    def length(self, item: np.ndarray) -> int:
        """Return the number of tokens of a text."""
        return len(item)

    def batch(self, ids: Sequence[np.ndarray], at_least: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return ids and mask of a batch, both (B, T) int64, with T the greatest length and `at_least`."""
        longest = max(at_least, *(len(row) for row in ids))
        filled = np.full((len(ids), longest), self.pad, dtype=np.int64)
        mask = np.zeros((len(ids), longest), dtype=np.int64)
        for i, row in enumerate(ids):
            where = slice(longest - len(row), None) if self.left else slice(0, len(row))
            filled[i, where], mask[i, where] = row, 1
        return filled, mask

    @property
    def json(self) -> str:
        """The tokenizer, including its truncation."""
        return str(self._tokenizer.to_str())

    @property
    def hash(self) -> str:
        """A hash of all that the ids depend on."""
        return digest_of(f"{self.json} {self.special}{' by words' if self.by_words else ''}").hex()


def by_budget(lengths: np.ndarray, budget: int, at_most: int | None = None) -> list[np.ndarray]:
    """Group sentences into batches, the longest first.

    A batch has at most `budget` cells (sentences times its longest), or one sentence; and less than `WASTE` of them
    are padding.

    Args:
        lengths: Number of tokens of each sentence, (S,).
        budget: Maximum number of cells of a batch.
        at_most: Maximum number of sentences of a batch, if it is limited, too.

    Returns:
        The positions of each batch's sentences; each position is in exactly one.

    >>> [batch.tolist() for batch in by_budget(np.array([3, 9, 3, 8]), budget=18)]
    [[1, 3], [0, 2]]
    """
    order = np.argsort(-lengths, kind="stable")
    batches: list[np.ndarray] = []
    start, waste = 0, 0
    for end in range(1, len(order) + 1):
        if end < len(order):
            longest = max(1, int(lengths[order[start]]))
            waste += longest - int(lengths[order[end]])
            size = end - start + 1
            if size * longest <= budget and waste < WASTE and (at_most is None or size <= at_most):
                continue
        batches.append(order[start:end])
        start, waste = end, 0
    return batches
