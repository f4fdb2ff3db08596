"""The weighted sum of the four terms of equation 3, whatever computes the terms.

Letters: K cells (a sentence in a context), C contexts.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

import numpy as np

from likewise.context.chunks import Context
from likewise.context.options import TERMS
from likewise.runs.progress import Progress

QUIET = Progress(quiet=True)


class TermScorer(ABC):
    """Scores sentences in contexts by weighted terms.

    Attributes:
        weights: (4,) of the terms.
    """

    weights: np.ndarray

    def __call__(self, sentence: str, contexts: Sequence[Context], progress: Progress = QUIET) -> np.ndarray:
        """Return S(s, c) of one sentence in each context: (C,)."""
        cells = np.stack([np.zeros(len(contexts), np.int64), np.arange(len(contexts))], axis=1)
        return self.terms([sentence], contexts, cells, self.weights != 0, progress) @ self.weights

    def forget(self) -> None:  # noqa: B027 - a scorer that keeps nothing needs no other
        """Forget the sentences of earlier calls, where any are kept."""

    def terms(
        self,
        sentences: Sequence[str],
        contexts: Sequence[Context],
        cells: np.ndarray,
        wanted: Sequence[bool] | np.ndarray = (True,) * 4,
        progress: Progress = QUIET,
    ) -> np.ndarray:
        """Return the four terms, not yet weighted: (K, 4) float64.

        Args:
            cells: (K, 2), a sentence's and a context's number in each row.
            wanted: which terms; the others are 0.
        """
        if not len(cells):
            return np.zeros((0, len(TERMS)))
        return self.cell_terms(sentences, contexts, np.asarray(cells), wanted, progress)

    @abstractmethod
    def cell_terms(
        self,
        sentences: Sequence[str],
        contexts: Sequence[Context],
        cells: np.ndarray,
        wanted: Sequence[bool] | np.ndarray,
        progress: Progress,
    ) -> np.ndarray:
        """Return what `terms` does, of at least one cell."""
