import torch

from likewise.encoder.build import build_encoder
from likewise.recipes.arccse import ARCCSE, ArcCSEOptions, two_views


def arccon(model, **settings):
    return ARCCSE.build_loss(model, ArcCSEOptions(triplet_weight=0, **settings))


class Recorder(torch.nn.Module):
    """Stands in for an encoder: the identity, and the sizes of its forward passes."""

    def __init__(self):
        super().__init__()
        self.sizes = []
        self.dropout = torch.nn.Dropout(0.5)

    def forward(self, features):
        self.sizes.append(len(features["x"]))
        return {"sentence_embedding": self.dropout(features["x"])}


def test_both_views_come_from_one_forward_with_different_dropout():
    model = Recorder().train()
    first, second = two_views(arccon(model), {"x": torch.ones(4, 50)}).chunk(2)
    assert model.sizes == [8]
    assert not torch.equal(first, second)


def test_second_view_without_dropout():
    model = Recorder().train()
    first, second = two_views(arccon(model, positive_dropout=False), {"x": torch.ones(4, 50)}).chunk(2)
    assert (first == 0).any()
    assert torch.equal(second, torch.ones(4, 50))
    assert model.dropout.training


def test_on_a_real_encoder_the_gradient_reaches_the_head(tiny_base):
    model = build_encoder(str(tiny_base), head=True).train()
    features = model.tokenizer(["the cat", "a dog", "the old river"], padding=True, return_tensors="pt")
    arccon(model)([dict(features)])["contrastive"].backward()
    assert model[2].linear.weight.grad.abs().sum() > 0
