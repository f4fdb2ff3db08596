import random
from collections import Counter
from importlib import util
from types import SimpleNamespace

import numpy as np
import pytest

from likewise.augment import word_edits
from likewise.augment.word_edits import WordEditor, delete_words
from likewise.errors import LikewiseError

needs_textaugment = pytest.mark.skipif(util.find_spec("textaugment") is None, reason="needs the extra 'edits'")
SENTENCE = " ".join(f"w{i}" for i in range(50))


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


def test_the_share_of_deleted_words_is_met_on_average_and_order_is_kept():
    rng = np.random.default_rng(0)
    found = [delete_words(SENTENCE, 0.6, rng).split() for _ in range(400)]
    kept = np.mean([len(words) for words in found]) / 50
    assert kept == pytest.approx(0.4, abs=5 * (0.24 / 20_000) ** 0.5)
    assert all(words == sorted(words, key=lambda word: int(word[1:])) for words in found)
    assert len({len(words) for words in found}) > 5  # each word by itself, not a fixed number


def test_one_word_is_left_at_least():
    rng = np.random.default_rng(0)
    assert {delete_words("a b c", 1.0, rng) for _ in range(50)} == {"a", "b", "c"}
    assert delete_words("", 0.6, rng) == ""
    assert delete_words("all of it", 0.0, rng) == "all of it"
    with pytest.raises(ValueError, match="share"):
        delete_words("a", -0.1, rng)
