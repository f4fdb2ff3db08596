"""Unigram and trigram models over the sub-words of the generators: what their perplexity is held against.

Texts are lists of ids that end in the end token; nothing is known of what came before a text. The probabilities of
all ids but the padding sum to one, as those of the generators do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from likewise.context.generators import Perplexity
from likewise.context.subwords import TASKS, Cutter, Example


class Unigram:
    """Relative frequencies with add-one smoothing: (count + 1) / (all + V)."""

    def __init__(self, texts: Iterable[Sequence[int]], size: int) -> None:
        """Count the ids of texts; `size` is V, the ids there are."""
        tokens = np.fromiter((token for text in texts for token in text), dtype=np.int64)
        counts = np.bincount(tokens, minlength=size).astype(np.float64)  # (V,)
        self.probabilities = (counts + 1) / (counts.sum() + size)  # (V,)

    def log_probabilities(self, text: Sequence[int]) -> np.ndarray:
        """The log probability of each token: (T,)."""
        return np.asarray(np.log(self.probabilities[np.asarray(text, dtype=np.int64)]))


class Trigram:
    """Interpolated Kneser-Ney smoothing (Kneser and Ney 1995; Chen and Goodman 1999, section 3), one discount an order.

        p(w | u v) = max(c(uvw) - d3, 0) / c(uv*) + d3 N(uv.) / c(uv*)  p(w | v)
        p(w | v)   = max(N(.vw) - d2, 0) / N(.v.) + d2 N(v.) / N(.v.)   p(w)
        p(w)       = max(N(.w) - d1, 0) / N(..) + d1 N(.) / N(..) / V

    c counts a trigram, N(.vw) the different words before 'v w', N(v.) the different words after it; d is
    n1 / (n1 + 2 n2) of the order's counts, n1 and n2 being how many are 1 and 2. A history that was never seen leaves
    all to the lower order. Texts begin with two start tokens that are counted as histories alone.
    """

    def __init__(self, texts: Iterable[Sequence[int]], size: int) -> None:
        """Count the trigrams of texts; `size` is V, the ids there are."""
        self.size = size
        # The start token is an id of its own, so that no real one becomes a history at the start.
        self._base = size + 1
        keys = [self._trigrams(text) for text in texts]
        trigrams, counts = np.unique(np.concatenate([*keys, np.zeros(0, np.int64)]), return_counts=True)
        bigrams, before = np.unique(trigrams % self._base**2, return_counts=True)
        words, words_before = np.unique(bigrams % self._base, return_counts=True)
        self._orders = [
            _Order(words, words_before, self._base),
            _Order(bigrams, before, self._base),
            _Order(trigrams, counts, self._base),
        ]

    def _trigrams(self, text: Sequence[int]) -> np.ndarray:
        padded = np.concatenate([[self.size, self.size], np.asarray(text, dtype=np.int64)])
        return (padded[:-2] * self._base + padded[1:-1]) * self._base + padded[2:]  # (T,)

    def log_probabilities(self, text: Sequence[int]) -> np.ndarray:
        """The log probability of each token: (T,)."""
        keys = self._trigrams(text)
        found = np.full(len(keys), 1 / self.size)
        for n, order in enumerate(self._orders, start=1):
            found = order.interpolate(keys % self._base**n, found)
        return np.log(found)


class _Order:
    """The counts of the n-grams of one length, as sorted keys."""

    def __init__(self, keys: np.ndarray, counts: np.ndarray, base: int) -> None:
        self.keys, self.counts, self.base = keys, counts, base
        once, twice = int((counts == 1).sum()), int((counts == 2).sum())
        # Without an n-gram seen once there is nothing to learn a discount from; half a count is the middle.
        self.discount = once / (once + 2 * twice) if once and twice else 0.5
        self.histories, starts = np.unique(keys // base, return_index=True)
        self.totals = np.add.reduceat(counts, starts) if len(keys) else counts
        self.followers = np.diff([*starts, len(keys)])

    def interpolate(self, keys: np.ndarray, lower: np.ndarray) -> np.ndarray:
        """The probabilities (T,) of n-grams, from those of the order below."""
        counts = _find(self.keys, self.counts, keys)
        totals = _find(self.histories, self.totals, keys // self.base)
        followers = _find(self.histories, self.followers, keys // self.base)
        known = totals > 0
        totals = np.where(known, totals, 1)
        mixed = np.maximum(counts - self.discount, 0) / totals + self.discount * followers / totals * lower
        return np.where(known, mixed, lower)


def _find(keys: np.ndarray, values: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """The value of each wanted key, 0 where it is not there."""
    if not len(keys):
        return np.zeros(len(wanted))
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0)


def ngrams(cutter: Cutter, training: Sequence[Example], held_out: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Return the held-out perplexity of both models, made from the different sentences of the training examples."""
    sentences = list(dict.fromkeys(text for example in training for text in example.texts))
    texts = [piece.ids for piece in cutter.sentences(sentences)]
    size = len(cutter.vocabulary)
    models = {"unigram": Unigram(texts, size), "trigram": Trigram(texts, size)}
    return {name: perplexity_of(model, cutter, held_out).to_dict() for name, model in models.items()}


def perplexity_of(model: Any, cutter: Cutter, examples: Sequence[Example]) -> Perplexity:
    """Return the perplexity of a `Unigram` or `Trigram` on the same targets."""
    tokens, negative = dict.fromkeys(TASKS, 0), dict.fromkeys(TASKS, 0.0)
    for pieces in cutter.examples(examples):
        for task in TASKS:
            found: np.ndarray = model.log_probabilities(pieces[task].ids)
            tokens[task] += len(found)
            negative[task] -= float(found.sum())
    return Perplexity(tokens, negative)
