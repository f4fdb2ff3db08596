"""The oracles are torch's own functions without dropout, and the binomial distribution."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from likewise.encoder.dropout import FastDropout, dropped


@pytest.mark.parametrize("probability", [0.02, 0.1, 0.5, 0.9])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_zeros_by_chance_and_the_rest_scaled(probability, dtype):
    torch.manual_seed(1)
    values = torch.ones(1001, 333, dtype=dtype)  # no multiple of four
    made = dropped(values, probability)
    assert made.dtype == dtype
    assert made.unique().tolist() == [0.0, torch.tensor(1 / (1 - probability), dtype=dtype).item()]
    zeros, count = (made == 0).sum().item(), values.numel()
    spread = (count * probability * (1 - probability)) ** 0.5
    assert abs(zeros - count * probability) < 5 * spread + count / 2**17
    # Each of the four chances of a draw is like any other.
    for place in range(4):
        share = (made.flatten()[place::4] == 0).float().mean().item()
        assert share == pytest.approx(probability, abs=5 * 2 * spread / count)


def test_a_seed_fixes_the_mask_and_the_gradient_goes_through_it():
    values = torch.randn(64, 48, requires_grad=True)
    torch.manual_seed(3)
    made = dropped(values, 0.25)
    torch.manual_seed(3)
    assert torch.equal(made, dropped(values, 0.25))
    made.sum().backward()
    assert torch.allclose(values.grad, (made != 0) / 0.75)


def test_modules_drop_in_training_alone():
    module, values = nn.Dropout(0.4), torch.ones(300, 300)
    with FastDropout():
        torch.manual_seed(5)
        made = module(values)
        torch.manual_seed(5)
        assert torch.equal(made, dropped(values, 0.4))
        assert torch.equal(module.eval()(values), values)
        assert torch.equal(F.dropout(values, 1.0), torch.zeros(300, 300))
        assert torch.equal(F.dropout(values, 0.0), values)
    torch.manual_seed(5)
    assert not torch.equal(made, F.dropout(values, 0.4))


@pytest.mark.parametrize("mask", [None, "bool", "float"])
@pytest.mark.parametrize("scale", [None, 0.3])
def test_attention_drops_its_weights(mask, scale):
    torch.manual_seed(0)
    query, key = torch.randn(2, 3, 5, 8), torch.randn(2, 3, 7, 8)
    value = torch.eye(7).expand(2, 3, 7, 7)  # so that the output is the weights
    there = torch.rand(2, 1, 5, 7) < 0.7
    there[..., 0] = True
    masks = {None: None, "bool": there, "float": torch.zeros(there.shape).masked_fill(~there, -torch.inf)}
    attend = F.scaled_dot_product_attention
    weights = attend(query, key, value, masks[mask], scale=scale)
    with FastDropout():
        assert torch.allclose(attend(query, key, value, masks[mask], scale=scale), weights)
        made = attend(query=query, key=key, value=value, attn_mask=masks[mask], dropout_p=0.25, scale=scale)
    kept = made != 0
    assert torch.allclose(made[kept], weights[kept] / 0.75, atol=1e-6)
    assert 0.5 < kept.sum() / (weights != 0).sum() < 0.95


def test_causal_attention_stays_causal():
    query = torch.randn(1, 2, 6, 4)
    with FastDropout():
        made = F.scaled_dot_product_attention(
            query, query, torch.eye(6).expand(1, 2, 6, 6), dropout_p=0.5, is_causal=True
        )
    assert torch.equal(made, made.tril())
