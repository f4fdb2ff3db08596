"""Opposites: if a negated word A has the antonym B, 'not A' agrees with 'B', and 'A' with 'not B'.

SNCSE's soft negatives tell an encoder that 'A' and 'not A' differ; nothing in them tells it that 'not A' and 'B' agree.
Four sentences of one pair of antonyms do. The paper has no such thing: it is an option of the recipe, off by default.
"""

import re
from dataclasses import dataclass
from functools import cache
from importlib import resources

from likewise.augment.negation.edits import like
from likewise.augment.negation.words import indefinite

# As far behind 'not' as the word may stand: 'is not a very large city'.
_REACH = 4
_NOT = re.compile(r"(?:\bnot\b|n['’]t\b|\bcannot\b)", re.IGNORECASE)
_WORD = re.compile(r"[A-Za-z]+")
# What may stand between 'not' and the word: another noun or verb there would be what is negated.
_BETWEEN = frozenset(
    "a an the very so too as really entirely completely fully particularly especially always usually often generally "
    "necessarily considered be been being yet quite all that this".split()
)
_COPULA = re.compile(
    r"\b(?:is|are|was|were|be|been|being|am|'s|'re|'m|becomes?|became|remains?|remained|seems?)\b", re.I
)


@dataclass(frozen=True, slots=True)
class Opposites:
    """Two pairs of sentences that agree in meaning.

    Attributes:
        sentence: with A.
        negation: with 'not A'; agrees with `opposite`.
        opposite: with B.
        opposite_negation: with 'not B'; agrees with `sentence`.
    """

    sentence: str
    negation: str
    opposite: str
    opposite_negation: str


@cache
def antonyms() -> dict[str, str]:
    """Return the antonym of each word of the list, in both directions.

    >>> antonyms()["safe"], antonyms()["dangerous"]
    ('dangerous', 'safe')
    """
    text = resources.files(__package__).joinpath("antonyms.txt").read_text(encoding="utf-8")
    found: dict[str, str] = {}
    pairs = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    for first, second in pairs:
        found.setdefault(first, second)
    for first, second in pairs:
        found.setdefault(second, first)
    return found


def may_have_opposites(sentence: str) -> bool:
    """Return whether a word with an antonym follows a form of 'be' closely; needs no parsing.

    >>> may_have_opposites("The lake is deep."), may_have_opposites("A deep lake lies there.")
    (True, False)
    """
    known = antonyms()
    for copula in _COPULA.finditer(sentence):
        words = [word.group().lower() for word in _WORD.finditer(sentence[copula.end() : copula.end() + 60])]
        for word in words[: _REACH + 1]:
            if word in known:
                return True
            if word not in _BETWEEN and word != "not":
                break
    return False


def opposites(sentence: str, negation: str | None) -> Opposites | None:
    """Return the opposites of a sentence and its negation; None if the negated word has no antonym.

    Either of the two may be the one with 'not'. The word must be the same in both: a verb that changes its form
    under 'not' is left out.

    >>> found = opposites("The road is safe.", "The road is not safe.")
    >>> found.opposite, found.opposite_negation
    ('The road is dangerous.', 'The road is not dangerous.')
    >>> opposites("It rains.", "It does not rain.") is None
    True
    """
    if negation is None:
        return None
    denied = negation if _count(negation) > _count(sentence) else sentence
    word = _negated_word(denied)
    if word is None:
        return None
    pattern = re.compile(rf"\b{word}\b")
    if len(pattern.findall(sentence)) != 1 or len(pattern.findall(negation)) != 1:
        return None
    other = antonyms()[word]
    return Opposites(sentence, negation, _swap(sentence, word, other), _swap(negation, word, other))


def _count(text: str) -> int:
    return len(_NOT.findall(text))


def _negated_word(text: str) -> str | None:
    """Return the word after the only 'not', if it has an antonym."""
    found = list(_NOT.finditer(text))
    if len(found) != 1:
        return None
    known = antonyms()
    rest = text[found[0].end() :]
    for word in [match.group() for match in _WORD.finditer(rest)][:_REACH]:
        if word in known:
            return word
        if word.lower() not in _BETWEEN:
            return None
    return None


def _swap(text: str, word: str, other: str) -> str:
    """Replace `word` by `other`, and correct 'a' or 'an' before it."""

    def changed(match: re.Match[str]) -> str:
        article, space = match.group(1), match.group(2)
        if article is None:
            return other
        return f"{like(indefinite(other), article)}{space}{other}"

    return re.sub(rf"(?:\b([Aa]n?)(\s+))?\b{word}\b", changed, text)
