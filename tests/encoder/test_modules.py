import pytest
import torch

from likewise.encoder.build import build_encoder
from likewise.encoder.modules import dropout_off, without_training_head


def embed(model):
    return model(dict(model.tokenizer(["the cat sees a dog"], return_tensors="pt")))["sentence_embedding"]


def test_off_inside_on_outside_and_restored_after_an_error(tiny_base):
    model = build_encoder(str(tiny_base), head=True, dropout=0.5).train()
    model[0].eval()  # a mixture of modes must come back as it was
    modes = [module.training for module in model.modules()]
    with pytest.raises(RuntimeError), dropout_off(model):
        assert torch.equal(embed(model), embed(model))
        raise RuntimeError
    assert [module.training for module in model.modules()] == modes
    model.train()
    assert not torch.equal(embed(model), embed(model))


def test_gradients_flow_inside(tiny_base):
    model = build_encoder(str(tiny_base), head=False, dropout=0.5).train()
    with dropout_off(model):
        embed(model).sum().backward()
    # BERT's own pooler is not part of a sentence embedding.
    assert all(p.grad is not None for name, p in model.named_parameters() if ".pooler." not in name)


def test_stripped_encoder_gives_what_the_whole_one_gave_in_evaluation(tiny_base):
    model = build_encoder(str(tiny_base), head=True).eval()
    bare = without_training_head(model)
    assert len(model) == 3
    assert len(bare) == 2
    texts = ["the cat sees a dog", "the river"]
    assert torch.equal(torch.tensor(model.encode(texts)), torch.tensor(bare.encode(texts)))
