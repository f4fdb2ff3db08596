"""Partial word-vector augmentation (GCLSR, section 3.1): four kinds of noise, one drawn for each word.

Everything runs on a whole batch as tensors: every kind sees at once all the words that drew it.
Letters of the shapes: B sentences, T words, D numbers of a word vector, K words that drew a kind.
"""

from collections.abc import Sequence

import torch
from torch import Generator, Tensor

from likewise.errors import LikewiseError

KINDS = (0.5, 0.2, 0.1, 0.2)
"""Probabilities p1 to p4 of white noise, zeros, the Fourier round trip and background noise (equation 1)."""


def white_noise(vectors: Tensor, generator: Generator | None = None) -> Tensor:
    """Add Gaussian white noise (equation 3): w + lambda N(0, 1), (K, D) to (K, D).

    lambda is such that the noise's power is d decibels below the mean square of w, d uniform from 6 to 12 for each
    word: lambda = rms(w) 10^(-d / 20).
    """
    drawn = _for_each_word(vectors, (6.0, 12.0), generator)  # (K, 1)
    power = vectors.square().mean(dim=-1, keepdim=True)  # (K, 1)
    scale = (power * 10 ** (-drawn / 10)).sqrt()
    return vectors + scale * torch.randn(vectors.shape, generator=generator, device=vectors.device)


def random_zeros(vectors: Tensor, generator: Generator | None = None) -> Tensor:
    """Set each number to zero with a probability r, (K, D) to (K, D), r uniform from 0.05 to 0.1 for each word.

    The other components do not change: section 3.1 mentions Dropout, but the authors' code does not rescale.
    """
    drawn = _for_each_word(vectors, (0.05, 0.1), generator)  # (K, 1)
    chance = torch.rand(vectors.shape, generator=generator, device=vectors.device)  # (K, D)
    return vectors * (chance >= drawn)


def _for_each_word(vectors: Tensor, limits: tuple[float, float], generator: Generator | None) -> Tensor:
    lowest, highest = limits
    drawn = torch.rand(vectors.shape[:-1], generator=generator, device=vectors.device)[..., None]
    return lowest + (highest - lowest) * drawn


def fourier_round_trip(vectors: Tensor, generator: Generator | None = None) -> Tensor:
    """Return Real(IFFT(FFT(w))) (equation 4), (K, D) to (K, D).

    Up to rounding this is w itself, so this kind leaves a word unchanged.
    """
    if not len(vectors):
        return vectors  # no word drew this kind, and FFT libraries refuse an empty batch
    return torch.fft.ifft(torch.fft.fft(vectors.float(), dim=-1), dim=-1).real.to(vectors.dtype)


def background_noise(vectors: Tensor, generator: Generator | None = None) -> Tensor:
    """Add random background noise (equation 5): w + uniform(0, 0.1), (K, D) to (K, D)."""
    return vectors + 0.1 * torch.rand(vectors.shape, generator=generator, device=vectors.device)


def authors_white_noise(vectors: Tensor, generator: Generator | None = None) -> Tensor:
    """Add the white noise of the authors' code, (K, D) to (K, D): 6 to 11 whole decibels below the word."""
    whole = torch.randint(6, 12, (len(vectors), 1), generator=generator, device=vectors.device)
    scale = (vectors.square().mean(dim=-1, keepdim=True) * 10 ** (-whole / 10)).sqrt()
    return vectors + scale * torch.randn(vectors.shape, generator=generator, device=vectors.device)


def authors_zeros(vectors: Tensor, generator: Generator | None = None) -> Tensor:
    """Set 15 to 19 of 300 numbers to zero, and as many in proportion where D is not 300, (K, D) to (K, D)."""
    count, dimension = vectors.shape
    counts = torch.randint(15, 20, (count, 1), generator=generator, device=vectors.device)
    zeros = (counts * dimension / 300).round().clamp(min=1)  # (K, 1)
    order = torch.rand(vectors.shape, generator=generator, device=vectors.device).argsort(dim=-1).argsort(dim=-1)
    return vectors * (order >= zeros)


def authors_fourier(vectors: Tensor, generator: Generator | None = None) -> Tensor:
    """Return the Fourier round trip of a word minus the mean of its components, (K, D) to (K, D); the mean is lost."""
    return fourier_round_trip(vectors - vectors.mean(dim=-1, keepdim=True))


def authors_background(vectors: Tensor, generator: Generator | None = None) -> Tensor:
    """Add uniform(min w, 0.8 max w), drawn for each number, times uniform(0, 0.01), drawn for each word, (K, D)."""
    if not len(vectors):
        return vectors
    lowest, highest = vectors.amin(dim=-1, keepdim=True), 0.8 * vectors.amax(dim=-1, keepdim=True)
    noise = lowest + (highest - lowest) * torch.rand(vectors.shape, generator=generator, device=vectors.device)
    return vectors + noise * _for_each_word(vectors, (0.0, 0.01), generator)


_PAPER = (white_noise, random_zeros, fourier_round_trip, background_noise)
_AUTHORS = (authors_white_noise, authors_zeros, authors_fourier, authors_background)


def add_word_noise(
    vectors: Tensor,
    mask: Tensor,
    share: float = 0.5,
    kinds: Sequence[float] = KINDS,
    authors: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Add noise to some of the words of a batch (equations 1 and 2); the others are unchanged.

    Args:
        vectors: (B, T, D) word vectors.
        mask: (B, T) 1 for a word; padding is left alone.
        share: Probability p that noise is added to a word at all (equation 2); 1 is 'full' augmentation.
        kinds: Four probabilities, see `KINDS`.
        authors: Whether to add the four kinds as in the authors' code.
        generator: Random generator; by default torch's global one.

    Returns:
        (B, T, D), a new tensor.
    """
    if vectors.ndim != 3 or vectors.shape[:2] != mask.shape:
        raise LikewiseError(
            f"vectors must be (B, T, D) and the mask (B, T), not {tuple(vectors.shape)} and {tuple(mask.shape)}"
        )
    disturbed, drawn = draw_kinds(mask, share, kinds, generator)
    out = vectors.clone()
    for kind, disturb in enumerate(_AUTHORS if authors else _PAPER):
        chosen = disturbed & (drawn == kind)  # (B, T), K of them true
        out[chosen] = disturb(vectors[chosen], generator)
    return out


def draw_kinds(
    mask: Tensor, share: float, kinds: Sequence[float], generator: Generator | None = None
) -> tuple[Tensor, Tensor]:
    """Return the disturbed words (B, T, bool), and the kind 0 to 3 that each would draw (B, T)."""
    draws = torch.rand((2, *mask.shape), generator=generator, device=mask.device)
    disturbed = (draws[0] < share) & mask.bool()
    edges = torch.tensor(kinds, device=mask.device).cumsum(0)[:3]
    return disturbed, torch.bucketize(draws[1], edges, right=True)
