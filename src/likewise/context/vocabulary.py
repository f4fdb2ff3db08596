"""The sub-word vocabulary that discriminator, generators and n-gram models share."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer

from likewise.context.workspace import ContextError
from likewise.runs.whole_files import write_text

ROLES = ("pad", "bos", "eos", "sep", "centre", "left", "right")
"""The special tokens by what they are for; the first is id 0, and so on."""

_FILE = "tokenizer.json"
_BATCH = 10_000


class Vocabulary:
    """Sub-words and their ids.

    It is byte-level BPE, so every text has sub-words and none is unknown: probabilities of
    models that share it can be compared. Its ids fall with frequency in the text it was made from, as adaptive
    softmax wants them.

    Attributes:
        tokenizer: the `tokenizers` object.
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
        """Make a vocabulary of `size` ids from text.

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
        """Return the vocabulary that was saved in a folder.

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
        """Write it into a folder, which is made where it is missing."""
        Path(folder).mkdir(parents=True, exist_ok=True)
        write_text(Path(folder) / _FILE, self.tokenizer.to_str())

    def __len__(self) -> int:
        return self.tokenizer.get_vocab_size()

    @property
    def fingerprint(self) -> str:
        """Equal for equal sub-words and ids: models fit the vocabulary they were trained with alone."""
        text = json.dumps(sorted(self.tokenizer.get_vocab().items()))
        return blake2b(text.encode(), digest_size=8).hexdigest()

    def encode_batch(self, sentences: list[str], most: int | None = None) -> list[list[int]]:
        """Return the ids of each sentence, or its first `most`, without special tokens."""
        return [found.ids[:most] for found in self.tokenizer.encode_batch_fast(sentences, add_special_tokens=False)]

    def decode(self, ids: list[int]) -> str:
        """Return the text of ids, without special tokens."""
        return str(self.tokenizer.decode(ids)).strip()


def _by_frequency(tokenizer: Any, sentences: list[str]) -> Tokenizer:
    """Return the tokenizer with ids that fall with frequency; those of special tokens stay."""
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
