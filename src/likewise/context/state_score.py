"""The terms of equation 3 on the states of a frozen encoder, as matrix products.

The form `pmi` takes from each term what it would be without the sentence, so that neither the fluency of a sentence nor
that of a context is in it:

    coherence   logit of p(y = 1 | s, c): the discriminator learns log p(s, c) / p(s) p(c) up to a constant
    centre      1 / |s|      (log p(s | left, right) - log p(s))
    left        1 / |left|   (log p(left | s, right) - log p(left | right))
    right       1 / |right|  (log p(right | left, s) - log p(right | left))

and then its mean over a sample of all contexts of the corpus. Over retrieved contexts, which both sentences of a
similar pair fit, a mean over these would take away that they fit. The form `paper` has log p(y = 1) and the log
probabilities themselves.

Letters: S sentences, C contexts, K cells (a sentence in a context), D embedding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from likewise.context.bags import BagGenerators, Corpus, pad_bags
from likewise.context.chunks import Context
from likewise.context.options import TERMS, ScoreOptions
from likewise.context.selection import CachedRanker
from likewise.context.states import States
from likewise.context.subwords import SOURCES, Task
from likewise.context.terms import QUIET, TermScorer
from likewise.runs.progress import Progress

_CELLS = 4_096
_SAMPLE = 64
"""Contexts of the corpus over which a sentence's mean is taken."""


class StateScorer(TermScorer):
    """Scores sentences in contexts, as `likewise.context.score.ContextScorer` does for the models of the paper."""

    def __init__(
        self, generators: BagGenerators, ranker: CachedRanker, states: States, options: ScoreOptions | None = None
    ) -> None:
        self.generators, self.ranker, self.states = generators, ranker, states
        self.options = options or ScoreOptions()
        self.corpus = Corpus(ranker.store, states, generators.words)
        four = self.options.weights[-len(TERMS) :]
        self.weights = np.array(four or (1 / len(TERMS),) * len(TERMS), dtype=np.float64)
        contexts = ranker.store.n_contexts
        self.sample = np.sort(np.random.default_rng(0).permutation(contexts)[:_SAMPLE])
        self._means: dict[tuple[str, tuple[bool, ...]], np.ndarray] = {}

    def forget(self) -> None:
        """Forget the sentences of earlier calls."""
        self.states.encoder.forget()
        self._means.clear()

    def cell_terms(
        self, sentences: Sequence[str], contexts: Sequence[Context], cells: np.ndarray, wanted: Any, progress: Progress
    ) -> np.ndarray:
        """Return the four terms, not yet weighted: (K, 4) float64."""
        found = self._terms(sentences, self.ranker.numbers(contexts), cells, wanted, progress)
        if self.options.form == "pmi":
            found -= self._mean_terms(sentences, wanted)[cells[:, 0]]
        return found

    def _mean_terms(self, sentences: Sequence[str], wanted: Any) -> np.ndarray:
        """Return the means of the terms of sentences over the sample, (S, 4); they are kept."""
        asked = tuple(bool(one) for one in wanted)
        if new := [text for text in dict.fromkeys(sentences) if (text, asked) not in self._means]:
            size = len(self.sample)
            cells = np.stack([np.repeat(np.arange(len(new)), size), np.tile(np.arange(size), len(new))], axis=1)
            found = self._terms(new, self.sample, cells, wanted, QUIET).reshape(len(new), size, len(TERMS))
            self._means |= {(text, asked): row for text, row in zip(new, found.mean(axis=1), strict=True)}
        return np.stack([self._means[text, asked] for text in sentences])

    def _terms(
        self, sentences: Sequence[str], numbers: np.ndarray, cells: np.ndarray, wanted: Any, progress: Progress
    ) -> np.ndarray:
        """Return the terms of cells, with contexts by number; for `pmi` less what they are without the sentence."""
        found = np.zeros((len(cells), len(TERMS)))
        parts = self.ranker.sentence_parts(sentences)
        own = torch.from_numpy(self.states.encoder.vectors(sentences))
        bags = [self.generators.words(ids) for ids in self.states.encoder.ids(sentences)]
        with torch.no_grad(), progress.bar("scoring sentences in contexts", len(cells)) as bar:
            for begin in range(0, len(cells), _CELLS):
                rows = cells[begin : begin + _CELLS]
                block = slice(begin, begin + len(rows))
                if wanted[0]:
                    around = torch.from_numpy(np.ascontiguousarray(self.ranker.parts[numbers[rows[:, 1]]]))
                    logits = self.ranker.model.combine_pairs(parts[rows[:, 0]], around)
                    pmi = self.options.form == "pmi"
                    found[block, 0] = (logits if pmi else torch.nn.functional.logsigmoid(logits)).numpy()
                if any(wanted[1:]):
                    found[block, 1:] = self._words(own, bags, numbers, rows, wanted)
                bar.advance(len(rows))
        return found

    def _words(
        self, own: torch.Tensor, bags: list[np.ndarray], numbers: np.ndarray, rows: np.ndarray, wanted: Any
    ) -> np.ndarray:
        """Return the three terms of the generators (K, 3)."""
        distinct, inverse = np.unique(numbers[rows[:, 1]], return_inverse=True)
        vectors, targets = self.corpus.sides(distinct)
        vectors = {side: found[inverse] for side, found in vectors.items()} | {"centre": own[rows[:, 0]]}
        targets = {side: found[inverse] for side, found in targets.items()}
        targets["centre"] = pad_bags([bags[i] for i in rows[:, 0]])
        found = np.zeros((len(rows), 3))
        tasks: tuple[Task, ...] = ("centre", "left", "right")
        for i, task in enumerate(tasks):
            if not wanted[i + 1]:
                continue
            given = {side: vectors[side] for side in SOURCES[task]}
            terms = self.generators.mean_log_probabilities(task, given, targets[task])
            if self.options.form == "pmi":
                # Without the sentence: for the sentence itself, what it is in no context.
                without = {side: rows * (side != "centre" and task != "centre") for side, rows in given.items()}
                terms = terms - self.generators.mean_log_probabilities(task, without, targets[task])
            found[:, i] = terms.numpy()
        return found
