"""The main clause of a parsed sentence, its finite word and its subject."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from likewise.augment.negation import verbs
from likewise.augment.negation.function_words import (
    AUXILIARIES,
    BE,
    FINITE_TAGS,
    HAVE,
    SUBJECTS,
    UNIVERSALS,
    VERB_TAGS,
    listed,
)
from likewise.augment.negation.verbs import auxiliaries, is_finite_auxiliary, is_operator, subjects, third_singular

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

# Where a statement can hide when the root is not a verb; a relative or adverbial clause is not a statement.
_STATEMENT_DEPS = frozenset(("conj", "ccomp", "parataxis", "dep", "appos", "nsubj", "pcomp", "npadvmod", "intj"))
# Words that bring an auxiliary before its subject: 'Only then did he understand'.
_INVERTERS = listed("""only never so nor neither not no rarely seldom hardly scarcely little nowhere""")
_CLOSING = "\"'”’) "
_QUOTES = frozenset(('"', "“", "”", "``", "''"))
_BASE_AS_PRESENT = ("VB", "VBP", "NN", "NNS", "NNP", "NNPS", "JJ", "IN", "RB")
_TIMES = listed("year month week day morning evening night season time summer winter spring autumn years")
_ONE = listed("a an this that each every another")
_COUNTS = listed("many few most some all several")
_OPEN_DEPS = frozenset(("acl", "advcl", "relcl", "conj", "appos", "amod", "prep"))


class Refused(Exception):  # noqa: N818 - a refusal is an outcome, not an error
    """A sentence that these rules would turn into broken or unclear English; the message is the reason."""


@dataclass(frozen=True)
class Clause:
    """A main clause.

    `head` is its lexical verb (or 'be'), and `finite` is the finite word, which is `head` itself if there is no
    auxiliary; `tag` is the tense of `finite`; `operator` is whether 'not' can follow `finite`, so that no form of 'do'
    is needed.
    """

    sentence: Span
    head: Token
    finite: Token
    tag: str
    operator: bool
    subject: Token | None
    imperative: bool = False

    @property
    def asks(self) -> bool:
        """True if the sentence ends in a question mark."""
        return bool(self.sentence.text.rstrip(_CLOSING).endswith("?"))

    @property
    def question(self) -> bool:
        """True if the subject follows the operator: 'Is he here?', 'Only then did he come'."""
        if self.subject is None or not self.operator or self.subject.i < self.finite.i:
            return False
        if any(token.text == "?" for token in self.head.doc[self.head.i : self.sentence.end]):
            return True
        # Without a question mark the parser's inversion is believed only behind a word that calls for one.
        before = self.head.doc[self.sentence.start : self.finite.i]
        inverter = not before or any(token.lower_ in _INVERTERS for token in before)
        return inverter and self.finite.i != self.head.i and self.subject.i < self.head.i

    @property
    def existential(self) -> bool:
        """True if the subject is the 'there' of 'there is'."""
        return self.subject is not None and self.subject.dep_ == "expl" and self.subject.lower_ == "there"


def main_clause(sentence: Span) -> Clause | None:
    """Return the main clause of a sentence; None if no finite verb is found.

    A quoted clause before its reporting verb is the main clause ('"I am here", said John.'), as is the first of two
    clauses joined by a semicolon, which the parser attaches to the last. If the quotation follows the reporting verb,
    the reporting verb is negated.
    """
    for head in _heads(sentence):
        clause = None if _bracketed(head, sentence) else _clause(head, sentence)
        if clause is not None:
            return clause
    for head, tag, subject in _hidden(sentence):
        if tag is not None:
            return Clause(sentence, head, head, tag, head.lower_ in BE, subject)
        clause = _clause(head, sentence)
        if clause is not None and not clause.imperative:
            return clause
    return None if _bracketed(sentence.root, sentence) else _clause(sentence.root, sentence, lenient=True)


def _heads(sentence: Span) -> Iterator[Token]:
    """Return candidates for the head of the main clause, best first."""
    root = sentence.root
    for child in root.lefts:
        # 'Should you need help, call me': a condition.
        condition = child.left_edge.lower_ in ("should", "had", "were") and "?" not in sentence.text
        complete = subjects(child) or child.tag_ == "VB"  # '"Go on," he said' needs no subject
        if child.dep_ == "ccomp" and complete and not condition and not _subordinate(child):
            yield child
    if sentence[0].tag_ in ("WP", "WDT", "WRB") and not sentence.text.rstrip().endswith("?"):
        # 'What he said surprised me', where the parser takes 'said' for the main verb.
        for child in root.rights:
            finite = child.dep_ == "ccomp" and child.tag_ in FINITE_TAGS
            if finite and not subjects(child) and not _subordinate(child):
                yield child
    yield root
    for token in sentence:
        hidden = token != root and token.tag_ in VERB_TAGS and token.dep_ in _STATEMENT_DEPS
        if hidden and not _subordinate(token) and subjects(token):
            yield token


def _subordinate(token: Token) -> bool:
    """Return whether a conjunction or a relative word opens the clause of a token."""
    asks = token.sent.text.rstrip().endswith("?")
    words = ("WDT", "WP$") if asks else ("WDT", "WP$", "WP", "WRB")
    return any(child.dep_ == "mark" or child.tag_ in words for child in token.lefts)


def _bracketed(token: Token, sentence: Span) -> bool:
    """Return whether a token is inside brackets that were opened within the sentence."""
    before = [word.text for word in token.doc[sentence.start + 1 : token.i]]
    return before.count("(") > before.count(")")


def _clause(head: Token, sentence: Span, lenient: bool = False) -> Clause | None:
    """Return the clause of one head; None if it has no finite verb."""
    subject = _subject(head)
    helpers = auxiliaries(head)
    for position, auxiliary in enumerate(helpers):
        if auxiliary.tag_ == "TO":
            return None
        if auxiliary.lower_ == "be" and subject is None and position == 0:
            # 'Please be seated.'
            before = head.doc[sentence.start : auxiliary.i]
            if all(token.tag_ in ("UH", "RB") or token.is_punct for token in before):
                return Clause(sentence, auxiliary, auxiliary, "VB", False, None, imperative=True)
        if auxiliary.lower_ == "let" or not is_finite_auxiliary(auxiliary):
            continue
        if head.lower_ in BE and head.tag_ in ("VBZ", "VBD") and auxiliary.lower_ not in HAVE:
            break  # 'Who did it is unknown'
        return Clause(sentence, head, auxiliary, auxiliary.tag_, is_operator(auxiliary, head, subject), subject)
    else:
        if helpers and helpers[0].lower_ != "let":
            return None
    return _bare_clause(head, sentence, subject, lenient)


def _bare_clause(head: Token, sentence: Span, subject: Token | None, lenient: bool) -> Clause | None:
    """Return the clause of a verb without auxiliaries."""
    if is_operator(head, head, subject) and head.lower_ not in ("be", "been", "being"):
        return Clause(sentence, head, head, head.tag_, True, subject)
    if head.tag_ in ("VB", "VBP") and subject is None:
        return _without_subject(head, sentence)
    if subject is None:
        # 'Plays for Chelsea.' is finite; 'Led by Smith.' is a participle whatever the tagger says.
        after = head.nbor() if head.i + 1 < len(head.doc) else None
        if head.tag_ == "VBZ" or (head.tag_ == "VBD" and (after is None or after.lower_ != "by")):
            return Clause(sentence, head, head, head.tag_, False, None)
        return None
    opens = subject.i == sentence.start == head.i - 1 and subject.tag_ in ("VB", "NN")
    if opens and head.lower_ == "left" and not any(child.dep_ == "dobj" for child in head.rights):
        # 'Turn left and go straight on.'
        return Clause(sentence, subject, subject, "VB", False, None, imperative=True)
    if subject.dep_ == "nsubjpass" or (head.tag_ not in VERB_TAGS and head.tag_ not in _BASE_AS_PRESENT):
        return None
    if not lenient and head.i > sentence.start and head.nbor(-1).text == "," and _inserted(head, sentence):
        # 'Force, applied with care, is used': a participle as long as there is another verb.
        return None
    later = _later_verb(head)
    if later is not None:
        return _clause(later, sentence)
    tag = verbs.finite_tag(head.lower_, head.tag_, third_singular(subject))
    if tag is None or (head.tag_ not in VERB_TAGS and tag == "VBP" and third_singular(subject)):
        return None
    return Clause(sentence, head, head, tag, False, subject)


def _inserted(head: Token, sentence: Span) -> bool:
    """Return whether a verb after a comma may be a participle in a phrase that a second comma closes."""
    if head.tag_ != "VBD":
        return head.tag_ == "VBN"
    rest = head.doc[head.i : sentence.end - 1]
    closed = any(token.text == "," and token.nbor().tag_ in ("VBZ", "VBD", "MD") for token in rest)
    return closed and verbs.inflect(verbs.base(head.lower_), "VBD") == head.lower_


def _later_verb(head: Token) -> Token | None:
    """Return the main verb after a participle that the parser mistook for it: 'Carts mounted on wheels were used'."""
    if head.tag_ not in ("VBD", "VBN") or verbs.inflect(verbs.base(head.lower_), "VBD") != head.lower_:
        return None
    child = next((child for child in head.rights if child.dep_ not in ("prep", "advmod", "prt")), None)
    if child is None or child.dep_ != "conj":
        return None
    helpers = [other for other in child.lefts if other.dep_ in (*AUXILIARIES, *SUBJECTS, "mark")]
    if not helpers or helpers[0].dep_ not in AUXILIARIES or not is_finite_auxiliary(helpers[0]):
        return None
    between = head.doc[head.i + 1 : helpers[0].i]
    return child if len(between) > 1 and all(token.dep_ not in ("cc", "punct") for token in between) else None


def _without_subject(head: Token, sentence: Span) -> Clause | None:
    """Return the clause of an imperative, or of a statement whose subject the parser missed; None for a name."""
    tag = verbs.finite_tag(head.lower_, head.tag_, False) or "VBP"
    before = [token for token in head.doc[sentence.start : head.i] if not token.is_punct and not token.is_space]
    articled = any(child.dep_ == "det" for child in head.lefts)  # a noun, which the parser took for a verb
    if quoted_name(head, sentence) or (before and head.text.istitle()) or articled:
        return None
    opens = not before or head.nbor(-1).text in (",", ":", ";") or all(t.tag_[:2] in ("RB", "UH", "CC") for t in before)
    imperative = opens and tag == "VBP"
    return Clause(sentence, head, head, "VB" if imperative else tag, False, None, imperative=imperative)


def quoted_name(token: Token, sentence: Span) -> bool:
    """Return whether a token is in a quotation that ends before a verb: the name in '"Go On" is a song'."""
    if sum(word.text in _QUOTES for word in token.doc[sentence.start : token.i]) % 2 == 0:
        return False
    closed = [word.i for word in token.doc[token.i : sentence.end] if word.text in _QUOTES]
    after = token.doc[closed[0] + 1] if closed and closed[0] + 1 < sentence.end else None
    return after is not None and (after.tag_ in ("VBZ", "VBD", "VBP", "MD") or after.text == "/")


def _subject(head: Token) -> Token | None:
    """Return the subject of a head: 'there' is preferred to the noun after it, otherwise the first one."""
    candidates = subjects(head)
    if not candidates and head.tag_ == "NN" and any(child.dep_ == "aux" for child in head.lefts):
        # 'Why did the war end?', where the parser reads 'the war end' as a noun.
        candidates = [child for child in head.lefts if child.dep_ == "compound"]
    return next((child for child in candidates if child.dep_ == "expl"), candidates[0] if candidates else None)


def _hidden(sentence: Span) -> Iterator[tuple[Token, str | None, Token | None]]:
    """Return verbs that may be the main verb where the parser sees a noun phrase, by unambiguous evidence.

    With tense and subject if the form shows them. Only for a text with a full stop at its end: without one, a noun with
    a participle is a heading.
    """
    if not sentence.text.rstrip(_CLOSING).endswith((".", "!", "?")):
        return
    root = sentence.root
    plural = root.tag_ == "NNS" and not any(child.tag_ == "CD" for child in root.lefts)
    if plural and any(child.lower_ in _ONE for child in root.lefts if child.dep_ == "det"):
        # 'This results in losses': a plural behind 'this' or 'a' is a verb.
        yield root, "VBZ", root.nbor(-1)
    counted = any(child.lower_ in _COUNTS for child in root.lefts)
    for token in root.rights:
        if token.dep_ not in _OPEN_DEPS or _relative(token):
            continue
        helpers = auxiliaries(token)
        subject = any(child.dep_ in SUBJECTS for child in token.lefts)
        if helpers and helpers[0].tag_ in FINITE_TAGS and (token.dep_ in ("acl", "conj") or subject):
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
        elif (
            token.lower_ == "like"
            and token.i == root.i + 1
            and root.tag_ == "NNS"
            and (counted or "PRP" in {t.tag_ for t in token.rights})
        ):
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
        is_adjacent = outer.i == root.i or root.tag_ == "IN"
        statement = token.dep_ in ("relcl", "acl") and any(child.dep_ in SUBJECTS for child in token.lefts)
        if statement and timed and is_adjacent and not _relative(token):
            yield token, None, None


def _past(verb: Token) -> bool:
    """Return whether an apparent participle is a past tense: one with an object is not passive."""
    transitive = {child.dep_ for child in verb.rights} & {"dobj", "agent"} == {"dobj"}
    return verb.tag_ == "VBN" and transitive and verbs.finite_tag(verb.lower_, "VBN", True) == "VBD"


def _relative(verb: Token) -> bool:
    """Return whether a conjunction or a relative word opens the clause."""
    before = [child for child in verb.subtree if child.i < verb.i]
    return any(child.dep_ == "mark" or child.tag_ in ("WDT", "WP", "WP$", "WRB") for child in before)
