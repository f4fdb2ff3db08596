"""Sub-words: round trips, special tokens, order by frequency."""

from collections import Counter

import pytest

from likewise.context.subwords import ROLES, Vocabulary
from likewise.context.workspace import ContextError


def test_text_comes_back_in_small_letters_and_nothing_is_unknown(vocabulary):
    texts = ["The otter lives near the river.", "naïve 日本 ☃", ""]
    ids = vocabulary.encode_batch(texts)
    assert [vocabulary.tokenizer.decode(found).strip() for found in ids] == [
        "the otter lives near the river.",
        "naïve 日本 ☃",
        "",
    ]
    assert ids[2] == []
    assert all(len(ROLES) <= i < len(vocabulary) for found in ids for i in found)


def test_case_can_be_kept(chunks):
    kept = Vocabulary.train([s for chunk in chunks for s in chunk.sentences], 360, lowercase=False)
    assert kept.tokenizer.decode(kept.encode_batch(["The Otter."])[0]).strip() == "The Otter."


def test_special_tokens_are_the_first_ids_and_none_is_read_from_text(vocabulary):
    assert (vocabulary.pad, vocabulary.bos, vocabulary.eos, vocabulary.sep) == (0, 1, 2, 3)
    assert vocabulary.tasks == {"centre": 4, "left": 5, "right": 6}
    (ids,) = vocabulary.encode_batch(["a [SEP] b [PAD]"])
    assert min(ids) >= len(ROLES)
    assert vocabulary.tokenizer.decode(ids).strip() == "a [sep] b [pad]"


def test_ids_fall_with_frequency(chunks, vocabulary):
    counts = Counter(i for chunk in chunks for ids in vocabulary.encode_batch(list(chunk.sentences)) for i in ids)
    in_order = [counts[i] for i in range(len(ROLES), len(vocabulary))]
    assert in_order == sorted(in_order, reverse=True)
    assert in_order[0] > 100


def test_saved_and_loaded_is_the_same(vocabulary, tmp_path):
    vocabulary.save(tmp_path / "v")
    loaded = Vocabulary.load(tmp_path / "v")
    text = ["A [EOS] goose at the market."]
    assert loaded.encode_batch(text) == vocabulary.encode_batch(text)
    assert (loaded.fingerprint, len(loaded)) == (vocabulary.fingerprint, len(vocabulary))


def test_errors_name_the_cure(tmp_path):
    with pytest.raises(ContextError, match="train it first"):
        Vocabulary.load(tmp_path)
    with pytest.raises(ContextError, match="300 sub-words"):
        Vocabulary.train(["a"], 100)
    with pytest.raises(ContextError, match="no text"):
        Vocabulary.train([], 400)
    (tmp_path / "tokenizer.json").write_text("{")
    with pytest.raises(ContextError, match="cannot be read"):
        Vocabulary.load(tmp_path)
