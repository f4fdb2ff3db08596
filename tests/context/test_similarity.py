"""The features of a similarity and their weights, against loops."""

import numpy as np
import pytest
from scipy.spatial.distance import cosine
from scipy.stats import spearmanr

from likewise.context.stage_options import FEATURES
from likewise.context.states import SentenceReading
from likewise.context.weights import agree, choose_signed, fit_to, match_words
from likewise.context.workspace import ContextError


def unit(rows):
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_matched_words_are_those_of_the_plain_loop():
    rng = np.random.default_rng(0)
    idf = rng.random(20).astype(np.float32) * 5
    one, other = (
        SentenceReading(np.zeros(8), rng.integers(20, size=n), unit(rng.standard_normal((n, 8))).astype(np.float16))
        for n in (4, 7)
    )

    def direction(a, b):
        best = [max(float(np.dot(x.astype(float), y.astype(float))) for y in b.states) for x in a.states]
        return np.average(best, weights=idf[a.ids])

    expected = (direction(one, other) + direction(other, one)) / 2
    assert match_words(one, other, idf) == pytest.approx(expected, abs=1e-4)
    assert match_words(one, other, idf) == match_words(other, one, idf)
    assert match_words(one, SentenceReading(np.zeros(8), np.zeros(0, int), np.zeros((0, 8), np.float16)), idf) == 0


def test_fit_leaves_copies_out():
    rng = np.random.default_rng(1)
    corpus = unit(rng.standard_normal((40, 6))).astype(np.float32)
    vectors = np.concatenate([unit(rng.standard_normal((5, 6))), corpus[:2]]).astype(np.float32)
    found = fit_to(corpus, vectors)
    for value, vector in zip(found, vectors, strict=True):
        cosines = sorted((float(c @ vector) for c in corpus if c @ vector < 0.97), reverse=True)
        assert value == pytest.approx(np.mean(cosines[:10]), abs=1e-5)


def test_agreement_is_taken_term_by_term():
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((9, 4)), rng.standard_normal((9, 4))
    b[:, 3] = 0.0
    found = agree(a, b)
    assert found[:3] == pytest.approx([1 - cosine(a[:, i], b[:, i]) for i in range(3)])
    assert found[3] == 0
    assert agree(a[:0], b[:0]).tolist() == [0, 0, 0, 0]


def test_weights_may_be_negative_and_what_says_nothing_has_none():
    rng = np.random.default_rng(3)
    truth, noise = rng.random(400), rng.random((400, 7))
    features = np.zeros((400, 7))
    features[:, 0] = truth + 0.5 * noise[:, 0] + 0.4 * noise[:, 2]
    features[:, 2] = 10 * noise[:, 2]  # what spoils the first one, on another scale
    weights, spearman = choose_signed(features, truth)
    assert weights[0] == 1
    assert weights[2] == pytest.approx(-0.04, abs=0.01)
    assert [weights[i] for i in (1, 3, 4, 5, 6)] == [0] * 5
    assert spearman == pytest.approx(100 * spearmanr(features @ weights, truth).statistic, abs=0.05)
    alone, lower = choose_signed(features * np.eye(7)[0], truth)
    assert alone == (1, 0, 0, 0, 0, 0, 0)
    assert lower < spearman


def test_a_choice_that_cannot_be_made(says):
    with says(ContextError):
        choose_signed(np.zeros((1, 7)), np.zeros(1))
    with says(ContextError):
        choose_signed(np.zeros((3, len(FEATURES))), np.arange(3))
