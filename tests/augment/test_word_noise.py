import numpy as np
import pytest
import torch

from likewise.augment.word_noise import (
    add_word_noise,
    background_noise,
    draw_kinds,
    fourier_round_trip,
    random_zeros,
    white_noise,
)


@pytest.fixture
def words():
    return torch.randn(2000, 50, generator=torch.Generator().manual_seed(1)) * 3


def seeded(seed=0):
    return torch.Generator().manual_seed(seed)


def test_white_noise_lies_6_to_12_decibels_below_the_word(words):
    noise = (white_noise(words, seeded()) - words).numpy()
    decibels = 10 * np.log10((words.numpy() ** 2).mean(axis=1) / (noise**2).mean(axis=1))
    # 50 numbers measure a power to about 1 dB.
    assert 8.5 < decibels.mean() < 9.5
    assert decibels.min() > 6 - 3
    assert decibels.max() < 12 + 4
    scaled = noise / np.sqrt((noise**2).mean(axis=1, keepdims=True))
    assert abs((scaled**4).mean() / (scaled**2).mean() ** 2 - 3) < 0.2  # kurtosis of a Gaussian


def test_zeros_are_a_share_of_each_word_and_the_rest_is_as_it_was():
    words = 1 + torch.rand(500, 1000, generator=seeded())
    found = random_zeros(words, seeded())
    zero = found == 0
    assert torch.equal(found[~zero], words[~zero])
    shares = zero.float().mean(dim=1).numpy()
    # Uniform from 5% to 10%: its quantiles, but for the chance of 1,000 draws a word.
    assert np.allclose(np.quantile(shares, [0.25, 0.5, 0.75]), [0.0625, 0.075, 0.0875], atol=0.01)
    assert 0.02 < shares.min() < 0.07
    assert 0.08 < shares.max() < 0.15


def test_fourier_round_trip_is_numpys(words):
    expected = np.real(np.fft.ifft(np.fft.fft(words.numpy(), axis=1), axis=1))
    found = fourier_round_trip(words)
    assert np.allclose(found, expected, atol=1e-5)
    assert torch.allclose(found, words, atol=1e-5)  # it changes rounding only


def test_no_word_draws_a_kind():
    for disturb in (white_noise, random_zeros, fourier_round_trip, background_noise):
        assert disturb(torch.zeros(0, 50)).shape == (0, 50)


def test_background_noise_is_uniform_from_0_to_a_tenth(words):
    noise = (background_noise(words, seeded()) - words).numpy()
    assert -1e-6 <= noise.min() < 0.001
    assert 0.099 < noise.max() <= 0.1 + 1e-6
    assert np.allclose(np.quantile(noise, [0.25, 0.5, 0.75]), [0.025, 0.05, 0.075], atol=0.001)


def test_words_are_disturbed_with_probability_p_and_kinds_drawn_with_p1_to_p4():
    disturbed, kinds = draw_kinds(torch.ones(200, 100), 0.4, (0.5, 0.2, 0.1, 0.2), seeded())
    assert disturbed.float().mean() == pytest.approx(0.4, abs=0.01)
    shares = [(kinds[disturbed] == kind).float().mean().item() for kind in range(4)]
    assert shares == pytest.approx([0.5, 0.2, 0.1, 0.2], abs=0.015)


@pytest.mark.parametrize("kind", range(4))
def test_each_kind_reaches_the_words_that_drew_it_and_no_padding(kind, words):
    vectors, mask = words.reshape(20, 100, 50), torch.ones(20, 100)
    mask[:, 60:] = 0
    kinds = tuple(float(i == kind) for i in range(4))
    before = vectors.clone()
    out = add_word_noise(vectors, mask, 0.5, kinds, generator=seeded())
    assert torch.equal(vectors, before)
    assert torch.equal(out[:, 60:], vectors[:, 60:])
    difference = (out - vectors)[:, :60].abs().amax(dim=2)  # (20, 60)
    if kind == 2:
        assert difference.max() < 1e-5
    else:
        assert (difference > 0.01).float().mean() == pytest.approx(0.5, abs=0.05)
        assert (difference == 0).float().mean() == pytest.approx(0.5, abs=0.05)


def test_full_none_and_the_same_seed(words):
    vectors, mask = words.reshape(20, 100, 50), torch.ones(20, 100)
    assert torch.equal(add_word_noise(vectors, mask, 0.0, generator=seeded()), vectors)
    kinds = (0.75, 0.0, 0.0, 0.25)  # without zeros, of which a word may draw none
    one, two, other = (add_word_noise(vectors, mask, 1.0, kinds, generator=seeded(seed)) for seed in (1, 1, 2))
    assert torch.equal(one, two)
    assert not torch.equal(one, other)
    assert (one != vectors).any(dim=2).all()


def test_a_mask_of_another_shape_is_refused(says):
    with says(ValueError):
        add_word_noise(torch.zeros(2, 3, 4), torch.ones(2, 2))


def drawn(words, kind):
    """Return words (K, D) with the authors' noise of one kind on each of them."""
    kinds = tuple(float(kind == number) for number in range(4))
    mask = torch.ones(1, len(words), dtype=torch.long)
    return add_word_noise(words[None], mask, 1.0, kinds, True, torch.Generator().manual_seed(3))[0].numpy()


def test_the_authors_white_noise_is_6_to_11_whole_decibels_below_the_word():
    words = torch.randn(40, 20_000, generator=torch.Generator().manual_seed(1))
    noise = drawn(words, 0) - words.numpy()
    decibels = 10 * np.log10(np.square(words.numpy()).mean(axis=1) / np.square(noise).mean(axis=1))
    assert np.abs(decibels - decibels.round()).max() < 0.15
    assert set(decibels.round()) <= {6, 7, 8, 9, 10, 11}
    assert len(set(decibels.round())) > 3


@pytest.mark.parametrize(("dimension", "fewest", "most"), [(300, 15, 19), (50, 2, 3), (3, 1, 1)])
def test_the_authors_zeros_are_15_to_19_of_300(dimension, fewest, most):
    words = torch.ones(200, dimension)
    zeros = (drawn(words, 1) == 0).sum(axis=1)
    assert (zeros.min(), zeros.max()) == (fewest, most)


def test_the_authors_fourier_loses_the_mean_of_a_word(words):
    flat = words.reshape(-1, words.shape[-1])
    expected = flat.numpy() - flat.numpy().mean(axis=1, keepdims=True)
    np.testing.assert_allclose(drawn(flat, 2), expected, atol=1e-5)


def test_the_authors_background_lies_between_the_words_own_bounds():
    words = torch.randn(50, 2_000, generator=torch.Generator().manual_seed(1)) + 3
    noise = drawn(words, 3) - words.numpy()
    lowest, highest = words.numpy().min(axis=1), 0.8 * words.numpy().max(axis=1)
    scale = (noise.max(axis=1) - noise.min(axis=1)) / (highest - lowest)
    assert scale.min() > 0
    assert scale.max() <= 0.01 + 1e-4
    np.testing.assert_allclose(noise.mean(axis=1), scale * (lowest + highest) / 2, atol=2e-3)
