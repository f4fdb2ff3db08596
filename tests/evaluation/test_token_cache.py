import numpy as np

from likewise.evaluation import token_cache
from likewise.evaluation.token_cache import TokenCache


def test_same_vectors_as_encode_and_tokens_made_once(tiny_model, sentences, monkeypatch):
    monkeypatch.setattr(token_cache, "BATCH", 7)
    texts = [*sentences[:20], sentences[3], sentences[0]]
    cache = TokenCache(texts)
    calls = []
    preprocess = tiny_model.preprocess
    tiny_model.preprocess = lambda *a, **k: calls.append(1) or preprocess(*a, **k)
    rows, unique = cache.vectors(tiny_model)
    again, _ = cache.vectors(tiny_model)
    assert len(calls) == 3  # 20 unique sentences in batches of 7
    np.testing.assert_allclose(rows, tiny_model.encode(texts), atol=1e-5)
    np.testing.assert_array_equal(rows, again)
    np.testing.assert_array_equal(unique, rows[:20])
    # A shorter limit asks for other tokens.
    tiny_model.max_seq_length = 6
    short, _ = cache.vectors(tiny_model)
    np.testing.assert_allclose(short, tiny_model.encode(texts), atol=1e-5)
    assert not np.allclose(short, rows)


def test_prompt_and_shortened_vectors(tiny_model, sentences):
    tiny_model.prompts = {"x": "the old cat "}
    tiny_model.default_prompt_name = "x"
    tiny_model.truncate_dim = 8
    rows, _ = TokenCache(sentences[:5]).vectors(tiny_model)
    assert rows.shape == (5, 8)
    np.testing.assert_allclose(rows, tiny_model.encode(sentences[:5]), atol=1e-5)
