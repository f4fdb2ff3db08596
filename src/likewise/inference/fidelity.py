"""The fidelity of an engine's vectors to the model in float32, measured on a sample of the texts.

Letters of the shapes: S sentences, D embedding.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from sentence_transformers import SentenceTransformer
from torch import nn

from likewise.errors import counted
from likewise.inference.engines.engine import Engine, TorchEngine
from likewise.inference.engines.store import MAX_DIFFERENCE
from likewise.inference.model_tokens import tokens_of
from likewise.inference.text_encoder import TextEncoder, float32

MIN_COSINE = 0.99
MIN_RANK = 0.985
"""What a lower precision must reach (docs/reference/defaults.md: where STS-B moved by less than 0.1)."""

MIN_CLOSE = 0.999
"""The lowest cosine of a text's two vectors that 'close' allows."""

ENOUGH = 32
"""Fewer sentences say nothing of ranks: with 6 pairs a correlation of 0.94 is one swap."""

SIZE = 128
"""Sentences of a sample: 8,128 pairs for the rank correlation, a second or two of float32 for a small model."""


@dataclass(frozen=True)
class Fidelity:
    """The comparison of two sets of vectors of the same sentences."""

    cosine: float
    """Mean cosine of a sentence's two vectors."""
    lowest: float
    """The lowest of these."""
    rank: float
    """Spearman correlation of the cosines of all pairs of sentences; 1.0 where there are fewer than `ENOUGH`."""
    difference: float
    """Largest difference of two numbers, relative to the length of the vector."""
    sentences: int

    @property
    def same(self) -> bool:
        """True if they are the same up to rounding."""
        return self.difference <= MAX_DIFFERENCE

    @property
    def near(self) -> bool:
        """True if they are near enough for a lower precision."""
        return self.cosine >= MIN_COSINE and self.rank >= MIN_RANK

    @property
    def close(self) -> bool:
        """True if no vector is farther from the one in float32 than 'close' allows."""
        return self.lowest >= MIN_CLOSE

    def __str__(self) -> str:
        rank = f"rank correlation of pair similarities {self.rank:.4f}, " if self.sentences >= ENOUGH else ""
        cosines = f"mean cosine {self.cosine:.4f} (lowest {self.lowest:.4f}), "
        return f"{cosines}{rank}{counted(self.sentences, 'sentence')}"


def sample_of(texts: Sequence[str], size: int = SIZE) -> list[str]:
    """Return up to `size` evenly spaced ones of the different texts."""
    unique = list(dict.fromkeys(texts))
    places = np.linspace(0, len(unique) - 1, num=min(size, len(unique))).round().astype(int)
    return [unique[place] for place in dict.fromkeys(places.tolist())]


class Sample:
    """The sample of texts, and their vectors in float32 by torch."""

    def __init__(self, model: SentenceTransformer, texts: Sequence[str]) -> None:
        self.model, self.tokens, self.texts = model, tokens_of(model), sample_of(texts)

    @cached_property
    def reference(self) -> np.ndarray:
        """The vectors in float32 by torch, (S, D)."""
        return self._vectors(TorchEngine(self.model))

    def fidelity(self, engine: Engine) -> Fidelity:
        """Compare an engine's vectors with the reference."""
        return compare(self._vectors(engine), self.reference)

    def operations(self, total: int) -> float:
        """Return the approximate number of operations for `total` such texts: 2 x weights x tokens."""
        parts = [module for module in self.model.modules() if isinstance(module, (nn.Linear, nn.Conv1d))]
        tokens = sum(map(len, self.tokens(self.texts))) / len(self.texts)
        return 2.0 * sum(part.weight.numel() for part in parts) * tokens * total

    def batches(self, at_least: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return ids and mask of each text as a separate batch, for the calibration of int8."""
        return [self.tokens.batch([ids], at_least) for ids in self.tokens(self.texts)]

    def _vectors(self, engine: Engine) -> np.ndarray:
        return float32(TextEncoder(self.tokens, engine).rows(self.texts))


def compare(found: np.ndarray, wanted: np.ndarray) -> Fidelity:
    """Compare vectors with the ones in float32.

    Args:
        found, wanted: (S, D) each, S of 1 or more; a row that is zero in both counts as equal.
    """
    from scipy.stats import spearmanr

    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    lengths = np.linalg.norm(wanted, axis=1)  # (S,)
    difference = float((np.abs(found - wanted).max(axis=1) / np.maximum(lengths, 1e-12)).max())
    units = [rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (found, wanted)]
    cosines = (units[0] * units[1]).sum(axis=1)  # (S,)
    cosines[(lengths == 0) & (np.linalg.norm(found, axis=1) == 0)] = 1.0
    rank = 1.0
    if len(found) >= ENOUGH:
        pairs = np.triu_indices(len(found), k=1)
        rank = float(np.nan_to_num(spearmanr(*((rows @ rows.T)[pairs] for rows in units)).statistic))
    return Fidelity(float(cosines.mean()), float(cosines.min()), rank, difference, len(found))
