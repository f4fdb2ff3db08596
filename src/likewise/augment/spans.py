"""Nested masked spans: two versions of a sentence, the second masked more than the first (ArcCSE, section 3.2).

The paper masks "contiguous segments" of 20% of a sentence and then enlarges the masked area to 40%. It states neither
the number of segments nor the rounding. This implementation works as follows:

- a fraction is rounded to the nearest integer number of words, half up, and is exact for every length; - the first
masked words form separate segments of about `SEGMENT_WORDS` words; - the second version extends these segments at their
edges, so that it contains the first version; with independent masks, which are not in the paper, its segments are drawn
separately.
"""

import hashlib

import numpy as np

from likewise.errors import LikewiseError

SEGMENT_WORDS = 3
"""Mean length of a segment in words; the paper's example masks segments of one to four words."""


def words_to_mask(n_words: int, ratio: float) -> int:
    """Return `ratio` times `n_words`, rounded half up.

    >>> [words_to_mask(n, 0.2) for n in (0, 2, 3, 25, 27, 28)]
    [0, 0, 1, 5, 5, 6]
    """
    # A tenth of a millionth keeps 0.3 * 35 = 10.499999999999998 from falling below its half.
    return int(n_words * ratio + 0.5 + 1e-7)


def nested_spans(
    n_words: int,
    ratios: tuple[float, float] = (0.2, 0.4),
    rng: np.random.Generator | None = None,
    independent: bool = False,
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the word positions to mask for the closer and for the farther version of a sentence.

    Args:
        n_words: Number of words of the sentence.
        ratios: Fraction of words masked in the closer and in the farther version, 0 <= first <= second <= 1.
        rng: Source of chance.
        independent: Whether the farther version is drawn by itself, so that it need not contain the closer one. In the
            paper it always does.

    >>> closer, farther = nested_spans(10, (0.2, 0.4), np.random.default_rng(1))
    >>> len(closer), len(farther), set(closer) <= set(farther)
    (2, 4, True)
    """
    if n_words < 0:
        raise LikewiseError(f"n_words must be 0 or more, not {n_words}")
    first, second = ratios
    if not 0 <= first <= second <= 1:
        raise LikewiseError(f"mask ratios must satisfy 0 <= first <= second <= 1, not {ratios}")
    rng = np.random.default_rng(0) if rng is None else rng
    n_closer, n_farther = words_to_mask(n_words, first), words_to_mask(n_words, second)
    masked = _separate_segments(n_words, n_closer, rng)
    closer = tuple(np.flatnonzero(masked).tolist())
    if independent:
        masked = _separate_segments(n_words, n_farther, rng)
    else:
        _grow(masked, n_farther - n_closer, rng)
    return closer, tuple(np.flatnonzero(masked).tolist())


def sentence_rng(sentence: str, seed: int) -> np.random.Generator:
    """Return a random generator that depends on the sentence and the seed alone.

    Masks are thereby the same in every order of batches, in every worker and after a resume.
    """
    digest = hashlib.blake2b(sentence.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return np.random.default_rng([seed, int.from_bytes(digest, "little")])


def _separate_segments(n_words: int, n_masked: int, rng: np.random.Generator) -> np.ndarray:
    """Return a boolean mask (n_words,) with exactly `n_masked` words in segments that do not touch."""
    masked = np.zeros(n_words, dtype=bool)
    if n_masked == 0:
        return masked
    n_open = n_words - n_masked
    # Every two segments need an open word between them, so no more segments than open words + 1.
    n_segments = min(max(1, round(n_masked / SEGMENT_WORDS)), n_open + 1)
    # A random composition of the masked words into segments, each of one word or more ...
    cuts = np.sort(rng.choice(n_masked - 1, n_segments - 1, replace=False)) + 1
    lengths = np.diff(np.concatenate(([0], cuts, [n_masked])))
    # ... put into that many different gaps between open words, uniformly.
    gaps = np.sort(rng.choice(n_open + 1, n_segments, replace=False))
    for masked_before, length, gap in zip(np.cumsum(lengths) - lengths, lengths, gaps, strict=True):
        masked[gap + masked_before : gap + masked_before + length] = True
    return masked


def _grow(masked: np.ndarray, n_more: int, rng: np.random.Generator) -> None:
    """Mask `n_more` more words in place, each next to a masked one (anywhere if there is none yet)."""
    for _ in range(n_more):
        adjacent = np.zeros_like(masked)
        adjacent[1:] |= masked[:-1]
        adjacent[:-1] |= masked[1:]
        candidates = np.flatnonzero(adjacent & ~masked)
        if not len(candidates):
            candidates = np.flatnonzero(~masked)
        masked[rng.choice(candidates)] = True
