import pytest
import torch

from likewise.encoder.build import build_encoder
from likewise.encoder.modules import with_modules
from likewise.encoder.training_modules import PairClassifier
from likewise.evaluation.held_out_labels import HeldOutLabelsEvaluator

FIRST = ["the cat sees the dog", "the old river", "a market", "the small song"]
SECOND = ["the garden", "the captain", "the old river", "a window"]


def test_accuracy_of_a_classifier_that_always_says_the_same(tiny_base):
    encoder = build_encoder(str(tiny_base), pooling="mean", head=False)
    model = with_modules(encoder, [*encoder, PairClassifier(32, 3)]).train()
    with torch.no_grad():
        model[-1].linear.weight.zero_()
        model[-1].linear.bias.copy_(torch.tensor([0.0, 1.0, 0.0]))
    state = torch.get_rng_state()
    assert HeldOutLabelsEvaluator(FIRST, SECOND, [1, 1, 0, 1])(model) == {"held_out_accuracy": 75.0}
    assert model.training
    assert torch.equal(torch.get_rng_state(), state)


def test_accuracy_where_the_first_sentence_decides(tiny_base):
    """The sign of the first number of u is the label."""
    encoder = build_encoder(str(tiny_base), pooling="mean", head=False)
    model = with_modules(encoder, [*encoder, PairClassifier(32, 2)]).eval()
    with torch.no_grad():
        model[-1].linear.weight.zero_()
        model[-1].linear.bias.zero_()
        model[-1].linear.weight[1, 0] = 1.0
    labels = [int(vector[0] > 0) for vector in model.encode(FIRST)]
    assert HeldOutLabelsEvaluator(FIRST, SECOND, labels)(model)["held_out_accuracy"] == 100
    assert HeldOutLabelsEvaluator(FIRST, SECOND, [1 - x for x in labels])(model)["held_out_accuracy"] == 0


def test_bad_input(tiny_model):
    with pytest.raises(ValueError, match="4 first sentences"):
        HeldOutLabelsEvaluator(FIRST, SECOND, [1])
    with pytest.raises(ValueError, match="no PairClassifier"):
        HeldOutLabelsEvaluator(FIRST, SECOND, [1, 1, 1, 1])(tiny_model)
