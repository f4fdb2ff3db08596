"""The inspection of a model: cosines of related sentences, a map of sentences under dropout, the worst of rated pairs.

Related are a sentence with itself under dropout, with its negation and with another sentence. All models of a
comparison are inspected with the same sentences. Letters of the shapes: S sentences, P pairs, V views, K sentences of
the map, D embedding.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.augment.spans import nested_spans, sentence_rng
from likewise.corpus.sentences import without_words
from likewise.evaluation.data import find_data
from likewise.evaluation.pairs import RatedPairs, pair_cosines
from likewise.evaluation.rank_errors import ranked
from likewise.evaluation.registry import TASKS, resolve
from likewise.evaluation.task import TaskMissing
from likewise.evaluation.tasks.sts import StsTask
from likewise.recipes.recipe import sample_rows

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.inference.vectors import Precision
    from likewise.runs.progress import Progress

VIEWS, NEGATION, OTHER = "itself under dropout", "its negation", "another sentence"
QUANTILES = (0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99)
_BINS = 100  # of width 0.02, from -1 to 1
SENTENCES = 500  # enough for a distribution: the standard error of a mean is a twentieth of the spread
MAP_VIEWS = 30  # of each sentence of the map
WORST = 10
_BANDS = 5
_MAP_WORDS = (12, 20)  # of the sentence of the map: long enough to lose words twice, and short enough for a legend


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
    from likewise.inference.vectors import encode

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
) -> np.ndarray | None:
    """Encode each sentence twice with dropout on, as the positive pairs of SimCSE and SNCSE.

    This is no `TextEncoder`, whose vectors of a text are the same ones each time.

    Returns:
        (2, S, D) float32; None where the model has no dropout, so that both would be equal.
    """
    import torch
    from sentence_transformers.util import batch_to_device
    from torch.nn.modules.batchnorm import _BatchNorm

    from likewise.inference.vectors import autocast, dimension, undisturbed

    if not any(isinstance(module, torch.nn.Dropout) and module.p > 0 for module in model.modules()):
        return None
    order = np.argsort([len(text) for text in sentences], kind="stable")  # batches of one length pad little
    views = np.empty((2, len(sentences), dimension(model)), dtype=np.float32)
    with undisturbed(model), autocast(model, precision), torch.inference_mode():
        torch.manual_seed(seed)
        for module in model.modules():
            # Attention layers read their own flag. A batch norm would learn from what it sees.
            module.training = not isinstance(module, _BatchNorm)
        for view in views:
            for start in range(0, len(order), batch_size):
                rows = order[start : start + batch_size]
                features = model.preprocess([sentences[i] for i in rows])
                found = model(batch_to_device(features, model.device))["sentence_embedding"]  # (B, D)
                view[rows] = found[:, : model.truncate_dim].float().cpu().numpy()
    return views


@dataclass(frozen=True)
class Material:
    """The sentences that every model is inspected with.

    Attributes:
        sentences: S sentences of the corpus.
        negations: of some of them, by their index; none without the extra 'negation'.
        task: the task of rated pairs whose worst pairs are shown; None where there is none.
    """

    sentences: tuple[str, ...]
    negations: dict[int, str]
    mapped: tuple[str, ...]
    task: StsTask | None
    pairs: RatedPairs | None
    seed: int

    @classmethod
    def of(cls, dataset: Any, tasks: str, data: str | os.PathLike[str] | None, seed: int) -> Material:
        """Draw from a corpus, and read the first task of rated pairs, STS-B dev before all others.

        The map has a sentence of the corpus, and the same one without 20% and 40% of its words (as ArcCSE's triplets).
        """
        drawn = tuple(dataset.select(sample_rows(len(dataset), SENTENCES, seed, 3))["sentence"])
        rated = [task for task in resolve(tasks)[0] if isinstance(task, StsTask)]
        task, pairs = None, None
        for one in sorted(rated, key=lambda one: one is not TASKS["sts-b-dev"]):
            with suppress(TaskMissing):  # the scores name it
                task, pairs = one, one.load(find_data(data))
                break
        return cls(drawn, _negated(drawn), shortened(drawn, seed), task, pairs, seed)


def shortened(sentences: Sequence[str], seed: int) -> tuple[str, str, str]:
    """Return a sentence, and the same one without 20% and 40% of its words."""
    shortest, longest = _MAP_WORDS
    fitting = [text for text in sentences if shortest <= len(text.split()) <= longest]
    chosen = fitting[0] if fitting else max(sentences, key=lambda text: len(text.split()))
    words = chosen.split()
    closer, farther = nested_spans(len(words), (0.2, 0.4), sentence_rng(chosen, seed))
    return chosen, without_words(words, closer), without_words(words, farther)


def _negated(sentences: Sequence[str]) -> dict[int, str]:
    try:
        from likewise.augment.negation import negate

        return {i: found for i, found in enumerate(negate(list(sentences))) if found is not None}
    except ImportError:
        return {}  # the extra is not installed: one kind of pairs less


def inspect(model: SentenceTransformer, label: str, material: Material) -> dict[str, Any]:
    """Inspect a model; return plain values for JSON.

    Returns:
        'similarity': distributions; 'map': the map, None for a model without dropout; 'worst': the pairs of the task
        with the most wrong rank, None without a task.
    """
    from likewise.inference.vectors import encode

    found = related_cosines(model, material.sentences, material.negations, seed=material.seed)
    worst, pairs = None, material.pairs
    if pairs is not None and material.task is not None:
        cosines = pair_cosines(*np.split(encode(model, [*pairs.first, *pairs.second]), 2))
        found |= _bands(cosines, pairs.gold, material.task.scale)
        worst = ranked(cosines, pairs, material.task, WORST).to_dict()
    shown = [Distribution(label, label, kind, cosines).to_dict() for kind, cosines in found.items() if len(cosines)]
    return {"similarity": shown, "map": dropout_map(model, material.mapped, material.seed), "worst": worst}


def dropout_map(model: SentenceTransformer, sentences: Sequence[str], seed: int) -> dict[str, Any] | None:
    """Return a map in two dimensions of sentences encoded repeatedly under dropout, by t-SNE (ArcCSE, figure 1).

    Returns:
        'sentences'; 'points' (K x V rows of two numbers) and 'of' (the sentence of each); 'within' and 'between', the
        mean cosines of two views of one sentence and of two. None for a model without dropout.
    """
    from sklearn.manifold import TSNE

    views = dropout_views(model, [text for text in sentences for _ in range(MAP_VIEWS // 2)], seed=seed)
    if views is None:
        return None
    vectors = np.concatenate(list(views)).astype(np.float64)  # (K V, D)
    owner = np.tile(np.repeat(np.arange(len(sentences)), MAP_VIEWS // 2), 2)  # (K V,)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    cosines = vectors @ vectors.T  # (K V, K V)
    same = owner[:, None] == owner[None, :]
    itself = np.eye(len(owner), dtype=bool)
    points = TSNE(init="pca", perplexity=min(30.0, MAP_VIEWS / 2), random_state=seed).fit_transform(vectors)
    return {
        "sentences": list(sentences),
        "points": np.round(points.astype(np.float64), 3).tolist(),
        "of": owner.tolist(),
        "within": float(cosines[same & ~itself].mean()),
        "between": float(cosines[~same].mean()),
    }


def _bands(cosines: np.ndarray, gold: np.ndarray, scale: tuple[float, float]) -> dict[str, np.ndarray]:
    """Return the cosines by fifths of the scale of the ratings, the highest first."""
    edges = np.linspace(*scale, _BANDS + 1)
    band = np.clip(np.searchsorted(edges, gold, side="right") - 1, 0, _BANDS - 1)
    return {f"pair rated {edges[i]:g} to {edges[i + 1]:g}": cosines[band == i] for i in reversed(range(_BANDS))}
