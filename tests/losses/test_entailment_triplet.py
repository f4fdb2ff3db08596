import torch

from likewise.encoder.build import build_encoder
from likewise.losses import functional
from likewise.losses.arccse import EntailmentTripletLoss

TEXTS = ["the cat sees a dog", "the old river", "the [MASK] sees a dog", "the [MASK] river"]
TEXTS += ["[MASK] [MASK] sees a dog", "[MASK] [MASK] river"]


def features(model):
    return dict(model.tokenizer(TEXTS, padding=True, return_tensors="pt"))


def test_one_column_of_triplets_is_split_in_order(tiny_model):
    vectors = torch.tensor(tiny_model.encode(TEXTS))
    loss = EntailmentTripletLoss(tiny_model, margin=0.5)([features(tiny_model)])
    oracle = functional.entailment_triplet(vectors[:2], vectors[2:4], vectors[4:], 0.5)
    assert torch.allclose(loss, oracle, atol=1e-5)


def test_dropout_is_off_in_training_with_the_head_on_and_modes_come_back(tiny_base):
    model = build_encoder(str(tiny_base), head=True, dropout=0.5).train()
    loss = EntailmentTripletLoss(model, margin=0.5)
    first, second = (loss([features(model)]) for _ in range(2))
    assert torch.equal(first, second)
    assert all(module.training for module in model.modules())
    first.backward()
    assert model[2].linear.weight.grad.abs().sum() > 0


def test_dropout_on_is_an_option(tiny_base):
    model = build_encoder(str(tiny_base), head=True, dropout=0.5).train()
    loss = EntailmentTripletLoss(model, margin=0.5, dropout=True)
    assert not torch.equal(loss([features(model)]), loss([features(model)]))
