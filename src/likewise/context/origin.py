"""Origin: the similarity of two sentences by contexts, in the form `pmi` or as in equation 4.

Letters of the shapes: P pairs, C contexts of a pair.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likewise.context.generators import Generating
from likewise.context.generators_stage import load_generators
from likewise.context.harvest_pairs import PairSource, SentencePair, tfidf
from likewise.context.selection import ContextFinder
from likewise.context.similarity import (
    Weights,
    agree,
    choose_even,
    choose_signed,
    even,
    fit_to,
    match_words,
    similarities,
    weighted,
    with_chosen_weights,
)
from likewise.context.stage_options import FEATURES, TERMS, HarvestOptions, ScoreOptions, SelectionOptions
from likewise.context.states import States
from likewise.context.terms import TermScorer
from likewise.context.workspace import QUIET, ContextError, Workspace
from likewise.corpus.lines_and_rows import digest_of
from likewise.errors import counted
from likewise.evaluation.pairs import cosines
from likewise.evaluation.task import Rows
from likewise.runs.progress import Progress

_ANCHORS = 20
"""Sentences whose pairs bring the terms to a scale."""
NEAR = 100
"""Texts of the highest cosine that `rows` scores."""
Wanted = Sequence[bool] | np.ndarray
"""Which terms or features are computed; the others are 0."""


def stages_read(wanted: Sequence[float] | np.ndarray) -> list[str]:
    """Return the stages of a workspace that terms or features are made of.

    Args:
        wanted: a weight or a truth value of each, (4,) or (7,); none at all for the equal weights of equation 3.

    >>> stages_read((1, 1, 0, 0.5, 0, 0, 0))
    ['index', 'states', 'discriminator']
    """
    *_, coherence, centre, left, right = (bool(one) for one in (wanted if len(wanted) else (True,) * len(TERMS)))
    # The discriminator chooses the contexts of every term.
    over_contexts = ["discriminator"] if coherence or centre or left or right else []
    return ["index", "states", *over_contexts, *(["generators"] if centre or left or right else [])]


def _texts(pairs: Sequence[SentencePair]) -> list[str]:
    return list(dict.fromkeys(text for pair in pairs for text in pair))


def pair_terms(
    pairs: Sequence[SentencePair],
    contexts: Mapping[str, np.ndarray],
    scorer: TermScorer,
    wanted: Wanted = (True,) * 4,
) -> list[np.ndarray]:
    """Return the terms of each pair (2, C, 4) over the contexts of its first and then of its second sentence.

    A sentence without contexts leaves those of the other; where neither has any, the pair has no row, and its
    similarity is 0.
    """
    sentences = {text: i for i, text in enumerate(_texts(pairs))}
    cells: list[np.ndarray] = []
    for one, other in pairs:
        both = np.concatenate([contexts[one], contexts[other]]).astype(np.int64)
        cells += [np.stack([np.full(len(both), sentences[text]), both], axis=1) for text in (one, other)]
    if not cells:
        return []
    terms = scorer.terms(list(sentences), np.concatenate(cells), wanted)
    ends = np.cumsum([2 * len(cell) for cell in cells[::2]])
    return [part.reshape(2, -1, len(TERMS)) for part in np.split(terms, ends[:-1])]


class Deciding(NamedTuple):
    """A context and what it does to a similarity.

    Attributes:
        part: what it adds to the similarity, or takes off.
        left, right: the text on either side of the gap.
        fits: how well the first and the second sentence fit, the weighted terms of equation 3.
    """

    part: float
    left: str
    right: str
    fits: tuple[float, float]


def own_pairs(states: States) -> list[SentencePair]:
    """Return pairs of a workspace's own sentences, near, far and unrelated ones, on which terms are brought to a scale.

    They depend on the sentences alone.
    """
    vectors = states.vectors if states.vectors.shape[1] else tfidf(states.ids, states.starts, states.idf)
    texts = states.store.texts()
    anchors = max(2, min(_ANCHORS, len(texts) // 8))
    ranks = [rank for rank in (1, 8, 64) if rank <= len(texts) // 4] or [1]
    drawn = HarvestOptions(pairs=anchors * 4, anchors=anchors, ranks=tuple(ranks), random=1, min_words=1, max_words=60)
    rows = PairSource(texts, drawn, vectors).shard(0).to_pylist()
    return [(row["sentence1"], row["sentence2"]) for row in rows]


class Origin:
    """The similarity of a workspace. It is a `PairScorer` of `likewise.evaluate`.

    What the terms of equation 3 need is opened when one of them has a weight.

    Args:
        work: the workspace's folder.
        states: those of the workspace.
        options: form and weights.
        selection: of the context sets.
        progress: shows what is found and scored.
    """

    def __init__(
        self,
        work: str | Path,
        states: States,
        options: ScoreOptions,
        selection: SelectionOptions | None = None,
        progress: Progress = QUIET,
    ) -> None:
        self.workspace, self.states, self.options, self.selection = Workspace(work), states, options, selection
        self.form, self.progress, self.name = options.form, progress, f"origin:{work}"
        pmi = self.form == "pmi"
        self.weights = np.array(
            options.weights or ([float(name in options.terms) for name in FEATURES] if pmi else (0.25,) * 4)
        )
        self._measure: Any = self.features if pmi else self.terms
        self._combine: Any = weighted if pmi else similarities
        self._choose: Any = choose_signed if pmi else choose_even

    @cached_property
    def settings(self) -> dict[str, str]:
        """The settings that a report of an evaluation names."""
        precision = self.states.encoder.precision
        return {"similarity": f"Origin, form {self.form}", "precision": precision, "device": "cpu"}

    @cached_property
    def scorer(self) -> TermScorer:
        """The scorer of the terms of equation 3."""

        def generators() -> Generating:
            return load_generators(self.workspace.require("generators"), self.states)

        return TermScorer(generators, self.finder.ranker, self.options, self.progress)

    @cached_property
    def finder(self) -> ContextFinder:
        """The finder of contexts."""
        return ContextFinder.open(self.workspace.path, self.states)

    def contexts(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the numbers of the contexts of each text."""
        scorer, found = self.scorer, {}
        with self.progress.bar("finding contexts of sentences", len(texts)) as bar:
            for text in texts:
                found[text] = self.finder.find(text, self.selection, scorer)
                bar.advance()
        return found

    def terms(self, pairs: Sequence[SentencePair], wanted: Wanted = (True,) * 4) -> list[np.ndarray]:
        """Return the terms of equation 3 of each pair, (2, C, 4)."""
        return pair_terms(pairs, self.contexts(_texts(pairs)), self.scorer, wanted)

    def features(self, pairs: Sequence[SentencePair], wanted: Wanted = (True,) * 7) -> np.ndarray:
        """Return the features of the form `pmi` of each pair, (P, 7); those that are not wanted are 0."""
        found = np.zeros((len(pairs), len(FEATURES)))
        if not len(pairs):
            return found
        texts = _texts(pairs)
        row = {text: i for i, text in enumerate(texts)}
        first, second = (np.array([row[pair[side]] for pair in pairs], np.int64) for side in (0, 1))
        readings = self.states.readings(texts, self.progress, bool(wanted[1]))
        vectors = np.stack([one.vector for one in readings])
        found[:, 0] = (vectors[first] * vectors[second]).sum(axis=1)
        if wanted[1]:
            for i, (one, other) in enumerate(zip(first, second, strict=True)):
                found[i, 1] = match_words(readings[one], readings[other], self.states.idf)
        if wanted[2]:
            fits = fit_to(self.states.vectors, vectors)
            found[:, 2] = fits[first] + fits[second]
        if any(wanted[3:]):
            for i, pair in enumerate(self.terms(pairs, wanted[3:])):
                found[i, 3:] = agree(*pair)
        return found

    def __call__(self, pairs: Sequence[SentencePair]) -> np.ndarray:
        """Return the similarity of each pair: (P,)."""
        return self._combine(self._measure(pairs, self.weights != 0), self.weights)

    def choose(self, pairs: Sequence[SentencePair], gold: np.ndarray, source: str) -> tuple[Weights, np.ndarray]:
        """Choose the weights on rated pairs; return them and the similarities (P,) that they give."""
        measured = self._measure(pairs)
        values, spearman = self._choose(measured, gold)
        chosen = Weights(values=values, spearman=spearman, pairs=len(gold), source=source, form=self.form)
        return chosen, self._combine(measured, np.array(values))

    def explain(self, first: str, second: str) -> list[Deciding]:
        """Return the contexts of two sentences, those that add most to their similarity first.

        A context adds where both sentences fit it better, or both worse, than they fit any, and takes off where one
        does and the other does not. The parts of all contexts sum to what the terms of equation 3 give.

        Raises:
            ContextError: no term of equation 3 has a weight, so that no context is read.
        """
        weights = self.weights[-len(TERMS) :]
        if not weights.any():
            raise ContextError(
                "no context is read, since no term over contexts has a weight: name some, such as "
                "--set score.terms=cosine,coherence, or take --preset pretrained"
            )
        sets = self.contexts([first, second])
        numbers = np.concatenate([sets[first], sets[second]])
        (terms,) = pair_terms([(first, second)], sets, self.scorer, weights != 0)
        if self.form == "pmi":
            norms = np.maximum(np.prod(np.linalg.norm(terms, axis=1), axis=0), 1e-12)  # (4,)
            parts = (terms[0] * terms[1] / norms) @ weights / np.maximum(self.weights, 0).sum()
        else:
            one, other = terms @ weights
            parts = one * other / max(np.linalg.norm(one) * np.linalg.norm(other), 1e-12)
        fits = terms @ weights  # (2, C)
        sides = self.states.store.side_texts(numbers)
        found: dict[int, Deciding] = {}
        for number, part, left, right, *both in zip(numbers.tolist(), parts, *sides, *fits, strict=True):
            # A context of both sentences counts twice.
            before = found[number].part if number in found else 0.0
            found[number] = Deciding(before + float(part), left, right, (float(both[0]), float(both[1])))
        return sorted(found.values(), key=lambda one: -one.part)

    def forget(self) -> None:
        """Forget the sentences of earlier calls, so that the next result does not depend on them in its last digits.

        A sentence that is remembered is missing in the batch of the others, and sums of another batch are rounded
        differently.
        """
        self.states.forget()
        if "scorer" in vars(self):
            self.scorer.forget()

    def score_pairs(self, first: Sequence[str], second: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """Return the similarity of each of P pairs, (P,) float64."""
        return np.asarray(self(list(zip(first, second, strict=True))), dtype=np.float64)

    def rows(self, ranked: Sequence[str], asked: Sequence[str], progress: Progress | None = None) -> Rows:
        """Return a function from a slice of the queries `asked` to the scores (B, R) of all ranked texts.

        The `NEAR` texts with the highest cosine are scored by Origin; the others follow them in the order of cosine.
        """
        shown = progress or self.progress
        cosines_of = cosines(*(self.states.vectors_of(texts, shown) for texts in (asked, ranked)))

        def of(block: slice) -> np.ndarray:
            scores = cosines_of(block)
            near = np.argsort(-scores, axis=1)[:, :NEAR]
            pairs = [(text, ranked[i]) for text, row in zip(asked[block], near, strict=True) for i in row]
            found = np.split(self(pairs), len(scores))
            scores -= 100.0  # behind any similarity
            for row, best, values in zip(scores, near, found, strict=True):
                row[best] = values
            return scores

        return of


def open_origin(
    work: str | Path,
    options: ScoreOptions | None = None,
    selection: SelectionOptions | None = None,
    progress: Progress = QUIET,
) -> Origin:
    """Return the Origin similarity of a workspace.

    Only what has a weight is opened (`stages_read`). Where equation 3 ranks the contexts (`selection.screened`), other
    weights choose other contexts.

    Args:
        work: holds the stages.
        options: of the score; without weights, those that were chosen for the workspace, or even ones.
        selection: of the context sets.
        progress: shows what is found and scored.

    Raises:
        ContextError: a stage is missing or stale, or weights were chosen for another form.
    """
    options, workspace = with_chosen_weights(work, options or ScoreOptions()), Workspace(work)
    states = States(workspace)
    if options.form == "pmi" and not states.vectors.shape[1]:
        raise ContextError(
            f"{workspace.path / 'states'} keeps word pieces alone, which have no form=pmi: score with --preset paper, "
            "or make it with states.keep=tokens"
        )

    options = with_weights(work, states, options, selection, progress)
    if options.form == "paper":
        for stage in stages_read(options.weights):
            workspace.require(stage)
    return Origin(work, states, options, selection, progress)


def with_weights(
    work: str | Path,
    states: States,
    options: ScoreOptions,
    selection: SelectionOptions | None = None,
    progress: Progress = QUIET,
) -> ScoreOptions:
    """Return the options with weights: their own, those that were chosen for the workspace, or even ones.

    In the form `pmi` these give each of `options.terms` the same deviation over `own_pairs`. They are kept in the
    workspace, for each choice of terms, contexts and models.

    Args:
        work: the workspace's folder.
        states: those of the workspace.
        options: of the score.
        selection: of the context sets.
        progress: shows what is found and scored.
    """
    options = with_chosen_weights(work, options)
    if options.weights or options.form == "paper":
        return options
    wanted = [name in options.terms for name in FEATURES]
    if sum(wanted) == 1:
        return options.updated(weights=tuple(map(float, wanted)))
    workspace, selection = Workspace(work), selection or SelectionOptions()
    depends: list[Any] = [*(workspace.require(stage).fingerprint for stage in stages_read(wanted)), options.terms]
    if any(wanted[3:]):
        depends.append(selection.to_dict())
    path = workspace.path / f"even-{digest_of(repr(depends)).hex()[:12]}.json"
    if path.is_file():
        return options.updated(weights=Weights.load(path).values)
    pairs = own_pairs(states)
    progress.tell(f"each term is brought to one scale, on {counted(len(pairs), 'pair')} of the workspace's sentences")
    values = even(Origin(work, states, options, selection, progress).features(pairs, wanted), wanted)
    source = "equal weights of terms on one scale, that of the workspace's own sentences"
    Weights(values=values, pairs=len(pairs), source=source, form="pmi").save(path)
    return options.updated(weights=values)
