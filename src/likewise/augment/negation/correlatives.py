"""Words in pairs: 'either ... or' and 'both ... and' become 'neither ... nor', which becomes one of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.augment.negation.clause import Clause, third_singular
from likewise.augment.negation.edits import Edits
from likewise.augment.negation.phrases import inflect_list
from likewise.augment.negation.refusals import Refused
from likewise.augment.negation.words import SUBJECTS, VERB_TAGS, listed

if TYPE_CHECKING:
    from spacy.tokens import Token

_JOINTS = {"either": "or", "neither": "nor", "both": "and"}
_COMPLEMENTS = listed("dobj attr acomp oprd dative prep agent pobj conj nsubj nsubjpass advmod npadvmod")
_SINGULAR = {"are": "is", "were": "was", "have": "has", "do": "does"}


def find_pair(clause: Clause, opening: str) -> tuple[Token, Token] | None:
    """'either', 'neither' or 'both' in the main clause, with the 'or', 'nor' or 'and' that belongs to it."""
    for token in clause.sentence[:-1]:
        if token.lower_ == opening:
            joint = _joint(token, clause)
            if joint is not None:
                return token, joint
    return None


def deny_pair(clause: Clause, edits: Edits) -> str | None:
    """'either forgot or lied' to 'neither forgot nor lied', and the same for 'both ... and'."""
    for opening in ("either", "both"):
        found = find_pair(clause, opening)
        if found is None:
            continue
        token, joint = found
        joined = [joint.head, *(child for child in joint.head.rights if child.dep_ == "conj")]
        if any(child.dep_ in SUBJECTS and child.i > joint.i for verb in joined for child in verb.children):
            raise Refused("alternative")  # 'Either he goes or I go'
        edits.replace(token, "neither")
        edits.replace(joint, "nor")
        if opening == "both" and joint.i < clause.finite.i:
            _agree(clause, joint, edits)
        return "neither"
    return None


def _joint(token: Token, clause: Clause) -> Token | None:
    """The second word of a pair that the first one opens, None where it opens none or stands in another clause."""
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
    """Whether a token belongs to an object or a complement of the verb itself, not to one of a noun's."""
    while token.head.i not in (head.i, token.i):
        token = token.head
        verb = token.dep_ == "conj" and token.tag_ in VERB_TAGS
        if token.dep_ not in _COMPLEMENTS or verb or (token.dep_ == "prep" and token.head.i != head.i):
            return False
    return token.head.i == head.i


def _agree(clause: Clause, joint: Token, edits: Edits) -> None:
    """The verb in the singular behind 'neither A nor B' where B is one: 'Neither Anna nor Paul is here'."""
    second = next((child for child in joint.head.rights if child.dep_ == "conj" and child.i > joint.i), None)
    several = any(child.dep_ == "attr" and child.tag_ in ("NNS", "NNPS") for child in clause.head.rights)
    if second is None or second.tag_ not in ("NN", "NNP") or several:
        return
    if clause.operator and clause.finite.lower_ in _SINGULAR:
        edits.replace(clause.finite, _SINGULAR[clause.finite.lower_])
    elif not clause.operator and clause.tag == "VBP":
        inflect_list(clause.head, "VBZ", edits)
