"""Affirmation of a negated clause, the verb inflected again ('did not become' to 'became')."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.augment.negation import verbs
from likewise.augment.negation.clause import Clause
from likewise.augment.negation.edits import Edits, end_of, word_after
from likewise.augment.negation.function_words import (
    DO,
    NEGATIVE_PRONOUNS,
    STUMPS,
    SUBJECTS,
    TO_SOME,
    VERB_TAGS,
    article,
)
from likewise.augment.negation.negators import Negator
from likewise.augment.negation.verbs import inflect_list, joined_by, right_edge, third_singular

if TYPE_CHECKING:
    from spacy.tokens import Token


def affirm(clause: Clause, negator: Negator, edits: Edits) -> str:
    """Remove one negator from a clause; return the name of the construction."""
    token, kind, last = negator.token, negator.kind, negator.last
    if negator.fronted:
        _straighten(clause, edits)
    if kind == "not":
        _take_out(clause, token, edits)
    elif kind == "no":
        _no(token, edits)
        _but(clause, token.head, edits)
        if token.i and token.nbor(-1).lower_ == "but":
            edits.replace(token.nbor(-1), "and")
    elif kind == "pronoun":
        _pronoun(clause, token, edits)
    elif kind == "not only" and last is not None:
        # 'not only fast but also cheap' to 'neither fast nor cheap'.
        edits.replace(token, "neither", last=token.nbor())
        edits.replace(last, "nor", last=last.nbor())
    else:
        edits.replace(token, negator.instead, last=last)
    if kind in ("no", "few"):
        for other in token.head.conjuncts:
            if other.i > token.i and other.left_edge.lower_ == "no":
                _no(other.left_edge, edits)
    _positive(clause, negator, edits)
    return {"not": "affirm", "not all": "affirm", "not only": "neither"}.get(kind, f"affirm {kind}")


def _take_out(clause: Clause, token: Token, edits: Edits) -> None:
    """Remove 'not' or "n't", and with it the 'do' that stood there for its sake."""
    finite, head = clause.finite, clause.head
    if finite.lower_ in ("need", "dare") and finite != head:
        # 'He need not go' to 'He needs to go': without the negation they are plain verbs.
        edits.replace(finite, verbs.inflect(finite.lower_, "VBZ" if third_singular(clause.subject) else "VB"))
        edits.replace(token, " to" if token.idx == end_of(finite) else "to", keep_case=False)
        return
    if finite.lower_ in DO and finite.i != head.i and not clause.question:
        edits.drop(finite, token)
        tag = verbs.DO_TAGS[finite.lower_]
        inflect_list(head, "VB" if clause.subject is None and tag == "VBP" else tag, edits)
        return
    if finite.lower_ in STUMPS:
        edits.replace(finite, STUMPS[finite.lower_])
    elif finite.lower_ == "ai":
        edits.replace(finite, "am" if clause.subject is not None and clause.subject.lower_ == "i" else "is")
    if word_after(token) == "yet":
        edits.replace(token, "already", last=token.nbor())
    elif token.i and token.idx == end_of(token.nbor(-1)):
        edits.changes.append((token.idx, end_of(token), ""))
    else:
        edits.drop(token)


def _straighten(clause: Clause, edits: Edits) -> None:
    """Turn 'Never have I seen' into 'I have seen': move the auxiliary behind the subject, or drop 'do'."""
    finite, head = clause.finite, clause.head
    assert clause.subject is not None  # only a clause with a subject is inverted
    edits.drop(finite)
    if finite.lower_ in DO and finite.i != head.i:
        inflect_list(head, verbs.DO_TAGS[finite.lower_], edits)
    else:
        edge = right_edge(clause.subject, head.i if finite.i != head.i else len(head.doc))
        edits.insert(end_of(edge), " " + finite.lower_)


def _no(token: Token, edits: Edits) -> None:
    """Turn 'no car' into 'a car', 'no cars' into 'some cars' and 'no different' into 'different'."""
    noun = token.head
    following = token.nbor() if token.i + 1 < len(token.doc) else noun
    word = article(noun, following)
    if token.dep_ in ("advmod", "neg") or following.tag_ in ("JJR", "RBR"):
        word = ""
    elif following.lower_ == "other" and noun.tag_ in ("NN", "NNP"):
        edits.replace(following, "another")
        word = ""
    elif word == "some" and noun.tag_ in ("NNS", "NNPS") and noun.dep_ in ("dobj", "attr"):
        word = ""  # 'They have children' rather than 'some children'
    edits.replace(token, word)


def _pronoun(clause: Clause, token: Token, edits: Edits) -> None:
    """Turn 'no one' into 'someone', 'nothing' into 'something', 'neither of them' into 'one of them'."""
    word, last = token.lower_, token
    # 'none of the milk'.
    mass = any(noun.tag_ in ("NN", "NNP") for of in token.rights for noun in of.rights if of.lower_ == "of")
    if word == "no":
        word, last = "someone", token.nbor()
    elif word == "neither":
        plural = clause.finite.tag_ == "VBP" or clause.finite.lower_ == "were"
        word = "either" if word_after(token) != "of" else "both" if plural else "one"
    elif word == "none" and (clause.finite.tag_ == "VBZ" or clause.finite.lower_ == "was") and not mass:
        word = "one"
    else:
        word = NEGATIVE_PRONOUNS[word]
    edits.replace(token, word, last=last)
    _but(clause, last, edits)


def _but(clause: Clause, noun: Token, edits: Edits) -> None:
    """Turn 'no one but John' into 'someone other than John', 'no money but friends' into 'money and friends'."""
    if word_after(noun) not in ("but", "except") or noun.i + 2 >= clause.sentence.end:
        return
    but, following = noun.nbor(), noun.nbor(2)
    behind = noun.i > clause.finite.i
    verb = following.tag_ in VERB_TAGS and noun.lower_ not in NEGATIVE_PRONOUNS
    if behind and (following.dep_ in SUBJECTS or verb):
        return  # a clause of its own
    if behind and noun.left_edge.lower_ == "no" and following.tag_ in ("DT", "JJ", "CD", "NN", "NNS"):
        edits.replace(but, "and")
    else:
        edits.replace(but, "other than", last=following if following.lower_ == "for" else None)


def _positive(clause: Clause, negator: Negator, edits: Edits) -> None:
    """Replace words that need a negation: 'any' by 'some', 'nor' by 'or'; 'ever' is dropped."""
    last = negator.last or negator.token
    if clause.question and last.i > clause.finite.i:
        return
    # Only what hangs on the negated verb: a second statement in the same sentence keeps its words.
    for token in (token for token in clause.head.subtree if last.i < token.i < clause.sentence.end):
        word = token.lower_
        following = word_after(token) if token.i + 1 < clause.sentence.end else ""
        if word in ("until", "till") and negator.kind != "few" and clause.head.i in (token.head.i, token.head.head.i):
            edits.replace(token, "before")
        if _own_clause(token, clause.head):
            continue
        if word == "any" and following in ("longer", "more"):
            edits.drop(token, token.nbor())
        elif word in ("any", "anymore", "ever") and token.dep_ == "advmod":
            edits.drop(token)
        elif word in TO_SOME:
            edits.replace(token, TO_SOME[word])
        elif word == "at" and following == "all" and not word_after(token, 2)[:1].isalnum():
            edits.drop(token, token.nbor())
        elif word == "either" and following in (".", "!", "?"):
            edits.replace(token, "too")
        elif word == "yet" and token.dep_ == "advmod" and token.i - 1 != last.i:
            edits.replace(token, "already")
        elif word == "nor":
            edits.replace(token, "and" if negator.instead == "both" else "or")
        elif word == "but" and negator.kind == "not" and _contrasts(token):
            # 'not rich but poor' to 'rich and not poor'.
            edits.replace(token, "and not")


def _contrasts(but: Token) -> bool:
    """Return whether 'but' joins two words or phrases that are not verbs."""
    joined = joined_by(but)
    plain = bool(joined) and not any(child.tag_ in VERB_TAGS for child in joined[0].subtree)
    return plain and but.head.tag_ not in VERB_TAGS and word_after(but) not in ("also", "rather", "not", "only")


def _own_clause(token: Token, head: Token) -> bool:
    """Return whether a token is in a subordinate clause, where the scope of the negation is unclear."""
    while token.head.i != token.i and token.i != head.i:
        if token.dep_ in ("advcl", "relcl", "parataxis") and token.tag_ != "IN":
            return True
        if token.dep_ == "conj" and any(child.dep_ == "nsubj" for child in token.lefts):
            return True
        token = token.head
    return False
