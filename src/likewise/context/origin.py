"""Origin: the similarity of two sentences by contexts, in the form `pmi` or as in equation 4.

Letters of the shapes: P pairs, C contexts of a pair.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch

from likewise.context.bags import BagGenerators
from likewise.context.chunks import Context
from likewise.context.generators import Generators
from likewise.context.harvest_pairs import Pair
from likewise.context.options import FEATURES, ScoreOptions, SelectionOptions
from likewise.context.score import ContextScorer
from likewise.context.selection import ContextFinder
from likewise.context.similarity import agree, choose_signed, fit_to, match_words
from likewise.context.state_score import StateScorer
from likewise.context.states import States, open_states
from likewise.context.weights import PairTerms, Weights, choose_weights, similarities, with_chosen_weights
from likewise.context.workspace import ContextError, Workspace
from likewise.runs.progress import Progress

DEFAULT = (1.0, 0.58, -0.31, 0.0, 0.0, 0.0, 0.0)
"""Weights of the form `pmi` where none were chosen: those that STS-B dev chose for all-MiniLM-L6-v2."""
_QUIET = Progress(quiet=True)
Scorer = ContextScorer | StateScorer
ContextsOf = Callable[[Sequence[str]], Sequence[Sequence[Context]]]


def pair_terms(
    pairs: Sequence[Pair],
    contexts: Mapping[str, Sequence[Context]],
    scorer: Scorer,
    wanted: Sequence[bool] | np.ndarray = (True,) * 4,
    progress: Progress = _QUIET,
) -> list[PairTerms]:
    """Return the terms of each pair over the contexts of its first and then of its second sentence.

    A sentence in a context is computed once, in however many pairs both meet; so is a context that several
    sentences have. A sentence without contexts leaves those of the other; where neither has any, the pair has no row,
    and its similarity is 0.
    """
    sentences = {text: i for i, text in enumerate(dict.fromkeys(text for pair in pairs for text in pair))}
    numbers: dict[Context, int] = {}
    own: dict[str, np.ndarray] = {}
    for text in sentences:
        found = [numbers.setdefault(context, len(numbers)) for context in contexts[text]]
        own[text] = np.array(found, dtype=np.int64)
    cells: list[np.ndarray] = []
    for one, other in pairs:
        both = np.concatenate([own[one], own[other]])
        for text in (one, other):
            cells.append(np.stack([np.full(len(both), sentences[text]), both], axis=1))
    if not cells:
        return []
    terms = scorer.terms(list(sentences), list(numbers), np.concatenate(cells), wanted, progress)
    parts = np.split(terms, np.cumsum([len(cell) for cell in cells])[:-1])
    return [PairTerms(parts[i], parts[i + 1]) for i in range(0, len(parts), 2)]


class Origin:
    """The similarity of two sentences by equation 4 over the context sets from `contexts`.

    It is a `PairScorer` of `likewise.evaluate`.
    """

    form: Literal["pmi", "paper"] = "paper"

    def __init__(self, scorer: Scorer, contexts: ContextsOf, progress: Progress = _QUIET, name: str = "origin") -> None:
        self.scorer, self.contexts, self.progress, self.name = scorer, contexts, progress, name

    @property
    def settings(self) -> dict[str, str]:
        """The settings that a report shows."""
        return {"similarity": f"Origin, form {self.form}", "precision": "fp32", "device": "cpu"}

    def terms(self, pairs: Sequence[Pair], wanted: Sequence[bool] | np.ndarray = (True,) * 4) -> list[PairTerms]:
        """Return the terms of each pair, from which weights can be chosen."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        sets = dict(zip(texts, self.contexts(texts), strict=True))
        return pair_terms(pairs, sets, self.scorer, wanted, self.progress)

    def __call__(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the similarity of each pair: (P,)."""
        weights = self.scorer.weights
        return similarities(self.terms(pairs, weights > 0), weights, self.scorer.options.metric)

    def forget(self) -> None:
        """Forget the sentences of earlier calls, so that the next result does not depend on them in its last digits.

        A sentence that is remembered is missing in the batch of the others, and sums of another batch are rounded
        differently.
        """
        self.scorer.forget()

    def choose(self, pairs: Sequence[Pair], gold: np.ndarray, source: str) -> tuple[Weights, np.ndarray]:
        """Choose the weights on rated pairs; return them and the similarities (P,) that they give."""
        terms, metric = self.terms(pairs), self.scorer.options.metric
        chosen = choose_weights(terms, gold, metric=metric, source=source)
        return chosen, similarities(terms, chosen.values, metric)

    def score_pairs(self, first: Sequence[str], second: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """Return the similarity of each of P pairs, (P,) float64."""
        return np.asarray(self(list(zip(first, second, strict=True))), dtype=np.float64)


class StateOrigin(Origin):
    """The similarity in the form `pmi`, of `likewise.context.similarity`.

    Args:
        states: the frozen encoder with the corpus.
        weights: of the seven features.
        make: opens what the terms of equation 3 need; called when one of them has a weight.
    """

    form = "pmi"

    def __init__(
        self,
        states: States,
        weights: Sequence[float],
        make: Callable[[], tuple[StateScorer, ContextsOf]],
        progress: Progress = _QUIET,
        name: str = "origin",
    ) -> None:
        self.states, self.weights, self.progress, self.name = states, np.asarray(weights, float), progress, name
        self._make, self._opened = make, False

    def features(self, pairs: Sequence[Pair], wanted: Sequence[bool] | np.ndarray = (True,) * 7) -> np.ndarray:
        """Return the features of each pair, (P, 7); those that are not wanted are 0."""
        found = np.zeros((len(pairs), len(FEATURES)))
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        row = {text: i for i, text in enumerate(texts)}
        first, second = (np.array([row[pair[side]] for pair in pairs], np.int64) for side in (0, 1))
        encoder = self.states.encoder
        encoder.remember(texts, tokens=bool(wanted[1]), progress=self.progress)
        vectors = encoder.vectors(texts) if texts else np.zeros((0, self.states.vectors.shape[1]), np.float32)
        found[:, 0] = (vectors[first] * vectors[second]).sum(axis=1)
        if wanted[1]:
            tokens = encoder.tokens(texts)
            for i, (one, other) in enumerate(zip(first, second, strict=True)):
                found[i, 1] = match_words(tokens[one], tokens[other], self.states.idf)
        if wanted[2]:
            fits = fit_to(self.states.vectors, vectors)
            found[:, 2] = fits[first] + fits[second]
        if any(wanted[3:]):
            if not self._opened:
                self.scorer, self.contexts = self._make()
                self._opened = True
            for i, pair in enumerate(self.terms(pairs, wanted[3:])):
                found[i, 3:] = agree(pair.first, pair.second)
        return found

    def __call__(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the similarity of each pair: (P,)."""
        return self._weighted(self.features(pairs, self.weights != 0), self.weights)

    def forget(self) -> None:
        """Forget the sentences of earlier calls."""
        self.states.encoder.forget()
        if self._opened:
            super().forget()

    def choose(self, pairs: Sequence[Pair], gold: np.ndarray, source: str) -> tuple[Weights, np.ndarray]:
        """Choose the weights on rated pairs; return them and the similarities (P,) that they give."""
        features = self.features(pairs)
        values, spearman = choose_signed(features, gold)
        chosen = Weights(values, "correlation", spearman, len(gold), source, "pmi")
        return chosen, self._weighted(features, np.array(values))

    @staticmethod
    def _weighted(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
        # On the scale of a cosine: the same for any multiple of the weights.
        return features @ weights / np.maximum(weights, 0).sum()


def open_origin(
    work: str | Path,
    options: ScoreOptions | None = None,
    selection: SelectionOptions | None = None,
    progress: Progress = _QUIET,
) -> Origin:
    """Return the Origin similarity of a workspace.

    In the form `pmi` only what has a weight is opened: without a weight for a term of equation 3, that is the index
    and the states. In the form `paper` contexts are ranked by equation 3 with the weights in force, as section 3.3 has
    it, so that other weights choose other contexts; with `options.contexts_by` "discriminator" they do not depend on
    the weights.

    Args:
        work: holds the stages.
        options: of the score; without weights, those that were chosen for the workspace, or the default.
        selection: of the context sets.
        progress: shows what is found and scored.

    Raises:
        ContextError: a stage is missing or stale, or weights were chosen for another form or metric.
    """
    options, workspace = with_chosen_weights(work, options or ScoreOptions()), Workspace(work)
    name = f"origin:{work}"
    if options.form == "pmi":
        states = open_states(workspace.require("states"))
        return StateOrigin(
            states, options.weights or DEFAULT, lambda: _contexts(workspace, options, selection, progress, states),
            progress, name,
        )  # fmt: skip
    return Origin(*_contexts(workspace, options, selection, progress, None), progress, name)


def _contexts(
    workspace: Workspace,
    options: ScoreOptions,
    selection: SelectionOptions | None,
    progress: Progress,
    states: States | None,
) -> tuple[Any, ContextsOf]:
    """Return the scorer of a workspace, and what finds the contexts of sentences."""
    stage = workspace.require("generators")
    frozen = stage.record["plan"]["options"]["reads"] == "states"
    if options.form == "pmi" and not frozen:
        raise ContextError(
            f"{stage.folder} holds Transformers, which have no form=pmi: score with --preset paper, or train "
            "generators on states"
        )
    scorer: Scorer
    if frozen:
        states = states or open_states(workspace.require("states"))
        finder = ContextFinder.open(workspace.path, states.encoder)
        scorer = StateScorer(BagGenerators.load(stage.folder), finder.ranker, states, options)
    else:
        finder = ContextFinder.open(workspace.path)
        generators = Generators.load(stage.folder, "cuda" if torch.cuda.is_available() else "cpu")
        scorer = ContextScorer(generators, finder.ranker, options)

    def rank(sentence: str, contexts: Sequence[Context]) -> np.ndarray:
        return scorer(sentence, contexts, progress)

    def contexts(texts: Sequence[str]) -> list[Sequence[Context]]:
        found: list[Sequence[Context]] = []
        with progress.bar("finding contexts of sentences", len(texts)) as bar:
            for text in texts:
                ranking = rank if options.contexts_by == "score" else None
                found.append(finder.find(text, selection, ranking).contexts)
                bar.advance()
        return found

    return scorer, contexts
