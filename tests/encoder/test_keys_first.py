"""The oracle is transformers' own attention."""

import threading

import pytest
import torch
from sentence_transformers import SentenceTransformer
from transformers import BertConfig, BertModel, RobertaConfig, RobertaModel

from likewise.encoder.attention import keys_first
from likewise.encoder.build import build_encoder

TEXTS = ["The cat sees a dog.", "a river", "the old bridge near the garden and the teacher", "the"]


def embed(model: SentenceTransformer) -> torch.Tensor:
    with torch.no_grad():
        found: torch.Tensor = model(dict(model.preprocess(TEXTS)))["token_embeddings"]
    return found


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_the_same_token_vectors_of_padded_sentences(base, attention):
    model = build_encoder(base, pooling="mean", head=False).eval()
    model[0].auto_model.set_attn_implementation(attention)
    wanted = embed(model)
    parts = [layer.attention.self for layer in model[0].auto_model.encoder.layer]
    with torch.no_grad():  # so large that a score is far from the others, and the mask matters
        for part in parts:
            part.query.weight.mul_(300)
            part.key.bias.normal_(generator=torch.Generator().manual_seed(1))
    sharp = embed(model)
    assert not torch.allclose(sharp, wanted, atol=1e-2)
    mask = model.preprocess(TEXTS)["attention_mask"].bool()
    with keys_first(model) as replaced:
        assert replaced == len(parts)
        found = embed(model)
    assert torch.allclose(found[mask], sharp[mask], atol=1e-5)
    assert torch.equal(embed(model), sharp), "the model is left as it was"


def test_another_thread_keeps_the_original(base):
    model = build_encoder(base, pooling="mean", head=False).eval()
    wanted, found = embed(model), []
    with keys_first(model):
        thread = threading.Thread(target=lambda: found.append(embed(model)))
        thread.start()
        thread.join()
    assert torch.equal(found[0], wanted)


def test_what_it_does_not_take_runs_as_usual():
    size = {
        "hidden_size": 32,
        "num_attention_heads": 4,
        "num_hidden_layers": 2,
        "intermediate_size": 48,
        "vocab_size": 40,
    }
    decoder = BertModel(BertConfig(**size, is_decoder=True)).eval()
    training = BertModel(BertConfig(**size)).train()
    hooked = RobertaModel(RobertaConfig(**size)).eval()
    hooked.encoder.layer[0].attention.self.register_forward_hook(lambda *_: None)
    for model, taken in ((decoder, 0), (training, 0), (hooked, 1)):
        with keys_first(model) as replaced:
            assert replaced == taken
