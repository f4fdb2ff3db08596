"""Where a phrase ends, and which verbs stand in one list."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from likewise.augment.negation import verbs
from likewise.augment.negation.edits import Edits
from likewise.augment.negation.words import AUXILIARIES, SUBJECTS, VERB_TAGS

if TYPE_CHECKING:
    from spacy.tokens import Token

# Finite tags that show no clause of their own: auxiliaries, and participles with a wrong tag.
_NO_VERB = AUXILIARIES | {"acl", "amod"}


def right_edge(token: Token, before: int) -> Token:
    """The last word of the phrase of `token` before token number `before`, punctuation left out."""
    edge = token
    for member in token.subtree:
        if member.i > token.i and member.dep_ == "acl" and member.tag_ == "VBN":
            # 'Was the letter sent?': the parser may take the participle for a part of the subject.
            break
        if edge.i < member.i < before and not member.is_punct:
            edge = member
    return edge


def inflect_list(verb: Token, tag: str, edits: Edits) -> None:
    """Put a bare verb and the verbs in one list with it into a tense."""
    edits.replace(verb, verbs.inflect(verb.lower_, tag))
    for other, together in conjuncts(verb):
        if not together or other.tag_ not in ("VB", "VBP") or any(c.dep_ in AUXILIARIES for c in other.lefts):
            return
        if not any(child.dep_ == "neg" for child in other.lefts):
            edits.replace(other, verbs.inflect(other.lower_, tag))


def conjuncts(head: Token) -> Iterator[tuple[Token, bool]]:
    """The verbs coordinated with `head` that share its subject, and whether each is in one list with it.

    In one list are 'came and saw' and 'came, saw, and won'; 'but', and a comma before 'and' of two verbs,
    open a clause with its own tense.
    """
    current, together, first = head, True, True
    while True:
        following = [child for child in current.rights if child.dep_ == "conj" and child.tag_ in (*VERB_TAGS, "NNS")]
        if not following:
            return
        verb = following[0]
        if any(child.dep_ in SUBJECTS for child in verb.children):
            return
        joining = [child for child in current.rights if child.dep_ == "cc" and child.i < verb.i]
        comma = any(t.text in (",", ";", "–", "—", "-") for t in verb.doc[verb.i - 1 : verb.i]) or any(
            t.nbor(-1).text in (",", ";") for t in joining if t.i > 0
        )
        # Another finite verb in between may be the one that this verb is joined to.
        between = head.doc[current.i + 1 : verb.i]
        if any(token.tag_ in ("VBD", "VBZ", "VBP") and token.dep_ not in _NO_VERB for token in between):
            together = False
        if joining and (joining[-1].lower_ not in ("and", "or", "nor") or (comma and first)):
            together = False
        if not joining and between and between[-1].dep_ == "conj" and between[-1].head.i != current.i:
            # 'did the dishes and her sister did the laundry': the parser took a subject for an object.
            together = False
        yield verb, together
        current, first = verb, bool(joining)
