import random
from collections import Counter
from importlib import util
from types import SimpleNamespace

import pytest

from likewise.augment import word_edits
from likewise.augment.word_edits import WordEditor
from likewise.errors import LikewiseError

needs_textaugment = pytest.mark.skipif(util.find_spec("textaugment") is None, reason="needs the extra 'edits'")


@needs_textaugment
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


@needs_textaugment
def test_wordnet_that_is_missing_is_told(monkeypatch):
    def missing(*_: object) -> None:
        raise LookupError

    monkeypatch.setattr("nltk.corpus.wordnet", SimpleNamespace(synsets=missing))
    with pytest.raises(LikewiseError, match=r"nltk\.downloader"):
        WordEditor()


@needs_textaugment
def test_synonyms_come_from_textaugment(monkeypatch, sentences):
    """With WordNet's answers put in its place: the edits themselves are the library's."""
    from textaugment.eda import EDA

    monkeypatch.setattr(word_edits, "_stop_words", lambda: ["the"])
    monkeypatch.setattr(EDA, "_get_synonyms", staticmethod(lambda word: [f"{word}ish"]))
    edited = [WordEditor(1)(sentence) for sentence in sentences]
    assert any("ish" in text for text in edited)
