"""Negation of sentences: the choice of the rule, or the reason why none applies."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, overload

from likewise.augment.negation import parser
from likewise.augment.negation.affirm import affirm
from likewise.augment.negation.clause import Clause, main_clause
from likewise.augment.negation.deny import deny
from likewise.augment.negation.edits import Edits, like
from likewise.augment.negation.negators import find_negator
from likewise.augment.negation.refusals import Refused, refuse_unclear
from likewise.augment.negation.words import OPERATORS, PRONOUNS, STUMPS

if TYPE_CHECKING:
    from spacy.tokens import Doc, Token

#: Part of the cache's key: raise it with every change of a rule that changes an output.
RULES_VERSION = 3

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
    """Return the negation of an English sentence, or of each of several.

    A negated sentence becomes affirmative. Case, punctuation and spacing stay as they are.

    Args:
        texts: a sentence, or several.
        model: an installed spaCy model of English, or its folder.

    Returns:
        The negation, or a list of them in the order of the sentences; None where a sentence has no clear one.

    Raises:
        MissingExtraError: spaCy, lemminflect or the model is not installed.

    >>> negate("Tom and Jerry became good friends.")
    'Tom and Jerry did not become good friends.'
    >>> negate(["Tom and Jerry did not become good friends.", "The Beatles"])
    ['Tom and Jerry became good friends.', None]
    """
    if isinstance(texts, str):
        return negate_batch([texts], model=model)[0].negation
    return [item.negation for item in negate_batch(texts, model=model)]


def negate_batch(
    sentences: Iterable[str], *, batch_size: int = 64, model: str = parser.DEFAULT_MODEL
) -> list[Negation]:
    """Return the negations of many sentences, in their order, with the rule or the reason of each.

    Sentences of like length are parsed together, which saves about a sixth of the time.
    """
    given = list(sentences)
    order = sorted(range(len(given)), key=lambda at: len(given[at]))
    nlp = parser.load(model)
    done: dict[int, Negation] = {}
    with nlp.memory_zone():  # without it the parser keeps every word that it has seen
        docs = nlp.pipe((given[at] for at in order), batch_size=batch_size)
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
            rule = _apply(clause, edits)
        except Refused as refusal:
            reason = str(refusal)
            break
        negation = edits.result()
        if negation != text:
            return Negation(text, negation, None, rule)
    return Negation(text, None, reason, None)


def _apply(clause: Clause, edits: Edits) -> str:
    """Negate or affirm a clause, with the tag question behind it if there is one."""
    refuse_unclear(clause)
    negator = find_negator(clause)
    rule = deny(clause, edits) if negator is None else affirm(clause, negator, edits)
    _tag_question(clause, edits)
    return rule


def _title(text: str) -> bool:
    """Return whether a text looks like a heading: no final stop, and every longer word capitalised.

    >>> _title("Return to Oz"), _title("Return to the shop."), _title("Open the door")
    (True, False, False)
    """
    text = text.strip()
    words = [word for word in text.split() if len(word) > 3 or word[:1].isdigit()]
    return bool(words) and text[-1] not in ".!?\"'”’:;" and len(text.split()) > 1 and all(w[0].isupper() for w in words)


def _tag_question(clause: Clause, edits: Edits) -> None:
    """Turn ', isn't he?' into ', is he?' and vice versa."""
    words: list[Token] = [token for token in clause.sentence if not token.is_space]
    if len(words) < 5 or words[-1].text != "?":
        return
    negative = words[-3].lower_ in ("n't", "n’t")
    comma, verb, pronoun = (words[-5], words[-4], words[-2]) if negative else (words[-4], words[-3], words[-2])
    if comma.text != "," or verb.lower_ not in OPERATORS or pronoun.lower_ not in PRONOUNS | {"there"}:
        return
    if verb.i <= clause.head.i or verb.i == clause.finite.i:
        return
    word = verb.lower_
    if negative:
        edits.changes.append((words[-3].idx, words[-2].idx, " "))
        edits.replace(verb, STUMPS.get(word, word))
    else:
        edits.replace(verb, like(_TAG_LONG.get(word, word + "n't"), verb.text))
