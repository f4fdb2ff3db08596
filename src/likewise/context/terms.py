"""The terms of equation 3 of sentences in contexts, in batches.

The form `paper` has log p(y = 1 | s, c) and the log probabilities a word,

    S(s, c) = w1 log p(y = 1 | s, left, right) + w2 / |s| log p(s | left, right)
            + w3 / |left| log p(left | s, right) + w4 / |right| log p(right | left, s).

The form `pmi` takes from each term what it would be without the sentence, so that neither the fluency of a sentence nor
that of a context is in it:

    coherence   logit of p(y = 1 | s, c): the discriminator learns log p(s, c) / p(s) p(c) up to a constant
    centre      1 / |s|      (log p(s | left, right) - log p(s))
    left        1 / |left|   (log p(left | s, right) - log p(left | right))
    right       1 / |right|  (log p(right | left, s) - log p(right | left))

and then its mean over a sample of all contexts of the corpus. Over retrieved contexts, which both sentences of a
similar pair fit, a mean over these would take away that they fit.

Computed once: what a model reads of a text for all that ask, and each (sentence, context) however many pairs ask for
it.

Letters: S sentences, C contexts, K cells (a sentence in a context).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch

from likewise.context.discriminator_stage import CachedRanker
from likewise.context.generators import Generating
from likewise.context.stage_options import TERMS, ScoreOptions
from likewise.context.workspace import QUIET
from likewise.runs.progress import Progress

_CELLS = 4_096
"""Cells whose coherence is computed at a time."""
_SAMPLE = 64
"""Contexts of the corpus over which a sentence's mean is taken."""


class TermScorer:
    """Scores sentences in contexts of a store, which are given by number.

    Attributes:
        weights: (4,) of the terms.
        sample: the contexts over which a sentence's mean coherence is taken.

    Args:
        open_generators: opens the generators, when one of their terms is asked for.
        ranker: the discriminator.
        options: form and weights.
        progress: shows what is scored.
    """

    def __init__(
        self,
        open_generators: Callable[[], Generating],
        ranker: CachedRanker,
        options: ScoreOptions,
        progress: Progress = QUIET,
    ) -> None:
        self._open_generators, self.ranker, self.states = open_generators, ranker, ranker.states
        self.options, self.progress = options, progress
        four = options.weights[-len(TERMS) :]
        self.weights = np.array(four or (1 / len(TERMS),) * len(TERMS), dtype=np.float64)
        contexts = self.states.store.n_contexts
        self.sample = np.sort(np.random.default_rng(0).permutation(contexts)[:_SAMPLE])
        self._means: dict[tuple[str, tuple[bool, ...]], np.ndarray] = {}

    @cached_property
    def generators(self) -> Generating:
        """The generators, opened at their first use."""
        return self._open_generators()

    def __call__(self, sentence: str, contexts: np.ndarray) -> np.ndarray:
        """Return S(s, c) of one sentence in each context: (C,)."""
        cells = np.stack([np.zeros(len(contexts), np.int64), contexts], axis=1)
        return self.terms([sentence], cells, self.weights != 0) @ self.weights

    def forget(self) -> None:
        """Forget the sentences of earlier calls."""
        self._means.clear()

    def terms(self, sentences: Sequence[str], cells: np.ndarray, wanted: Any = (True,) * 4) -> np.ndarray:
        """Return the four terms, not yet weighted: (K, 4) float64.

        Args:
            cells: (K, 2), the index of a sentence and the number of a context; one that is repeated is computed once.
            wanted: which terms; the others are 0.
        """
        if not len(cells):
            return np.zeros((0, len(TERMS)))
        distinct, inverse = np.unique(cells[:, ::-1], axis=0, return_inverse=True)  # by context
        found = self._terms(sentences, distinct[:, ::-1], wanted, self.progress)
        if self.options.form == "pmi":
            found -= self._mean_terms(sentences, wanted)[distinct[:, 1]]
        return found[inverse.reshape(-1)]

    def _mean_terms(self, sentences: Sequence[str], wanted: Any) -> np.ndarray:
        """Return the means of the terms of sentences over the sample, (S, 4); they are kept."""
        asked = tuple(bool(one) for one in wanted)
        if new := [text for text in dict.fromkeys(sentences) if (text, asked) not in self._means]:
            means = np.zeros((len(new), len(TERMS)))
            # The discriminator's are cheap; those of the generators are taken over as many contexts as they can afford.
            for some in ((asked[0], False, False, False), (False, *asked[1:])):
                if any(some):
                    step = 1 if some[0] else max(1, len(self.sample) // self.generators.sample)
                    sample = self.sample[::step]
                    cells = np.stack([np.tile(np.arange(len(new)), len(sample)), np.repeat(sample, len(new))], axis=1)
                    shown = QUIET if some[0] else self.progress
                    means += self._terms(new, cells, some, shown).reshape(len(sample), len(new), -1).mean(axis=0)
            self._means |= {(text, asked): row for text, row in zip(new, means, strict=True)}
        return np.stack([self._means[text, asked] for text in sentences])

    def _terms(self, sentences: Sequence[str], cells: np.ndarray, wanted: Any, progress: Progress) -> np.ndarray:
        """Return the terms (K, 4) of cells in the order of their contexts, not less their means."""
        found = np.zeros((len(cells), len(TERMS)))
        pmi = self.options.form == "pmi"
        with torch.inference_mode(), progress.bar("scoring sentences in contexts", len(cells)) as bar:
            if wanted[0]:
                parts = self.ranker.sentence_parts(self.states.read(sentences))
                for begin in range(0, len(cells), _CELLS):
                    rows = cells[begin : begin + _CELLS]
                    logits = (parts[rows[:, 0]] * self.ranker.context_parts(rows[:, 1])).sum(dim=1)
                    found[begin : begin + _CELLS, 0] = (
                        logits if pmi else torch.nn.functional.logsigmoid(logits)
                    ).numpy()
            if any(wanted[1:]):
                asked = [bool(one) for one in wanted[1:]]
                found[:, 1:] = self.generators.terms(self.states, sentences, cells, asked, pmi, bar.advance)
            else:
                bar.advance(len(cells))
        return found
