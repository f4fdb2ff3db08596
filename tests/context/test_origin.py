"""Equation 4 against a literal double loop; the choice of the weights against trying them one by one."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import spearmanr

from likewise.context.chunks import Context
from likewise.context.options import ScoreOptions
from likewise.context.origin import Origin, pair_terms
from likewise.context.weights import PairTerms, Weights, choose_weights, similarities
from likewise.context.workspace import ContextError


class ToyScorer:
    """Terms that are any function of sentence and context."""

    def __init__(self, weights=(0.1, 0.2, 0.3, 0.4)):
        self.options = ScoreOptions(form="paper", weights=weights)
        self.weights = np.array(weights)
        self.cells = 0

    def one(self, sentence, context):
        x = len(sentence) * 0.37 + context.chunk * 1.3
        return np.array([-1.5 - math.sin(x), -2 - math.cos(2 * x), -1.1 + math.sin(3 * x), -3 + math.cos(x / 2)])

    def terms(self, sentences, contexts, cells, wanted=(True,) * 4, progress=None):
        self.cells += len(np.unique(cells, axis=0))
        return np.array([self.one(sentences[s], contexts[c]) for s, c in cells])


CONTEXTS = [Context(i, 1, (f"left {i}",), (f"right {i}",)) for i in range(6)]
SETS = {"a": CONTEXTS[:3], "bb": CONTEXTS[2:5], "cccc": CONTEXTS[4:]}
PAIRS = [("a", "bb"), ("bb", "a"), ("a", "cccc"), ("a", "a"), ("cccc", "bb")]


def literal(one, other, scorer):
    """Equation 4, word by word."""
    v1, v2 = [], []
    for c in [*SETS[one], *SETS[other]]:
        for sentence, vector in ((one, v1), (other, v2)):
            vector.append(sum(w * t for w, t in zip(scorer.options.weights, scorer.one(sentence, c), strict=True)))
    dot = sum(x * y for x, y in zip(v1, v2, strict=True))
    return dot / math.sqrt(sum(x * x for x in v1)) / math.sqrt(sum(y * y for y in v2))


def test_similarity_is_the_literal_double_loop():
    scorer = ToyScorer()
    origin = Origin(scorer, lambda texts: [SETS[text] for text in texts])
    found = origin(PAIRS)
    assert found == pytest.approx([literal(one, other, scorer) for one, other in PAIRS])
    assert found[0] == pytest.approx(found[1])
    assert found[3] == pytest.approx(1)


def test_a_cell_of_several_pairs_is_asked_for_with_one_number():
    scorer = ToyScorer()
    pair_terms(PAIRS, SETS, scorer)
    # a meets all six contexts, bb those of a, itself and cccc, cccc those of all three.
    assert scorer.cells == 6 + 6 + 6


def test_correlation_is_the_cosine_of_what_differs_from_the_mean():
    terms = pair_terms(PAIRS, SETS, ToyScorer())
    weights = np.array([0.1, 0.2, 0.3, 0.4])
    expected = [np.corrcoef(pair.first @ weights, pair.second @ weights)[0, 1] for pair in terms]
    assert similarities(terms, weights, "correlation") == pytest.approx(expected)


def random_terms(n_pairs, rng):
    gold = rng.uniform(0, 5, n_pairs)
    pairs = []
    for rating in gold:
        first = -rng.gamma(2.0, size=(8, 4))
        second = -rng.gamma(2.0, size=(8, 4))
        # The third term tells how alike they are, the first says the opposite.
        second[:, 2] = first[:, 2] * rating / 5 + second[:, 2] * (1 - rating / 5)
        second[:, 0] = first[:, 0] * (1 - rating / 5) + second[:, 0] * rating / 5
        pairs.append(PairTerms(first, second))
    return pairs, gold


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_the_chosen_weights_are_the_best_of_the_grid(metric):
    pairs, gold = random_terms(60, np.random.default_rng(0))
    found = choose_weights(pairs, gold, steps=4, metric=metric)
    best = max(
        100 * spearmanr(similarities(pairs, np.array(w) / 4, metric), gold).statistic
        for w in itertools.product(range(5), repeat=4)
        if sum(w) == 4
    )
    assert found.spearman == pytest.approx(best)
    assert 100 * spearmanr(similarities(pairs, found.values, metric), gold).statistic == pytest.approx(best)
    assert sum(found.values) == pytest.approx(1)
    assert found.values[2] == max(found.values)
    assert (found.pairs, found.source, found.metric) == (60, "STS-B dev", metric)


def test_terms_can_be_left_out_as_in_table_9():
    pairs, gold = random_terms(60, np.random.default_rng(0))
    found = choose_weights(pairs, gold, steps=4, without=("left", "coherence"))
    assert (found.values[0], found.values[2]) == (0, 0)
    assert found.spearman < choose_weights(pairs, gold, steps=4).spearman


def test_weights_are_recorded(tmp_path):
    pairs, gold = random_terms(10, np.random.default_rng(1))
    chosen = choose_weights(pairs, gold, steps=3, source="STS-B dev, 10 pairs")
    chosen.save(tmp_path / "weights.json")
    assert Weights.load(tmp_path / "weights.json") == chosen
    (tmp_path / "weights.json").write_text('{"values": [1, 2]}')
    with pytest.raises(ContextError, match="choose them again"):
        Weights.load(tmp_path / "weights.json")
    with pytest.raises(ContextError, match="choose them first"):
        Weights.load(tmp_path / "none.json")


def test_errors():
    pairs, gold = random_terms(5, np.random.default_rng(1))
    with pytest.raises(ContextError, match="two rated pairs"):
        choose_weights(pairs, gold[:4])
    with pytest.raises(ContextError, match="no term middle"):
        choose_weights(pairs, gold, without=("middle",))


@pytest.mark.parametrize("metric", ["cosine", "correlation"])
def test_a_sentence_without_contexts_leaves_those_of_the_other(metric):
    sets = {"a": CONTEXTS, "dddd": [], "eeeee": []}
    terms = pair_terms([("a", "dddd"), ("dddd", "eeeee")], sets, ToyScorer())
    assert [len(pair.first) for pair in terms] == [6, 0]
    found = similarities(terms, (0.1, 0.2, 0.3, 0.4), metric)
    assert found[0] == similarities(terms[:1], (0.1, 0.2, 0.3, 0.4), metric)[0] != 0
    assert found[1] == 0
