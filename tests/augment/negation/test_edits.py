from dataclasses import dataclass

import pytest

from likewise.augment.negation.edits import Edits, like


@dataclass
class Word:
    """What Edits reads of a spaCy token."""

    idx: int
    text: str


def words(text):
    found, at = [], 0
    for word in text.split():
        at = text.index(word, at)
        found.append(Word(at, word))
        at += len(word)
    return found


def test_spacing_and_punctuation_stay():
    text = "He  has\ta car ,  it seems ."
    edits, tokens = Edits(text), words(text)
    edits.insert(tokens[1].idx, "does not ")
    edits.replace(tokens[1], "have")
    assert edits.result() == "He  does not have\ta car ,  it seems ."


def test_changes_at_one_offset_keep_their_order():
    edits = Edits("a b")
    edits.insert(2, "1 ")
    edits.insert(2, "2 ")
    assert edits.result() == "a 1 2 b"


@pytest.mark.parametrize(("at", "left"), [(0, "Not open."), (1, "Do open."), (2, "Do not")])
def test_a_dropped_word_takes_one_blank_and_passes_its_capital_on(at, left):
    edits = Edits("Do not open.")
    edits.drop(words("Do not open.")[at])
    assert edits.result() == left


def test_all_capitals_stay():
    edits = Edits("HE IS HERE")
    edits.insert(5, " not")
    assert edits.result() == "HE IS NOT HERE"


def test_case_of_a_model():
    assert (like("went", "GO"), like("went", "Go"), like("went", "I"), like("éa", "Go")) == (
        "WENT",
        "Went",
        "Went",
        "Éa",
    )
