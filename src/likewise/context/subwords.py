"""The input of the models: the sub-word vocabulary, and pieces of sub-words with their positions.

Letters of the shapes: B texts, T tokens.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import torch
from tokenizers import Tokenizer
from torch import Tensor

from likewise.context.chunks import Chunk
from likewise.context.workspace import ContextError
from likewise.runs.whole_files import write_text

ROLES = ("pad", "bos", "eos", "sep", "centre", "left", "right")
"""The special tokens by what they are for; the first is id 0, and so on."""

_FILE = "tokenizer.json"
_BATCH = 10_000


class Vocabulary:
    """The vocabulary: sub-words and their ids.

    It is byte-level BPE, so every text has sub-words and none is unknown: probabilities of
    models that share it can be compared. Its ids fall with frequency in the text it was made from, as adaptive
    softmax wants them.

    Attributes:
        pad, bos, eos, sep: padding, the start and the end of a text, and what stands between two sentences.
        tasks: the start token of each task: "centre", "left", "right" (which sentence of a context is generated).
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer
        # A literal "[SEP]" in somebody's text is text.
        self.tokenizer.encode_special_tokens = True
        self.pad, self.bos, self.eos, self.sep = range(4)
        self.tasks = {name: ROLES.index(name) for name in ROLES[4:]}

    @classmethod
    def train(cls, sentences: Iterable[str], size: int, *, lowercase: bool = True) -> Vocabulary:
        """Train a vocabulary of `size` ids on text.

        Args:
            sentences: read once to learn, and once more to count: a list, or an object that can be read again.
            size: ids in all: the special tokens, 256 bytes, and merges.
            lowercase: read all text in small letters.

        Raises:
            ContextError: `size` leaves no room for a merge, or there is no text.
        """
        from tokenizers import decoders, models, normalizers, pre_tokenizers, trainers

        if size < 300:
            raise ContextError(f"a vocabulary has 300 sub-words or more (256 of them are the bytes), not {size}")
        kept = sentences if isinstance(sentences, list) else list(sentences)
        if not any(kept):
            raise ContextError("no text to make a vocabulary from: give a corpus with sentences")
        tokenizer: Any = Tokenizer(models.BPE())
        steps = [normalizers.NFC(), *([normalizers.Lowercase()] if lowercase else [])]
        tokenizer.normalizer = normalizers.Sequence(steps)
        # The blank before the first word makes a word the same at the start of a sentence as inside.
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
        tokenizer.decoder = decoders.ByteLevel()
        trainer = trainers.BpeTrainer(
            vocab_size=size,
            special_tokens=[f"[{name.upper()}]" for name in ROLES],
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train_from_iterator(kept, trainer)
        return cls(_by_frequency(tokenizer, kept))

    @classmethod
    def load(cls, folder: str | Path) -> Vocabulary:
        """Load the vocabulary that was saved in a folder.

        Raises:
            ContextError: there is none, or it is damaged.
        """
        path = Path(folder) / _FILE
        if not path.is_file():
            raise ContextError(f"there is no vocabulary in '{folder}': train it first")
        try:
            return cls(Tokenizer.from_file(str(path)))
        except Exception as error:  # tokenizers raises a bare Exception
            raise ContextError(f"'{path}' cannot be read ({error}): train the vocabulary again") from None

    def save(self, folder: str | Path) -> None:
        """Save the vocabulary in a folder, which is created if needed."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        write_text(Path(folder) / _FILE, self.tokenizer.to_str())

    def __len__(self) -> int:
        return self.tokenizer.get_vocab_size()

    @property
    def fingerprint(self) -> str:
        """The fingerprint, equal for equal sub-words and ids: a model needs the vocabulary of its training."""
        text = json.dumps(sorted(self.tokenizer.get_vocab().items()))
        return blake2b(text.encode(), digest_size=8).hexdigest()

    def encode_batch(self, sentences: list[str], most: int | None = None) -> list[list[int]]:
        """Return the first `most` ids of each sentence, or all, without special tokens."""
        return [found.ids[:most] for found in self.tokenizer.encode_batch_fast(sentences, add_special_tokens=False)]


def _by_frequency(tokenizer: Any, sentences: list[str]) -> Tokenizer:
    """Return the tokenizer with ids sorted by falling frequency, after those of the special tokens."""
    counts: Counter[int] = Counter()
    for start in range(0, len(sentences), _BATCH):
        for found in tokenizer.encode_batch_fast(sentences[start : start + _BATCH], add_special_tokens=False):
            counts.update(found.ids)
    content = json.loads(tokenizer.to_str())
    vocabulary: dict[str, int] = content["model"]["vocab"]
    ours = sorted((i for i in vocabulary.values() if i >= len(ROLES)), key=lambda i: (-counts[i], i))
    new = {old: len(ROLES) + rank for rank, old in enumerate(ours)}
    content["model"]["vocab"] = {token: new.get(i, i) for token, i in vocabulary.items()}
    return Tokenizer.from_str(json.dumps(content))


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
        """All sentences of the example, in order."""
        return (*self.left, self.centre, *self.right)


@dataclass(frozen=True)
class Piece:
    """The sub-words of one side of a context, or of a sentence.

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


ExamplePieces = dict[Task, Piece]
"""An example in pieces."""


def examples_of(chunks: Iterable[Chunk], left: int = 1, right: int = 1) -> Iterable[Example]:
    """Yield every sentence with neighbours on both sides in its chunk, and up to `left` and `right` of them."""
    for chunk in chunks:
        for i in range(1, len(chunk.sentences) - 1):
            before, after = chunk.sentences[max(0, i - left) : i], chunk.sentences[i + 1 : i + 1 + right]
            yield Example(before, chunk.sentences[i], after, chunk.document)


class Cutter:
    """A converter of texts to pieces, which encodes each distinct sentence once per call.

    Args:
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
    """A batch of pieces, each (B, T): ids, token positions, sentence positions, and a mask of real tokens."""

    ids: Tensor
    tokens: Tensor
    sentences: Tensor
    mask: Tensor

    def to(self, device: torch.device | str) -> Padded:
        """Move the batch to a device."""
        return Padded(*(part.to(device) for part in (self.ids, self.tokens, self.sentences, self.mask)))


def pad(pieces: Sequence[Piece], padding: int) -> Padded:
    """Pad pieces to the longest and return them as a batch."""
    longest = max(len(piece) for piece in pieces)
    rows = torch.zeros(3, len(pieces), longest, dtype=torch.long)
    rows[0] = padding
    mask = torch.zeros(len(pieces), longest, dtype=torch.bool)
    for i, piece in enumerate(pieces):
        n = len(piece)
        rows[:, i, :n] = torch.tensor([piece.ids, piece.tokens, piece.sentences])
        mask[i, :n] = True
    return Padded(rows[0], rows[1], rows[2], mask)
