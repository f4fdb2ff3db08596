"""A cross-encoder as a scorer of pairs: it reads both sentences and has no sentence vectors."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from sentence_transformers import CrossEncoder

from likewise.encoder.opening import LoadError
from likewise.errors import first_line
from likewise.evaluation.pairs import pair_cosines
from likewise.evaluation.token_cache import BATCH, TokenCache
from likewise.inference.encoding import Precision, autocast, undisturbed
from likewise.runs.progress import Progress
from likewise.transformers_output import no_bar

_CHUNKS = 32
"""Calls of the model for one task: steps of the bar, long enough for batches of near-equal length."""


class CrossEncoderScorer:
    """A `PairScorer` by a cross-encoder; `likewise context distill --structure cross` trains one.

    Args:
        model: a CrossEncoder with one output, or its folder or hub name.
        batch_size, precision: as in `likewise.evaluate`.

    Raises:
        LoadError: there is no such model, or it has more than one output.
    """

    def __init__(self, model: CrossEncoder | str, *, batch_size: int = 64, precision: Precision | None = None) -> None:
        named = model if isinstance(model, str) else type(model).__name__
        self.model = _load(model) if isinstance(model, str) else model
        if (outputs := self.model.num_labels) != 1:
            raise LoadError(f"'{named}' has {outputs} outputs a pair: give a cross-encoder with one score")
        self.batch_size = batch_size
        self.precision: Precision | None = precision
        self.name = f"cross-encoder:{named}"
        self.settings = {
            "similarity": "score of a cross-encoder",
            "precision": precision or "fp32",
            "device": str(self.model.device),
        }

    def score_pairs(self, first: Sequence[str], second: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """Return the score of each of P pairs, (P,) float64."""
        scores = np.zeros(len(first))
        with (progress or Progress(quiet=True)).bar("scoring pairs", len(first)) as bar:
            for rows in np.array_split(np.arange(len(first)), min(_CHUNKS, len(first)) or 1):
                pairs = [(first[row], second[row]) for row in rows]
                scores[rows] = predict_pairs(self.model, pairs, self.batch_size, self.precision)
                bar.advance(len(rows))
        return scores


def predict_pairs(
    model: Any, pairs: Sequence[tuple[str, str]], batch_size: int, precision: Precision | None
) -> np.ndarray:
    """Return the scores of P pairs by a cross-encoder, (P,) float64; its modes and the random state are restored."""
    with undisturbed(model), autocast(model, precision):
        found = model.predict(list(pairs), batch_size=batch_size, show_progress_bar=False)
    return np.asarray(found, dtype=np.float64)


class PairPredictions:
    """The float32 scores of P pairs by any model: cosines of an encoder, scores of a cross-encoder."""

    def __init__(self, first: Sequence[str], second: Sequence[str]) -> None:
        self._pairs = list(zip(first, second, strict=True))
        self._cache = TokenCache([*first, *second])

    def __call__(self, model: Any) -> np.ndarray:
        """Return scores (P,) float64; the model's modes and the global random state are restored."""
        if isinstance(model, CrossEncoder):
            return predict_pairs(model, self._pairs, BATCH, "fp32")
        return pair_cosines(*np.split(self._cache.vectors(model)[0], 2))


def _load(name: str) -> CrossEncoder:
    try:
        with no_bar():
            return CrossEncoder(name)
    except (OSError, ValueError) as error:
        raise LoadError(f"'{name}' cannot be loaded as a cross-encoder: {first_line(error)}") from error
