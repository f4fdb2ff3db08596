"""The sample of a user's texts on which an engine's vectors are compared with torch's in float32.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from torch import nn

from likewise.errors import first_line
from likewise.inference.engines.engine import CannotExport, Engine, TorchEngine
from likewise.inference.engines.store import ENOUGH, Fidelity
from likewise.inference.model_tokens import tokens_of
from likewise.inference.text_encoder import TextEncoder, float32
from likewise.inference.tokens import SENTENCES

SIZE = 128
"""Sentences of a sample: 8,128 pairs for the rank correlation, a second or two of float32 for a small model."""
_SHORT = 24
"""Characters to which the last text of a sample is cut."""

logger = logging.getLogger(__name__)


def sample_of(texts: Sequence[str], size: int = SIZE) -> list[str]:
    """Return up to `size` evenly spaced ones of the different texts."""
    unique = list(dict.fromkeys(texts))
    places = np.linspace(0, len(unique) - 1, num=min(size, len(unique))).round().astype(int)
    return [unique[place] for place in dict.fromkeys(places.tolist())]


class Sample:
    """The sample of texts, and their vectors in float32 by torch; too few are joined by some sentences of our own.

    Args:
        tell: Function that is called with a line before an export is created.
    """

    def __init__(
        self, model: SentenceTransformer, texts: Sequence[str], tell: Callable[[str], None] = logger.info
    ) -> None:
        self.model, self.tokens, self.texts, self.tell = model, tokens_of(model), sample_of(texts), tell

    @cached_property
    def reference(self) -> np.ndarray:
        """The vectors in float32 by torch, (S, D)."""
        return self._vectors(TorchEngine(self.model))

    def fidelity(self, engine: Engine) -> Fidelity:
        """Compare an engine's vectors with the reference.

        Raises:
            CannotExport: If torch runs the sample, and the engine does not.
        """
        reference = self.reference
        try:
            vectors = self._vectors(engine)
        except Exception as error:  # of every kind, by a graph that holds for the lengths of its example alone
            raise CannotExport(f"it does not run the model ({type(error).__name__}: {first_line(error)})") from error
        return compare(vectors, reference)

    def operations(self, total: int) -> float:
        """Return the approximate number of operations for `total` such texts: 2 x weights x tokens."""
        parts = [module for module in self.model.modules() if isinstance(module, (nn.Linear, nn.Conv1d))]
        tokens = sum(map(len, self.tokens(self.texts))) / len(self.texts)
        return 2.0 * sum(part.weight.numel() for part in parts) * tokens * total

    def batches(self, at_least: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """Return ids and mask of each text as a separate batch, for the calibration of int8."""
        return [self.tokens.batch([ids], at_least) for ids in self.tokens(self.texts)]

    def _vectors(self, engine: Engine) -> np.ndarray:
        encoder = TextEncoder(self.tokens, engine)
        texts = self.texts if len(self.texts) >= ENOUGH else [*self.texts, *SENTENCES]
        rows = float32(encoder.rows(texts))
        # Short and alone, as a query is: an engine may fill it up to a length of its own.
        rows[-1:] = float32(encoder.rows([texts[-1][:_SHORT]]))
        return rows


def compare(vectors: np.ndarray, reference: np.ndarray) -> Fidelity:
    """Compare vectors with float32 vectors.

    Args:
        vectors, reference: Arrays (S, D) with S of at least 1; a row that is zero in both counts as equal.
    """
    vectors, reference = vectors.astype(np.float64), reference.astype(np.float64)
    lengths = np.linalg.norm(reference, axis=1)  # (S,)
    difference = float((np.abs(vectors - reference).max(axis=1) / np.maximum(lengths, 1e-12)).max())
    units = [rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12) for rows in (vectors, reference)]
    cosines = (units[0] * units[1]).sum(axis=1)  # (S,)
    cosines[(lengths == 0) & (np.linalg.norm(vectors, axis=1) == 0)] = 1.0
    rank = 1.0
    if len(vectors) >= ENOUGH:
        pairs = np.triu_indices(len(vectors), k=1)
        rank = float(np.nan_to_num(spearmanr(*((rows @ rows.T)[pairs] for rows in units)).statistic))
    return Fidelity(float(cosines.mean()), float(cosines.min()), rank, difference, len(vectors))
