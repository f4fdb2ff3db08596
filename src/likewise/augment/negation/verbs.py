"""Verb forms, from lemminflect, and coordinated verbs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from likewise.augment.negation.edits import Edits, word_after
from likewise.augment.negation.function_words import (
    AUXILIARIES,
    BE,
    DO,
    FINITE_TAGS,
    HAVE,
    MODALS,
    OPERATORS,
    SUBJECTS,
    VERB_TAGS,
)

if TYPE_CHECKING:
    from spacy.tokens import Token

# Where the library lists a rarer form first, or none.
_FORMS = {
    ("be", "VBZ"): "is",
    ("be", "VBP"): "are",
    ("be", "VBD"): "was",
    ("weave", "VBD"): "wove",
    ("learn", "VBD"): "learned",
}
# The form of 'do' that carries a tense, and the tense that each form carries.
DO_FORMS = {"VBD": "did", "VBZ": "does", "VBP": "do"}
DO_TAGS = {form: tag for tag, form in DO_FORMS.items()}
# Finite tags that show no clause of their own: auxiliaries, and participles with a wrong tag.
_NO_VERB = AUXILIARIES | {"acl", "amod"}
_BASES = {"founded": "found", "lay": "lie", "dove": "dive", "span": "span", "lied": "lie"}


@lru_cache(maxsize=50_000)
def base(form: str, tag: str = "VBD") -> str:
    """Return the base form of a verb form.

    `tag` (VBD, VBZ, VBP, VBN or VB) decides between two readings: 'found' as a past is 'find'.

    >>> base("became"), base("found"), base("found", "VB"), base("has", "VBZ")
    ('become', 'find', 'found', 'have')
    """
    import lemminflect

    word = form.lower()
    if tag in ("VB", "VBP"):
        return word
    if word in _BASES and tag in ("VBD", "VBN"):
        return _BASES[word]
    candidates: tuple[str, ...] = lemminflect.getLemma(word, "VERB") or (word,)
    # The first lemma that has this form under this tag; the library's order breaks ties.
    for lemma in candidates:
        if word in lemminflect.getInflection(lemma, tag):
            return lemma
    return candidates[0]


@lru_cache(maxsize=50_000)
def inflect(lemma: str, tag: str) -> str:
    """Return the form of a base verb for a Penn tag (VBD past, VBZ third person, VBP present, VBN, VB).

    >>> inflect("become", "VBD"), inflect("have", "VBZ"), inflect("lie", "VBD")
    ('became', 'has', 'lay')
    """
    import lemminflect

    word = lemma.lower()
    if (word, tag) in _FORMS:
        return _FORMS[(word, tag)]
    if tag in ("VB", "VBP"):
        return word
    forms: tuple[str, ...] = lemminflect.getInflection(word, tag)
    if not forms:
        return word
    # The library lists American and British doubles ('traveled', 'travelled'); the first is the American one.
    return forms[0]


@lru_cache(maxsize=50_000)
def finite_tag(form: str, tag: str, third_singular: bool) -> str | None:
    """Return the tense that the form of a lexical verb shows: VBD, VBZ or VBP; None if it cannot be finite.

    The form outranks the tagger, which mistakes a past for a participle and the other way round. 'put' and
    its like are the same in past and present: with a subject in the third person they can only be past.

    >>> finite_tag("featured", "VBN", True), finite_tag("put", "VBP", True), finite_tag("taken", "VBN", True)
    ('VBD', 'VBD', None)
    """
    import lemminflect

    word = form.lower()
    lemmas: tuple[str, ...] = lemminflect.getLemma(word, "VERB") or (word,)
    fits = {kind for lemma in lemmas for kind in ("VBD", "VBZ", "VB") if word in lemminflect.getInflection(lemma, kind)}
    if tag in ("VBD", "VBZ"):
        # Trust the tag unless the form speaks clearly against it.
        if tag in fits or not fits:
            return tag
        return "VBZ" if "VBZ" in fits else "VBD" if "VBD" in fits else "VBP"
    if tag == "VBN":
        return "VBD" if "VBD" in fits else None
    if tag == "VBG":
        return None
    if "VBD" in fits and (third_singular or "VB" not in fits):
        return "VBD"
    if "VB" in fits or (tag in ("VB", "VBP") and not fits):
        return "VBP"
    return "VBZ" if "VBZ" in fits else None


def subjects(verb: Token) -> list[Token]:
    """Return the subjects of a verb, 'there' among them."""
    return [child for child in verb.children if child.dep_ in SUBJECTS]


def auxiliaries(verb: Token) -> list[Token]:
    """Return the auxiliaries before a verb."""
    return [child for child in verb.lefts if child.dep_ in AUXILIARIES]


def joined_by(conjunction: Token) -> list[Token]:
    """Return the words after a conjunction that it joins to the one before it."""
    return [child for child in conjunction.head.rights if child.dep_ == "conj" and child.i > conjunction.i]


def third_singular(subject: Token | None) -> bool:
    """Return whether a subject takes the verb form in -s, judging by the head word alone."""
    if subject is None:
        return False
    if subject.tag_ == "PRP":
        return subject.lower_ in ("he", "she", "it")
    if any(child.dep_ == "conj" for child in subject.children):
        return False
    return subject.tag_ in ("NN", "NNP", "DT", "VBG", "CD") and subject.lower_ not in ("these", "those", "i")


def is_operator(token: Token, head: Token, subject: Token | None) -> bool:
    """Return whether 'not' can follow this finite word: 'be' anywhere, 'have', 'do' and modals as auxiliaries."""
    word = token.lower_
    if word in OPERATORS and word_after(token) in ("n't", "n’t"):
        return True  # a short answer, 'He doesn't', has no other verb
    if word in BE and (word not in ("'s", "’s") or token.tag_ != "POS"):
        return True
    inverted = subject is not None and subject.i > token.i
    if token.i == head.i:
        return (word in MODALS and token.tag_ == "MD") or word[0] in "'’" or (word in DO and inverted)
    # 'did a turn' is not an auxiliary, whatever the parser says.
    return word in HAVE or (word in DO and (head.tag_ in VERB_TAGS or inverted)) or word in MODALS


def is_finite_auxiliary(token: Token) -> bool:
    """Return whether an auxiliary is finite; the tagger often calls an inverted 'have' or 'do' a base form."""
    bare = token.lower_ in ("be", "been", "being", "having", "to")
    return not bare and (token.tag_ in FINITE_TAGS or token.lower_ in OPERATORS)


def right_edge(token: Token, before: int) -> Token:
    """Return the last word of the phrase of `token` before token number `before`, ignoring punctuation."""
    edge = token
    for member in token.subtree:
        if member.i > token.i and member.dep_ == "acl" and member.tag_ == "VBN":
            # 'Was the letter sent?': the parser may take the participle for a part of the subject.
            break
        if edge.i < member.i < before and not member.is_punct:
            edge = member
    return edge


def inflect_list(verb: Token, tag: str, edits: Edits) -> None:
    """Inflect a bare verb and the verbs coordinated with it for a tense."""
    edits.replace(verb, inflect(verb.lower_, tag))
    for other in conjuncts(verb):
        if other.tag_ not in ("VB", "VBP") or auxiliaries(other):
            return
        if not any(child.dep_ == "neg" for child in other.lefts):
            edits.replace(other, inflect(other.lower_, tag))


def conjuncts(head: Token) -> Iterator[Token]:
    """Return the verbs that share the subject of `head` and are in one list with it.

    In one list are 'came and saw' and 'came, saw, and won'; 'but', and a comma before 'and' of two verbs,
    open a clause with its own tense.
    """
    current, first = head, True
    tags = (*VERB_TAGS, "NNS")
    while verb := next((c for c in current.rights if c.dep_ == "conj" and c.tag_ in tags), None):
        joining = [child for child in current.rights if child.dep_ == "cc" and child.i < verb.i]
        comma = verb.nbor(-1).text in (",", ";", "–", "—", "-") or any(t.nbor(-1).text in (",", ";") for t in joining)
        between = head.doc[current.i + 1 : verb.i]
        if (
            subjects(verb)
            # 'the valve sticks', where the parser took the subject for a part of the verb.
            or any(child.dep_ in ("det", "compound") for child in verb.lefts)
            # Another finite verb in between may be the verb to which this verb is joined.
            or any(token.tag_ in ("VBD", "VBZ", "VBP") and token.dep_ not in _NO_VERB for token in between)
            or (joining and (joining[-1].lower_ not in ("and", "or", "nor") or (comma and first)))
            # 'did the dishes and her sister did the laundry': the parser took a subject for an object.
            or (not joining and len(between) and between[-1].dep_ == "conj" and between[-1].head != current)
        ):
            return
        yield verb
        current, first = verb, bool(joining)
