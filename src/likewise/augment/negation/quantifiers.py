"""Negation by a word of a noun phrase or a pair: 'no', 'none', 'not all', 'neither ... nor'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.augment.negation.clause import Clause, Refused, quoted_name
from likewise.augment.negation.edits import Edits, word_after
from likewise.augment.negation.function_words import SUBJECTS, TO_NO, UNIVERSALS, VERB_TAGS, listed
from likewise.augment.negation.verbs import inflect_list, joined_by, third_singular

if TYPE_CHECKING:
    from spacy.tokens import Token

# 'There is a lot of' keeps its article: 'no lot of' is not English.
_QUANTITIES = listed("""lot number few little couple variety total deal bit range majority handful third half""")
_COUNTED = listed("""many several few various numerous more less most multiple other much enough little""")
_JOINTS = {"either": "or", "neither": "nor", "both": "and"}
_COMPLEMENTS = listed("dobj attr acomp oprd dative prep agent pobj conj nsubj nsubjpass advmod npadvmod")
_SINGULAR = {"are": "is", "were": "was", "have": "has", "do": "does"}


def presented(verb: Token) -> Token | None:
    """Return the noun that a verb such as 'be' or 'stand' presents, as in 'there stands a house'."""
    return next((child for child in verb.rights if child.dep_ in ("attr", "dobj", "nsubj", "nsubjpass")), None)


def no_before(noun: Token | None, start: int, edits: Edits) -> bool:
    """Negate the noun phrase that begins at token number `start` by 'no'; return False if 'not' is better."""
    if noun is None or noun.tag_ not in ("NN", "NNS") or noun.left_edge.i != start:
        return False
    if noun.lower_ in _QUANTITIES or any(child.dep_ == "conj" for child in noun.children):
        return False
    first = noun.left_edge
    if first.lower_ in ("a", "an", "some") and first.dep_ == "det":
        edits.replace(first, "no")
        return True
    before = noun.doc[first.i : noun.i]
    if any(child.dep_ in ("det", "nummod", "poss", "predet", "quantmod") for child in noun.lefts) or any(
        word.lower_ in _COUNTED or word.tag_ in ("CD", "JJR", "JJS") for word in before
    ):
        return False
    edits.insert(first.idx, "no ")
    return True


def quantified_subject(clause: Clause, edits: Edits) -> str | None:
    """Turn 'All birds fly' into 'Not all birds fly', 'Someone came' into 'No one came'."""
    subject = clause.subject
    if subject is None or subject.i > clause.finite.i or subject.dep_.startswith("csubj") or clause.existential:
        return None
    first, following = subject.left_edge, word_after(subject.left_edge)
    if first.lower_ in TO_NO and (first.i == subject.i or first.dep_ == "det") and following != "one":
        edits.replace(first, "none" if first.lower_ == "any" and first.i == subject.i else TO_NO[first.lower_])
        return "quantifier"
    if first.lower_ == "both" and following == "of":
        edits.replace(first, "neither")
        _agree(clause, edits)
        return "neither"
    if quoted_name(first, clause.sentence):
        return None
    # 'All Nerve' is a title.
    named = first.nbor().tag_ == "NNP" and first.nbor().i == subject.i
    belongs = not named and (first.i == subject.i or first.dep_ in ("det", "predet"))
    if first.lower_ in UNIVERSALS and belongs and following not in ("but", "too", "along"):
        edits.put_before(first, "not ")
        return "quantifier"
    return None


def find_pair(clause: Clause, opening: str) -> tuple[Token, Token] | None:
    """Return 'either', 'neither' or 'both' in the main clause, with its 'or', 'nor' or 'and'."""
    for token in clause.sentence[:-1]:
        if token.lower_ == opening:
            joint = _joint(token, clause)
            if joint is not None:
                return token, joint
    return None


def deny_pair(clause: Clause, edits: Edits) -> str | None:
    """Turn 'either forgot or lied' into 'neither forgot nor lied', and likewise for 'both ... and'."""
    for opening in ("either", "both"):
        pair = find_pair(clause, opening)
        if pair is None:
            continue
        token, joint = pair
        joined = [joint.head, *(child for child in joint.head.rights if child.dep_ == "conj")]
        if any(child.dep_ in SUBJECTS and child.i > joint.i for verb in joined for child in verb.children):
            raise Refused("alternative")  # 'Either he goes or I go'
        edits.replace(token, "neither")
        edits.replace(joint, "nor")
        singular = any(second.tag_ in ("NN", "NNP") for second in joined_by(joint)[:1])
        if opening == "both" and joint.i < clause.finite.i and singular:
            _agree(clause, edits)
        return "neither"
    return None


def _joint(token: Token, clause: Clause) -> Token | None:
    """Return the second word of the pair that a word opens; None if there is none or it is in another clause."""
    head, subject = clause.head, clause.subject
    word, following = token.lower_, token.nbor()
    owner = token.head
    if subject is not None and token.i in (subject.left_edge.i, subject.left_edge.i - 1) and token.i < clause.finite.i:
        owner = subject
    elif following.i == head.i:
        # 'They both sing and dance' speaks of two people.
        if word == "both" and token.dep_ != "preconj" and not third_singular(subject):
            return None
        owner = head
    elif word == "both" or token.i < clause.finite.i or token.nbor(-1).is_punct or not _in_clause(token, head):
        return None
    for child in owner.rights:
        if child.lower_ == _JOINTS[word] and child.i > token.i:
            return child
    rest = token.doc[token.i + 1 : clause.sentence.end]
    return None if word == "both" else next((other for other in rest if other.lower_ == _JOINTS[word]), None)


def _in_clause(token: Token, head: Token) -> bool:
    """Return whether a token belongs to an object or complement of the verb, not of a noun."""
    while token.head.i not in (head.i, token.i):
        token = token.head
        verb = token.dep_ == "conj" and token.tag_ in VERB_TAGS
        if token.dep_ not in _COMPLEMENTS or verb or (token.dep_ == "prep" and token.head.i != head.i):
            return False
    return token.head.i == head.i


def _agree(clause: Clause, edits: Edits) -> None:
    """Put the verb after 'neither' into the singular: 'Neither Anna nor Paul is here'."""
    if any(child.dep_ == "attr" and child.tag_ in ("NNS", "NNPS") for child in clause.head.rights):
        return
    if clause.operator and clause.finite.lower_ in _SINGULAR:
        edits.replace(clause.finite, _SINGULAR[clause.finite.lower_])
    elif not clause.operator and clause.tag == "VBP":
        inflect_list(clause.head, "VBZ", edits)
