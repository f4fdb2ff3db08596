"""Text as the generators read it: sub-words with their place in the sentence and the sentence's place in the text.

Letters of the shapes: B texts, T tokens.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from likewise.context.chunks import Chunk
from likewise.context.vocabulary import Vocabulary

Task = Literal["centre", "left", "right"]
TASKS: tuple[Task, ...] = ("centre", "left", "right")
"""The tasks: to generate the sentence, the left or the right context, from the other two."""

SOURCES: dict[Task, tuple[Task, Task]] = {
    "centre": ("left", "right"),
    "left": ("centre", "right"),
    "right": ("left", "centre"),
}
"""The texts that each task reads, in their order."""


@dataclass(frozen=True)
class Example:
    """A sentence in its context, and the number of its document."""

    left: tuple[str, ...]
    centre: str
    right: tuple[str, ...]
    document: int = 0

    @property
    def texts(self) -> tuple[str, ...]:
        """All its sentences, in order."""
        return (*self.left, self.centre, *self.right)


@dataclass(frozen=True)
class Piece:
    """One side of a context, or a sentence.

    Attributes:
        ids: its sub-words, a separator between two sentences, and the end token: never empty.
        tokens: each one's place in its sentence, from 0.
        sentences: the place of each one's sentence in the text: the centre is 0, what stands left of it is negative.
    """

    ids: tuple[int, ...]
    tokens: tuple[int, ...]
    sentences: tuple[int, ...]

    def __len__(self) -> int:
        return len(self.ids)

    def __add__(self, other: Piece) -> Piece:
        return Piece(self.ids + other.ids, self.tokens + other.tokens, self.sentences + other.sentences)


ExamplePieces = dict[Task, Piece]
"""An example in pieces."""


def examples_of(chunks: Iterable[Chunk], left: int = 1, right: int = 1) -> Iterable[Example]:
    """Yield every sentence of the chunks that has a neighbour on both sides, with up to `left` and `right` of them."""
    for chunk in chunks:
        for i in range(1, len(chunk.sentences) - 1):
            before, after = chunk.sentences[max(0, i - left) : i], chunk.sentences[i + 1 : i + 1 + right]
            yield Example(before, chunk.sentences[i], after, chunk.document)


class Cutter:
    """Turns texts into pieces, each different sentence encoded once a call.

    Args:
        vocabulary: whose ids.
        max_tokens: a sentence is cut off after this many sub-words.
        max_sentences: a side keeps this many sentences, those nearest to the centre.
    """

    def __init__(self, vocabulary: Vocabulary, max_tokens: int, max_sentences: int) -> None:
        self.vocabulary = vocabulary
        self.max_tokens = max_tokens
        self.max_sentences = max_sentences

    def sentences(self, texts: Sequence[str]) -> list[Piece]:
        """Return a piece for each centre."""
        return [self._piece([ids], 0) for ids in self._encode(texts)]

    def sides(self, texts: Sequence[Sequence[str]], side: Literal["left", "right"]) -> list[Piece]:
        """Return a piece for each left or right context."""
        kept = [text[-self.max_sentences :] if side == "left" else text[: self.max_sentences] for text in texts]
        known = {sentence: i for i, sentence in enumerate(dict.fromkeys(s for text in kept for s in text))}
        ids = self._encode(list(known))
        return [self._piece([ids[known[s]] for s in text], -len(text) if side == "left" else 1) for text in kept]

    def examples(self, examples: Sequence[Example]) -> list[ExamplePieces]:
        """Return all three pieces of each example."""
        left = self.sides([example.left for example in examples], "left")
        centre = self.sentences([example.centre for example in examples])
        right = self.sides([example.right for example in examples], "right")
        return [{"left": a, "centre": b, "right": c} for a, b, c in zip(left, centre, right, strict=True)]

    def _encode(self, texts: Sequence[str]) -> list[list[int]]:
        return self.vocabulary.encode_batch(list(texts), self.max_tokens)

    def _piece(self, sentences: Sequence[list[int]], first: int) -> Piece:
        ids: list[int] = []
        tokens: list[int] = []
        places: list[int] = []
        for i, sentence in enumerate(sentences):
            last = i == len(sentences) - 1
            ids += [*sentence, self.vocabulary.eos if last else self.vocabulary.sep]
            tokens += range(len(sentence) + 1)
            places += [first + i] * (len(sentence) + 1)
        if not sentences:  # the edge of a document: the end token alone
            ids, tokens, places = [self.vocabulary.eos], [0], [first]
        return Piece(tuple(ids), tuple(tokens), tuple(places))


@dataclass(frozen=True)
class Padded:
    """Pieces of a batch, each (B, T): ids, places in the sentence, places of the sentence, and True at real tokens."""

    ids: Tensor
    tokens: Tensor
    sentences: Tensor
    mask: Tensor

    @property
    def counts(self) -> Tensor:
        """The tokens of each piece: (B,)."""
        return self.mask.sum(1)

    def to(self, device: torch.device | str) -> Padded:
        """Return the same on a device."""
        return Padded(*(part.to(device) for part in (self.ids, self.tokens, self.sentences, self.mask)))


def pad(pieces: Sequence[Piece], padding: int) -> Padded:
    """Return a batch of pieces, as wide as the longest."""
    longest = max(len(piece) for piece in pieces)
    rows = torch.zeros(3, len(pieces), longest, dtype=torch.long)
    rows[0] = padding
    mask = torch.zeros(len(pieces), longest, dtype=torch.bool)
    for i, piece in enumerate(pieces):
        n = len(piece)
        rows[:, i, :n] = torch.tensor([piece.ids, piece.tokens, piece.sentences])
        mask[i, :n] = True
    return Padded(rows[0], rows[1], rows[2], mask)
