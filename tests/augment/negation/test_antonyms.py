import pytest

from likewise.augment.negation.antonyms import antonyms, may_have_opposites, opposites


def test_every_word_of_the_list_has_a_partner_that_is_not_itself():
    known = antonyms()
    assert len(known) > 500
    assert all(word != other and other in known for word, other in known.items())
    assert all(word == word.lower() and word.isalpha() for word in known)


@pytest.mark.parametrize(
    ("sentence", "negation", "opposite", "opposite_negation"),
    [
        ("The lake is deep.", "The lake is not deep.", "The lake is shallow.", "The lake is not shallow."),
        # A sentence that is negated itself: its negation is the one without 'not'.
        ("It isn't fair.", "It is fair.", "It isn't unfair.", "It is unfair."),
        ("It is an easy task.", "It is not an easy task.", "It is a difficult task.", "It is not a difficult task."),
        ("Such a tool is rare.", "Such a tool is not rare.", "Such a tool is common.", "Such a tool is not common."),
        ("It is a unique plan.", "It is not a unique plan.", "It is a common plan.", "It is not a common plan."),
        ("It is a trivial case.", "It is not a trivial case.", "It is a serious case.", "It is not a serious case."),
        ("This was a safe, old road.", "This was not a safe, old road.", "This was a dangerous, old road.",
         "This was not a dangerous, old road."),
        ("He was accepted.", "He was not accepted.", "He was rejected.", "He was not rejected."),
    ],
)  # fmt: skip
def test_opposites_by_hand(sentence, negation, opposite, opposite_negation):
    assert opposites(sentence, negation) == (opposite, opposite_negation)


@pytest.mark.parametrize(
    ("text", "article"),
    [("a fair offer", "an unfair"), ("an important man", "an unimportant"), ("an uncommon one", "a common")],
)
def test_the_article_follows_the_new_word(text, article):
    found = opposites(f"It is {text}.", f"It is not {text}.")
    assert found is not None
    assert found[0].startswith(f"It is {article}")


@pytest.mark.parametrize(
    ("sentence", "negation"),
    [
        ("It rains.", "It does not rain."),
        ("It rains.", None),
        # What is negated is the verb, and 'deep' stands too far behind it.
        ("He swims in the deep lake.", "He does not swim in the deep lake."),
        # Twice the same word: which of them is meant?
        ("The old town is old.", "The old town is not old."),
        ("It is not true that it is not safe.", "It is true that it is not safe."),
    ],
)
def test_no_opposites(sentence, negation):
    assert opposites(sentence, negation) is None


def test_candidates_are_seen_without_a_parser():
    assert may_have_opposites("The lake is not very deep.")
    assert not may_have_opposites("The deep lake lies in Finland.")
    assert not may_have_opposites("He is a teacher of deep thoughts.")
