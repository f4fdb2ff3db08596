from collections import Counter

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import likewise
from likewise.encoder.vector_files import WordVectorError
from likewise.encoder.word_vectors import build_word_vectors, distill, frequency_weighted, load_encoder


@pytest.fixture
def encoder(tiny_base, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    model = likewise.load(tiny_base, precision="fp32")
    model.save_pretrained(str(tmp_path / "encoder"))
    return str(tmp_path / "encoder")


def distilled(encoder, counts, dimension=0):
    return distill(f"distilled:{encoder}", counts, dimension, *load_encoder(f"distilled:{encoder}"))


def test_a_word_has_the_vector_of_its_text_centred_and_weighted(encoder):
    counts = Counter({"cat": 90, "river": 10})
    table = distilled(encoder, counts)
    assert list(table.words[:2]) == ["cat", "river"]
    assert len(set(table.words)) == len(table.words) > 2
    alone = SentenceTransformer(encoder).encode(list(table.words), normalize_embeddings=True)
    centred = alone - (0.9 * alone[0] + 0.1 * alone[1])  # the mean over the corpus's tokens
    assert np.allclose(table.vectors[0], centred[0] * 1e-3 / (1e-3 + 0.9), atol=1e-6)
    assert np.allclose(table.vectors[2:], centred[2:], atol=1e-6)


def test_a_second_run_reads_the_cache(encoder, monkeypatch):
    first = distilled(encoder, Counter({"cat": 1}))

    def encoded(*_, **__):
        raise AssertionError("encoded again")

    monkeypatch.setattr(SentenceTransformer, "encode", encoded)
    assert np.array_equal(distilled(encoder, Counter({"cat": 1})).vectors, first.vectors)
    with pytest.raises(AssertionError):
        distilled(encoder, Counter({"dog": 1}))


def test_they_are_word_vectors_like_any_other(encoder, says):
    words = build_word_vectors(f"distilled:{encoder}", ["the cat sees a dog", "a river"])
    assert words.get_embedding_dimension() == 32
    assert "100.0% of the corpus's 7 tokens are known" in words.report
    with says(WordVectorError):
        build_word_vectors("distilled:/nowhere/at/all", ["the cat"])


def test_fewer_components_keep_the_most_of_the_vectors(encoder, says):
    counts = Counter({"cat": 1, "dog": 1})
    whole = distilled(encoder, counts).vectors
    few = distilled(encoder, counts, dimension=8).vectors
    assert few.shape == (len(whole), 8)
    # The best that any 8 directions can do: the eight largest singular values.
    values = np.linalg.svd(whole, compute_uv=False)
    assert np.isclose((few**2).sum(), (values[:8] ** 2).sum(), rtol=1e-4)
    with says(WordVectorError):
        distilled(encoder, counts, dimension=33)


@pytest.fixture
def glove(tmp_path):
    path = tmp_path / "vectors.txt"
    path.write_text("the 4.0 0.0\ncat 0.0 2.0\nlion 1.0 3.0\n", encoding="utf-8")
    return path


def test_by_hand():
    vectors, shares, mean = np.array([[3.0, 1.0], [1.0, 5.0]]), np.array([0.001, 0.003]), np.array([1.0, 1.0])
    assert np.allclose(frequency_weighted(vectors, shares, mean), [[1.0, 0.0], [0.0, 1.0]])


def test_the_mean_is_that_of_the_corpus_s_tokens_and_an_unseen_word_keeps_its_length(glove):
    # Of five tokens three are 'the' and two 'cat': mean (2.4, 0.8).
    words = build_word_vectors(str(glove), ["the cat the", "cat the"], weighted=True)
    ids = words.tokenizer.convert_tokens_to_ids(["the", "cat", "lion"])
    expected = [
        [1.6 * 0.001 / 0.601, -0.8 * 0.001 / 0.601],
        [-2.4 * 0.001 / 0.401, 1.2 * 0.001 / 0.401],
        [-1.4, 2.2],
    ]
    assert torch.allclose(words.vectors.weight[ids], torch.tensor(expected), atol=1e-6)


def test_without_it_or_without_a_corpus_the_vectors_are_the_file_s(glove):
    for words in (build_word_vectors(str(glove), ["the cat"]), build_word_vectors(str(glove), weighted=True)):
        ids = words.tokenizer.convert_tokens_to_ids(["the", "cat"])
        assert words.vectors.weight[ids].tolist() == [[4.0, 0.0], [0.0, 2.0]]
