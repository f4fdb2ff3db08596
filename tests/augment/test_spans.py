from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.augment.spans import nested_spans, sentence_rng, words_to_mask
from likewise.corpus.words import DividedText


def segments(positions: tuple[int, ...]) -> list[int]:
    """Lengths of the runs of neighbouring positions."""
    runs: list[int] = []
    for before, position in zip((None, *positions), positions, strict=False):
        if before is not None and position == before + 1:
            runs[-1] += 1
        else:
            runs.append(1)
    return runs


@given(st.integers(0, 300), st.integers(0, 2**32 - 1), st.integers(0, 20), st.integers(0, 20))
def test_exact_proportions_and_nesting_at_any_length(n_words, seed, a, b):
    low, high = sorted((Fraction(a, 20), Fraction(b, 20)))
    closer, farther = nested_spans(n_words, (float(low), float(high)), np.random.default_rng(seed))
    # Rounded half up in exact arithmetic, an oracle without floats.
    assert len(closer) == (low * n_words + Fraction(1, 2)) // 1
    assert len(farther) == (high * n_words + Fraction(1, 2)) // 1
    assert set(closer) <= set(farther) <= set(range(n_words))
    assert list(closer) == sorted(set(closer))
    assert list(farther) == sorted(set(farther))


def test_the_farther_version_grows_the_segments_of_the_closer():
    for seed in range(200):
        closer, farther = nested_spans(40, (0.2, 0.4), np.random.default_rng(seed))
        # Every segment of the second holds a word of the first: nothing was masked out of the blue.
        starts = [i for i in farther if i - 1 not in farther]
        for start, length in zip(starts, segments(farther), strict=True):
            assert set(range(start, start + length)) & set(closer)


def test_masked_words_lie_in_few_segments():
    lengths = [n for seed in range(300) for n in segments(nested_spans(45, (0.2, 0.4), np.random.default_rng(seed))[0])]
    # 9 words in 3 segments that never touch.
    assert np.mean(lengths) == 3


def test_every_word_is_masked_about_as_often():
    counts = np.zeros(30)
    for seed in range(4000):
        counts[list(nested_spans(30, (0.2, 0.4), np.random.default_rng(seed))[0])] += 1
    # A segment can begin before a word in the middle but not before the first, so the edges get less.
    assert counts.min() > 0.07 * 4000
    assert counts[3:-3].min() > 0.17 * 4000
    assert counts.max() < 0.25 * 4000


def test_same_generator_state_same_spans():
    spans = {nested_spans(50, rng=np.random.default_rng(7)) for _ in range(3)}
    assert len(spans) == 1
    assert nested_spans(50, rng=np.random.default_rng(8)) not in spans


def test_sentence_rng_depends_on_sentence_and_seed_alone():
    draws = {(s, seed): sentence_rng(s, seed).integers(1 << 40) for s in ("one", "two") for seed in (1, 2)}
    assert len(set(draws.values())) == 4
    assert sentence_rng("one", 1).integers(1 << 40) == draws["one", 1]


@pytest.mark.parametrize(("n_words", "ratios"), [(-1, (0.2, 0.4)), (9, (0.4, 0.2)), (9, (0.2, 1.1)), (9, (-0.1, 0.2))])
def test_refuses_what_cannot_be(n_words, ratios):
    with pytest.raises(ValueError):
        nested_spans(n_words, ratios)


def test_whole_words_are_masked():
    words = DividedText.of("Al Jaber's first long-distance travel was of 800km.")
    assert words.replaced((1, 2, 7), "<m>") == "Al <m> <m> long-distance travel was of <m>"


def test_rounding_is_half_up_despite_binary_fractions():
    assert words_to_mask(35, 0.3) == 11  # 10.5, which floats make 10.499999999999998
    assert words_to_mask(5, 0.1) == 1


@pytest.mark.parametrize("ratios", [(0.2, 0.4), (0.2, 0.25)])
def test_independent_masks_have_the_same_sizes_and_need_not_contain_each_other(ratios):
    drawn = [nested_spans(40, ratios, np.random.default_rng(seed), independent=True) for seed in range(200)]
    assert {(len(closer), len(farther)) for closer, farther in drawn} == {(8, round(40 * ratios[1]))}
    contained = np.mean([set(closer) <= set(farther) for closer, farther in drawn])
    overlap = np.mean([len(set(closer) & set(farther)) / 8 for closer, farther in drawn])
    assert contained < 0.05
    assert overlap == pytest.approx(ratios[1], abs=0.05)  # as of two draws that know nothing of each other
