"""The second look at two texts with similar vectors: whether they have the same meaning as a whole."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import pairwise

import numpy as np

from likewise.corpus.languages import language_of
from likewise.corpus.words import DividedText
from likewise.searching.duplicates.word_differences import difference, shared, the_rest, wording

_KIND = frozenset(
    "hello hi hey dear sir madam team all please thanks thank you many so much very best kind regards sincerely cheers "
    "greetings advance help a the and for in with my your".split()
)
"""Words that add nothing when they are all that a text has more than another."""
_PART = 100
"""Words of a part that is encoded by itself: what any model reads."""
_AROUND = 10
"""Words before and after the place where two long texts differ, which are encoded with it."""
_ASCII = 0.9
"""The share of ASCII letters below which a text is not taken as English."""


class SecondLook:
    """A function that names the reason why two texts with similar vectors are not duplicates.

    First, the words of both texts are compared as a whole. Then the texts without their common sentences are compared
    by their words and by separate vectors, because form letters, mails with quotations and pages of one site share most
    of their text, and a model only reads the beginning of a long text.

    Args:
        sample: Texts by which the language is detected. The lists of antonyms are English: in another language, two
            texts are duplicates if their words are, except for misspellings.
        encode: Function from the rest of P texts to vectors (P, D) of length 1.
        threshold: Minimum cosine of duplicates.
        words: Minimum share of common words of duplicates; 0 ignores words.
    """

    def __init__(
        self, sample: Sequence[str], encode: Callable[[Sequence[str]], np.ndarray], threshold: float, words: float
    ) -> None:
        self.language = language_of(sample)
        self._encode, self._threshold, self._words = encode, threshold, words
        self._vectors = lru_cache(maxsize=1 << 12)(lambda text: self._encode(_parts(text)))

    def reason(self, first: str, second: str) -> str:
        """Return one of `words.REASONS`, or "" if the texts are duplicates."""
        own, other = wording(first), wording(second)
        if not (own.order and other.order):
            return "other words"  # of symbols alone, such as an emoji: only the same symbols are duplicates
        if not self._words:
            return ""
        known = self.language == "English" and _is_ascii(first) and _is_ascii(second)
        if why := difference(own, other, known):
            return why
        if shared(own, other) < self._words:
            return "other words"
        if own.order == other.order:
            return ""
        return "" if self._rest_agrees(first, second) else "the rest"

    def _rest_agrees(self, first: str, second: str) -> bool:
        """Return whether two texts agree without the sentences that both have."""
        left, right = the_rest(first, second)
        long = max(len(wording(left).order), len(wording(right).order)) > _PART
        if left == first and right == second and not long:
            return True  # nothing was taken off, and the model has read all of it
        if not (left and right):
            more = wording(left or right)
            return all(word in _KIND for word in more.order)
        if long:
            left, right = _where_they_differ(left, right)
        if shared(wording(left), wording(right)) < self._words:
            return False
        mine, others = self._vectors(left), self._vectors(right)
        if len(mine) != len(others):
            return False
        return bool(((mine * others).sum(axis=1) >= self._threshold).all())


def _is_ascii(text: str) -> bool:
    letters = [char for char in text if char.isalpha()]
    return sum(char.isascii() for char in letters) >= _ASCII * len(letters)


def _parts(text: str) -> list[str]:
    """Return the words of a text in parts of equal length, each of which a model reads whole."""
    divided = DividedText.of(text)
    count = max(1, -(-len(divided) // _PART))
    ends = [round(len(divided) * part / count) for part in range(count + 1)]
    return [divided.part(begin, end) for begin, end in pairwise(ends)]


def _where_they_differ(first: str, second: str) -> tuple[str, str]:
    """Return two texts from a little before their first different word to a little behind their last.

    >>> _where_they_differ("a b c", "a x c")
    ('a b c', 'a x c')
    """
    mine, others = DividedText.of(first), DividedText.of(second)
    own, other = mine.words, others.words
    most = min(len(own), len(other))
    begin = next((i for i in range(most) if own[i].casefold() != other[i].casefold()), most)
    end = next((i for i in range(most - begin) if own[-1 - i].casefold() != other[-1 - i].casefold()), most - begin)
    begin, end = max(0, begin - _AROUND), max(0, end - _AROUND)
    return mine.part(begin, len(own) - end), others.part(begin, len(other) - end)
