"""Tokenization by the fast tokenizer alone: as sentence-transformers' `preprocess`, without padding.

Letters of the shapes: B sentences of a batch, T tokens.
"""

from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Transformer
from tokenizers import Tokenizer

from likewise.corpus.decoding import without_surrogates
from likewise.encoder.word_vectors import WordVectors
from likewise.inference.batches import padded

# Longer than any model reads: tokenizers without a limit say 1e30.
_NO_LIMIT = 1 << 24
_PIECE = 1024  # texts handed to the tokenizer at a time: its objects are far larger than the ids


class UnfitModel(ValueError):  # noqa: N818 - the reason, not a fault
    """Raised if the fast path does not support a model; sentence-transformers' own path is then used."""


class Tokens:
    """The tokenizer of a model as a function of texts.

    It is a copy: its padding and truncation are set once, and the model's own is not changed. Before it is used it is
    compared with the model's `preprocess` on texts that differ in every way that matters.
    """

    def __init__(self, model: SentenceTransformer) -> None:
        first = model[0]
        if not isinstance(first, (Transformer, WordVectors)):
            raise UnfitModel(f"its first module is {type(first).__name__}")
        if set(getattr(first, "modality_config", {"text": {}})) != {"text"}:
            raise UnfitModel("it reads more than texts")
        tokenizer: Any = first.tokenizer
        if not getattr(tokenizer, "is_fast", False):
            raise UnfitModel("its tokenizer is not a fast one")
        self.state = token_state(model)
        self._backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self.special = self._backend.encode_special_tokens = bool(tokenizer.split_special_tokens)
        self._backend.no_padding()
        self._backend.no_truncation()
        limit = model.max_seq_length
        if limit is not None and limit < _NO_LIMIT:
            self._backend.enable_truncation(int(limit), direction=tokenizer.truncation_side)
        self.pad = int(tokenizer.pad_token_id or 0)
        self.left = tokenizer.padding_side == "left"
        self._check(model, int(limit) if limit is not None and limit < _NO_LIMIT else 600)

    def __call__(self, texts: Sequence[str]) -> list[np.ndarray]:
        """Return the token ids of each text, (T,) int32, cut to the model's length."""
        found: list[np.ndarray] = []
        for start in range(0, len(texts), _PIECE):
            piece = self._backend.encode_batch_fast(
                [without_surrogates(text) for text in texts[start : start + _PIECE]]
            )
            found.extend(np.array(text.ids, dtype=np.int32) for text in piece)
        return found

    def batch(self, ids: Sequence[np.ndarray], at_least: int = 1) -> tuple[np.ndarray, np.ndarray]:
        """Return ids and mask of a batch, both (B, T) int64, with T the greatest length and `at_least`."""
        return padded(ids, self.pad, self.left, at_least)

    @property
    def json(self) -> str:
        """The tokenizer, including its truncation."""
        return str(self._backend.to_str())

    @property
    def hash(self) -> str:
        """A hash of all that the ids depend on."""
        return blake2b(f"{self.json} {self.special}".encode(), digest_size=16).hexdigest()

    def save(self, path: Path) -> None:
        """Write the tokenizer, including its truncation, as tokenizer.json."""
        self._backend.save(str(path))

    def _check(self, model: SentenceTransformer, limit: int) -> None:
        tokenizer: Any = model[0].tokenizer
        special = " ".join(str(token) for token in tokenizer.all_special_tokens)
        texts = ["", "A.", f"It isn't 3.5, a caf\u00e9; {special} X", "one of many words " * limit]
        wanted = model.preprocess(texts)
        if (extra := set(wanted) - {"input_ids", "attention_mask", "token_type_ids", "modality"}) or (
            "input_ids" not in wanted or "attention_mask" not in wanted
        ):
            raise UnfitModel(f"its preprocess gives other features ({', '.join(sorted(extra)) or 'no ids'})")
        if "token_type_ids" in wanted and bool(wanted["token_type_ids"].any()):
            raise UnfitModel("its tokens have types")
        ids, mask = self.batch(self(texts))
        same = wanted["input_ids"].shape == ids.shape and bool((wanted["attention_mask"].numpy() == mask).all())
        if not same or not bool((wanted["input_ids"].numpy() == ids)[mask == 1].all()):
            raise UnfitModel("its preprocess truncates texts in a custom way")


def token_state(model: SentenceTransformer) -> tuple[Any, ...]:
    """Return the state that the tokens depend on: if it changes, tokenize again."""
    tokenizer: Any = getattr(model[0], "tokenizer", None)
    return id(tokenizer), len(tokenizer) if tokenizer is not None else 0, model.max_seq_length
