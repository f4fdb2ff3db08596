"""BERT in one loop: the oracle is the model itself, called as sentence-transformers calls it."""

from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import nn
from transformers import RobertaConfig, RobertaModel

from likewise.inference.engines.engine import TorchEngine
from likewise.inference.engines.lean_bert import LeanBert, lean_bert
from likewise.inference.model_tokens import tokens_of
from likewise.inference.text_encoder import TextEncoder

KINDS = ("cls", "mean", "last token", "whitening")


def batch_of(model, texts):
    tokens = tokens_of(model)
    return tokens.batch(tokens(texts))


def own(model, ids, mask):
    with torch.inference_mode():
        return model({"input_ids": torch.from_numpy(ids), "attention_mask": torch.from_numpy(mask)})


def with_roberta(model):
    """The same encoder around RoBERTa, which counts the positions of tokens from the padding's id."""
    torch.manual_seed(3)
    other, config = deepcopy(model), model[0].auto_model.config
    sizes = {name: getattr(config, name) for name in ("vocab_size", "hidden_size", "num_attention_heads")}
    roberta = RobertaConfig(
        **sizes, num_hidden_layers=2, intermediate_size=64, max_position_embeddings=600, pad_token_id=0
    )
    other[0].model = RobertaModel(roberta, add_pooling_layer=False).eval()
    return other


@pytest.mark.parametrize("count", [1, 7])
@pytest.mark.parametrize("kind", KINDS)
def test_with_padding_all_is_equal_to_the_bit(kind, count, encoders, texts):
    for model in (encoders[kind].eval(), with_roberta(encoders[kind].eval())):
        ids, mask = batch_of(model, texts[:count])
        expected = own(model, ids, mask)
        with torch.inference_mode():
            found = lean_bert(model, whole=True).padded(ids, mask)
        assert torch.equal(found["sentence_embedding"], expected["sentence_embedding"])
        assert torch.equal(found["token_embeddings"], expected["token_embeddings"])


@pytest.mark.parametrize("kind", ["mean", "last token", "whitening"])
def test_without_padding_all_is_equal_up_to_rounding(kind, encoders, texts):
    for model in (encoders[kind].eval(), with_roberta(encoders[kind].eval())):
        ids, mask = batch_of(model, texts)  # unsorted, with an empty and a very long one
        expected = own(model, ids, mask)
        with torch.inference_mode():
            found = lean_bert(model, whole=False).packed(ids, mask)
        there = torch.from_numpy(mask).bool()
        torch.testing.assert_close(found["sentence_embedding"], expected["sentence_embedding"], atol=1e-5, rtol=0)
        torch.testing.assert_close(
            found["token_embeddings"][there], expected["token_embeddings"][there], atol=1e-5, rtol=0
        )
        assert not found["token_embeddings"][~there].any()


def test_many_texts_run_without_padding_and_few_to_the_bit(encoders, texts, monkeypatch):
    model, calls = encoders["mean"].eval(), []
    for name in ("padded", "packed"):
        way = getattr(LeanBert, name)
        monkeypatch.setattr(LeanBert, name, lambda *given, name=name, way=way: [calls.append(name), way(*given)][1])
    with torch.inference_mode():
        expected = TextEncoder(tokens_of(model), TorchEngine(model, whole=True)).rows(texts)
        found = TextEncoder(tokens_of(model), TorchEngine(model)).rows(texts)
    assert set(calls) == {"padded", "packed"}
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_changed_weights_are_read(encoders, texts):
    model = encoders["mean"].eval()
    ids, mask = batch_of(model, texts[:5])
    with torch.no_grad():
        before = lean_bert(model, whole=False).packed(ids, mask)["sentence_embedding"]
        query = model[0].auto_model.encoder.layer[0].attention.self.query
        query.weight.mul_(40.0)
        try:
            found = lean_bert(model, whole=False).packed(ids, mask)["sentence_embedding"]
            expected = own(model, ids, mask)["sentence_embedding"]
        finally:
            query.weight.div_(40.0)
    assert not torch.allclose(before, expected, atol=1e-4)
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


class Doubled(nn.Linear):
    def forward(self, rows):
        return 2 * super().forward(rows)


def doubled(model):
    output = model[0].auto_model.encoder.layer[0].output
    output.dense = Doubled(output.dense.in_features, output.dense.out_features)


def hooked(model):
    model[0].register_forward_hook(lambda *given: None)


def own_forward(model):
    layer = model[0].auto_model.encoder.layer[0]
    layer.forward = layer.forward


def eager(model):
    model[0].auto_model.set_attn_implementation("eager")


def in_training(model):
    model.train()


@pytest.mark.parametrize("change", [doubled, hooked, own_forward, eager, in_training])
def test_a_model_that_computes_something_else_is_left_to_itself(change, encoders):
    model = deepcopy(encoders["mean"]).eval()
    assert lean_bert(model, whole=True) is not None
    change(model)
    assert lean_bert(model, whole=True) is None


def test_what_saves_more_is_preferred(encoders):
    assert lean_bert(encoders["cls"].eval(), whole=True) is not None
    assert lean_bert(encoders["cls"].eval(), whole=False) is None  # its last layer makes one token alone
    assert lean_bert(encoders["text cnn"].eval(), whole=True) is None
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert lean_bert(encoders["mean"].eval(), whole=True) is None
