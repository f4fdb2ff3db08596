"""A finished encoder that is trained further and stays what it was."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Normalize, WordWeights
from torch import nn

from likewise.encoder.modules import with_modules, without_training_head
from likewise.inference.loading import load


@dataclass(frozen=True)
class Continued:
    """A saved encoder that is trained further.

    Attributes:
        encoder: its modules, less a last one that scales vectors to length 1.
        scaled: whether there was such a last one; it comes back in what is saved.
    """

    encoder: SentenceTransformer
    scaled: bool

    @classmethod
    def load(cls, base: str) -> Continued:
        """Load what `likewise.load` takes.

        The vectors are trained at their own length: a classifier, or a margin of distances, says little to vectors
        that all have length 1. What was a choice of tokens and not learnt (the weights of a mask prompt) stays.
        """
        model = load(base)
        modules: list[Any] = list(model)
        scaled = len(modules) > 1 and isinstance(modules[-1], Normalize)
        for module in modules:
            if isinstance(module, WordWeights):
                module.requires_grad_(False)
        return cls(with_modules(model, modules[:-1] if scaled else modules), scaled)

    def with_training_only(self, modules: list[nn.Module]) -> SentenceTransformer:
        """Return the encoder to train, with modules that `export` takes out again."""
        return with_modules(self.encoder, [*self.encoder, *modules]) if modules else self.encoder

    def export(self, model: SentenceTransformer) -> SentenceTransformer:
        """Return the model to save: without what was for training alone, its vectors scaled again if they were."""
        bare = without_training_head(model)
        if not self.scaled:
            return bare
        modules: list[Any] = [*bare, Normalize()]
        return with_modules(bare, modules).eval()
