import pytest

pytest.importorskip("spacy", reason="needs the extra 'negation'")

from likewise.augment.negation import negate, negate_batch

SENTENCES = ["She sings.", "A list of rivers", "They have not left the old house near the bridge.", "Open the door."]
EXPECTED = ["She does not sing.", None, "They have left the old house near the bridge.", "Do not open the door."]


def test_a_list_in_its_order_whatever_the_batch():
    assert negate(SENTENCES) == EXPECTED
    assert [item.negation for item in negate_batch(reversed(SENTENCES))] == EXPECTED[::-1]
    assert negate([]) == []


def test_all_three_ways_agree():
    assert [negate(s) for s in SENTENCES] == EXPECTED
    assert [item.negation for item in negate_batch(SENTENCES)] == EXPECTED


def test_what_has_none_says_why():
    (item,) = negate_batch(["A list of rivers"])
    assert item.negation is None
    assert item.reason
