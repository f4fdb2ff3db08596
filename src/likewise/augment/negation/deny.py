"""Negation of an affirmative clause (SNCSE section 3: 'correct syntax and clear semantic')."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.augment.negation import verbs
from likewise.augment.negation.clause import Clause, Refused
from likewise.augment.negation.edits import Edits, end_of, lower_first, word_after
from likewise.augment.negation.function_words import (
    BE,
    BEFORE_NOT,
    HAVE,
    MODALS,
    OPERATORS,
    TO_ANY,
    UNIVERSALS,
    VERB_TAGS,
)
from likewise.augment.negation.quantifiers import deny_pair, no_before, presented, quantified_subject
from likewise.augment.negation.verbs import auxiliaries, conjuncts, joined_by, right_edge

if TYPE_CHECKING:
    from spacy.tokens import Token

# Behind 'but' these leave no place for 'not'.
_NO_NOT = BEFORE_NOT - {"also"} | {"not", "never", "still", "rather", "only", "now", "later", "nonetheless", "yet"}
# 'had better go' and 'would rather go' are negated after the adverb.
_SEMI_MODAL_ADVERBS = frozenset(("better", "best", "rather", "sooner"))

# 'God save the Queen' has a subjunctive, whose negation is not in use.
_WISHED = frozenset(("god", "heaven", "lord"))


def deny(clause: Clause, edits: Edits) -> str:
    """Write the negation of an affirmative clause into `edits`; return the name of the construction."""
    special = (deny_pair, _second_half, _imperative, quantified_subject, _existential, _no_longer)
    for rule_of in () if clause.question else special:
        if rule := rule_of(clause, edits):
            return rule
    rule = _operator(clause, edits) if clause.operator else _do_support(clause, edits)
    if rule != "inversion":
        _polarity(clause, edits)
        _contrast(clause, edits)
    return rule


def _second_half(clause: Clause, edits: Edits) -> str | None:
    """Turn 'poor but happy' into 'poor but not happy': 'not poor but happy' would correct the first word."""
    for but in clause.head.doc[clause.finite.i + 1 : clause.sentence.end - 1]:
        following = but.nbor()
        word = but.head.head if but.head.dep_ == "conj" else but.head
        complement = word.head == clause.head and word.dep_ in ("acomp", "attr", "oprd")
        if but.lower_ != "but" or not complement or all(other.tag_ in VERB_TAGS for other in joined_by(but)):
            continue
        if following.lower_ in _NO_NOT:
            return None
        if following.lower_ == "also":
            edits.replace(following, "not")
        else:
            edits.insert(end_of(but), " not")
        return "contrast"
    return None


def _contrast(clause: Clause, edits: Edits) -> None:
    """Turn 'in May but not in June' into 'not in May but in June': the 'not' moves to the first part."""
    for token in clause.head.doc[clause.finite.i + 1 : clause.sentence.end - 2]:
        word = token.nbor()
        if token.lower_ == "but" and word.lower_ == "not" and word_after(word) not in UNIVERSALS:
            above = [word.head, *word.head.ancestors]
            below = above[: above.index(clause.head)] if clause.head in above else above
            # A clause of its own, or a bracket, keeps its 'not'.
            if not any(t.tag_ in VERB_TAGS for t in below) and word.head != clause.head:
                edits.drop(word)
            return


def _imperative(clause: Clause, edits: Edits) -> str | None:
    """Turn 'Open the door' into 'Do not open the door', "Let's go" into "Let's not go"."""
    if not clause.imperative:
        return None
    if clause.head.lower_ == "let" and word_after(clause.head) in ("'s", "’s", "us"):
        edits.insert(end_of(clause.head.nbor()), " not")
    else:
        edits.put_before(_first_adverb(clause, clause.head), "do not ")
    return "imperative"


def _existential(clause: Clause, edits: Edits) -> str | None:
    """Turn 'There is a house' into 'There is no house'; a counted noun is left to `_operator`."""
    if not clause.existential or clause.head.lower_ not in BE:
        return None
    rest = clause.head.doc[clause.head.i + 1 : clause.sentence.end]
    start = next((token.i for token in rest if token.lower_ not in BEFORE_NOT), clause.sentence.end)
    return "existential" if no_before(presented(clause.head), start, edits) else None


def _no_longer(clause: Clause, edits: Edits) -> str | None:
    """Turn 'He still lives here' into 'He no longer lives here': 'does not still live' is not idiomatic."""
    neighbour = clause.finite.i + 1 if clause.operator else clause.finite.i - 1
    for word in clause.finite.doc[max(neighbour, 0) : neighbour + 1]:
        if word.lower_ == "still" and word.dep_ == "advmod" and not word.is_sent_start:
            edits.replace(word, "no longer")
            return "no longer"
    return None


def _operator(clause: Clause, edits: Edits) -> str:
    """Insert 'not' after the finite word, or after the subject in a question."""
    finite, head, word = clause.finite, clause.head, clause.finite.lower_
    if clause.question:
        edits.insert(_after_subject(clause), " not")
        return "question"
    last = _last_before_not(clause)
    if word_after(finite) in ("and", "or") and word_after(finite, 2) in OPERATORS and finite.i + 2 < head.i:
        # 'can and will win': both are negated.
        edits.insert(end_of(finite.nbor(2)), "not" if word_after(finite, 2) == "can" else " not")
    if last.i != finite.i and word == "can":
        # 'can also not be' would read as 'may well not be'.
        edits.insert(finite.idx, edits.text[finite.nbor().idx : end_of(last)] + " ")
        edits.drop(finite.nbor(), last)
        last = finite
    contracted = _contracted(clause) if last.i == finite.i else None
    if contracted is not None:
        edits.replace(finite, contracted, keep_case=False)
    elif last.i == finite.i and word == "can":
        edits.insert(end_of(finite), "not")
    else:
        edits.insert(end_of(last), " not")
    if finite.i == head.i and word in BE:
        return "existential" if clause.existential else "copula"
    if finite.tag_ == "MD" or (word in MODALS and word not in HAVE):
        return "modal"
    return "passive" if any(child.dep_ == "auxpass" for child in head.lefts) else "auxiliary"


def _after_subject(clause: Clause) -> int:
    """Return the place of 'not' in a question: after the subject, or before a noun that a wh-word asks for."""
    finite, head, subject = clause.finite, clause.head, clause.subject
    assert subject is not None  # a question has one
    is_question = any(child.tag_ in ("WP", "WDT") and child.dep_ == "attr" for child in head.lefts)
    if finite == head and is_question and subject.tag_ not in ("PRP", "DT"):
        return end_of(finite)
    stop = head.i if finite.i != head.i else len(head.doc)
    return end_of(subject if subject.dep_ == "expl" else right_edge(subject, stop))


def _last_before_not(clause: Clause) -> Token:
    """Return the finite word, or the last of the adverbs after it that 'not' must follow."""
    last = clause.finite
    semi_modal = last.lower_ in ("had", "would", "'d", "’d")
    for token in clause.head.doc[last.i + 1 : clause.sentence.end]:
        precedes_not = token.lower_ in BEFORE_NOT and token.tag_.startswith("RB")
        if not precedes_not and not (semi_modal and token.lower_ in _SEMI_MODAL_ADVERBS and token.i < clause.head.i):
            break
        last = token
    return last


def _contracted(clause: Clause) -> str | None:
    """Return the negative form of a contracted auxiliary: "won't" for "I'll"; None for "he's", which takes 'not'."""
    finite, tag, following = clause.finite, clause.head.tag_, word_after(clause.finite)
    word = finite.text.replace("’", "'")
    if finite.i == clause.head.i:
        return None
    # 'I'd gone' is had, 'I'd go' and 'I'd have gone' are would.
    had = following == "been" or (tag in ("VBN", "VBD") and following not in ("be", "have", "'ve", "’ve"))
    has = following == "been" or (finite.dep_ == "aux" and tag == "VBN")
    forms = {"'ve": "haven't", "'ll": "won't", "'d": "hadn't" if had else "wouldn't", "'s": "hasn't" if has else None}
    new = forms.get(word)
    if new is None:
        return None
    apart = finite.idx == 0 or finite.doc.text[finite.idx - 1].isspace()
    return ("" if apart else " ") + (new.replace("'", "’") if "’" in finite.text else new)


def _do_support(clause: Clause, edits: Edits) -> str:
    """Turn 'He has a car' into 'He does not have a car'; verbs coordinated with it lose their tense too."""
    verb, subject = clause.finite, clause.subject
    if verb.lower_ in ("do", "does", "did", "has", "have", "had") and all(child.is_punct for child in verb.rights):
        # 'Yes, he does.'
        edits.insert(end_of(verb), " not")
        return "auxiliary"
    if clause.tag == "VBP" and subject is not None and subject.lower_ in _WISHED:
        raise Refused("subjunctive")
    inverted = subject is not None and subject.i > verb.i
    fronted = subject is None and clause.sentence[0].dep_ == "prep" and clause.sentence[0].head.i == verb.i
    if (inverted or fronted) and no_before(subject if inverted else presented(verb), verb.i + 1, edits):
        return "inversion"
    if inverted and clause.sentence[0].head.i == verb.i and verb.i - clause.sentence.start < 8:
        # 'Here comes the bus' has no negation in this order.
        raise Refused("inversion")
    # An inverted subject leaves no adverb of its own in front of the verb.
    start = verb if inverted or fronted else _first_adverb(clause, verb)
    edits.insert(start.idx, f"{verbs.DO_FORMS.get(clause.tag, 'do')} not ")
    if start.i != verb.i and start.is_title:
        edits.replace(start, lower_first(start), keep_case=False)
    edits.replace(verb, verbs.base(verb.text, clause.tag), keep_case=verb.text.isupper())
    _untense(verb, clause.tag, edits)
    return "do-support"


def _untense(verb: Token, tag: str, edits: Edits) -> None:
    """Put the verbs coordinated with a verb into the base form, as 'do' now carries the tense."""
    listing = False
    for other in conjuncts(verb):
        helpers = auxiliaries(other)
        tensed = helpers[0] if helpers else other
        if tensed.lower_ in BE:
            # 'He came, sang and was seen' is one list; in 'He came and was seen' the second verb keeps its tense.
            if not listing:
                return
            edits.replace(tensed, "be")
        elif helpers or verbs.finite_tag(other.lower_, other.tag_, False) != tag:
            return
        elif tag != "VBP":
            edits.replace(other, verbs.base(other.text, tag))
        listing = True


def _first_adverb(clause: Clause, verb: Token) -> Token:
    """Return the verb, or the first of the adverbs right before it that stay after the negation."""
    first = verb
    while first.i > clause.sentence.start:
        token = first.nbor(-1)
        behind = clause.subject is not None and clause.subject.i < token.i
        floating = token.lower_ in ("both", "all") and token.dep_ not in ("nsubj", "nsubjpass") and behind
        adverb = token.tag_.startswith("RB") and token.dep_ == "advmod" and token.head in (verb, first)
        inside = behind or (clause.subject is None and (clause.imperative or token.i > clause.sentence.start))
        if not floating and not (adverb and inside and token.lower_ not in BEFORE_NOT):
            break
        first = token
    return first


def _polarity(clause: Clause, edits: Edits) -> None:
    """Replace, after the negated verb, 'some' by 'any', a final 'too' by 'either', 'already' by 'yet'."""
    for child in clause.head.children:
        reached = child.i > clause.finite.i or (child.i == clause.finite.i - 1 and not clause.operator)
        if child.lower_ == "already" and reached and child.dep_ == "advmod":
            edits.replace(child, "yet")
    for child in clause.head.rights:
        if child.dep_ not in ("dobj", "attr", "advmod", "acomp"):
            continue
        if child.dep_ in ("attr", "dobj") and child.left_edge.i != child.i:
            child = child.left_edge
        number_follows = child.i + 1 < len(child.doc) and child.nbor().tag_ == "CD"
        if child.lower_ in TO_ANY and not number_follows:
            edits.replace(child, TO_ANY[child.lower_])
        elif child.lower_ == "too" and child.i + 1 < len(child.doc) and child.nbor().text in ".!?":
            edits.replace(child, "either")
