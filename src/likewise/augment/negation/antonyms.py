"""Antonyms: if a negated word A has the antonym B, 'not A' agrees with 'B', and 'A' with 'not B'.

SNCSE's soft negatives teach an encoder that 'A' and 'not A' differ, but not that 'not A' and 'B' agree, which four
sentences of a pair of antonyms do. This loss is not part of the paper; it is an option of the recipe, which is disabled
by default.
"""

import re
from functools import cache
from importlib import resources
from itertools import islice

from likewise.augment.negation.edits import like
from likewise.augment.negation.function_words import indefinite

# As far behind 'not' as the word may stand: 'is not a very large city'.
_REACH = 4
_NOT = re.compile(r"(?:\bnot\b|n['’]t\b|\bcannot\b)", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+")
# What may stand between 'not' and the word: another noun or verb there would be what is negated.
_BETWEEN = frozenset(
    "a an the very so too as really entirely completely fully particularly especially always usually often generally "
    "necessarily considered be been being yet quite all that this not".split()
)
_COPULA = re.compile(
    r"\b(?:is|are|was|were|be|been|being|am|'s|'re|'m|becomes?|became|remains?|remained|seems?)\b", re.I
)


@cache
def antonyms() -> dict[str, str]:
    """Return the antonym of each word of the list, in both directions.

    >>> antonyms()["safe"], antonyms()["dangerous"]
    ('dangerous', 'safe')
    """
    text = resources.files(__package__).joinpath("antonyms.txt").read_text(encoding="utf-8")
    pairs = [line.split() for line in text.splitlines() if line and not line.startswith("#")][::-1]
    # If a word occurs twice, the first pair counts, and pairs with it as their first word come before others.
    return {second: first for first, second in pairs} | dict(pairs)


def may_have_opposites(sentence: str) -> bool:
    """Return whether a word with an antonym follows a form of 'be' closely; needs no parsing.

    >>> may_have_opposites("The lake is deep."), may_have_opposites("A deep lake lies there.")
    (True, False)
    """
    behind = (sentence[copula.end() : copula.end() + 60].lower() for copula in _COPULA.finditer(sentence))
    return any(_word_with_antonym(text, _REACH + 1) for text in behind)


def opposites(sentence: str, negation: str | None) -> tuple[str, str] | None:
    """Return a sentence and its negation with the antonym of the negated word; None if it has none.

    The first agrees in meaning with the negation, the second with the sentence. Either of the two given may be the one
    with 'not'. The word must be the same in both: a verb that changes its form under 'not' is skipped.

    >>> opposites("The road is safe.", "The road is not safe.")
    ('The road is dangerous.', 'The road is not dangerous.')
    >>> opposites("It rains.", "It does not rain.") is None
    True
    """
    if negation is None:
        return None
    denied = max(sentence, negation, key=lambda text: len(_NOT.findall(text)))
    nots = list(_NOT.finditer(denied))
    word = _word_with_antonym(denied[nots[0].end() :], _REACH) if len(nots) == 1 else None
    if word is None or any(len(re.findall(rf"\b{word}\b", text)) != 1 for text in (sentence, negation)):
        return None
    other = antonyms()[word]
    return _swap(sentence, word, other), _swap(negation, word, other)


def _word_with_antonym(text: str, reach: int) -> str | None:
    """Return the first word of a text with an antonym, if nothing before it could be negated."""
    for match in islice(_WORD.finditer(text), reach):
        if match.group() in antonyms():
            return match.group()
        if match.group().lower() not in _BETWEEN:
            return None
    return None


def _swap(text: str, word: str, other: str) -> str:
    """Replace `word` by `other`, and correct 'a' or 'an' before it."""

    def changed(match: re.Match[str]) -> str:
        article, space = match.groups()
        return other if article is None else f"{like(indefinite(other), article)}{space}{other}"

    return re.sub(rf"(?:\b([Aa]n?)(\s+))?\b{word}\b", changed, text)
