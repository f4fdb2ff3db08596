"""What already negates a clause: 'not' in every spelling, 'never', 'no one', 'nothing', 'no' and a noun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from likewise.augment.negation.clause import Clause, quoted_name
from likewise.augment.negation.edits import word_after
from likewise.augment.negation.words import (
    BE,
    DO,
    HAVE,
    MODALS,
    NEAR_NEGATIVES,
    NEGATIVE_PRONOUNS,
    NOT,
    SELDOM,
    listed,
)

if TYPE_CHECKING:
    from spacy.tokens import Token

_FOCUS = ("only", "just", "merely", "simply", "solely")
_AFTER_NOT = listed("""all every everyone everybody everything many much enough a an one each both""")
_OBJECTS = listed("dobj attr acomp oprd dative nsubj nsubjpass expl advmod npadvmod")
_NO_PHRASES = frozenset(("by no means", "in no way", "at no time", "in no sense", "at no point"))
_PHRASE_STARTS = frozenset(phrase.split()[0] for phrase in _NO_PHRASES)
# Words that bring the verb before the subject: 'Not until 1990 did he', 'Nor did he'.
_INVERTERS = listed("not nor neither no under on in at by nowhere only rarely seldom little")


class Refused(Exception):  # noqa: N818 - a refusal is an outcome, not an error
    """A negation that cannot be taken back by these rules; the message is the reason."""


@dataclass(frozen=True)
class Negator:
    """One negation of a clause: its word, its kind, and whether it stands before an inverted verb."""

    token: Token
    kind: str
    fronted: bool = False
    last: Token | None = None


def find_negator(clause: Clause) -> Negator | None:
    """The word that negates a clause, None for an affirmative clause.

    Raises `Refused` for a negation that would leave broken English when it is taken out.
    """
    found = _beside_verb(clause) or _before_verb(clause) or _phrase(clause) or _in_subject(clause) or _in_object(clause)
    if clause.question and not clause.sentence.text.rstrip("\"'”’) ").endswith("?"):
        first = clause.sentence[0].lower_
        fronted = found is not None and found.fronted
        if not fronted and first in _INVERTERS and first != "only" and _negative_start(clause):
            raise Refused("inverted negation")
    if found is not None and any(_continues(token) for token in clause.sentence):
        raise Refused("nor clause")
    return found


def _negative_start(clause: Clause) -> bool:
    """Whether a negative word stands before the inverted verb."""
    negative = ("not", "no", "nor", "neither", "nowhere", "rarely", "seldom", "little", "none")
    return any(token.lower_ in negative for token in clause.sentence[: clause.finite.i - clause.sentence.start])


def _continues(token: Token) -> bool:
    """Whether a clause with 'nor did', 'neither is' hangs on this negation."""
    if token.lower_ not in ("nor", "neither") or token.i + 1 >= token.sent.end:
        return False
    following = word_after(token)
    return (
        token.i > token.sent.start
        and following in BE | HAVE | DO | MODALS
        and not token.sent.text.startswith("Neither")
    )


def _beside_verb(clause: Clause) -> Negator | None:
    """'not', 'never' or 'no longer' behind the operator, up to the verb or behind adverbs and subject."""
    finite, head = clause.finite, clause.head
    if clause.imperative and head.lower_ == "let" and head.i + 2 < clause.sentence.end:
        # "Let's not go".
        return Negator(head.nbor(2), "not") if word_after(head, 2) == "not" else None
    if not clause.operator:
        return None
    inside = {token.i for token in clause.subject.subtree} if clause.subject is not None else set()
    for token in head.doc[finite.i + 1 : clause.sentence.end]:
        if finite.i < head.i <= token.i:
            break
        kind = _kind(token)
        if kind is not None and not (token.lower_ == "not" and token.i in inside and token.head.i != head.i):
            return Negator(token, _focus(token, clause) if kind == "not" else kind)
        skippable = token.tag_.startswith("RB") or token.i in inside or token.text == ","
        if finite.i == head.i and not skippable:
            break
    return None


def _kind(token: Token) -> str | None:
    word = token.lower_
    if word in NOT:
        return "not"
    if word == "never":
        return "never"
    if word in SELDOM:
        return "seldom"
    if word in NEAR_NEGATIVES:
        return "near"
    if word == "no" and word_after(token) == "longer":
        return "no longer"
    return None


def _focus(token: Token, clause: Clause) -> str:
    """'not' unless it opens 'not only ... but also', which takes 'neither ... nor'."""
    if token.i + 1 >= clause.sentence.end or word_after(token) not in _FOCUS:
        return "not"
    rest = [word.lower_ for word in token.doc[token.i + 1 : clause.sentence.end]]
    if "but" not in rest:
        return "not"
    at = rest.index("but")
    if rest[at + 1 : at + 2] != ["also"]:
        raise Refused("not only")
    return "not only"


def _before_verb(clause: Clause) -> Negator | None:
    """'never', 'hardly' or 'no longer' before a verb, or before an inverted one."""
    finite, head = clause.finite, clause.head
    for token in head.doc[clause.sentence.start : finite.i]:
        kind = _kind(token)
        if token.lower_ in SELDOM and token.head.i in (head.i, finite.i):
            if clause.question:
                raise Refused("inverted negation")
            return Negator(token, "seldom")
        if token.lower_ == "neither" and token.head.i == head.i and "nor" in head.doc.text.lower():
            return Negator(token, "neither")
        if kind in ("never", "near") and token.head.i in (head.i, finite.i):
            return Negator(token, kind, fronted=clause.question)
        if kind == "no longer" and token.nbor().head.i in (head.i, finite.i) and not clause.question:
            return Negator(token, kind)
        if kind == "not" and word_after(token) in _FOCUS and token.nbor(2).i == finite.i:
            focus = _focus(token, clause)
            if focus == "not only":
                return Negator(token, focus)
        if kind == "not" and token.i == finite.i - 1 and token.dep_ == "neg" and token.head.i == head.i:
            return Negator(token, "constituent")
    return None


def _phrase(clause: Clause) -> Negator | None:
    """'by no means', 'in no way' and their like in the main clause."""
    for token in clause.sentence[:-2]:
        if token.lower_ not in _PHRASE_STARTS:
            continue
        words = f"{token.lower_} {word_after(token)} {word_after(token, 2)}"
        if words in _NO_PHRASES and token.head.i in (clause.head.i, clause.finite.i) and not clause.question:
            return Negator(token, "phrase", last=token.nbor(2))
    return None


def _in_subject(clause: Clause) -> Negator | None:
    """A negative subject before its verb: 'No one came', 'No birds fly', 'Not all birds fly'."""
    subject = clause.subject
    if subject is None or subject.i > clause.finite.i or subject.dep_.startswith("csubj"):
        return None
    first = subject.left_edge
    if first.i > clause.sentence.start and first.nbor(-1).lower_ == "not":
        first = first.nbor(-1)
    if quoted_name(first, clause.sentence):
        return None
    if first.lower_ == "not":
        if word_after(first) in _AFTER_NOT:
            return Negator(first, "constituent")
        raise Refused("negated subject")
    return _quantifier(first, subject)


def _in_object(clause: Clause) -> Negator | None:
    """A negative object or complement: 'He has no car', 'It is nothing', 'He is neither tall nor short'."""
    for child in clause.head.rights:
        if child.dep_ not in _OBJECTS:
            continue
        found = _quantifier(child.left_edge, child)
        if found is not None:
            return found
    return None


def _quantifier(first: Token, noun: Token) -> Negator | None:
    """The negative word that opens a noun phrase."""
    word = first.lower_
    if word == "no" and first.i + 1 < len(first.doc):
        following = first.nbor()
        if following.lower_ == "one" and (following.i == noun.i or word_after(following) in ("else", "of")):
            return Negator(first, "pronoun")
        # 'No. 1' is a number, and 'no' after a comma an answer.
        if following.tag_ == "CD" or following.text in (".", ",") or first.tag_ in ("NN", "NNP", "UH"):
            return None
        return Negator(first, "no")
    if word in NEGATIVE_PRONOUNS and first.i == noun.i:
        return Negator(first, "pronoun")
    if word == "neither":
        paired = any(token.lower_ == "nor" for token in first.doc[first.i : first.sent.end])
        return Negator(first, "neither" if paired else "pronoun")
    return None
