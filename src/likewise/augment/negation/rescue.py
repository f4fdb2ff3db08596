"""Main clauses that a small parser takes for a noun phrase, recovered by unambiguous signs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from likewise.augment.negation import verbs
from likewise.augment.negation.words import AUXILIARIES, BE, SUBJECTS, UNIVERSALS, listed

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

_TIMES = listed("""year month week day morning evening night season time summer winter spring autumn years""")
_ONE = listed("a an this that each every another")
_OPEN_DEPS = frozenset(("acl", "advcl", "relcl", "conj", "appos", "amod", "prep"))


def hidden_clauses(sentence: Span) -> Iterator[tuple[Token, str | None, Token | None]]:
    """Return verbs that may be the main verb if the root is not one, with tense and subject if the form shows them.

    Only for a text with a full stop at its end: without one, a noun with a participle is a heading.
    """
    if not sentence.text.rstrip("\"'”’) ").endswith((".", "!", "?")):
        return
    root = sentence.root
    plural = root.tag_ == "NNS" and not any(child.tag_ == "CD" for child in root.lefts)
    if plural and any(child.lower_ in _ONE for child in root.lefts if child.dep_ == "det"):
        # 'This results in losses': a plural behind 'this' or 'a' is a verb.
        yield root, "VBZ", root.nbor(-1)
    for token in root.rights:
        if token.dep_ not in _OPEN_DEPS or _relative(token):
            continue
        helpers = [child for child in token.lefts if child.dep_ in AUXILIARIES]
        subject = any(child.dep_ in SUBJECTS for child in token.lefts)
        if helpers and helpers[0].tag_ in ("VBD", "VBZ", "VBP", "MD") and (token.dep_ in ("acl", "conj") or subject):
            # 'Her dissertation, "...", was supervised by him'.
            yield token, None, None
        elif not helpers and token.dep_ in ("acl", "amod", "relcl") and (token.tag_ == "VBD" or _past(token)):
            # 'The winners qualified for the final', 'The victory secured their place'.
            yield token, "VBD", token.nbor(-1)
        elif token.dep_ == "conj" and not helpers and (token.tag_ in ("VBZ", "VBD") or token.lower_ in BE):
            # 'The church and the tower date from 1894 and are by Wilson'.
            yield token, None, None
        elif token.tag_ == "NNS" and token.dep_ in ("appos", "relcl") and token.nbor(-1).lower_ == "both":
            # 'He both sings and dances'.
            yield token, "VBZ", root
        elif token.lower_ == "like" and token.i == root.i + 1 and root.tag_ == "NNS" and _quantified(root, token):
            # 'Not many people like it'.
            yield token, "VBP", root
    for token in root.subtree if root.lower_ in UNIVERSALS else ():
        # 'All that glitters is not gold', 'Everything that he says is true'.
        if token.lower_ in BE and token.tag_ in ("VBZ", "VBP", "VBD") and token.i > root.i + 2:
            yield token, token.tag_, root
    for token in sentence:
        # 'The following year she had two wins', 'After the war he returned'.
        outer = token.head
        timed = outer.lower_ in _TIMES or root.tag_ == "IN"
        beside = outer.i == root.i or root.tag_ == "IN"
        statement = token.dep_ in ("relcl", "acl") and any(child.dep_ in SUBJECTS for child in token.lefts)
        if statement and timed and beside and not _relative(token):
            yield token, None, None


def _quantified(noun: Token, like: Token) -> bool:
    """Return whether 'like' after a noun is a verb: a plural likes something, or anyone likes 'it'."""
    counted = any(child.lower_ in ("many", "few", "most", "some", "all", "several") for child in noun.lefts)
    return counted or any(child.tag_ == "PRP" for child in like.rights)


def _past(verb: Token) -> bool:
    """Return whether an apparent participle is a past tense: one with an object is not passive."""
    transitive = {child.dep_ for child in verb.rights} & {"dobj", "agent"} == {"dobj"}
    return verb.tag_ == "VBN" and transitive and verbs.finite_tag(verb.lower_, "VBN", True) == "VBD"


def _relative(verb: Token) -> bool:
    """Return whether a conjunction or a relative word opens the clause."""
    before = [child for child in verb.subtree if child.i < verb.i]
    return any(child.dep_ == "mark" or child.tag_ in ("WDT", "WP", "WP$", "WRB") for child in before)
