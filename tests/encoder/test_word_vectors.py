import numpy as np
import pytest
import torch

from likewise.encoder.vector_files import WordTable, WordVectorError
from likewise.encoder.word_vectors import (
    WordVectors,
    build_word_vectors,
    choose_words,
    count_words,
    word_tokenizer,
)

pytest.importorskip("gensim", reason="needs the extra 'words'")


@pytest.fixture
def glove(tmp_path):
    path = tmp_path / "glove.txt"
    path.write_text("the 1 0\n, 0 1\ncat 2 2\ndog 3 1\nn't 4 0\ndo 0 4\n", encoding="utf-8")
    return str(path)


def test_words_of_the_corpus_and_the_most_frequent_are_kept(glove):
    module = build_word_vectors(glove, ["The dog, the DOG xyzzy"], most_frequent=2)
    assert module.tokenizer.convert_ids_to_tokens(range(5)) == ["[PAD]", "[UNK]", "the", ",", "dog"]
    kept = np.array([[1, 0], [0, 1], [3, 1]])
    expected = np.concatenate([[[0, 0]], [kept.mean(axis=0)], kept])
    assert np.allclose(module.vectors.weight, expected)
    assert not module.vectors.weight.requires_grad
    assert "83.3% of the corpus's 6 tokens" in module.report


def test_an_unknown_word_has_the_same_vector_in_every_call_build_and_copy(glove, tmp_path):
    first, second = (build_word_vectors(glove, ["the cat"], most_frequent=6) for _ in range(2))
    (tmp_path / "saved").mkdir()
    first.save(str(tmp_path / "saved"))
    loaded = WordVectors.load(str(tmp_path / "saved"))
    assert (tmp_path / "saved" / "model.safetensors").exists()
    seen = [module(module.preprocess(["xyzzy plugh"]))["token_embeddings"] for module in (first, first, second, loaded)]
    assert all(torch.equal(seen[0], other) for other in seen)
    assert torch.equal(seen[0][0, 0], seen[0][0, 1])
    assert loaded.report == first.report


def test_texts_are_cut_as_the_vectors_were(glove):
    module = build_word_vectors(glove, None, most_frequent=6)
    pieces = module.tokenizer.backend_tokenizer.pre_tokenizer.pre_tokenize_str
    cut = [word for word, _ in pieces("u.s. cats don't cost 3.5, it's [UNK]!")]
    assert cut == ["u.s.", "cats", "do", "n't", "cost", "3.5", ",", "it", "'s", "[", "UNK", "]", "!"]
    ids = module.preprocess(["Don\N{RIGHT SINGLE QUOTATION MARK}t"])["input_ids"]
    assert module.tokenizer.convert_ids_to_tokens(ids[0].tolist()) == ["do", "n't"]
    # A name of a special token in a text is characters, not the token.
    assert (module.preprocess(["[PAD]"])["input_ids"] == 1).all()


def test_texts_without_a_word_and_long_ones(glove):
    module = build_word_vectors(glove, None, most_frequent=6, max_words=3)
    features = module.preprocess(["", "the cat the cat the cat"])
    assert features["input_ids"].shape == (2, 3)
    assert features["attention_mask"].tolist() == [[0, 0, 0], [1, 1, 1]]
    assert module.preprocess([""])["input_ids"].tolist() == [[0]]


def test_cased_vectors_keep_case_and_fall_back_to_lower_case():
    table = WordTable(["Paris", "apple"], np.eye(2, dtype=np.float32), "x")
    counts = count_words(word_tokenizer((), lower=False).backend_tokenizer, ["Paris Apple paris"])
    words, rows, known = choose_words(table, counts, 0)
    assert dict(zip(words, rows, strict=True)) == {"Paris": 0, "Apple": 1}
    assert known == 2


def test_errors(glove, says):
    with says(WordVectorError):
        build_word_vectors(glove, ["xyzzy plugh"])
    with says(WordVectorError):
        WordVectors(word_tokenizer(["a"], lower=True), torch.zeros(2, 2))
