import random

from likewise.augment.exclusions import excluding, some_words


def test_some_words_stand_in_the_sentence_and_begin_and_end_with_words_that_say_something():
    text = "The castle of the old king, which (it is said) was built in 1450, is very dark."
    for seed in range(200):
        found = some_words(text, random.Random(seed))
        assert found in text
        assert 1 <= len(found.split()) <= 6
        assert not set(found) & set(",;:()")
        assert {found.split()[0].lower(), found.split()[-1].lower()}.isdisjoint({"the", "of", "is", "it", "was", "in"})
    assert some_words("It is as it was.", random.Random(1)) is None


def test_an_exclusion_is_added_and_nothing_is_lost():
    found = {excluding("The castle, built late, is old.", "the tower", random.Random(seed)) for seed in range(300)}
    assert "The castle, built late, is old, excluding the tower." in found
    assert "The castle, built late, is old (without the tower)." in found
    assert any(text.startswith("The castle") and text.endswith(", built late, is old.") for text in found)
    for text in found:
        assert "the tower" in text
        assert text.endswith(".")
        rest = text.replace("the tower", "")
        assert all(word in rest for word in ("The castle", "built late", "is old"))
    assert excluding("Castles", "towers", random.Random(1)).startswith("Castles")
