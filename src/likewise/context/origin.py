"""Origin: the similarity of two sentences by contexts, in the form `pmi` or as in equation 4.

A sentence's context set (section 3.3) is retrieved, ranked, and chosen one at a time:

1. Retrieval brings the chunks nearest to the sentence (20,000).
2. The discriminator ranks all contexts of these chunks; the best ones are left (`screened`).
3. Equation 3 ranks what is left, if a scorer is given and `screened` above 0, otherwise the discriminator; and
   contexts are taken one at a time, the best first, unless their chunk has given one already or the sentence before
   the place is too like the sentence before a place already taken (Jaccard similarity of their words of 0.5 or more).

A context's score does not depend on what was taken before it, so one pass down the ranking is the same as a search for
the best allowed context at every step.
Equation 3 scores sentences in contexts. The form `paper` has log p(y = 1 | s, c) and the log probabilities a word,

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

The similarity of two sentences in the form `pmi` is a weighted sum, with signed weights, of

    cosine     of the frozen encoder's vectors: what the encoder alone says
    words      how well the words of one explain those of the other: the mean over word pieces, weighted by idf, of the
               highest cosine with a state of the other sentence; the mean of both directions
    fit        how well the sentences fit the corpus: the mean cosine of a sentence with its 10 nearest sentences of the
               corpus, both summed; with a weight below 0 it takes from a similarity what either has with everything
    coherence, centre, left, right
               the terms of equation 3 as pointwise mutual information: the cosine of the two sentences' terms over
               the contexts of both

Letters: P pairs, C contexts, K cells (a sentence in a context), T and U tokens, S sentences, D embedding.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

import numpy as np
import torch
from scipy.optimize import minimize
from scipy.stats import spearmanr

from likewise.context.discriminator import CachedRanker
from likewise.context.generators import Generators, load_generators
from likewise.context.harvests import PairSource, SentencePair, tfidf
from likewise.context.index import RETRIEVAL, ChunkStore, Retrieval
from likewise.context.pretrained import PretrainedGenerators
from likewise.context.stage_options import FEATURES, TERMS, HarvestOptions, ScoreOptions, SelectionOptions
from likewise.context.states import SentenceReading, States
from likewise.context.workspace import QUIET, ContextError, Workspace
from likewise.corpus.lines_and_rows import digest_of
from likewise.errors import counted
from likewise.evaluation.pairs import cosines
from likewise.evaluation.task import Rows
from likewise.runs.options import OptionError, Options
from likewise.runs.progress import Progress
from likewise.runs.whole_files import read_json, write_json

_WORD = re.compile(r"\w+")
MAX_OVERLAP = 0.5
"""Jaccard similarity of the sentences before two gaps must be below it (section 3.3)."""


@dataclass(frozen=True)
class ContextFinder:
    """The context sets of sentences, from the chunks of an index, their retrieval and a discriminator."""

    store: ChunkStore
    retrieval: Retrieval
    ranker: CachedRanker

    @classmethod
    def open(cls, work: str | Path, states: States | None = None) -> Self:
        """Return the finder of a workspace, its files mapped from disk; `states` if they are open already.

        Raises:
            ContextError: index or discriminator was not made, or is stale.
        """
        workspace = Workspace(work)
        states = states or States(workspace)
        ranker = CachedRanker(workspace.require("discriminator"), states)
        return cls(states.store, Retrieval(workspace.path / "index" / RETRIEVAL), ranker)

    def find(
        self,
        sentence: str,
        options: SelectionOptions | None = None,
        scorer: Callable[[str, np.ndarray], np.ndarray] | None = None,
    ) -> np.ndarray:
        """Return the context set of a sentence: int64 [C], numbers in the store, in the order of choice.

        It is smaller than asked for where retrieval finds too few chunks or the rules leave too few contexts. The
        scorer, equation 3, is asked where `screened` is above 0.
        """
        options, store = options or SelectionOptions(), self.store
        if options.strategy == "random":
            numbers = random_contexts(sentence, store.n_contexts, options.size)
            return numbers[self._of_others(words_of(sentence), numbers, options)]
        # In the order of the store, so that equal scores do not hang on the order of retrieval.
        numbers = store.contexts_of(np.sort(self.retrieval.candidates(sentence, options.candidates)))
        scores = self.ranker.scores(sentence, numbers)
        if options.screened and scorer is not None:
            numbers = numbers[np.sort(np.argsort(-scores, kind="stable")[: options.screened])]
            scores = np.asarray(scorer(sentence, numbers), np.float32)
        return numbers[self._choose(sentence, numbers, scores, options)]

    def _choose(self, sentence: str, numbers: np.ndarray, scores: np.ndarray, options: SelectionOptions) -> np.ndarray:
        """Return the indices of the chosen contexts, reading the words of no more than needed."""
        chunks, _ = self.store.positions(numbers)
        own = words_of(sentence)
        taken: list[int] = []
        before: list[frozenset[str]] = []
        order = np.argsort(-scores, kind="stable")
        for begin in range(0, len(order), step := 2 * options.size):  # reading one context at a time is slow
            rows = order[begin : begin + step]
            of_others, texts = self._of_others(own, numbers[rows], options), self.store.preceding(numbers[rows])
            for index, allowed, text in zip(rows.tolist(), of_others, texts, strict=True):
                words = words_of(text)
                repeats = chunks[index] in chunks[taken] or any(jaccard(words, one) >= MAX_OVERLAP for one in before)
                if allowed and not (options.diversity and repeats):
                    taken.append(index)
                    before.append(words)
                if len(taken) == options.size:
                    return np.array(taken, np.int64)
        return np.array(taken, np.int64)

    def _of_others(self, own: frozenset[str], numbers: np.ndarray, options: SelectionOptions) -> list[bool]:
        """Return of each context whether the sentence, or one very like it, stands neither in it nor in its gap."""
        if options.same > 1:
            return [True] * len(numbers)
        texts = self.store.around(numbers)
        return [all(jaccard(own, words_of(text)) < options.same for text in around) for around in texts]


@lru_cache(50_000)
def words_of(text: str) -> frozenset[str]:
    """Return the lower-cased words of a text."""
    return frozenset(_WORD.findall(text.lower()))


def jaccard(first: frozenset[str], second: frozenset[str]) -> float:
    """Return the share of the words of two sets that are in both; 1 for two empty sets.

    >>> jaccard(frozenset("abc"), frozenset("bcd"))
    0.5
    """
    return len(first & second) / len(first | second) if first or second else 1.0


def random_contexts(sentence: str, n_contexts: int, size: int) -> np.ndarray:
    """Draw distinct contexts for a sentence, which depend on the sentence alone."""
    digest = blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.random.default_rng(int.from_bytes(digest)).choice(n_contexts, min(size, n_contexts), replace=False)


_CELLS = 4_096
"""Cells whose coherence is computed at a time."""
_SAMPLE = 64
"""Contexts of the corpus over which a sentence's mean is taken."""


NEAREST = 10
COPY = 0.97
"""A sentence of the corpus of this cosine or more is a copy, and does not count among the nearest."""
_SENTENCES = 512
WEIGHTS = "weights.json"
"""In a workspace: the weights that were chosen for it."""


def match_words(first: SentenceReading, second: SentenceReading, idf: np.ndarray) -> float:
    """Return the mean over both directions of the idf-weighted highest cosine of a word piece; 0 without words."""
    if not len(first.ids) or not len(second.ids):
        return 0.0
    cosines = first.states.astype(np.float32) @ second.states.astype(np.float32).T  # (T, U)
    total = 0.0
    for ids, best in ((first.ids, cosines.max(axis=1)), (second.ids, cosines.max(axis=0))):
        weights = idf[ids] + 1e-6  # a sentence of nothing but the most frequent piece
        total += float(best @ weights / weights.sum())
    return total / 2


def fit_to(corpus: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return the mean cosine of vectors (N, D) with their nearest rows of the corpus (S, D), copies left out: (N,)."""
    fits = np.zeros(len(vectors))
    for begin in range(0, len(vectors), _SENTENCES):
        cosines = vectors[begin : begin + _SENTENCES] @ corpus.T
        cosines[cosines >= COPY] = -1.0
        k = min(NEAREST, cosines.shape[1])
        fits[begin : begin + _SENTENCES] = np.partition(cosines, -k, axis=1)[:, -k:].mean(axis=1)
    return fits


def agree(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Return the cosine over contexts of each term (equation 4): (C, 4), (C, 4) -> (4,); 0 where one side is zero."""
    norms = np.linalg.norm(first, axis=0) * np.linalg.norm(second, axis=0)
    return np.where(norms > 1e-12, (first * second).sum(axis=0) / np.maximum(norms, 1e-12), 0.0)


def weighted(features: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the similarities (P,) of features (P, 7), on the scale of a cosine, whatever the size of weights."""
    return features @ weights / np.maximum(weights, 0).sum()


def choose_signed(features: np.ndarray, gold: np.ndarray) -> tuple[tuple[float, ...], float]:
    """Choose signed weights under which the weighted sum of features agrees best with ratings, by `choose_weights`.

    Features (P, 7) are put on one scale; the first one that differs between the pairs has weight 1, and one that is 0
    throughout has none. The weights are of the features as they are; with them comes Spearman's correlation times 100.
    """
    check_rated(features, gold)
    spread = features.std(axis=0)
    usable = np.flatnonzero(spread > 1e-9).tolist()
    if not usable:
        raise ContextError("none of the terms differs between the rated pairs")
    scale = np.where(spread > 1e-9, spread, 1)
    scaled = (features - features.mean(axis=0)) / scale
    start = np.eye(len(FEATURES))[usable[0]]
    weights, spearman = choose_weights(lambda tried: scaled @ tried, gold, start, usable[1:])
    raw = weights / scale
    return tuple(float(f"{value:.5g}") for value in raw / np.abs(raw[usable[0]])), spearman


def similarities(terms: Sequence[np.ndarray], weights: np.ndarray | Sequence[float]) -> np.ndarray:
    """Return equation 4 of the terms (2, C, 4) of each pair, the cosine of two vectors of weighted terms: (P,)."""
    return np.array([float(agree(*(pair @ np.asarray(weights))[..., None])[0]) for pair in terms])


def choose_even(
    terms: Sequence[np.ndarray], gold: np.ndarray, without: Sequence[str] = ()
) -> tuple[tuple[float, ...], float]:
    """Choose weights of 0 or more for equation 4, which sum to 1, from even ones; see `choose_signed`."""
    check_rated(terms, gold)
    start = np.array([float(name not in without) for name in TERMS])
    free = np.flatnonzero(start).tolist()
    weights, spearman = choose_weights(lambda tried: similarities(terms, tried), gold, start, free, 0.0)
    return tuple((weights / weights.sum()).tolist()), spearman


def check_rated(pairs: Sequence[object] | np.ndarray, gold: np.ndarray) -> None:
    """Raise a ContextError if there are too few rated pairs."""
    if len(gold) < 2 or len(pairs) != len(gold):
        raise ContextError(f"weights need two rated pairs or more, not {len(pairs)} with {len(gold)} ratings")


class Weights(Options):
    """Weights of the seven features of the form `pmi` or of the terms of equation 3, and the pairs that chose them.

    `spearman` is the correlation times 100 on these; None without ratings.
    """

    values: tuple[float, ...]
    spearman: float | None = None
    pairs: int
    source: str
    form: Literal["pmi", "paper"]

    def save(self, path: Path) -> None:
        """Write the weights as JSON, atomically."""
        write_json(path, self.to_dict())

    @classmethod
    def load(cls, path: Path) -> Weights:
        """Read saved weights."""
        try:
            return cls(**read_json(path))
        except (ValueError, TypeError, OptionError) as error:
            raise ContextError(f"'{path}' holds no weights ({error}): choose them again") from None


def choose_weights(
    similarities: Callable[[np.ndarray], np.ndarray],
    gold: np.ndarray,
    start: np.ndarray,
    free: Sequence[int],
    least: float = -4.0,
) -> tuple[np.ndarray, float]:
    """Return the weights under which similarities agree best with ratings, and Spearman's correlation times 100.

    Powell's method moves those that are `free`, from `least` to 4, and they are rounded to hundredths.
    """
    weights = start.copy()

    def disagreement(values: Sequence[float] | np.ndarray) -> float:
        weights[free] = values
        value = float(spearmanr(similarities(weights), gold).statistic) if weights.any() else -1.0
        return -value if np.isfinite(value) else 1.0

    best = start[free]
    if len(free):
        settings = {"xtol": 0.01, "ftol": 1e-4}
        best = minimize(disagreement, best, method="Powell", bounds=[(least, 4.0)] * len(free), options=settings).x
    spearman = -100 * disagreement(best.round(2))
    return weights, spearman


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
    *_, coherence, centre, left, right = (bool(weight) for weight in (wanted if len(wanted) else (True,) * len(TERMS)))
    # The discriminator chooses the contexts of every term.
    over_contexts = ["discriminator"] if coherence or centre or left or right else []
    return ["index", "states", *over_contexts, *(["generators"] if centre or left or right else [])]


def _texts(pairs: Sequence[SentencePair]) -> list[str]:
    return list(dict.fromkeys(text for pair in pairs for text in pair))


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

    What the terms of equation 3 need is opened when one of them has a weight. Arguments are those of `open_origin`, and
    the states of the workspace.
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
        """What the similarity is made of: the terms that have a weight."""
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
        """The contexts over which a sentence's mean is taken."""
        return np.sort(np.random.default_rng(0).permutation(self.states.store.n_contexts)[:_SAMPLE])

    def fits(self, sentence: str, contexts: np.ndarray) -> np.ndarray:
        """Return S(s, c) of one sentence in each context: (C,)."""
        cells = np.stack([np.zeros(len(contexts), np.int64), contexts], axis=1)
        weights = self.weights[-len(TERMS) :]
        return self.cell_terms([sentence], cells, weights != 0) @ weights

    def cell_terms(self, sentences: Sequence[str], cells: np.ndarray, wanted: Wanted = (True,) * 4) -> np.ndarray:
        """Return the four terms of equation 3, not yet weighted: (K, 4) float64.

        Args:
            cells: (K, 2), the index of a sentence and the number of a context; one that is repeated is computed once.
            wanted: which terms; the others are 0.
        """
        if not len(cells):
            return np.zeros((0, len(TERMS)))
        distinct, inverse = np.unique(cells[:, ::-1], axis=0, return_inverse=True)  # by context
        terms = self._terms(sentences, distinct[:, ::-1], wanted)
        if self.form == "pmi":
            terms -= self._mean_terms(sentences, wanted)[distinct[:, 1]]
        return terms[inverse.reshape(-1)]

    def _mean_terms(self, sentences: Sequence[str], wanted: Wanted) -> np.ndarray:
        """Return the means of the terms of sentences over the sample, (S, 4)."""
        n, means = len(sentences), np.zeros((len(sentences), len(TERMS)))
        # The discriminator's are cheap; those of the generators are taken over as many contexts as they can afford.
        for some in ((wanted[0], False, False, False), (False, *wanted[1:])):
            if any(some):
                sample = self.sample[:: 1 if some[0] else max(1, len(self.sample) // self.generators.sample)]
                cells = np.stack([np.tile(np.arange(n), len(sample)), np.repeat(sample, n)], axis=1)
                means += self._terms(sentences, cells, some).reshape(len(sample), n, -1).mean(axis=0)
        return means

    def _terms(self, sentences: Sequence[str], cells: np.ndarray, wanted: Wanted) -> np.ndarray:
        """Return the terms (K, 4) of cells in the order of their contexts, not less their means."""
        terms, ranker, pmi = np.zeros((len(cells), len(TERMS))), self.finder.ranker, self.form == "pmi"
        with torch.inference_mode():
            if wanted[0]:
                parts = ranker.sentence_parts(self.states.read(sentences))
                for begin in range(0, len(cells), _CELLS):
                    rows = cells[begin : begin + _CELLS]
                    logits = (parts[rows[:, 0]] * ranker.context_parts(rows[:, 1])).sum(dim=1)
                    terms[begin : begin + _CELLS, 0] = logits if pmi else torch.nn.functional.logsigmoid(logits)
            if any(wanted[1:]):
                asked = [bool(weight) for weight in wanted[1:]]
                terms[:, 1:] = self.generators.terms(self.states, sentences, cells, asked, pmi, self.progress)
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
        wanted: Wanted = (True,) * 4,
        contexts: Mapping[str, np.ndarray] | None = None,
    ) -> list[np.ndarray]:
        """Return the terms of each pair (2, C, 4) over the contexts of its first and then of its second sentence.

        A sentence without contexts leaves those of the other; where neither has any, the pair has no row, and its
        similarity is 0. Terms that are not wanted are 0; `contexts` are those of each text, if they are found already.
        """
        sentences = {text: i for i, text in enumerate(_texts(pairs))}
        contexts = contexts or self.contexts(list(sentences))
        cells: list[np.ndarray] = []
        for first, second in pairs:
            both = np.concatenate([contexts[first], contexts[second]]).astype(np.int64)
            cells += [np.stack([np.full(len(both), sentences[text]), both], axis=1) for text in (first, second)]
        if not cells:
            return []
        terms = self.cell_terms(list(sentences), np.concatenate(cells), wanted)
        ends = np.cumsum([2 * len(cell) for cell in cells[::2]])
        return [part.reshape(2, -1, len(TERMS)) for part in np.split(terms, ends[:-1])]

    def features(self, pairs: Sequence[SentencePair], wanted: Wanted = (True,) * 7) -> np.ndarray:
        """Return the features of the form `pmi` of each pair, (P, 7); those that are not wanted are 0."""
        features = np.zeros((len(pairs), len(FEATURES)))
        if not len(pairs):
            return features
        texts = _texts(pairs)
        row = {text: i for i, text in enumerate(texts)}
        first, second = (np.array([row[pair[side]] for pair in pairs], np.int64) for side in (0, 1))
        readings = self.states.readings(texts, self.progress, bool(wanted[1]))
        vectors = np.stack([reading.vector for reading in readings])
        features[:, 0] = (vectors[first] * vectors[second]).sum(axis=1)
        if wanted[1]:
            for i, (row_of_first, row_of_second) in enumerate(zip(first, second, strict=True)):
                features[i, 1] = match_words(readings[row_of_first], readings[row_of_second], self.states.idf)
        if wanted[2]:
            fits = fit_to(self.states.vectors, vectors)
            features[:, 2] = fits[first] + fits[second]
        if any(wanted[3:]):
            for i, pair in enumerate(self.terms(pairs, wanted[3:])):
                features[i, 3:] = agree(*pair)
        return features

    def cosines(self, pairs: Sequence[SentencePair]) -> np.ndarray | None:
        """Return the cosine of each pair by the encoder alone, (P,); None if the workspace keeps no vectors."""
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
        """Return the contexts of two sentences, those that add most to their similarity first.

        A context adds where both sentences fit it better, or both worse, than they fit any, and takes off where one
        does and the other does not. The parts of all contexts sum to what the terms of equation 3 give.

        Raises:
            ContextError: no term of equation 3 has a weight, so that no context is read.
        """
        if not self.reads_contexts:
            raise ContextError(
                "no context is read, since no term over contexts has a weight: name some, such as "
                "--set score.terms=coherence, or take --preset pretrained"
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
            f"{workspace.path / 'states'} keeps word pieces alone, which have no form=pmi: score with --preset paper, "
            "or make it with states.keep=tokens"
        )
    if options.form == "paper":
        for stage in stages_read(options.weights):
            workspace.require(stage)
    elif not options.weights:
        options = options.updated(weights=_even_weights(Origin(work, states, options, selection, progress)))
    return Origin(work, states, options, selection, progress)


def _even_weights(origin: Origin) -> tuple[float, ...]:
    """Return weights under which each of `options.terms` has the same deviation over `own_pairs`, the first weight 1.

    A term that does not vary has weight 0. They are kept in the workspace, for each choice of terms, contexts, models.
    """
    workspace, terms = origin.workspace, origin.options.terms
    wanted = [name in terms for name in FEATURES]
    if sum(wanted) == 1:
        return tuple(map(float, wanted))
    depends: list[object] = [*(workspace.require(stage).fingerprint for stage in stages_read(wanted)), terms]
    if origin.reads_contexts:
        depends.append(origin.selection.to_dict())
    path = workspace.path / f"even-{digest_of(repr(depends)).hex()[:12]}.json"
    if not path.is_file():
        pairs = own_pairs(origin.states)
        count = counted(len(pairs), "pair")
        origin.progress.tell(f"each term is brought to one scale, on {count} of the workspace's sentences")
        spread = origin.features(pairs, wanted).std(axis=0)
        weights = np.where(spread > 1e-9, 1 / np.maximum(spread, 1e-9), 0.0) * wanted
        if not weights.any():
            raise ContextError("none of the terms differs between the workspace's sentences: give more documents")
        values = tuple(float(f"{value:.5g}") for value in weights / weights[weights > 0][0])
        source = "equal weights of terms on one scale, that of the workspace's own sentences"
        Weights(values=values, pairs=len(pairs), source=source, form="pmi").save(path)
    return Weights.load(path).values
