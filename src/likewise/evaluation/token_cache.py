"""A cache of tokenized sentences that are encoded repeatedly during a run.

Letters of the shapes: S sentences, D embedding.
"""

import weakref
from collections.abc import Sequence
from itertools import groupby

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device

from likewise.encoder.location import Role
from likewise.encoder.modules import Features, undisturbed
from likewise.encoder.settings import ModelSettings

BATCH = 32
"""Sentences in a batch; another size changes the last bits of a score."""


class TokenCache:
    """A list of tokenized sentences, to be encoded repeatedly while the model changes.

    Repeats are encoded once; batches hold different sentences of near-equal length, and their tokens are kept, so that
    a call costs the forward passes only. The tokens are made again when the tokenizing module, its longest sequence or
    the model's prompt has changed. This is no `TextEncoder`: what is trained may be
    any encoder, also one that the fast path does not take, and its scores are compared to the bit, in batches of 32.

    Args:
        sentences: S texts.
        roles: of each, for a model that encodes queries and documents in different ways; () for no roles.
    """

    def __init__(self, sentences: Sequence[str], roles: Sequence[Role] = ()) -> None:
        self._sentences, self._roles = sentences, roles
        self._batches: list[tuple[str | None, Features]] = []  # of a route each
        self._tokenizer: weakref.ref[object] | None = None
        self._setting: tuple[object, ...] = ()

    def vectors(self, model: SentenceTransformer) -> tuple[np.ndarray, np.ndarray]:
        """Encode all sentences; the model's modes and the global random state are restored.

        Returns:
            The vectors of the sentences, (S, D) float32, and those of the different ones in order of first appearance.
        """
        self._tokenize(model)
        encoded = []
        with undisturbed(model), torch.inference_mode():
            for task, batch in self._batches:
                # A copy: modules put their outputs into the dict that they are given.
                features = batch_to_device(dict(batch), model.device)
                output = (model(features, task=task) if task else model(features))["sentence_embedding"]
                encoded.append(output[:, : model.truncate_dim].float().cpu())
        table = torch.cat(encoded).numpy()
        return table[self._rows], table[self._unique_rows]

    def _tokenize(self, model: SentenceTransformer) -> None:
        settings = ModelSettings.of(model)
        setting = (model.max_seq_length, settings.prompts, settings.default_prompt)
        if self._tokenizer is not None and self._tokenizer() is model[0] and self._setting == setting:
            return
        roles: Sequence[Role | None] = (
            self._roles if self._roles and settings.has_sides else [None] * len(self._sentences)
        )
        texts = list(zip(roles, self._sentences, strict=True))
        # Longest first, so that a batch that does not fit in memory fails at once.
        unique = sorted(dict.fromkeys(texts), key=lambda text: (text[0] or "", -len(text[1])))
        place = {text: i for i, text in enumerate(unique)}
        self._rows = np.array([place[text] for text in texts], dtype=np.int64)  # (S,)
        self._unique_rows = np.array([place[text] for text in dict.fromkeys(texts)], dtype=np.int64)
        self._batches = []
        for role, group in groupby(unique, key=lambda text: text[0]):
            same = [sentence for _, sentence in group]
            prompt, task = settings.prompt(role), settings.task(role)
            routed = {"task": task} if task else {}
            for start in range(0, len(same), BATCH):
                tokens = model.preprocess(same[start : start + BATCH], prompt=prompt or None, **routed)
                self._batches.append((task, tokens))
        self._tokenizer, self._setting = weakref.ref(model[0]), setting
