"""Negation of one parsed sentence: the choice of the rule, or the reason why none applies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from likewise.augment.negation.affirm import affirm
from likewise.augment.negation.clause import Clause, main_clause
from likewise.augment.negation.deny import deny
from likewise.augment.negation.edits import Edits, like
from likewise.augment.negation.negators import find_negator
from likewise.augment.negation.refusals import Refused, refuse_unclear
from likewise.augment.negation.words import OPERATORS, PRONOUNS, STUMPS

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

#: Part of the cache's key: raise it with every change of a rule that changes an output.
RULES_VERSION = 3

_TAG_LONG = {"can": "can't", "will": "won't", "shall": "shan't", "am": "aren't"}


@dataclass(frozen=True, slots=True)
class Negation:
    """A sentence, its negation and the rule that made it, or the `reason` why there is none."""

    sentence: str
    negation: str | None
    reason: str | None
    rule: str | None


def negate_doc(doc: Doc) -> Negation:
    """Return the negation of a parsed sentence.

    A text that the parser takes for several sentences is negated in the first that has a finite verb: mostly
    it is one sentence with an abbreviation in it.
    """
    text: str = doc.text
    if not any(character.isalpha() for character in text):
        return Negation(text, None, "no words", None)
    reason = "no finite verb"
    for sentence in doc.sents:
        clause = main_clause(sentence)
        if clause is None:
            continue
        if clause.imperative and _title(sentence.text):
            reason = "title"
            continue
        edits = Edits(text)
        try:
            rule = _apply(clause, edits)
        except Refused as refusal:
            reason = str(refusal)
            break
        negation = edits.result()
        if negation != text:
            return Negation(text, negation, None, rule)
    return Negation(text, None, reason, None)


def _apply(clause: Clause, edits: Edits) -> str:
    """Negate or affirm a clause, with the tag question behind it if there is one."""
    refuse_unclear(clause)
    negator = find_negator(clause)
    rule = deny(clause, edits) if negator is None else affirm(clause, negator, edits)
    _tag_question(clause, edits)
    return rule


def _title(text: str) -> bool:
    """Return whether a text looks like a heading: no final stop, and every longer word capitalised.

    >>> _title("Return to Oz"), _title("Return to the shop."), _title("Open the door")
    (True, False, False)
    """
    text = text.strip()
    words = [word for word in text.split() if len(word) > 3 or word[:1].isdigit()]
    return bool(words) and text[-1] not in ".!?\"'”’:;" and len(text.split()) > 1 and all(w[0].isupper() for w in words)


def _tag_question(clause: Clause, edits: Edits) -> None:
    """Turn ', isn't he?' into ', is he?' and vice versa."""
    words: list[Token] = [token for token in clause.sentence if not token.is_space]
    if len(words) < 5 or words[-1].text != "?":
        return
    negative = words[-3].lower_ in ("n't", "n’t")
    comma, verb, pronoun = (words[-5], words[-4], words[-2]) if negative else (words[-4], words[-3], words[-2])
    if comma.text != "," or verb.lower_ not in OPERATORS or pronoun.lower_ not in PRONOUNS | {"there"}:
        return
    if verb.i <= clause.head.i or verb.i == clause.finite.i:
        return
    word = verb.lower_
    if negative:
        edits.changes.append((words[-3].idx, words[-2].idx, " "))
        edits.replace(verb, STUMPS.get(word, word))
    else:
        edits.replace(verb, like(_TAG_LONG.get(word, word + "n't"), verb.text))
