import json

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.modules import Pooling, StaticEmbedding

from likewise.inference import encode
from likewise.inference.model_tokens import UnfitModel, fits, tokens_of


@pytest.mark.parametrize("kind", ["cls", "mask prompt", "text cnn"])
def test_the_ids_are_those_of_preprocess(kind, encoders, texts):
    model = encoders[kind]
    tokens = tokens_of(model)
    odd = [*texts, "[MASK] the [SEP] cat [PAD]", "caf\u00e9 \u4e2d", "\u6c34\u6cf5\u574f\u4e86\u3002", "the cat " * 400]
    wanted = model.preprocess(odd)
    ids, mask = tokens.batch(tokens(odd))
    np.testing.assert_array_equal(mask, wanted["attention_mask"].numpy())
    np.testing.assert_array_equal(ids * mask, (wanted["input_ids"] * wanted["attention_mask"]).numpy())


def test_the_models_own_tokenizer_stays_as_it_is(tiny_model):
    tiny_model.preprocess(["the cat", "the cat sees the dog"])
    before = tiny_model.tokenizer.backend_tokenizer.to_str()
    tokens = tokens_of(tiny_model)
    after = tiny_model.tokenizer.backend_tokenizer.to_str()
    tokens(["the cat " * 300])
    assert json.loads(after)["added_tokens"] == json.loads(before)["added_tokens"]
    assert tiny_model.tokenizer.backend_tokenizer.to_str() == after
    assert tiny_model.preprocess(["cat", "the cat sees"])["attention_mask"].tolist() == [[1, 1, 1, 0, 0], [1] * 5]


def test_padding_on_the_left(tiny_model):
    tiny_model.tokenizer.padding_side = "left"
    tokens = tokens_of(tiny_model)
    ids, mask = tokens.batch(tokens(["cat", "the cat sees"]), at_least=7)
    assert ids.shape == (2, 7)
    assert mask.tolist() == [[0, 0, 0, 0, 1, 1, 1], [0, 0, 1, 1, 1, 1, 1]]


def test_what_it_cannot_take(tiny_model, monkeypatch, says):
    static = SentenceTransformer(modules=[StaticEmbedding(tiny_model.tokenizer, embedding_dim=4)], device="cpu")
    with says(UnfitModel):
        tokens_of(static)
    own = tiny_model[0].preprocess
    monkeypatch.setattr(tiny_model[0], "preprocess", lambda texts, **k: own([t.lower() + " the" for t in texts], **k))
    with says(UnfitModel):
        tokens_of(tiny_model)


def test_what_inputs_it_cannot_take(tiny_model, says):
    with says(UnfitModel):
        fits(tiny_model, ["a", ("a", "b")], None)
    model = SentenceTransformer(modules=[tiny_model[0], Pooling(32, "mean", include_prompt=False)], device="cpu")
    assert fits(model, ["a"], None)
    with says(UnfitModel):
        fits(model, ["a"], "query: ")


def test_an_encode_of_its_own_is_used(tiny_model, sentences):
    tiny_model.encode = lambda texts, **settings: torch.full((len(texts), 32), 7.0)
    assert encode(tiny_model, sentences[:2]).tolist() == [[7.0] * 32] * 2


def test_a_new_length_makes_new_tokens(tiny_model):
    first = tokens_of(tiny_model)
    assert tokens_of(tiny_model) is first
    tiny_model.max_seq_length = 5
    assert len(tokens_of(tiny_model)(["the cat sees the old dog"])[0]) == 5
