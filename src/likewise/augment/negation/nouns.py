"""The article that replaces 'no' when a sentence is affirmed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.augment.negation.words import MASS_ENDINGS, MASS_NOUNS, SILENT_H, VOWEL_SOUND_EXCEPTIONS

if TYPE_CHECKING:
    from spacy.tokens import Token


def is_mass(word: str) -> bool:
    """Return whether a noun in the singular takes no 'a', by a list and by its ending.

    >>> is_mass("evidence"), is_mass("sadness"), is_mass("car")
    (True, True, False)
    """
    word = word.lower()
    return word in MASS_NOUNS or (len(word) > 5 and word.endswith(MASS_ENDINGS))


def indefinite(word: str) -> str:
    """Return 'a' or 'an' for a word, by its first sound as guessed from the spelling.

    >>> [indefinite(word) for word in ("car", "apple", "hour", "university", "FBI")]
    ['a', 'an', 'an', 'a', 'an']
    """
    if len(word) > 1 and word.isupper():
        return "an" if word[0] in "AEFHILMNORSX" else "a"
    word = word.lower()
    if word.startswith(SILENT_H):
        return "an"
    # 'un' before 'i' is 'unique', before another vowel or consonant 'uninteresting' or 'unfair'.
    if word.startswith(VOWEL_SOUND_EXCEPTIONS) and not word.startswith(("unin", "unim", "unid", "utt", "uto", "utm")):
        return "a"
    return "an" if word[:1] in "aeiou" else "a"


def article(noun: Token, following: Token) -> str:
    """Return 'a', 'an' or 'some' for the noun that had 'no'; `following` is the word right after it."""
    if noun.tag_ not in ("NN", "NNP") or is_mass(noun.text):
        return "some"
    return indefinite(following.text)
