"""Negation inside a noun phrase: 'There is no house', 'Not all birds fly', 'No one came'."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.augment.negation.clause import Clause, quoted_name
from likewise.augment.negation.edits import Edits, lower_first, word_after
from likewise.augment.negation.words import TO_NO, UNIVERSALS, listed

if TYPE_CHECKING:
    from spacy.tokens import Token

# 'There is a lot of' keeps its article: 'no lot of' is not English.
_QUANTITIES = listed("""lot number few little couple variety total deal bit range majority handful third half""")
_COUNTED = listed("""many several few various numerous more less most multiple other much enough little""")


def presented(verb: Token) -> Token | None:
    """The noun that a verb of being or standing presents."""
    nouns = [child for child in verb.rights if child.dep_ in ("attr", "dobj", "nsubj", "nsubjpass")]
    return nouns[0] if nouns else None


def no_before(noun: Token | None, start: int, edits: Edits) -> bool:
    """Negate a noun phrase that begins at token number `start` by 'no'; False where 'not' is better."""
    if noun is None or noun.tag_ not in ("NN", "NNS") or noun.left_edge.i != start:
        return False
    if noun.lower_ in _QUANTITIES or any(child.dep_ == "conj" for child in noun.children):
        return False
    first = noun.left_edge
    if first.lower_ in ("a", "an", "some") and first.dep_ == "det":
        edits.replace(first, "no")
        return True
    if any(child.dep_ in ("det", "nummod", "poss", "predet", "quantmod") for child in noun.lefts):
        return False
    if any(
        child.lower_ in _COUNTED or child.tag_ in ("CD", "JJR", "JJS") for child in noun.subtree if child.i < noun.i
    ):
        return False
    if first.tag_ not in ("NN", "NNS", "JJ"):
        return False
    edits.insert(first.idx, "no ")
    return True


def quantified_subject(clause: Clause, edits: Edits) -> str | None:
    """'All birds fly' to 'Not all birds fly'; 'Someone came' and 'Anyone can come' to 'No one'."""
    subject = clause.subject
    if subject is None or subject.i > clause.finite.i or subject.dep_.startswith("csubj") or clause.existential:
        return None
    first, following = subject.left_edge, word_after(subject.left_edge)
    if first.lower_ in TO_NO and (first.i == subject.i or first.dep_ == "det") and following != "one":
        edits.replace(first, "none" if first.lower_ == "any" and first.i == subject.i else TO_NO[first.lower_])
        return "quantifier"
    if quoted_name(first, clause.sentence):
        return None
    # 'All Nerve' is a title.
    named = first.nbor().tag_ == "NNP" and first.nbor().i == subject.i
    belongs = not named and (first.i == subject.i or first.dep_ in ("det", "predet"))
    if first.lower_ in UNIVERSALS and belongs and following not in ("but", "too", "along"):
        edits.insert(first.idx, "not ")
        edits.replace(first, lower_first(first), keep_case=False)
        return "quantifier"
    return None
