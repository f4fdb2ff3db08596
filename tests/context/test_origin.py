"""Equation 4 against a literal double loop; the choice of the weights against trying them one by one."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from likewise.context.origin import Origin
from likewise.context.stage_options import ScoreOptions
from likewise.context.weights import Weights, choose_even, similarities
from likewise.context.workspace import ContextError


class ToyScorer:
    """Terms that are any function of sentence and context."""

    def __init__(self, weights=(0.1, 0.2, 0.3, 0.4)):
        self.weights = np.array(weights)

    def one(self, sentence, context):
        x = len(sentence) * 0.37 + context * 1.3
        return np.array([-1.5 - math.sin(x), -2 - math.cos(2 * x), -1.1 + math.sin(3 * x), -3 + math.cos(x / 2)])

    def terms(self, sentences, cells, wanted=(True,) * 4):
        return np.array([self.one(sentences[s], c) for s, c in cells])


SETS = {"a": np.array([0, 1, 2]), "bb": np.array([2, 3, 4]), "cccc": np.array([4, 5])}


class Sets:
    """Context sets that are known."""

    def find(self, sentence, *rest):
        return SETS[sentence]


PAIRS = [("a", "bb"), ("bb", "a"), ("a", "cccc"), ("a", "a"), ("cccc", "bb")]


def origin_of(scorer):
    options = ScoreOptions(form="paper", weights=tuple(scorer.weights))
    origin = Origin("work", None, options)
    origin.cell_terms, origin.finder = scorer.terms, Sets()
    return origin


def literal(one, other, scorer):
    """Equation 4, word by word."""
    v1, v2 = [], []
    for c in [*SETS[one], *SETS[other]]:
        for sentence, vector in ((one, v1), (other, v2)):
            vector.append(sum(w * t for w, t in zip(scorer.weights, scorer.one(sentence, c), strict=True)))
    dot = sum(x * y for x, y in zip(v1, v2, strict=True))
    return dot / math.sqrt(sum(x * x for x in v1)) / math.sqrt(sum(y * y for y in v2))


def test_similarity_is_the_literal_double_loop():
    scorer = ToyScorer()
    found = origin_of(scorer)(PAIRS)
    assert found == pytest.approx([literal(one, other, scorer) for one, other in PAIRS])
    assert found[0] == pytest.approx(found[1])
    assert found[3] == pytest.approx(1)


def random_terms(n_pairs, rng):
    gold = rng.uniform(0, 5, n_pairs)
    pairs = []
    for rating in gold:
        first = -rng.gamma(2.0, size=(8, 4))
        second = -rng.gamma(2.0, size=(8, 4))
        # The third term tells how alike they are, the first says the opposite.
        second[:, 2] = first[:, 2] * rating / 5 + second[:, 2] * (1 - rating / 5)
        second[:, 0] = first[:, 0] * (1 - rating / 5) + second[:, 0] * rating / 5
        pairs.append(np.stack([first, second]))
    return pairs, gold


def spearman(pairs, weights, gold):
    return 100 * spearmanr(similarities(pairs, weights), gold).statistic


def test_the_chosen_weights_are_nearly_the_best_of_a_grid():
    pairs, gold = random_terms(60, np.random.default_rng(0))
    values, found = choose_even(pairs, gold)
    grid = [np.array(w) / 4 for w in itertools.product(range(5), repeat=4) if sum(w) == 4]
    best = max(spearman(pairs, weights, gold) for weights in grid)
    assert found > best - 0.5
    assert found == pytest.approx(spearman(pairs, values, gold))
    assert found > spearman(pairs, [0.25] * 4, gold) + 1
    assert sum(values) == pytest.approx(1)
    assert values[2] == max(values)
    assert min(values) >= 0


def test_weights_are_recorded(tmp_path, says):
    values = (0.1, 0.9, 0.0, 0.0)
    chosen = Weights(values=values, spearman=51.0, pairs=10, source="STS-B dev, 10 pairs", form="paper")
    chosen.save(tmp_path / "weights.json")
    assert Weights.load(tmp_path / "weights.json") == chosen
    (tmp_path / "weights.json").write_text('{"values": [1, 2]}')
    with says(ContextError):
        Weights.load(tmp_path / "weights.json")


def test_errors(says):
    pairs, gold = random_terms(5, np.random.default_rng(1))
    with says(ContextError):
        choose_even(pairs, gold[:4])


def test_a_sentence_without_contexts_leaves_those_of_the_other():
    sets = {"a": np.arange(6), "dddd": np.zeros(0, int), "eeeee": np.zeros(0, int)}
    terms = origin_of(ToyScorer()).terms([("a", "dddd"), ("dddd", "eeeee")], contexts=sets)
    assert [pair.shape[1] for pair in terms] == [6, 0]
    found = similarities(terms, (0.1, 0.2, 0.3, 0.4))
    assert found[0] == similarities(terms[:1], (0.1, 0.2, 0.3, 0.4))[0] != 0
    assert found[1] == 0
