import torch

from likewise.encoder.build import build_encoder
from likewise.losses import functional
from likewise.recipes.arccse import ARCCSE, ArcCSEOptions

TEXTS = ["the cat sees a dog", "the old river", "the [MASK] sees a dog", "the [MASK] river"]
TEXTS += ["[MASK] [MASK] sees a dog", "[MASK] [MASK] river"]


def triplets_alone(model, **settings):
    options = ArcCSEOptions(contrastive="none", triplet_weight=1, triplet_margin=0.5, **settings)
    loss = ARCCSE.build_loss(model, options)
    return lambda features: loss([{}, features])["triplet"]


def features(model):
    return dict(model.tokenizer(TEXTS, padding=True, return_tensors="pt"))


def test_one_column_of_triplets_is_split_in_order(tiny_model):
    vectors = torch.tensor(tiny_model.encode(TEXTS))
    loss = triplets_alone(tiny_model)(features(tiny_model))
    oracle = functional.entailment_triplet(vectors[:2], vectors[2:4], vectors[4:], 0.5)
    assert torch.allclose(loss, oracle, atol=1e-5)


def test_dropout_is_off_in_training_with_the_head_on_and_modes_come_back(tiny_base):
    model = build_encoder(str(tiny_base), head=True, dropout=0.5).train()
    loss = triplets_alone(model)
    first, second = (loss(features(model)) for _ in range(2))
    assert torch.equal(first, second)
    assert all(module.training for module in model.modules())
    first.backward()
    assert model[2].linear.weight.grad.abs().sum() > 0


def test_dropout_on_is_an_option(tiny_base):
    model = build_encoder(str(tiny_base), head=True, dropout=0.5).train()
    loss = triplets_alone(model, triplet_dropout=True)
    assert not torch.equal(loss(features(model)), loss(features(model)))
