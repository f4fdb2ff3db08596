"""Origin similarity (equation 4): the agreement of two sentences in how they fit the contexts of both.

Letters of the shapes: P pairs, C contexts of a pair, W settings of the weights.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from likewise.context.chunks import Context
from likewise.context.generators import Generators
from likewise.context.harvest_pairs import Pair
from likewise.context.options import TERMS, ScoreOptions, SelectionOptions
from likewise.context.score import ContextScorer
from likewise.context.selection import ContextFinder
from likewise.context.workspace import ContextError, Workspace
from likewise.runs.progress import Progress
from likewise.runs.whole_files import read_json, write_json

WEIGHTS = "weights.json"
_QUIET = Progress(quiet=True)

Metric = Literal["cosine", "correlation"]


@dataclass(frozen=True)
class PairTerms:
    """The terms of equation 3 of both sentences in the contexts of both, (C, 4) each."""

    first: np.ndarray
    second: np.ndarray


@dataclass(frozen=True)
class Weights:
    """The four weights of equation 3, and how they were chosen.

    Attributes:
        values: of coherence, sentence, left and right context.
        metric: the cosine of equation 4, or the cosine of what differs from their mean ("correlation").
        spearman: times 100, on the pairs they were chosen on.
        pairs, source: how many those were, and which.
    """

    values: tuple[float, ...]
    metric: Metric
    spearman: float
    pairs: int
    source: str

    def save(self, path: str | Path) -> None:
        """Write the weights as JSON, atomically."""
        write_json(Path(path), asdict(self))

    @classmethod
    def load(cls, path: str | Path) -> Weights:
        """Read saved weights.

        Raises:
            ContextError: there are none, or the file is damaged.
        """
        try:
            content = read_json(Path(path))
            return cls(**{**content, "values": tuple(float(value) for value in content["values"])})
        except FileNotFoundError:
            raise ContextError(f"there are no weights in '{path}': choose them first") from None
        except (ValueError, TypeError, KeyError) as error:
            raise ContextError(f"'{path}' holds no weights ({error!r}): choose them again") from None


def pair_terms(
    pairs: Sequence[Pair],
    contexts: Mapping[str, Sequence[Context]],
    scorer: ContextScorer,
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


def similarities(
    terms: Sequence[PairTerms], weights: Sequence[float] | np.ndarray, metric: Metric = "cosine"
) -> np.ndarray:
    """Return the similarity (equation 4) of each pair: (P,)."""
    return _similarities(_moments(terms, metric), np.asarray([weights], dtype=np.float64))[0]


@dataclass(frozen=True)
class Origin:
    """The similarity of two sentences, by equation 3 over the context sets from `contexts`."""

    scorer: ContextScorer
    contexts: Callable[[Sequence[str]], Sequence[Sequence[Context]]]
    progress: Progress = _QUIET

    def terms(self, pairs: Sequence[Pair], wanted: Sequence[bool] | np.ndarray = (True,) * 4) -> list[PairTerms]:
        """Return the terms of each pair, from which weights can be chosen."""
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        sets = dict(zip(texts, self.contexts(texts), strict=True))
        return pair_terms(pairs, sets, self.scorer, wanted, self.progress)

    def __call__(self, pairs: Sequence[Pair]) -> np.ndarray:
        """Return the similarity of each pair: (P,)."""
        weights = self.scorer.weights
        return similarities(self.terms(pairs, weights > 0), weights, self.scorer.options.metric)


def open_origin(
    work: str | Path,
    options: ScoreOptions | None = None,
    selection: SelectionOptions | None = None,
    progress: Progress = _QUIET,
) -> Origin:
    """Return the Origin similarity of a workspace.

    Contexts are ranked by equation 3 with the weights in force, as section 3.3 has it, so that other weights choose
    other contexts; with `options.contexts_by` "discriminator" they do not depend on the weights.

    Args:
        work: holds index, discriminator and generators.
        options: of the score; without weights, those that were chosen for the workspace, or equal ones.
        selection: of the context sets.
        progress: shows what is found and scored.

    Raises:
        ContextError: a stage is missing or stale, or weights were chosen for another metric.
    """
    options = with_chosen_weights(work, options or ScoreOptions())
    folder = Workspace(work).require("generators").folder
    finder = ContextFinder.open(work)
    generators = Generators.load(folder, "cuda" if torch.cuda.is_available() else "cpu")
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

    return Origin(scorer, contexts, progress)


def with_chosen_weights(work: str | Path, options: ScoreOptions) -> ScoreOptions:
    """Return the options, with the weights that were chosen for the workspace if they name none."""
    path = Path(work) / WEIGHTS
    if options.weights or not path.is_file():
        return options
    chosen = Weights.load(path)
    if chosen.metric != options.metric:
        raise ContextError(f"{path} was chosen for metric={chosen.metric}, not {options.metric}: choose weights again")
    return options.updated(weights=chosen.values)


def choose_weights(
    terms: Sequence[PairTerms],
    gold: Sequence[float] | np.ndarray,
    *,
    metric: Metric = "cosine",
    steps: int = 20,
    source: str = "STS-B dev",
    without: Sequence[str] = (),
) -> Weights:
    """Choose the weights under which equation 4 agrees best with human ratings, by Spearman correlation.

    Equation 4 does not change when all weights are multiplied, so those that sum to one are tried, in steps of
    1 / `steps` (20: 1,771 settings); of equal ones the most even is taken.

    Args:
        terms: all four terms of P pairs.
        gold: their ratings (P,).
        without: names of `TERMS` whose weight stays 0 (table 9).
    """
    from scipy.stats import rankdata

    if len(terms) != len(gold) or len(gold) < 2:
        raise ContextError(f"weights need two rated pairs or more, not {len(terms)} with {len(gold)} ratings")
    if unknown := set(without) - set(TERMS):
        raise ContextError(f"there is no term {', '.join(sorted(unknown))}; there are {', '.join(TERMS)}")
    grid = np.array([w for w in _compositions(steps, len(TERMS)) if not any(w[TERMS.index(name)] for name in without)])
    grid = grid[np.argsort(grid.max(axis=1), kind="stable")] / steps  # (W, 4), the most even first
    found = _similarities(_moments(terms, metric), grid)  # (W, P)
    ranks, wanted = rankdata(found, axis=1), rankdata(np.asarray(gold))
    ranks, wanted = ranks - ranks.mean(axis=1, keepdims=True), wanted - wanted.mean()
    norms = np.linalg.norm(ranks, axis=1) * np.linalg.norm(wanted)
    spearman = np.where(norms > 0, ranks @ wanted / np.where(norms > 0, norms, 1), -1.0)
    best = int(np.argmax(np.round(spearman, 12)))
    values = tuple(float(value) for value in grid[best])
    return Weights(values, metric, 100 * float(spearman[best]), len(gold), source)


def _compositions(total: int, parts: int) -> list[tuple[int, ...]]:
    """Return all ways to write a number as an ordered sum of `parts` numbers of 0 or more."""
    if parts == 1:
        return [(total,)]
    return [(first, *rest) for first in range(total + 1) for rest in _compositions(total - first, parts - 1)]


def _moments(terms: Sequence[PairTerms], metric: Metric) -> np.ndarray:
    """Return, for each pair, the sums over its contexts of products of two terms: (P, 3, 4, 4).

    A vector of scores is (terms) (weights), so that its products with another need these sums alone.
    """
    found = np.empty((len(terms), 3, len(TERMS), len(TERMS)))
    for i, pair in enumerate(terms):
        a, b = pair.first.astype(np.float64), pair.second.astype(np.float64)
        if metric == "correlation" and len(a):
            a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        found[i] = a.T @ b, a.T @ a, b.T @ b
    return found


def _similarities(moments: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the similarities (equation 4) from moments (P, 3, 4, 4) for weights (W, 4): (W, P)."""
    both, first, second = np.einsum("wi,pkij,wj->kwp", weights, moments, weights, optimize=True)
    norms = np.sqrt(np.maximum(first, 0) * np.maximum(second, 0))
    return np.where(norms > 1e-300, both / np.maximum(norms, 1e-300), 0.0)
