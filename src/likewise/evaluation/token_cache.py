"""A cache of tokenized sentences that are encoded repeatedly during a run.

Letters of the shapes: S sentences, D embedding.
"""

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device

from likewise.inference.load_model import default_prompt
from likewise.inference.vectors import undisturbed

BATCH = 32
"""Sentences in a batch; another size changes the last bits of a score."""


class TokenCache:
    """A list of tokenized sentences, to be encoded repeatedly while the model changes.

    Repeats are encoded once; batches hold different sentences of near-equal length, and their tokens are kept, so that
    a call costs the forward passes only. The tokens are made again when the tokenizing module, its longest sequence or
    the model's prompt has changed. This is no `TextEncoder`: what is trained may be
    any encoder, also one that the fast path does not take, and its scores are compared to the bit, in batches of 32.
    """

    def __init__(self, sentences: Sequence[str]) -> None:
        unique = dict.fromkeys(sentences)
        # Longest first, so that a batch that does not fit in memory fails at once.
        self._unique = sorted(unique, key=len, reverse=True)
        place = {sentence: i for i, sentence in enumerate(self._unique)}
        self._rows = np.array([place[sentence] for sentence in sentences], dtype=np.int64)  # (S,)
        self._unique_rows = np.array([place[sentence] for sentence in unique], dtype=np.int64)
        self._batches: list[dict[str, Any]] = []
        self._tokenizer: weakref.ref[Any] | None = None
        self._setting: tuple[Any, ...] = ()

    def vectors(self, model: SentenceTransformer) -> tuple[np.ndarray, np.ndarray]:
        """Encode all sentences; the model's modes and the global random state are restored.

        Returns:
            The vectors of the sentences, (S, D) float32, and those of the different ones in order of first appearance.
        """
        self._tokenize(model)
        found = []
        with undisturbed(model), torch.inference_mode():
            for batch in self._batches:
                # A copy: modules put their outputs into the dict that they are given.
                output = model(batch_to_device(dict(batch), model.device))["sentence_embedding"]
                found.append(output[:, : model.truncate_dim].float().cpu())
        table = torch.cat(found).numpy()
        return table[self._rows], table[self._unique_rows]

    def _tokenize(self, model: SentenceTransformer) -> None:
        prompt = default_prompt(model) or None
        setting = (model.max_seq_length, prompt)
        if self._tokenizer is not None and self._tokenizer() is model[0] and self._setting == setting:
            return
        starts = range(0, len(self._unique), BATCH)
        self._batches = [model.preprocess(self._unique[start : start + BATCH], prompt=prompt) for start in starts]
        self._tokenizer, self._setting = weakref.ref(model[0]), setting
