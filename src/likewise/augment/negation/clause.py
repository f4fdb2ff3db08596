"""The main clause of a parsed sentence, its finite word and its subject."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from likewise.augment.negation import verbs
from likewise.augment.negation.rescue import hidden_clauses
from likewise.augment.negation.words import (
    AUXILIARIES,
    BE,
    DO,
    FINITE_TAGS,
    HAVE,
    MODALS,
    OPERATORS,
    SUBJECTS,
    VERB_TAGS,
    listed,
)

if TYPE_CHECKING:
    from spacy.tokens import Span, Token

# Where a statement can hide when the root is not a verb; a relative or adverbial clause is not a statement.
_STATEMENT_DEPS = frozenset(("conj", "ccomp", "parataxis", "dep", "appos", "nsubj", "pcomp", "npadvmod", "intj"))
# Words that bring an auxiliary before its subject: 'Only then did he understand'.
_INVERTERS = listed("""only never so nor neither not no rarely seldom hardly scarcely little nowhere""")
_QUOTES = frozenset(('"', "“", "”", "``", "''"))
_BASE_AS_PRESENT = ("VB", "VBP", "NN", "NNS", "NNP", "NNPS", "JJ", "IN", "RB")


@dataclass(frozen=True)
class Clause:
    """A main clause.

    `head` is its lexical verb (or 'be'), `finite` the word that shows the tense, which is `head` itself where
    there is no auxiliary; `tag` is the tense of `finite`; `operator` says that 'not' can follow `finite`, so
    that no form of 'do' is needed.
    """

    sentence: Span
    head: Token
    finite: Token
    tag: str
    operator: bool
    subject: Token | None
    imperative: bool = False

    @property
    def question(self) -> bool:
        """True if the subject follows the operator: 'Is he here?', 'Only then did he come'."""
        if self.subject is None or not self.operator or self.subject.i < self.finite.i:
            return False
        asks = any(token.text == "?" for token in self.head.doc[self.head.i : self.sentence.end])
        if self.finite.i == self.head.i or self.subject.i > self.head.i:
            return asks
        before = self.head.doc[self.sentence.start : self.finite.i]
        # Without a question mark the parser's inversion is believed only behind a word that calls for one.
        return asks or not before or any(token.lower_ in _INVERTERS for token in before)

    @property
    def existential(self) -> bool:
        """True if the subject is the 'there' of 'there is'."""
        return self.subject is not None and self.subject.dep_ == "expl" and self.subject.lower_ == "there"


def main_clause(sentence: Span) -> Clause | None:
    """Return the main clause of a sentence; None if no finite verb is found.

    A quoted clause in front of its reporting verb is the statement ('"I am here", said John.'), as is the
    first of two clauses joined by a semicolon, which the parser hangs below the last. Behind the reporting
    verb it is not: there the reporting verb is negated.
    """
    for head in _heads(sentence):
        clause = None if _bracketed(head, sentence) else _clause(head, sentence)
        if clause is not None:
            return clause
    for head, tag, subject in hidden_clauses(sentence):
        if tag is None:
            clause = _clause(head, sentence)
            if clause is not None and not clause.imperative:
                return clause
        else:
            return Clause(sentence, head, head, tag, head.lower_ in BE, subject)
    return None if _bracketed(sentence.root, sentence) else _clause(sentence.root, sentence, lenient=True)


def _heads(sentence: Span) -> Iterator[Token]:
    """Return candidates for the head of the main clause, best first."""
    root = sentence.root
    for child in root.lefts:
        # 'Should you need help, call me': a condition.
        condition = child.left_edge.lower_ in ("should", "had", "were") and "?" not in sentence.text
        if child.dep_ == "ccomp" and not condition and not _subordinate(child) and _has_subject(child):
            yield child
    if sentence[0].tag_ in ("WP", "WDT", "WRB") and not sentence.text.rstrip().endswith("?"):
        # 'What he said surprised me', where the parser takes 'said' for the main verb.
        for child in root.rights:
            finite = child.dep_ == "ccomp" and child.tag_ in FINITE_TAGS
            if finite and not _has_subject(child) and not _subordinate(child):
                yield child
    yield root
    for token in sentence:
        hidden = token.i != root.i and token.tag_ in VERB_TAGS and token.dep_ in _STATEMENT_DEPS
        if hidden and not _subordinate(token) and any(child.dep_ in SUBJECTS for child in token.children):
            yield token


def _has_subject(verb: Token) -> bool:
    """Return whether a verb has a subject, or needs none as in '"Go on," he said'."""
    return verb.tag_ == "VB" or any(child.dep_ in SUBJECTS for child in verb.children)


def _subordinate(token: Token) -> bool:
    """Return whether a conjunction or a relative word opens the clause of a token."""
    for child in token.lefts:
        if child.dep_ == "mark" or child.tag_ in ("WDT", "WP$"):
            return True
        if child.tag_ in ("WP", "WRB") and not token.sent.text.rstrip().endswith("?"):
            return True
    return False


def _bracketed(token: Token, sentence: Span) -> bool:
    """Return whether a token is inside brackets that were opened within the sentence."""
    before = [word.text for word in token.doc[sentence.start + 1 : token.i]]
    return before.count("(") > before.count(")")


def third_singular(subject: Token | None) -> bool:
    """Return whether a subject takes the verb form in -s, judging by the head word alone."""
    if subject is None:
        return False
    if subject.tag_ == "PRP":
        return subject.lower_ in ("he", "she", "it")
    if any(child.dep_ == "conj" for child in subject.children):
        return False
    return subject.tag_ in ("NN", "NNP", "DT", "VBG", "CD") and subject.lower_ not in ("these", "those", "i")


def _is_operator(token: Token, head: Token, subject: Token | None) -> bool:
    """Return whether 'not' can follow this finite word: 'be' anywhere, 'have', 'do' and modals as auxiliaries."""
    word = token.lower_
    if word in BE and (word not in ("'s", "’s") or token.tag_ != "POS"):
        return True
    inverted = subject is not None and subject.i > token.i
    if token.i == head.i:
        return (word in MODALS and token.tag_ == "MD") or word[0] in "'’" or (word in DO and inverted)
    # 'did a turn' is not an auxiliary, whatever the parser says.
    return word in HAVE or (word in DO and (head.tag_ in VERB_TAGS or inverted)) or word in MODALS


def _clause(head: Token, sentence: Span, lenient: bool = False) -> Clause | None:
    """Return the clause of one head; None if it has no finite verb."""
    subject = _subject(head)
    auxiliaries = [child for child in head.lefts if child.dep_ in AUXILIARIES]
    for position, auxiliary in enumerate(auxiliaries):
        if auxiliary.tag_ == "TO":
            return None
        if auxiliary.lower_ == "be" and subject is None and position == 0:
            # 'Please be seated.'
            before = head.doc[sentence.start : auxiliary.i]
            if all(token.tag_ in ("UH", "RB") or token.is_punct for token in before):
                return Clause(sentence, auxiliary, auxiliary, "VB", False, None, imperative=True)
        if auxiliary.lower_ == "let" or not _finite_auxiliary(auxiliary):
            continue
        if head.lower_ in BE and head.tag_ in ("VBZ", "VBD") and auxiliary.lower_ not in HAVE:
            break  # 'Who did it is unknown'
        return Clause(sentence, head, auxiliary, auxiliary.tag_, _is_operator(auxiliary, head, subject), subject)
    else:
        if auxiliaries and auxiliaries[0].lower_ != "let":
            return None
    return _bare_clause(head, sentence, subject, lenient)


def _bare_clause(head: Token, sentence: Span, subject: Token | None, lenient: bool) -> Clause | None:
    """Return the clause of a verb without auxiliaries."""
    if _is_operator(head, head, subject) and head.lower_ not in ("be", "been", "being"):
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
    if not helpers or helpers[0].dep_ not in AUXILIARIES or not _finite_auxiliary(helpers[0]):
        return None
    between = head.doc[head.i + 1 : helpers[0].i]
    return child if len(between) > 1 and all(token.dep_ not in ("cc", "punct") for token in between) else None


def _without_subject(head: Token, sentence: Span) -> Clause | None:
    """Return the clause of an imperative, or of a statement whose subject the parser missed; None for a name."""
    tag = verbs.finite_tag(head.lower_, head.tag_, False) or "VBP"
    before = [token for token in head.doc[sentence.start : head.i] if not token.is_punct and not token.is_space]
    if quoted_name(head, sentence) or (before and head.text.istitle()):
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


def _finite_auxiliary(token: Token) -> bool:
    """Return whether an auxiliary is finite; the tagger often calls an inverted 'have' or 'do' a base form."""
    bare = token.lower_ in ("be", "been", "being", "having", "to")
    return not bare and (token.tag_ in FINITE_TAGS or token.lower_ in OPERATORS)


def _subject(head: Token) -> Token | None:
    """Return the subject of a head: 'there' is preferred to the noun after it, otherwise the first one."""
    subjects = [child for child in head.children if child.dep_ in SUBJECTS]
    if not subjects and head.tag_ == "NN" and any(child.dep_ == "aux" for child in head.lefts):
        # 'Why did the war end?', where the parser reads 'the war end' as a noun.
        subjects = [child for child in head.lefts if child.dep_ == "compound"]
    expletive = [child for child in subjects if child.dep_ == "expl"]
    return next(iter(expletive or subjects), None)
