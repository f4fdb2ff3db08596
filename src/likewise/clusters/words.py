"""The words of two near texts: a negation, number, name or opposite that one of them lacks tells them apart."""

from __future__ import annotations

import re
from collections import Counter
from difflib import SequenceMatcher
from functools import lru_cache
from typing import NamedTuple

from likewise.augment.negation.antonyms import antonyms

_WORD = re.compile(r"\w+(?:[.,:]\d+)*")
_SHORT_NOT = re.compile(r"n['’]t\b", re.IGNORECASE)
_DIGIT = re.compile(r"\d")
_NAME = re.compile(r"(?<=[\w,;:)] )[A-Z]\w+")
_NO_NAMES = frozenset("i me my it he she we they you your hi hello dear please thanks".split())
_NUMBER_WORDS = {
    word: str(number) for number, word in enumerate("two three four five six seven eight nine ten".split(), 2)
}
"""'One' is left out, as it mostly is no number."""
_ALIKE = 0.75
"""From this ratio on a word is a misspelling of another one."""
_NEGATIONS = frozenset(
    "not no never none nor neither nobody nothing nowhere cannot without hardly barely scarcely dont doesnt didnt cant "
    "wont isnt arent wasnt werent hasnt havent hadnt couldnt shouldnt wouldnt "
    "nicht kein keine keinen keiner keinem nie niemals ohne pas jamais sans nunca sin non mai senza niet geen nooit "
    "não sem".split()
)
"""Of English, and the commonest ones of German, French, Spanish, Italian, Dutch and Portuguese."""


class Wording(NamedTuple):
    """The words of a text that decide whether a near text says the same."""

    words: Counter[str]
    numbers: Counter[str]
    negations: int
    names: frozenset[str]


@lru_cache(maxsize=1 << 15)
def wording(text: str) -> Wording:
    """Return the words, the numbers, the count of negations and the names of a text.

    A name is a word with a capital inside a sentence.

    >>> wording("They didn't pay 1,000 or 20.5, and never will.").numbers
    Counter({'1000': 1, '20.5': 1})
    >>> wording("They didn't pay 1,000 or 20.5, and never will.").negations
    2
    >>> wording("two weeks ago").numbers, sorted(wording("It was Mr Smith, and It hurt").names)
    (Counter({'2': 1}), ['mr', 'smith'])
    """
    found = _WORD.findall(_SHORT_NOT.sub(" not", text).casefold().replace("_", " "))
    words = Counter(_NUMBER_WORDS.get(word, word) for word in found)
    numbers = Counter({word.replace(",", ""): count for word, count in words.items() if _DIGIT.search(word)})
    names = frozenset(word.casefold() for word in _NAME.findall(text)) - _NO_NAMES
    return Wording(words, numbers, sum(count for word, count in words.items() if word in _NEGATIONS), names)


def shared(first: Wording, second: Wording) -> float:
    """Return the share of the words of two texts that both have: |A ∩ B| / |A ∪ B| with counts, 1 without words.

    >>> shared(wording("the old cat"), wording("The cat!"))
    0.6666666666666666
    """
    union = (first.words | second.words).total()
    return (first.words & second.words).total() / union if union else 1.0


def difference(first: Wording, second: Wording) -> str:
    """Name the difference that sets two near texts apart: 'negation', 'numbers', 'opposites', 'names', or "" for none.

    Vectors hardly see any of these: 'not open' is near 'open', 10 near 100, 'early' near 'late', and London near Paris.
    A name counts if the other text has another word in its place, of which it is no misspelling.

    >>> difference(wording("The card has arrived."), wording("The card has not arrived."))
    'negation'
    >>> difference(wording("I paid 10 pounds"), wording("I paid 100 pounds"))
    'numbers'
    >>> difference(wording("The road is safe."), wording("The road is dangerous."))
    'opposites'
    >>> difference(wording("It is unknown."), wording("It is known."))
    'opposites'
    >>> difference(wording("He lived in Paris."), wording("He lived in London."))
    'names'
    >>> difference(wording("He lived in London."), wording("He lived in Lodnon."))
    ''
    >>> difference(wording("The card has arrived"), wording("the card has arrived!"))
    ''
    """
    if first.negations != second.negations:
        return "negation"
    if first.numbers != second.numbers:
        return "numbers"
    left, right = first.words - second.words, second.words - first.words
    opposite = antonyms()
    if any(opposite.get(one) in others for some, others in ((left, right), (right, left)) for one in some):
        return "opposites"
    return "names" if _other_name(first, left, right) or _other_name(second, right, left) else ""


def _other_name(one: Wording, own: Counter[str], others: Counter[str]) -> bool:
    """Return whether a text has a name where its near text has other words.

    Args:
        own: the words that only this text has.
        others: those that only the other one has.
    """
    lacking = (name for name in one.names if name in own)
    return bool(others) and any(not any(_alike(name, word) for word in others) for name in lacking)


def _alike(one: str, other: str) -> bool:
    return SequenceMatcher(None, one, other).ratio() >= _ALIKE
