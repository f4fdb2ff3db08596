"""Sentences without a clear contradiction: wishes, exclamations, set phrases, questions for a value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from likewise.augment.negation.words import BE, NOT, OPERATORS, PRONOUNS, listed

if TYPE_CHECKING:
    from spacy.tokens import Token

    from likewise.augment.negation.clause import Clause


class Refused(Exception):  # noqa: N818 - a refusal is an outcome, not an error
    """A sentence that these rules would turn into broken or unclear English; the message is the reason."""


_OPERATOR, _PRONOUN = f"(?:{'|'.join(OPERATORS)})", f"(?:{'|'.join(PRONOUNS)})"
_PATTERNS = tuple(
    (re.compile(rf"^\W*(?:{pattern})", re.IGNORECASE), reason)
    for pattern, reason in (
        (r"long live\b", "subjunctive"),
        (rf"(?:so|nor) {_OPERATOR} (?:\w+ )?\w+\W*$|neither {_OPERATOR} {_PRONOUN}\W*$", "short answer"),
        (r"the (?:more|less|\w+er)\b[^,]*, the (?:more|less|\w+er)\b", "comparison"),
        (r"(?:hardly|scarcely|barely) any", "near-negative subject"),
        (r"not only\b", "not only"),
        (rf"(?:what an? [^?]*$|how\b[^?]*!\W*$|what(?! {_PRONOUN}\b)[^?]*!\W*$)", "exclamation"),
        (r"thank (?:you|god|goodness|heavens?)\b|(?:excuse|pardon) me\b|welcome (?:to|back)\b", "set phrase"),
        (r"(?:wanna|gonna|gotta)\b[^?]*\?", "ellipsis"),
        # 'Here are the keys', 'There goes the bus', 'Here it is' have no negation in this order.
        (r"here (?:is|are|was|were|come|comes|came|goes|go)\b|there (?:goes|go|comes|come|came)\b", "inversion"),
        (rf"(?:here|there) {_PRONOUN} (?:is|are|was|were|am)\W*$", "inversion"),
    )
)
# What comes apart in "isn ' t", "it ' s" cannot be negated by its letters.
_SPLIT = re.compile(r"\s['’]\s(?:s|t|ve|re|ll|d|m)\b", re.IGNORECASE)
_TIMES = listed("time day date year month")


def refuse_unclear(clause: Clause) -> None:
    """Raise `Refused` for a sentence that has no clear contradiction."""
    text = clause.sentence.text
    if _SPLIT.search(text):
        raise Refused("split contraction")
    for pattern, reason in _PATTERNS:
        if pattern.search(text):
            raise Refused(reason)
    finite, asks = clause.finite, text.rstrip("\"'”’) ").endswith("?")
    if finite.lower_ == "may" and not asks and clause.sentence[0].lower_ in ("may", "long"):
        raise Refused("wish")
    if asks and clause.subject is None and "," not in text:
        # 'Seen him lately?', 'Want some tea?'
        raise Refused("ellipsis")
    if asks and _value_asked(clause):
        raise Refused("value question")
    after = [token.lower_ for token in finite.doc[finite.i + 1 : finite.i + 4]]
    if len(after) == 3 and after[0] in ("or", "and") and after[1] in OPERATORS and after[2] in NOT:
        # 'may or may not': both are said.
        raise Refused("either way")


def _value_asked(clause: Clause) -> bool:
    """Return whether a question asks for a time, a place, a measure, a name: 'How old are you?', 'What is this?'"""
    head, subject = clause.head, clause.subject
    for word in head.doc[clause.sentence.start : clause.finite.i]:
        above: Token = word.head
        if word.lower_ == "how":
            return above.i == head.i or above.tag_[:2] in ("JJ", "RB")
        if word.lower_ in ("when", "where") and above.i == head.i:
            return word.lower_ == "when" or (head.i == clause.finite.i and head.lower_ in BE)
        if word.lower_ == "what" and word.nbor().lower_ in _TIMES:
            return True
        if word.tag_ in ("WP", "WDT", "WP$") and "attr" in (word.dep_, above.dep_):
            # 'Who is the president?' can be read with 'who' as its subject.
            return word.lower_ != "who" or (subject is not None and subject.tag_ in ("PRP", "DT"))
    return False
