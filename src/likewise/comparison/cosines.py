"""The cosines of a sentence with itself under dropout, with its negation and with another sentence.

Letters of the shapes: S sentences, D embedding.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.evaluation.pairs import pair_cosines

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.inference.encoding import Precision
    from likewise.runs.progress import Progress

VIEWS, NEGATION, OTHER = "itself under dropout", "its negation", "another sentence"
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_BINS = 100  # of width 0.02, from -1 to 1


@dataclass(frozen=True)
class Distribution:
    """The cosines of one model on one kind of pairs.

    Attributes:
        kind: VIEWS, NEGATION, OTHER, or a band of ratings.
        cosines: (S,) float64, in the order of the sentences.
    """

    label: str
    model: str
    kind: str
    cosines: np.ndarray

    def histogram(self) -> tuple[np.ndarray, np.ndarray]:
        """Return counts (100,) and edges (101,) over -1 to 1; values outside by rounding count in the last bins."""
        return np.histogram(np.clip(self.cosines, -1.0, 1.0), bins=_BINS, range=(-1.0, 1.0))

    @property
    def peak(self) -> float:
        """The centre of the fullest bin, the lowest one in a tie."""
        counts, edges = self.histogram()
        fullest = int(counts.argmax())
        return float(edges[fullest] + edges[fullest + 1]) / 2

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        counts, edges = self.histogram()
        return {
            "label": self.label,
            "model": self.model,
            "kind": self.kind,
            "pairs": len(self.cosines),
            "mean": float(self.cosines.mean()),
            "standard_deviation": float(self.cosines.std()),
            "peak": round(self.peak, 2),
            "quantiles": {str(q): float(np.quantile(self.cosines, q)) for q in QUANTILES},
            "histogram": {"from": -1.0, "to": 1.0, "width": float(edges[1] - edges[0]), "counts": counts.tolist()},
        }


def related_cosines(
    model: SentenceTransformer,
    sentences: Sequence[str],
    negations: Mapping[int, str],
    *,
    seed: int,
    viewed: int | None = None,
    progress: Progress | None = None,
    **how: Any,
) -> dict[str, np.ndarray]:
    """Return the cosines of sentences with themselves, with their negations and with random other sentences.

    Args:
        negations: by the index of their sentences, in order; not every sentence needs one.
        viewed: how many sentences are encoded under dropout; None takes all.
        how: batch_size and precision, as in `likewise.evaluate`.
    """
    from likewise.inference.encoding import encode

    vectors = encode(model, [*sentences, *negations.values()], progress=progress, **how)
    own, negated = np.split(vectors, [len(sentences)])  # each (S, D)
    views = dropout_views(model, sentences[:viewed], seed=seed, **how)
    found = {} if views is None else {VIEWS: pair_cosines(*views)}
    if negations:
        found[NEGATION] = pair_cosines(own[list(negations)], negated)
    if len(own) > 1:
        found[OTHER] = pair_cosines(own, own[partners(len(own), seed)])
    return found


def partners(count: int, seed: int) -> np.ndarray:
    """Return (count,) the index of a random other row for each row; each row is used once.

    The rows are put on a ring in a random order, and the partner of a row is the next one on it.

    >>> partners(2, seed=0).tolist()
    [1, 0]
    """
    ring = np.random.default_rng([seed, 1]).permutation(count)
    following = np.empty(count, dtype=np.int64)
    following[ring] = np.roll(ring, -1)
    return following


def dropout_views(
    model: SentenceTransformer,
    sentences: Sequence[str],
    *,
    seed: int,
    batch_size: int = 64,
    precision: Precision | None = None,
) -> tuple[np.ndarray, np.ndarray] | None:
    """Encode each sentence twice with dropout on, as the positive pairs of SimCSE and SNCSE.

    Returns:
        Two matrices (S, D) float32; None where the model has no dropout, so that both would be equal.
    """
    import torch
    from sentence_transformers.util import batch_to_device
    from torch.nn.modules.batchnorm import _BatchNorm

    from likewise.inference.encoding import autocast, undisturbed

    if not any(isinstance(module, torch.nn.Dropout) and module.p > 0 for module in model.modules()):
        return None
    order = sorted(range(len(sentences)), key=lambda i: len(sentences[i]))  # batches of one length pad little
    views: list[np.ndarray] = []
    with undisturbed(model), autocast(model, precision), torch.inference_mode():
        torch.manual_seed(seed)
        for module in model.modules():
            # Attention layers read their own flag. A batch norm would learn from what it sees.
            module.training = not isinstance(module, _BatchNorm)
        for _ in range(2):
            rows: list[Any] = []
            for start in range(0, len(order), batch_size):
                features = model.preprocess([sentences[i] for i in order[start : start + batch_size]])
                found = model(batch_to_device(features, model.device))
                rows.append(found["sentence_embedding"].float().cpu().numpy())  # (B, D)
            view = np.empty((len(order), rows[0].shape[1]), dtype=np.float32)
            view[order] = np.concatenate(rows)
            views.append(view)
    return views[0], views[1]
