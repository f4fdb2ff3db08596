import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import AutoModel, AutoTokenizer

import likewise
from compared.averages import FIRST_LAST, LAST_TWO, build_layer_average
from compared.baselines import BaselineError, baseline
from likewise.encoder.location import LoadError
from likewise.inference import encode


@pytest.fixture
def glove(tmp_path):
    pytest.importorskip("gensim", reason="needs the extra 'words'")
    path = tmp_path / "glove.txt"
    path.write_text("the 1 0\n, 0 1\ncat 2 2\ndog 3 1\n", encoding="utf-8")
    return str(path)


def both_ways(folder, texts):
    """Plain sentence-transformers, with no flag; and the same by likewise."""
    plain = SentenceTransformer(str(folder)).encode(texts)
    assert np.array_equal(plain, likewise.load(folder, engine="torch").encode(texts))
    return plain


def test_word_average_is_the_mean_over_the_words_that_have_vectors(glove, tmp_path):
    made = baseline("word-average", base=glove, out=tmp_path / "out", quiet=True)
    found = both_ways(made.path, ["The cat", "the xyzzy dog", "xyzzy", ""])
    assert np.allclose(found[0], [1.5, 1.0])
    known = np.array([2.0, 0.5])  # of 'the' and 'dog'; the unknown word shortens it
    assert np.allclose(found[1] / np.linalg.norm(found[1]), known / np.linalg.norm(known))
    assert np.allclose(found[2:], 0)


def test_word_average_keeps_the_corpus_s_words_beside_the_most_frequent(glove, tmp_path):
    corpus = tmp_path / "text.txt"
    corpus.write_text("a dog is a dog\n", encoding="utf-8")
    made = baseline("word-average", corpus, base=glove, out=tmp_path / "out", most_frequent=1, quiet=True)
    vocabulary = SentenceTransformer(str(made.path))[0].tokenizer.get_vocab()
    assert set(vocabulary) == {"[PAD]", "[UNK]", "the", "dog"}


def test_a_weighted_average_is_without_the_mean_word_and_with_short_frequent_words(glove, tmp_path):
    corpus = tmp_path / "text.txt"
    corpus.write_text("the cat the cat\nthe dog the dog\n", encoding="utf-8")
    made = baseline("word-average", corpus, base=glove, out=tmp_path / "out", weighted=True, quiet=True)
    the, cat, dog = np.array([1.0, 0.0]), np.array([2.0, 2.0]), np.array([3.0, 1.0])
    mean = (2 * the + cat + dog) / 4  # over tokens
    expected = ((the - mean) * 0.001 / 0.501 + (cat - mean) * 0.001 / 0.251) / 2
    assert np.allclose(both_ways(made.path, ["The cat"])[0], expected, rtol=1e-4)


def test_a_weighted_average_wants_a_corpus(glove, tmp_path):
    with pytest.raises(BaselineError, match="--corpus"):
        baseline("word-average", base=glove, out=tmp_path / "out", weighted=True, quiet=True)


@pytest.mark.parametrize(
    ("name", "options", "layers"),
    [
        ("last-average", {}, (2,)),
        ("first-last-average", {}, (1, 2)),
        ("cls", {}, None),
    ],
)
def test_averages_of_layers_are_what_transformers_gives(tiny_base, tmp_path, sentences, name, options, layers):
    made = baseline(name, base=str(tiny_base), out=tmp_path / "out", quiet=True, **options)
    tokenizer, model = AutoTokenizer.from_pretrained(tiny_base), AutoModel.from_pretrained(tiny_base).eval()
    texts = sentences[:4]
    expected = []
    for text in texts:
        with torch.no_grad():
            hidden = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
        last = hidden[-1][0]
        expected.append(last[0] if layers is None else torch.stack([hidden[i][0].mean(dim=0) for i in layers]).mean(0))
    assert np.allclose(both_ways(made.path, texts), torch.stack(expected).numpy(), atol=1e-5)


def by_hand(base, texts, layers):
    """Plain transformers, a text at a time, so that there is no padding."""
    tokenizer, model = AutoTokenizer.from_pretrained(base), AutoModel.from_pretrained(base).eval()
    found = []
    for text in texts:
        with torch.no_grad():
            hidden = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True).hidden_states
        found.append(torch.stack([hidden[layer][0] for layer in layers]).mean(dim=0).mean(dim=0))
    return torch.stack(found).numpy()


@pytest.mark.parametrize("layers", [FIRST_LAST, LAST_TWO, (-1,), (0, -1), (0, 1, 2)])
def test_it_is_what_transformers_gives_also_after_loading_with_no_flag(tiny_base, tmp_path, sentences, layers):
    model = build_layer_average(str(tiny_base), layers)
    texts = sentences[:6]
    expected = by_hand(str(tiny_base), texts, layers)
    assert np.allclose(model.encode(texts), expected, atol=1e-5)
    model.save_pretrained(str(tmp_path / "saved"))
    loaded = SentenceTransformer(str(tmp_path / "saved"))
    assert np.array_equal(loaded.encode(texts), model.encode(texts))
    # The weights of the layers say which ones, and are not trained.
    assert all("layer_weights" not in name for name, p in model.named_parameters() if p.requires_grad)


def test_a_layer_that_is_not_there_is_told(tiny_base):
    with pytest.raises(LoadError, match="0 to 2"):
        build_layer_average(str(tiny_base), (1, 3))
    with pytest.raises(LoadError, match="0 to 2"):
        build_layer_average(str(tiny_base), (-4,))


def test_the_mean_of_all_layers_is_the_same_in_every_call_in_bfloat16(tiny_base, sentences, monkeypatch):
    # transformers collects the layers' outputs by hooks that it sets on the model it is called on.
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "bf16")
    model = build_layer_average(str(tiny_base), (1, -1)).eval()
    first, second = (encode(model, sentences[:5], precision="bf16") for _ in range(2))
    assert np.array_equal(first, second)
