"""Negators, the words that negate a clause: 'not' in every spelling, 'never', 'no one', 'nothing', 'no' and a noun."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from likewise.augment.negation.clause import Clause, Refused, quoted_name
from likewise.augment.negation.edits import word_after
from likewise.augment.negation.function_words import NEGATIVE_PRONOUNS, NOT, OPERATORS, VERB_TAGS, listed
from likewise.augment.negation.quantifiers import find_pair

if TYPE_CHECKING:
    from spacy.tokens import Token

_FOCUS = ("only", "just", "merely", "simply", "solely")
_AFTER_NOT = listed("""all every everyone everybody everything many much enough a an one each both""")
_OBJECTS = listed("dobj attr acomp oprd dative nsubj nsubjpass expl advmod npadvmod")
_NEGATIVE_STARTS = listed("not no nor neither nowhere rarely seldom little none")
_NEAR = ("hardly", "scarcely", "barely")
# A negative adverbial and what takes its place in the affirmation. 'hardly' and its like negate by themselves
# ('does not hardly' would be double); 'does not rarely play' is correct but not in use.
_ADVERBIALS = {
    **dict.fromkeys(("never", "never ever", "never , ever", *_NEAR, "anything but"), ""),
    **dict.fromkeys(("by no means", "in no way", "at no time", "in no sense", "at no point"), ""),
    **dict.fromkeys(("rarely", "seldom", "almost never", *(f"{near} ever" for near in _NEAR)), "often"),
    "no longer": "still",
}
_BY_FIRST_WORD: dict[str, list[list[str]]] = {}
for _words in sorted((phrase.split() for phrase in _ADVERBIALS), key=len, reverse=True):
    _BY_FIRST_WORD.setdefault(_words[0], []).append(_words)


@dataclass(frozen=True)
class Negator:
    """One negation of a clause.

    It reaches from `token` to `last` (None: one word); `instead` is what takes its place where the kind alone
    does not tell; `fronted` means that it precedes an inverted verb.
    """

    token: Token
    kind: str
    last: Token | None = None
    instead: str = ""
    fronted: bool = False


def find_negator(clause: Clause) -> Negator | None:
    """Return the word that negates a clause, None for an affirmative clause.

    Raises `Refused` for a negation that would leave broken English when it is taken out.
    """
    negator = _beside_verb(clause) or _elsewhere(clause) or _paired(clause) or _in_subject(clause) or _in_object(clause)
    if not clause.asks and not (negator is not None and negator.fronted):
        before = clause.sentence[: clause.finite.i - clause.sentence.start]
        inverted = clause.sentence[0].lower_ in ("nor", "nowhere") or clause.question
        if inverted and any(token.lower_ in _NEGATIVE_STARTS for token in before):
            raise Refused("inverted negation")
    if negator is None and clause.sentence[0].lower_ == "not":
        raise Refused("negated subject")
    if negator is not None and any(_continues(token) for token in clause.sentence):
        raise Refused("nor clause")
    return negator


def _continues(token: Token) -> bool:
    """Return whether a clause with 'nor did' or 'neither is' depends on this negation."""
    inside = token.lower_ in ("nor", "neither") and token.sent.start < token.i < token.sent.end - 1
    return inside and word_after(token) in OPERATORS and not token.sent.text.startswith("Neither")


def _beside_verb(clause: Clause) -> Negator | None:
    """Return 'not' or a negative adverbial after the operator, up to the verb or past adverbs and subject."""
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
        if token.lower_ in NOT:
            return _not(token, clause)
        adverbial = _adverbial(token)
        if adverbial is not None:
            return adverbial
        skippable = token.tag_.startswith("RB") or token.i in inside or token.text == ","
        if finite.i == head.i and not skippable:
            break
    return None


def _adverbial(token: Token) -> Negator | None:
    """Return the negative adverbial that begins at a token."""
    for words in _BY_FIRST_WORD.get(token.lower_, ()):
        rest = enumerate(words[1:], start=1)
        if all(word_after(token, n) == word for n, word in rest) and (words[0] != "anything" or token.dep_ == "attr"):
            return Negator(token, "adverb", token.nbor(len(words) - 1), _ADVERBIALS[" ".join(words)])
    return None


def _not(token: Token, clause: Clause) -> Negator:
    """Return the negator 'not', or 'not only ... but also', which becomes 'neither ... nor'."""
    rest = token.doc[token.i + 1 : clause.sentence.end]
    but = next((word for word in rest if word.lower_ == "but"), None)
    if but is None or word_after(token) not in _FOCUS:
        return Negator(token, "not")
    if word_after(but) != "also":
        raise Refused("not only")
    return Negator(token, "not only", but)


def _elsewhere(clause: Clause) -> Negator | None:
    """Return a negative adverbial before the verb, before an inverted one, or close after it."""
    finite, head = clause.finite, clause.head
    for token in clause.sentence:
        if token.lower_ == "not" and word_after(token) in _FOCUS and token.i == finite.i - 2:
            return _not(token, clause)
        negator = _adverbial(token)
        if negator is None or negator.last is None:
            continue
        if not any(word.head.i in (head.i, finite.i) for word in token.doc[token.i : negator.last.i + 1]):
            continue
        if token.i > finite.i:
            between = token.doc[head.i + 1 : token.i]
            plain = negator.instead or negator.last.i > token.i or word_after(token).startswith("any")
            if plain and not any(word.is_punct or word.dep_ == "cc" for word in between):
                return negator
        elif clause.subject is None or clause.subject.i < finite.i or not clause.operator:
            return negator
        elif negator.instead:
            raise Refused("inverted negation")
        else:
            return Negator(token, "adverb", negator.last, fronted=True)
    return None


def _paired(clause: Clause) -> Negator | None:
    """Return 'neither ... nor', which becomes 'either ... or', or 'both ... and' for verbs."""
    pair = find_pair(clause, "neither")
    if pair is None:
        return None
    verbal = clause.finite.i < pair[0].i and pair[0].nbor().i == clause.head.i
    return Negator(pair[0], "neither", instead="both" if verbal else "either")


def _in_subject(clause: Clause) -> Negator | None:
    """Return a negative subject before its verb: 'No one came', 'No birds fly', 'Not all birds fly'."""
    subject = clause.subject
    if subject is None or subject.i > clause.finite.i:
        return None
    first = subject.left_edge
    if first.i > clause.sentence.start and first.nbor(-1).lower_ == "not":
        first = first.nbor(-1)
    if quoted_name(first, clause.sentence):
        return None
    if first.lower_ == "not":
        if word_after(first) in _AFTER_NOT:
            return Negator(first, "not all")
        raise Refused("negated subject")
    return _quantifier(subject)


def _in_object(clause: Clause) -> Negator | None:
    """Return a negative object or complement: 'He has no car', 'It has doors and no windows'."""
    for child in clause.head.rights:
        if child.dep_ in _OBJECTS:
            joined = (other for other in child.conjuncts if other.i > child.i and other.tag_ not in VERB_TAGS)
            for noun in (child, *joined):
                negator = _quantifier(noun)
                if negator is not None:
                    return negator
    return None


def _quantifier(noun: Token) -> Negator | None:
    """Return the negative word that opens a noun phrase."""
    first = noun.left_edge
    word, following = first.lower_, word_after(first)
    if word == "no" and following:
        if following == "one" and (first.i + 1 == noun.i or word_after(first, 2) in ("else", "of")):
            return Negator(first, "pronoun")
        # 'No. 1' is a number, and 'no' after a comma an answer.
        after = first.nbor()
        if after.tag_ == "CD" or after.text in (".", ",") or first.tag_ in ("NN", "NNP", "UH"):
            return None
        return Negator(first, "no")
    if word == "neither" or (word in NEGATIVE_PRONOUNS and first.i == noun.i):
        return Negator(first, "pronoun")
    if word in _NEAR and following == "any":
        return Negator(first, "adverb")
    if first.tag_ == "RB" and word != "as" and following == "few":
        first = first.nbor()
    if first.lower_ == "few" and word_after(first) not in ("", ",", "or", "if") and first.nbor().tag_ != "CD":
        return Negator(first, "few", instead="many")
    return None
