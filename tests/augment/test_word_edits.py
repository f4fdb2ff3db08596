import random
from collections import Counter

import pytest

from likewise.augment import word_edits
from likewise.augment.word_edits import EditError, WordEditor

pytest.importorskip("textaugment", reason="needs the extra 'edits'")


def test_swaps_and_deletions_are_seeded_and_leave_the_global_chance_alone(sentences):
    random.seed(5)
    before = random.getstate()
    one, two, other = ([WordEditor(seed, synonyms=False)(s) for s in sentences] for seed in (1, 1, 2))
    assert random.getstate() == before
    assert one == two != other
    changed = 0
    for sentence, edited in zip(sentences, one, strict=True):
        assert edited
        assert not Counter(edited.split()) - Counter(sentence.split())  # no word that was not there
        changed += edited != sentence
    assert changed > 0.8 * len(sentences)


def test_wordnet_that_is_missing_is_told(monkeypatch):
    monkeypatch.setattr(word_edits, "_wordnet_is_here", lambda: False)
    with pytest.raises(EditError, match=r"nltk\.downloader"):
        WordEditor()


def test_synonyms_come_from_textaugment(monkeypatch, sentences):
    """With WordNet's answers put in its place: the edits themselves are the library's."""
    from textaugment.eda import EDA

    monkeypatch.setattr(word_edits, "_wordnet_is_here", lambda: True)
    monkeypatch.setattr(word_edits, "_stop_words", lambda: ["the"])
    monkeypatch.setattr(EDA, "_get_synonyms", staticmethod(lambda word: [f"{word}ish"]))
    edited = [WordEditor(1)(sentence) for sentence in sentences]
    assert any("ish" in text for text in edited)
