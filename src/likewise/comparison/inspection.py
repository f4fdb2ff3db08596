"""The inspection of a model: cosines of related sentences, a map of sentences under dropout, the worst of rated pairs.

All models of a comparison are inspected with the same sentences. Letters of the shapes: S sentences, P pairs, V views,
K sentences of the map, D embedding.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.augment.spans import nested_spans, sentence_rng, without_words
from likewise.baselines.method import sample_rows
from likewise.comparison.cosines import Distribution, dropout_views, related_cosines
from likewise.evaluation.data import find_data
from likewise.evaluation.pairs import RatedPairs, pair_cosines
from likewise.evaluation.rank_errors import ranked
from likewise.evaluation.registry import TASKS, resolve
from likewise.evaluation.task import TaskMissing, plain
from likewise.evaluation.tasks.sts import StsTask

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

SENTENCES = 500  # enough for a distribution: the standard error of a mean is a twentieth of the spread
MAP_VIEWS = 30  # of each sentence of the map
WORST = 10
_BANDS = 5
_MAP_WORDS = (12, 20)  # of the sentence of the map: long enough to lose words twice, and short enough for a legend


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
        drawn = tuple(dataset.select(sample_rows(len(dataset), SENTENCES, seed))["sentence"])
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
    from likewise.inference.encoding import encode

    found = related_cosines(model, material.sentences, material.negations, seed=material.seed)
    worst, pairs = None, material.pairs
    if pairs is not None and material.task is not None:
        cosines = pair_cosines(*np.split(encode(model, [*pairs.first, *pairs.second]), 2))
        found |= _bands(cosines, pairs.gold, material.task.scale)
        if np.isfinite(cosines).all():
            worst = ranked(cosines, pairs, material.task, WORST).to_dict()
    kept = {kind: cosines for kind, cosines in found.items() if len(cosines) and np.isfinite(cosines).all()}
    return plain(
        {
            "similarity": [Distribution(label, label, kind, cosines).to_dict() for kind, cosines in kept.items()],
            "map": dropout_map(model, material.mapped, material.seed),
            "worst": worst,
        }
    )


def dropout_map(model: SentenceTransformer, sentences: Sequence[str], seed: int) -> dict[str, Any] | None:
    """Return a map in two dimensions of sentences encoded repeatedly under dropout, by t-SNE (ArcCSE, figure 1).

    Returns:
        'sentences'; 'points' (K x V rows of two numbers) and 'of' (the sentence of each); 'within' and 'between', the
        mean cosines of two views of one sentence and of two. None for a model without dropout, or without numbers.
    """
    from sklearn.manifold import TSNE

    views = dropout_views(model, [text for text in sentences for _ in range(MAP_VIEWS // 2)], seed=seed)
    if views is None or not all(np.isfinite(view).all() for view in views):
        return None
    vectors = np.concatenate(views).astype(np.float64)  # (K V, D)
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
        "between": float(cosines[~same].mean()) if (~same).any() else None,
    }


def _bands(cosines: np.ndarray, gold: np.ndarray, scale: tuple[float, float]) -> dict[str, np.ndarray]:
    """Return the cosines by fifths of the scale of the ratings, the highest first."""
    edges = np.linspace(*scale, _BANDS + 1)
    band = np.clip(np.searchsorted(edges, gold, side="right") - 1, 0, _BANDS - 1)
    return {f"pair rated {edges[i]:g} to {edges[i + 1]:g}": cosines[band == i] for i in reversed(range(_BANDS))}
