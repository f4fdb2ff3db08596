"""Profiles: which contexts of a workspace each of its sentences fits, as a lesson for an encoder.

In a batch of B sentences, half of the B contexts are the best one of a sentence each, found as those of a pair are,
and half are any: some contexts are near, as in equation 4, and most are not. Not from the paper, which distils one
number for a pair.

Letters of the shapes: B sentences of a batch, C contexts of it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from likewise.context.selection import ContextFinder
from likewise.context.stage_options import HarvestOptions, SelectionOptions
from likewise.context.states import States
from likewise.context.surrogate_options import SurrogateOptions
from likewise.context.workspace import ContextError, Workspace
from likewise.corpus.lines_and_rows import digest_of
from likewise.recipes.recipe import Reading, TextCollator
from likewise.training.labelled_rows import LABEL

_NEAR = SelectionOptions(size=1, candidates=200)
_STAGES = ("index", "states", "discriminator")


class Profiles:
    """The sentences of a workspace, and how well they fit its contexts.

    Attributes:
        sentences: different ones of 4 to 40 words, as in a harvest.

    Args:
        work: the workspace's folder, with the stages index, states and discriminator.
        options: what is learnt, and the temperature.
        seed: fixes the contexts that are drawn.

    Raises:
        ContextError: a stage is missing or stale, or there is nothing to learn.
    """

    def __init__(self, work: str | os.PathLike[str], options: SurrogateOptions, seed: int) -> None:
        workspace = Workspace(os.fspath(work))
        self.stages = [workspace.require(name) for name in _STAGES]
        self.states, self.options, self.seed = States(workspace), options, seed
        if options.learns == "cosine-profiles" and not self.states.vectors.shape[1]:
            raise ContextError(
                f"{workspace.path / 'states'} keeps word pieces alone, which have no cosines: take learns=profiles, or "
                "make it with states.keep=tokens"
            )
        self.finder = ContextFinder.open(workspace.path, self.states)
        few, many = HarvestOptions().min_words, HarvestOptions().max_words
        texts = dict.fromkeys(self.states.store.texts())
        self.sentences = [text for text in texts if few <= len(text.split()) <= many]

    def __str__(self) -> str:
        return f"{len(self.sentences):,} sentences and {self.states.store.n_contexts:,} contexts"

    def record(self) -> dict[str, Any]:
        """Return the facts for the record of a run."""
        return {
            "sources": self.stages[0].record["sources"],
            "sentences": len(self.sentences),
            "unit": "sentences of a workspace",
            "sha256": digest_of(repr([stage.fingerprint for stage in self.stages])).hex(),
            "contexts": self.states.store.n_contexts,
        }

    def contexts(self, sentences: Sequence[str]) -> np.ndarray:
        """Return the contexts of a batch by number, int64 (C,), C at most B; they depend on seed and batch alone."""
        half = len(sentences) // 2
        digest = blake2b("\n".join(sentences).encode("utf-8", "surrogatepass"), digest_size=8).digest()
        rng = np.random.default_rng([self.seed, int.from_bytes(digest)])
        near = [self.finder.find(text, _NEAR) for text in sentences[:half]]
        drawn = rng.choice(self.states.store.n_contexts, len(sentences) - half)
        return np.unique(np.concatenate([*near, drawn]).astype(np.int64))

    def texts(self, contexts: np.ndarray) -> list[str]:
        """Return the text around the gap of each context, a sentence on either side."""
        return [" ".join(sides) for sides in zip(*self.states.store.side_texts(contexts, 1), strict=True)]

    def logits(self, sentences: Sequence[str], contexts: np.ndarray) -> Tensor:
        """Return the teacher's logits (B, C), whose softmax over the contexts is the profile of a sentence."""
        if self.options.learns == "profiles":
            ranker = self.finder.ranker
            return ranker.sentence_parts(self.states.read(sentences)) @ ranker.context_parts(contexts).T
        known = (torch.from_numpy(self.states.vectors_of(some)) for some in (sentences, self.texts(contexts)))
        one, other = (normalize(vectors.float(), dim=1) for vectors in known)
        return one @ other.T / self.options.temperature

    def batch(self, rows: list[dict[str, Any]]) -> dict[str, Any]:
        """Return the texts of a batch by column, and the teacher's logits."""
        sentences = [row["sentence"] for row in rows]
        contexts = self.contexts(sentences)
        return {
            "sentence": sentences,
            "context": self.texts(contexts),
            LABEL: self.logits(sentences, contexts),
        }

    def collator(self, encoder: Any) -> TextCollator:
        """Return the collator of an encoder."""
        return TextCollator(self.batch, Reading.prompted(encoder, self.options.max_length), {}, (LABEL,))
