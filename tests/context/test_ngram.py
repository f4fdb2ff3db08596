"""The n-gram models of the benchmarks against figures by hand and against a plain loop with dictionaries."""

import random
from collections import defaultdict
from itertools import product

import numpy as np
import pytest


def test_unigram_by_hand(ngrams):
    # 0 three times, 1 once, 2 never: (3 + 1) / (4 + 3), 2 / 7, 1 / 7.
    model = ngrams.Unigram([[0, 0, 1], [0]], 3)
    assert np.exp(model.log_probabilities([0, 1, 2])) == pytest.approx([4 / 7, 2 / 7, 1 / 7])


def test_trigram_by_hand(ngrams):
    # Texts 'a b', 'a b', 'a c' with V = 3. Trigrams ^^a 3, ^ab 2, ^ac 1; bigrams (different words before) ^a 1, ab 1,
    # ac 1; words a 1, b 1, c 1. d3 = 1 / (1 + 2 * 1) = 1/3; no word or bigram has count 2, so d2 = d1 = 1/2.
    model = ngrams.Trigram([[0, 1], [0, 1], [0, 2]], 3)
    p_b = (1 - 0.5) / 3 + 0.5 * 3 / 3 / 3  # 1/3
    p_b_after_a = (1 - 0.5) / 2 + 0.5 * 2 / 2 * p_b  # 5/12
    p_b_after_start_a = (2 - 1 / 3) / 3 + (1 / 3) * 2 / 3 * p_b_after_a
    p_a_at_start = (3 - 1 / 3) / 3 + (1 / 3) * 1 / 3 * ((1 - 0.5) / 1 + 0.5 * 1 / 1 * p_b)
    assert np.exp(model.log_probabilities([0, 1])) == pytest.approx([p_a_at_start, p_b_after_start_a])
    # After 'b' nothing was ever seen: only p(w) is left.
    assert np.exp(model.log_probabilities([1, 2]))[1] == pytest.approx(1 / 3)


def literal_kneser_ney(texts, size):
    """The formulas of the docstring, word by word."""
    start = "^"
    counts = defaultdict(int)
    for text in texts:
        padded = [start, start, *text]
        for i in range(2, len(padded)):
            counts[tuple(padded[i - 2 : i + 1])] += 1
    bigrams, words = defaultdict(set), defaultdict(set)
    for u, v, w in counts:
        bigrams[v, w].add(u)
    for v, w in bigrams:
        words[w].add(v)
    tables = [
        {(w,): len(s) for w, s in words.items()},
        {key: len(s) for key, s in bigrams.items()},
        dict(counts),
    ]

    def discount(table):
        once = sum(c == 1 for c in table.values())
        twice = sum(c == 2 for c in table.values())
        return once / (once + 2 * twice) if once and twice else 0.5

    def probability(w, history):
        table = tables[len(history)]
        after = {key: c for key, c in table.items() if key[:-1] == tuple(history)}
        lower = probability(w, history[1:]) if history else 1 / size
        if not after:
            return lower
        total, d = sum(after.values()), discount(table)
        return max(after.get((*history, w), 0) - d, 0) / total + d * len(after) / total * lower

    return probability, start


def test_trigram_is_the_literal_formula_and_sums_to_one(ngrams):
    rng = random.Random(1)
    size = 6
    texts = [[rng.choice((0, 0, 0, 1, 1, 2, 3, 4)) for _ in range(rng.randint(1, 7))] for _ in range(40)]
    model = ngrams.Trigram(texts, size)
    probability, start = literal_kneser_ney(texts, size)
    for text in ([0, 1, 0, 5, 5, 2], [4, 4], [5]):
        padded = [start, start, *text]
        expected = [probability(padded[i], padded[i - 2 : i]) for i in range(2, len(padded))]
        assert np.exp(model.log_probabilities(text)) == pytest.approx(expected)
    for history in product(range(size), repeat=2):
        total = sum(np.exp(model.log_probabilities([*history, w])[-1]) for w in range(size))
        assert total == pytest.approx(1)


def test_a_trigram_beats_a_unigram_on_text_with_order(ngrams):
    texts = [[0, 1, 2, 3]] * 20 + [[3, 2, 1, 0]] * 20
    three, one = ngrams.Trigram(texts, 4), ngrams.Unigram(texts, 4)
    assert three.log_probabilities([0, 1, 2, 3]).sum() > one.log_probabilities([0, 1, 2, 3]).sum() + 2
