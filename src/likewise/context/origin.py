"""Origin: the similarity of two sentences by contexts, in the form `pmi` or as in equation 4.

Equation 3 scores sentences in contexts. The form `paper` has log p(y = 1 | s, c) and the log probabilities a word,

    S(s, c) = w1 log p(y = 1 | s, left, right) + w2 / |s| log p(s | left, right)
            + w3 / |left| log p(left | s, right) + w4 / |right| log p(right | left, s).

The form `pmi` subtracts from each term its value without the sentence, so that it contains neither the fluency of a
sentence nor of a context:

    coherence   logit of p(y = 1 | s, c): the discriminator learns log p(s, c) / p(s) p(c) up to a constant
    centre      1 / |s|      (log p(s | left, right) - log p(s))
    left        1 / |left|   (log p(left | s, right) - log p(left | right))
    right       1 / |right|  (log p(right | left, s) - log p(right | left))

and then its mean over a sample of all contexts of the corpus. Over retrieved contexts, which both sentences of a
similar pair fit, a mean over these would take away that they fit.

The similarity of two sentences in the form `pmi` is a weighted sum, with signed weights, of

    cosine     the cosine of the frozen encoder's vectors
    words      the match of the words: the mean over word pieces, weighted by idf, of the highest cosine with a state of
               the other sentence, averaged over both directions
    fit        how well the sentences fit the corpus: the mean cosine of a sentence with its 10 nearest sentences of the
               corpus, both summed; with a weight below 0 it takes from a similarity what either has with everything
    coherence, centre, left, right
               the terms of equation 3 as pointwise mutual information: the cosine of the two sentences' terms over
               the contexts of both

Letters: P pairs, C contexts, K cells (a sentence in a context), T and U tokens, S sentences, D embedding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from likewise.context.context_sets import ContextFinder
from likewise.context.generators import Generators
from likewise.context.generators_stage import load_generators
from likewise.context.harvest_pairs import PairSource, SentencePair, tfidf
from likewise.context.pretrained import PretrainedGenerators
from likewise.context.stage_options import FEATURES, TERMS, HarvestOptions, ScoreOptions, SelectionOptions
from likewise.context.states import States
from likewise.context.weights import (
    WEIGHTS,
    Weights,
    agree,
    choose_even,
    choose_signed,
    fit_to,
    match_words,
    similarities,
    weighted,
)
from likewise.context.workspace import QUIET, ContextError, Workspace
from likewise.corpus.clean_text import digest_of
from likewise.errors import counted
from likewise.evaluation.pairs import cosines
from likewise.evaluation.task import Rows
from likewise.runs.progress import Progress

_CELLS = 4_096
"""Cells whose coherence is computed at a time."""
_SAMPLE = 64
"""Contexts of the corpus over which a sentence's mean is taken."""
_ANCHORS = 20
"""Sentences whose pairs bring the terms to a scale."""
NEAR = 100
"""Texts of the highest cosine that `rows` scores."""
Mask = Sequence[bool] | np.ndarray
"""Which terms or features are computed; the others are 0."""


def stages_read(chosen: Sequence[float] | np.ndarray) -> list[str]:
    """Return the stages of a workspace that terms or features require.

    Args:
        chosen: Weight or truth value of each term, (4,) or (7,); empty for the equal weights of equation 3.

    >>> stages_read((1, 1, 0, 0.5, 0, 0, 0))
    ['index', 'states', 'discriminator']
    """
    *_, coherence, centre, left, right = (bool(weight) for weight in (chosen if len(chosen) else (True,) * len(TERMS)))
    # The discriminator chooses the contexts of every term.
    over_contexts = ["discriminator"] if coherence or centre or left or right else []
    return ["index", "states", *over_contexts, *(["generators"] if centre or left or right else [])]


class Deciding(NamedTuple):
    """A context and its contribution to a similarity.

    Attributes:
        part: Contribution to the similarity, which may be negative.
        left, right: Text on either side of the gap.
        fits: Fit of the first and of the second sentence, by the weighted terms of equation 3.
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
    """The similarity of a workspace, which is a `PairScorer` for `likewise.evaluate`.

    The stages of the terms of equation 3 are only opened if a term has a weight. The arguments are the arguments of
    `open_origin`, and the states of the workspace.
    """

    def __init__(
        self,
        work: str | Path,
        states: States,
        options: ScoreOptions,
        selection: SelectionOptions | None = None,
        progress: Progress = QUIET,
    ) -> None:
        self.workspace, self.states, self.options = Workspace(work), states, options
        self.selection = selection or SelectionOptions()
        self.form, self.progress, self.name = options.form, progress, f"origin:{work}"
        pmi = self.form == "pmi"
        self.weights = np.array(
            options.weights or ([float(name in options.terms) for name in FEATURES] if pmi else (0.25,) * 4)
        )
        self._measure = self.features if pmi else self.terms
        self._combine: Callable[..., np.ndarray] = weighted if pmi else similarities
        self._choose: Any = choose_signed if pmi else choose_even

    @property
    def reads_contexts(self) -> bool:
        """Whether a term over contexts has a weight."""
        return bool(self.weights[-len(TERMS) :].any())

    @property
    def about(self) -> str:
        """The description of the similarity: the terms that have a weight."""
        names = FEATURES if self.form == "pmi" else ("coherence", "sentence", "left", "right")
        terms = " and ".join(name for name, weight in zip(names, self.weights, strict=True) if weight)
        return terms if self.reads_contexts else f"{terms} of the encoder alone: no context is read"

    @property
    def settings(self) -> dict[str, str]:
        """The settings that a report of an evaluation names."""
        precision = self.states.encoder.precision
        return {"similarity": f"Origin, form {self.form}, {self.about}", "precision": precision, "device": "cpu"}

    @cached_property
    def finder(self) -> ContextFinder:
        """The finder of contexts."""
        return ContextFinder.open(self.workspace.path, self.states)

    @cached_property
    def generators(self) -> Generators | PretrainedGenerators:
        """The generators, opened at their first use."""
        return load_generators(self.workspace.require("generators"), self.states)

    @cached_property
    def sample(self) -> np.ndarray:
        """The contexts over which the mean of a sentence is computed."""
        return np.sort(np.random.default_rng(0).permutation(self.states.store.n_contexts)[:_SAMPLE])

    def fits(self, sentence: str, contexts: np.ndarray) -> np.ndarray:
        """Return S(s, c) of one sentence in each context: (C,)."""
        cells = np.stack([np.zeros(len(contexts), np.int64), contexts], axis=1)
        weights = self.weights[-len(TERMS) :]
        return self.cell_terms([sentence], cells, weights != 0) @ weights

    def cell_terms(self, sentences: Sequence[str], cells: np.ndarray, chosen: Mask = (True,) * 4) -> np.ndarray:
        """Return the four terms of equation 3, not yet weighted: (K, 4) float64.

        Args:
            cells: (K, 2), the index of a sentence and the number of a context; one that is repeated is computed once.
            chosen: Names of the requested terms; the others are 0.
        """
        if not len(cells):
            return np.zeros((0, len(TERMS)))
        distinct, inverse = np.unique(cells[:, ::-1], axis=0, return_inverse=True)  # by context
        terms = self._terms(sentences, distinct[:, ::-1], chosen)
        if self.form == "pmi":
            terms -= self._mean_terms(sentences, chosen)[distinct[:, 1]]
        return terms[inverse.reshape(-1)]

    def _mean_terms(self, sentences: Sequence[str], chosen: Mask) -> np.ndarray:
        """Return the means of the terms of sentences over the sample, (S, 4)."""
        n, means = len(sentences), np.zeros((len(sentences), len(TERMS)))
        # The discriminator's are cheap; the generators' are taken over as many contexts as they can afford.
        for some in ((chosen[0], False, False, False), (False, *chosen[1:])):
            if any(some):
                sample = self.sample[:: 1 if some[0] else max(1, len(self.sample) // self.generators.sample)]
                cells = np.stack([np.tile(np.arange(n), len(sample)), np.repeat(sample, n)], axis=1)
                means += self._terms(sentences, cells, some).reshape(len(sample), n, -1).mean(axis=0)
        return means

    def _terms(self, sentences: Sequence[str], cells: np.ndarray, chosen: Mask) -> np.ndarray:
        """Return the terms (K, 4) of cells in the order of their contexts, not less their means."""
        terms, ranker, pmi = np.zeros((len(cells), len(TERMS))), self.finder.ranker, self.form == "pmi"
        with torch.inference_mode():
            if chosen[0]:
                parts = ranker.sentence_parts(self.states.read(sentences))
                for begin in range(0, len(cells), _CELLS):
                    rows = cells[begin : begin + _CELLS]
                    logits = (parts[rows[:, 0]] * ranker.context_parts(rows[:, 1])).sum(dim=1)
                    terms[begin : begin + _CELLS, 0] = logits if pmi else torch.nn.functional.logsigmoid(logits)
            if any(chosen[1:]):
                requested = [bool(weight) for weight in chosen[1:]]
                terms[:, 1:] = self.generators.terms(self.states, sentences, cells, requested, pmi, self.progress)
        return terms

    def contexts(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        """Return the numbers of the contexts of each text."""
        contexts = {}
        with self.progress.bar("finding contexts of sentences", len(texts)) as bar:
            for text in texts:
                contexts[text] = self.finder.find(text, self.selection, self.fits)
                bar.advance()
        return contexts

    def terms(
        self,
        pairs: Sequence[SentencePair],
        chosen: Mask = (True,) * 4,
        contexts: Mapping[str, np.ndarray] | None = None,
    ) -> list[np.ndarray]:
        """Return the terms of each pair, (2, C, 4), over the contexts of its first and of its second sentence.

        If one sentence has no contexts, the contexts of the other are used; if neither has any, the pair has no row,
        and its similarity is 0. Unused terms are 0; `contexts` are the contexts of each text, if they are already
        known.
        """
        sentences = {text: i for i, text in enumerate(_texts(pairs))}
        contexts = contexts or self.contexts(list(sentences))
        cells: list[np.ndarray] = []
        for first, second in pairs:
            both = np.concatenate([contexts[first], contexts[second]]).astype(np.int64)
            cells += [np.stack([np.full(len(both), sentences[text]), both], axis=1) for text in (first, second)]
        if not cells:
            return []
        terms = self.cell_terms(list(sentences), np.concatenate(cells), chosen)
        ends = np.cumsum([2 * len(cell) for cell in cells[::2]])
        return [part.reshape(2, -1, len(TERMS)) for part in np.split(terms, ends[:-1])]

    def features(self, pairs: Sequence[SentencePair], chosen: Mask = (True,) * 7) -> np.ndarray:
        """Return the features of the form `pmi` of each pair, (P, 7); unused features are 0."""
        features = np.zeros((len(pairs), len(FEATURES)))
        if not len(pairs):
            return features
        texts = _texts(pairs)
        row = {text: i for i, text in enumerate(texts)}
        first, second = (np.array([row[pair[side]] for pair in pairs], np.int64) for side in (0, 1))
        readings = self.states.readings(texts, self.progress, bool(chosen[1]))
        vectors = np.stack([reading.vector for reading in readings])
        features[:, 0] = (vectors[first] * vectors[second]).sum(axis=1)
        if chosen[1]:
            for i, (row_of_first, row_of_second) in enumerate(zip(first, second, strict=True)):
                features[i, 1] = match_words(readings[row_of_first], readings[row_of_second], self.states.idf)
        if chosen[2]:
            fits = fit_to(self.states.vectors, vectors)
            features[:, 2] = fits[first] + fits[second]
        if any(chosen[3:]):
            for i, pair in enumerate(self.terms(pairs, chosen[3:])):
                features[i, 3:] = agree(*pair)
        return features

    def cosines(self, pairs: Sequence[SentencePair]) -> np.ndarray | None:
        """Return the cosine of each pair by the encoder alone, (P,); None if the workspace contains no vectors."""
        if not self.states.vectors.shape[1]:
            return None
        return self.features(pairs, (True,) + (False,) * 6)[:, 0]

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
        """Return the contexts of two sentences by their contribution to the similarity, the largest first.

        The contribution of a context is positive if both sentences fit it better, or both fit it worse, than the
        average context, and negative otherwise. The contributions of all contexts sum to the similarity by equation 3.

        Raises:
            ContextError: If no term of equation 3 has a weight, and thus no context is used.
        """
        if not self.reads_contexts:
            raise ContextError(
                "no context is read, because no term over contexts has a weight: choose such terms by --set "
                "score.terms=coherence, or use --preset pretrained"
            )
        weights = self.weights[-len(TERMS) :]
        sets = self.contexts([first, second])
        numbers = np.concatenate([sets[first], sets[second]])
        (terms,) = self.terms([(first, second)], weights != 0, sets)
        if self.form == "pmi":
            norms = np.maximum(np.prod(np.linalg.norm(terms, axis=1), axis=0), 1e-12)  # (4,)
            parts = (terms[0] * terms[1] / norms) @ weights / np.maximum(self.weights, 0).sum()
        else:
            first_fits, second_fits = terms @ weights
            parts = first_fits * second_fits / max(np.linalg.norm(first_fits) * np.linalg.norm(second_fits), 1e-12)
        fits = terms @ weights  # (2, C)
        sides = self.states.store.side_texts(numbers)
        deciding: dict[int, Deciding] = {}
        for number, part, left, right, *both in zip(numbers.tolist(), parts, *sides, *fits, strict=True):
            # A context of both sentences counts twice.
            before = deciding[number].part if number in deciding else 0.0
            deciding[number] = Deciding(before + float(part), left, right, (float(both[0]), float(both[1])))
        return sorted(deciding.values(), key=lambda context: -context.part)

    def score_pairs(self, first: Sequence[str], second: Sequence[str], progress: Progress | None = None) -> np.ndarray:
        """Return the similarity of each of P pairs, (P,) float64."""
        return np.asarray(self(list(zip(first, second, strict=True))), dtype=np.float64)

    def rows(self, ranked: Sequence[str], queries: Sequence[str], progress: Progress | None = None) -> Rows:
        """Return a function from a slice of the queries `queries` to the scores (B, R) of all ranked texts.

        The `NEAR` texts with the highest cosines are scored by Origin; the other texts follow in the order of their
        cosines.
        """
        display = progress or self.progress
        cosines_of = cosines(*(self.states.vectors_of(texts, display) for texts in (queries, ranked)))

        def of(block: slice) -> np.ndarray:
            scores = cosines_of(block)
            near = np.argsort(-scores, axis=1)[:, :NEAR]
            pairs = [(text, ranked[i]) for text, row in zip(queries[block], near, strict=True) for i in row]
            scored = np.split(self(pairs), len(scores))
            scores -= 100.0  # behind any similarity
            for row, best, values in zip(scores, near, scored, strict=True):
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

    Only the stages of terms with a weight are opened (`stages_read`). If equation 3 ranks the contexts
    (`selection.screened`), the weights also determine the selected contexts.

    Args:
        work: Path to the workspace with the stages.
        options: Options of the score. Without weights, the selected weights of the workspace are used, or equal
            weights.
        selection: Options of the context sets.
        progress: Progress of retrieval and scoring.

    Raises:
        ContextError: If a stage is missing or stale, or if the weights were selected for another form.
    """
    workspace, options = Workspace(work), options or ScoreOptions()
    path = workspace.path / WEIGHTS
    if not options.weights and path.is_file():
        chosen = Weights.load(path)
        if chosen.form != options.form:
            raise ContextError(f"{path} was chosen for form={chosen.form}, not {options.form}: choose weights again")
        options = options.updated(weights=chosen.values)
    states = States(workspace)
    if options.form == "pmi" and not states.vectors.shape[1]:
        raise ContextError(
            f"{workspace.path / 'states'} contains only word pieces, which do not support form=pmi: score with "
            f"--preset paper, or rebuild it with states.keep=tokens"
        )
    if options.form == "paper":
        for stage in stages_read(options.weights):
            workspace.require(stage)
    elif not options.weights:
        options = options.updated(weights=_even_weights(Origin(work, states, options, selection, progress)))
    return Origin(work, states, options, selection, progress)


def _texts(pairs: Sequence[SentencePair]) -> list[str]:
    return list(dict.fromkeys(text for pair in pairs for text in pair))


def _even_weights(origin: Origin) -> tuple[float, ...]:
    """Return weights under which each of `options.terms` has the same deviation over `own_pairs`, the first weight 1.

    A term that does not vary has weight 0. They are kept in the workspace, for each choice of terms, contexts, models.
    """
    workspace, terms = origin.workspace, origin.options.terms
    selected = [name in terms for name in FEATURES]
    if sum(selected) == 1:
        return tuple(map(float, selected))
    depends: list[object] = [*(workspace.require(stage).fingerprint for stage in stages_read(selected)), terms]
    if origin.reads_contexts:
        depends.append(origin.selection.to_dict())
    path = workspace.path / f"even-{digest_of(repr(depends)).hex()[:12]}.json"
    if not path.is_file():
        pairs = own_pairs(origin.states)
        count = counted(len(pairs), "pair")
        origin.progress.tell(f"scaling the terms on {count} of the workspace's sentences")
        spread = origin.features(pairs, selected).std(axis=0)
        weights = np.where(spread > 1e-9, 1 / np.maximum(spread, 1e-9), 0.0) * selected
        if not weights.any():
            raise ContextError("none of the terms differs between the workspace's sentences: give more documents")
        values = tuple(float(f"{value:.5g}") for value in weights / weights[weights > 0][0])
        source = "equal weights of terms, scaled on the workspace's sentences"
        Weights(values=values, pairs=len(pairs), source=source, form="pmi").save(path)
    return Weights.load(path).values
