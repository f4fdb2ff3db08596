"""A negated clause to its affirmation, the verb inflected again ('did not become' to 'became')."""

from __future__ import annotations

from typing import TYPE_CHECKING

from likewise.augment.negation import verbs
from likewise.augment.negation.clause import Clause, third_singular
from likewise.augment.negation.edits import Edits, end_of, word_after
from likewise.augment.negation.negators import Negator
from likewise.augment.negation.nouns import article
from likewise.augment.negation.phrases import conjuncts, right_edge
from likewise.augment.negation.words import DO, NEGATIVE_PRONOUNS, NOT, TO_SOME, VERB_TAGS

if TYPE_CHECKING:
    from spacy.tokens import Token

# What is left of an auxiliary in front of "n't".
_STUMPS = {"wo": "will", "ca": "can", "sha": "shall"}


def affirm(clause: Clause, negator: Negator, edits: Edits) -> str:
    """Take one negator out of a clause; gives the name of the construction."""
    token = negator.token
    if negator.kind in ("not", "never", "near"):
        if negator.fronted:
            _straighten(clause, edits)
        _take_out(clause, negator, edits)
    elif negator.kind == "constituent":
        edits.drop(token)
    elif negator.kind == "no longer":
        edits.drop(token)
        edits.replace(token.nbor(), "still")
    elif negator.kind == "seldom":
        edits.replace(token, "often")
    elif negator.kind == "no":
        _no(token, edits)
    elif negator.kind == "pronoun":
        _pronoun(token, edits)
    elif negator.kind == "neither":
        edits.replace(token, "either")
    elif negator.kind == "not only":
        _neither(clause, token, edits)
    elif negator.kind == "phrase":
        edits.drop(token, negator.last)
    _positive(clause, token, edits)
    return {"not": "affirm", "constituent": "affirm", "not only": "neither"}.get(negator.kind, f"affirm {negator.kind}")


def _take_out(clause: Clause, negator: Negator, edits: Edits) -> None:
    """Remove 'not', "n't", 'never' or 'hardly', and with 'not' the 'do' that stood there for its sake."""
    token, finite, head = negator.token, clause.finite, clause.head
    if finite.lower_ in ("need", "dare") and finite.i != head.i:
        _semi_modal(clause, token, edits)
        return
    supported = finite.lower_ in DO and finite.i != head.i and not _stranded(head)
    if supported and (negator.fronted or (negator.kind == "not" and not clause.question)):
        _drop_pair(finite, token, edits)
        tag = verbs.tag_of_do(finite.text)
        _inflect(head, "VB" if clause.subject is None and tag == "VBP" else tag, edits)
        return
    if finite.lower_ in _STUMPS:
        edits.replace(finite, _STUMPS[finite.lower_])
    elif finite.lower_ == "ai":
        edits.replace(finite, "am" if clause.subject is not None and clause.subject.lower_ == "i" else "is")
    elif finite.text == "can" and token.idx == end_of(finite):
        edits.changes.append((token.idx, end_of(token), ""))
        return
    following = token.nbor() if token.i + 1 < len(token.doc) else None
    if following is not None and following.lower_ == "yet":
        edits.drop(token)
        edits.replace(following, "already")
    elif token.idx == end_of(token.nbor(-1)) if token.i else False:
        edits.changes.append((token.idx, end_of(token), ""))
    else:
        edits.drop(token)


def _stranded(head: Token) -> bool:
    return head.tag_ not in ("VB", "VBP", "VBD", "VBN", "NN", "JJ", "IN", "NNP", "RB")


def _drop_pair(finite: Token, token: Token, edits: Edits) -> None:
    """Remove the form of 'do' and the negation, which may be one word ("didn't") and may stand apart."""
    if token.i == finite.i + 1:
        edits.drop(finite, token)
    else:
        edits.drop(finite)
        edits.drop(token)


def _inflect(verb: Token, tag: str, edits: Edits) -> None:
    """Put a bare verb and the verbs in one list with it into the tense of the 'do' that is gone."""
    edits.replace(verb, verbs.inflect(verb.lower_, tag))
    for other, together in conjuncts(verb):
        if not together or other.tag_ not in ("VB", "VBP") or any(c.dep_ in ("aux", "auxpass") for c in other.lefts):
            return
        if not any(child.dep_ == "neg" for child in other.lefts):
            edits.replace(other, verbs.inflect(other.lower_, tag))


def _semi_modal(clause: Clause, token: Token, edits: Edits) -> None:
    """'He need not go' to 'He needs to go': without the negation 'need' and 'dare' are plain verbs."""
    finite = clause.finite
    form = verbs.inflect(finite.lower_, "VBZ") if third_singular(clause.subject) else finite.lower_
    edits.replace(finite, form)
    edits.replace(token, "to", keep_case=False)
    if token.idx == end_of(finite):
        edits.insert(token.idx, " ")


def _straighten(clause: Clause, edits: Edits) -> None:
    """'Never have I seen' to 'I have seen': the auxiliary goes back behind the subject."""
    assert clause.subject is not None  # only a clause with a subject is inverted
    if clause.finite.lower_ not in DO:
        edge = right_edge(clause.subject, clause.head.i)
        edits.drop(clause.finite)
        edits.insert(end_of(edge), " " + clause.finite.lower_)


def _no(token: Token, edits: Edits) -> None:
    """'no car' to 'a car', 'no cars' and 'no evidence' to 'some', 'no different' to 'different'."""
    noun = token.head
    following = token.nbor() if token.i + 1 < len(token.doc) else noun
    if token.dep_ == "advmod" or token.dep_ == "neg" or following.tag_ in ("JJR", "RBR"):
        edits.drop(token)
    elif following.lower_ == "other" and noun.tag_ in ("NN", "NNP"):
        edits.drop(token)
        edits.replace(following, "another")
    else:
        word = article(noun, following)
        if word == "some" and noun.tag_ in ("NNS", "NNPS") and noun.dep_ in ("dobj", "attr"):
            # 'They have children' rather than 'some children'.
            edits.drop(token)
        else:
            edits.replace(token, word)


def _pronoun(token: Token, edits: Edits) -> None:
    """'no one' to 'someone', 'nothing' to 'something', 'neither of them' to 'one of them'."""
    if token.lower_ in ("no", "not"):
        edits.changes.append((token.idx, end_of(token.nbor()), "Someone" if token.text[0].isupper() else "someone"))
    elif token.lower_ == "neither":
        edits.replace(token, "one" if word_after(token) == "of" else "either")
    else:
        edits.replace(token, NEGATIVE_PRONOUNS[token.lower_])


def _neither(clause: Clause, token: Token, edits: Edits) -> None:
    """'not only fast but also cheap' to 'neither fast nor cheap'."""
    edits.replace(token, "neither")
    edits.drop(token.nbor())
    for word in token.doc[token.i : clause.sentence.end - 1]:
        if word.lower_ == "but" and word_after(word) == "also":
            edits.replace(word, "nor")
            edits.drop(word.nbor())
            return


def _positive(clause: Clause, negator: Token, edits: Edits) -> None:
    """Words that live on a negation get their partners: 'any' to 'some', 'nor' to 'or'; 'ever' goes."""
    doc = clause.head.doc
    if clause.question and negator.i > clause.finite.i:
        return
    # Only what hangs on the negated verb: a second statement in the same sentence keeps its words.
    below = {token.i for token in clause.head.subtree}
    for token in doc[negator.i + 1 : clause.sentence.end]:
        if token.i not in below:
            continue
        word, last = token.lower_, token.i + 1 >= clause.sentence.end
        following = "" if last else word_after(token)
        if word in ("until", "till") and clause.head.i in (token.head.i, token.head.head.i):
            edits.replace(token, "before")
        if _own_clause(token, clause.head):
            continue
        if word == "any" and following in ("longer", "more"):
            edits.drop(token, token.nbor())
        elif word == "any" and token.dep_ == "advmod":
            edits.drop(token)
        elif word in TO_SOME:
            edits.replace(token, TO_SOME[word])
        elif word in ("anymore", "ever") and token.dep_ == "advmod":
            edits.drop(token)
        elif word == "at" and following == "all" and (token.i + 2 >= len(doc) or doc[token.i + 2].is_punct):
            edits.drop(token, token.nbor())
        elif word == "either" and following in (".", "!", "?"):
            edits.replace(token, "too")
        elif word == "yet" and token.dep_ == "advmod" and doc[token.i - 1].i != negator.i:
            edits.replace(token, "already")
        elif word == "nor":
            edits.replace(token, "or")
        elif word == "but" and negator.lower_ in NOT and _contrasts(token):
            # 'not rich but poor' to 'rich and not poor'.
            edits.replace(token, "and not")


def _contrasts(but: Token) -> bool:
    """Whether 'but' joins two words or phrases that are no verbs."""
    joined = [child for child in but.head.rights if child.dep_ == "conj" and child.i > but.i]
    plain = bool(joined) and not any(child.tag_ in VERB_TAGS for child in joined[0].subtree)
    return plain and but.head.tag_ not in VERB_TAGS and word_after(but) not in ("also", "rather", "not", "only")


def _own_clause(token: Token, head: Token) -> bool:
    """Whether a token stands in a clause below the main one, where the negation did not reach it plainly."""
    while token.head.i != token.i and token.i != head.i:
        if token.dep_ in ("advcl", "relcl", "parataxis") and token.tag_ != "IN":
            return True
        if token.dep_ == "conj" and any(child.dep_ == "nsubj" for child in token.lefts):
            return True
        token = token.head
    return False
