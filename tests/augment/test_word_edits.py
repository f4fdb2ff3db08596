import random
from collections import Counter
from types import SimpleNamespace

import pytest

from likewise.augment import word_edits
from likewise.augment.word_edits import WordEditor
from likewise.errors import LikewiseError


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
    assert changed > 0.75 * len(sentences)
    assert [WordEditor(1, synonyms=False)(text) for text in ("", " ", "word")] == ["", " ", "word"]


def test_wordnet_that_is_missing_is_told(monkeypatch, says):
    pytest.importorskip("nltk", reason="needs the extra 'edits'")

    def missing(*_: object) -> None:
        raise LookupError

    monkeypatch.setattr("nltk.corpus.wordnet", SimpleNamespace(synsets=missing))
    with says(LikewiseError):
        WordEditor()


def test_synonyms_replace_a_tenth_of_the_words_and_are_inserted(monkeypatch, sentences):
    """With WordNet's answers given here: a stop word and a word without synonyms stay, each edit is of one kind."""
    monkeypatch.setattr(word_edits, "_stop_words", lambda: frozenset(["the"]))
    monkeypatch.setattr(word_edits, "synonyms_of", lambda word: [] if word == "old" else [f"{word}ish"])
    kinds = Counter()
    for sentence in sentences:
        words, edited = sentence.split(), WordEditor(1)(sentence).split()
        new = Counter(word for word in edited if word.endswith("ish"))
        assert "theish" not in new
        assert "oldish" not in new
        if new:
            kinds["replaced" if len(edited) == len(words) else "inserted"] += 1
            most = max(1, round(0.1 * len(words)))
            assert len(new) <= most
            assert sum(new.values()) == len(edited) - len(words) or len(edited) == len(words)
            rest = Counter(edited) - new
            assert not rest - Counter(words)
    assert min(kinds["replaced"], kinds["inserted"]) > 0.15 * len(sentences)
