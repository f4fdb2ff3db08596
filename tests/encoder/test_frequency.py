import numpy as np
import pytest
import torch

from likewise.encoder.frequency import frequency_weighted
from likewise.encoder.word_vectors import build_word_vectors


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
