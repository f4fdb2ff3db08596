import json

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import likewise
from likewise.encoder.word_vectors import build_static_words, with_frequent_words

TEXTS = ["The volcano sees the volcano.", "a Volcano crosses the fjord", "fjord and cat", "once"]


@pytest.fixture
def encoder(base, tmp_path, monkeypatch):
    """The mean-pooled encoder of a tiny BERT or RoBERTa."""
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    likewise.load(base).save_pretrained(str(tmp_path / "encoder"))
    return str(tmp_path / "encoder")


def test_frequent_words_become_entries_and_the_rest_is_cut_as_before(tiny_base):
    own = SentenceTransformer(str(tiny_base)).tokenizer.backend_tokenizer
    found = with_frequent_words(own, TEXTS, 1)
    assert set(found.get_vocab()) - set(own.get_vocab()) == {"volcano"}
    assert found.encode("Volcano and cats", add_special_tokens=False).tokens == ["volcano", "and", "cat", "##s"]
    more = with_frequent_words(own, TEXTS, 100)
    assert set(more.get_vocab()) - set(own.get_vocab()) == {"volcano", "fjord"}  # 'once' occurs once
    assert json.loads(more.to_str())["added_tokens"] == []
    assert "[MASK]" not in more.encode("a [MASK] here", add_special_tokens=False).tokens


def test_a_text_is_the_mean_of_the_encoders_vectors_less_their_mean_and_weighted(encoder):
    words, dimension = build_static_words(encoder, TEXTS, 100)
    assert dimension == 32
    ids = [i for text in TEXTS for i in words.tokenizer.encode(text, add_special_tokens=False).ids]
    alone = SentenceTransformer(encoder).encode(
        [words.tokenizer.decode([i]).strip().removeprefix("##") or words.tokenizer.id_to_token(i) for i in ids],
        normalize_embeddings=True,
    )
    mean = alone.mean(axis=0)
    weights = np.array([1e-3 / (1e-3 + ids.count(i) / len(ids)) for i in ids])
    wanted = (alone - mean) * weights[:, None]
    assert np.allclose(words.embedding.weight[ids].detach(), wanted, atol=1e-5)
    length = len(words.tokenizer.encode(TEXTS[0], add_special_tokens=False).ids)
    found = SentenceTransformer(modules=[words]).encode(TEXTS[0])
    assert np.allclose(found, wanted[:length].mean(axis=0), atol=1e-5)


def test_no_word_is_unknown_and_none_is_zero(encoder):
    words, _ = build_static_words(encoder, TEXTS, 2)
    found = SentenceTransformer(modules=[words]).encode(["xqzzy", "42", "\N{SNOWMAN}", "Cat"])
    assert (np.linalg.norm(found, axis=1) > 1e-3).all()
