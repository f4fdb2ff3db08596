"""Negation of sentences: the choice of the rule, or the reason why none applies."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from likewise.augment.negation import parser
from likewise.augment.negation.affirm import affirm
from likewise.augment.negation.clause import Clause, Refused, main_clause
from likewise.augment.negation.deny import deny
from likewise.augment.negation.edits import Edits, like, word_after
from likewise.augment.negation.english import check_english
from likewise.augment.negation.function_words import BE, NOT, OPERATORS, PRONOUNS, STUMPS, listed
from likewise.augment.negation.negators import find_negator

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

#: Part of the cache's key: raise it with every change of a rule that changes an output.
RULES_VERSION = 5

_OPERATOR, _PRONOUN = f"(?:{'|'.join(OPERATORS)})", f"(?:{'|'.join(PRONOUNS)})"
_PATTERNS = tuple(
    (re.compile(rf"^\W*(?:{pattern})", re.IGNORECASE), reason)
    for pattern, reason in (
        (r"long live\b", "subjunctive"),
        (rf"(?:so|nor) {_OPERATOR} (?:\w+ )?\w+\W*$|neither {_OPERATOR} {_PRONOUN}\W*$", "short answer"),
        (r"the (?:more|less|\w+er)\b[^,]*, the (?:more|less|\w+er)\b", "comparison"),
        (r"(?:hardly|scarcely|barely) any|(?:almost|nearly|virtually) no(?:body|thing|ne)?\b", "near-negative subject"),
        (r"not only\b", "not only"),
        (r"(?:\w[^\s?]* ){0,19}ha(?:s|ve|d) yet to\b", "not yet"),
        (rf"(?:what an? [^?]*$|how\b[^?]*!\W*$|what(?! {_PRONOUN}\b)[^?]*!\W*$)", "exclamation"),
        (r"thank (?:you|god|goodness|heavens?)\b|(?:excuse|pardon) me\b|welcome (?:to|back)\b", "set phrase"),
        (r"(?:wanna|gonna|gotta)\b[^?]*\?", "ellipsis"),
        # 'Here are the keys', 'There goes the bus', 'Here it is' have no negation in this order.
        (r"here (?:is|are|was|were|come|comes|came|goes|go)\b|there (?:goes|go|comes|come|came)\b", "inversion"),
        (rf"(?:here|there) {_PRONOUN} (?:is|are|was|were|am)\W*$", "inversion"),
    )
)
# What comes apart in "isn ' t", "it ' s" cannot be negated by its letters.
_SPLIT = re.compile(r"\s['’]\s(?:s|t|ve|re|ll|d|m)\b", re.IGNORECASE)
_TIMES = listed("time day date year month")
_TAG_LONG = {"can": "can't", "will": "won't", "shall": "shan't", "am": "aren't"}


@dataclass(frozen=True, slots=True)
class Negation:
    """A sentence, its negation and the rule that made it, or the `reason` why there is none."""

    sentence: str
    negation: str | None
    reason: str | None
    rule: str | None


@overload
def negate(texts: str, *, model: str = ...) -> str | None: ...  # type: ignore[overload-overlap]
@overload
def negate(texts: Sequence[str], *, model: str = ...) -> list[str | None]: ...
def negate(texts: str | Sequence[str], *, model: str = parser.DEFAULT_MODEL) -> str | list[str | None] | None:
    """Return the negation of an English sentence, or of each sentence of a list.

    A negated sentence becomes affirmative. Case, punctuation and spacing do not change.

    Args:
        texts: A sentence, or a list of sentences.
        model: Name or path of an installed spaCy model of English.

    Returns:
        The negation, or a list of negations in the order of the sentences; None for a sentence without a clear
        negation.

    Raises:
        MissingExtraError: If spaCy, lemminflect or the model is not installed.
        NotEnglishError: If the sentences are in another language, which can only be detected from 100 characters on.

    >>> negate("Tom and Jerry became good friends.")
    'Tom and Jerry did not become good friends.'
    >>> negate(["Tom and Jerry did not become good friends.", "The Beatles"])
    ['Tom and Jerry became good friends.', None]
    """
    made = negate_batch(check_english([texts] if isinstance(texts, str) else texts), model=model)
    return made[0].negation if isinstance(texts, str) else [item.negation for item in made]


def negate_batch(sentences: Iterable[str], *, model: str = parser.DEFAULT_MODEL) -> list[Negation]:
    """Return the negations of many sentences, in their order, with the rule or the reason of each.

    Sentences of like length are parsed together, which saves about a sixth of the time.
    """
    given = list(sentences)
    order = sorted(range(len(given)), key=lambda at: len(given[at]))
    nlp = parser.load(model)
    done: dict[int, Negation] = {}
    with nlp.memory_zone():  # without it the parser keeps every word that it has seen
        docs = nlp.pipe((given[at] for at in order), batch_size=64)
        for at, doc in zip(order, docs, strict=True):
            done[at] = negate_doc(doc)
    return [done[at] for at in range(len(given))]


def negate_doc(doc: Doc) -> Negation:
    """Return the negation of a parsed sentence.

    A text that the parser takes for several sentences is negated in the first that has a finite verb: mostly
    it is one sentence with an abbreviation in it.
    """
    text: str = doc.text
    if not any(character.isalpha() for character in text):
        return Negation(text, None, "no words", None)
    reason = "no finite verb"
    for sentence in doc.sents:
        clause = main_clause(sentence)
        if clause is None:
            continue
        if clause.imperative and _title(sentence.text):
            reason = "title"
            continue
        edits = Edits(text)
        try:
            _refuse_unclear(clause)
            negator = find_negator(clause)
            rule = deny(clause, edits) if negator is None else affirm(clause, negator, edits)
            _tag_question(clause, edits)
        except Refused as refusal:
            reason = str(refusal)
            break
        negation = edits.result()
        if negation != text:
            return Negation(text, negation, None, rule)
    return Negation(text, None, reason, None)


def _title(text: str) -> bool:
    """Return whether a text looks like a heading: no final stop, and every longer word capitalized.

    >>> _title("Return to Oz"), _title("Return to the shop."), _title("Open the door")
    (True, False, False)
    """
    text = text.strip()
    words = [word for word in text.split() if len(word) > 3 or word[:1].isdigit()]
    return bool(words) and text[-1] not in ".!?\"'”’:;" and len(text.split()) > 1 and all(w[0].isupper() for w in words)


def _refuse_unclear(clause: Clause) -> None:
    """Raise `Refused` for a sentence that has no clear contradiction."""
    text = clause.sentence.text
    if _SPLIT.search(text):
        raise Refused("split contraction")
    for pattern, reason in _PATTERNS:
        if pattern.search(text):
            raise Refused(reason)
    finite, asks = clause.finite, clause.asks
    if word_after(finite) == "ta" or (finite.i and finite.nbor(-1).lower_ == "not" and finite == clause.head):
        # 'I gotta go', 'File not found'.
        raise Refused("ellipsis")
    before = clause.sentence[: finite.i - clause.sentence.start]
    if asks and finite == clause.head and finite.lower_ in OPERATORS and word_after(finite) in NOT and len(before) > 2:
        raise Refused("tag question")  # of a statement whose verb the parser missed
    if finite.lower_ == "may" and not asks and clause.sentence[0].lower_ in ("may", "long"):
        raise Refused("wish")
    if asks and clause.subject is None and "," not in text:
        # 'Seen him lately?', 'Want some tea?'
        raise Refused("ellipsis")
    if asks and _asks_for_value(clause):
        raise Refused("value question")
    after = [token.lower_ for token in finite.doc[finite.i + 1 : finite.i + 4]]
    if len(after) == 3 and after[0] in ("or", "and") and after[1] in OPERATORS and after[2] in NOT:
        # 'may or may not': both are said.
        raise Refused("either way")


def _asks_for_value(clause: Clause) -> bool:
    """Return whether a question asks for a time, a place, a measure, a name: 'How old are you?', 'What is this?'"""
    head, subject = clause.head, clause.subject
    for word in head.doc[clause.sentence.start : clause.finite.i]:
        above: Token = word.head
        if word.lower_ == "how":
            return above.i == head.i or above.tag_[:2] in ("JJ", "RB")
        if word.lower_ in ("when", "where") and above.i == head.i:
            return word.lower_ == "when" or (head.i == clause.finite.i and head.lower_ in BE)
        if word.lower_ == "what" and word.nbor().lower_ in _TIMES:
            return True
        if word.tag_ in ("WP", "WDT", "WP$") and "attr" in (word.dep_, above.dep_):
            # 'Who is the president?' can be read with 'who' as its subject.
            return word.lower_ != "who" or (subject is not None and subject.tag_ in ("PRP", "DT"))
    return False


def _tag_question(clause: Clause, edits: Edits) -> None:
    """Turn ', isn't he?' into ', is he?' and vice versa."""
    words: list[Token] = [token for token in clause.sentence if not token.is_space]
    if len(words) < 5 or words[-1].text != "?":
        return
    negative = words[-3].lower_ in ("n't", "n’t")
    (comma, verb), pronoun = words[-5:-3] if negative else words[-4:-2], words[-2]
    tag = comma.text == "," and verb.lower_ in OPERATORS and pronoun.lower_ in PRONOUNS | {"there"}
    if not tag or verb.i <= clause.head.i or verb == clause.finite:
        return
    word = verb.lower_
    if negative:
        edits.changes.append((words[-3].idx, pronoun.idx, " "))
        edits.replace(verb, STUMPS.get(word, word))
    else:
        edits.replace(verb, like(_TAG_LONG.get(word, word + "n't"), verb.text))
