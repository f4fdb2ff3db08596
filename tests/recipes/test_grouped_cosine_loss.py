import math

import pytest
import torch
from torch import nn

from likewise.losses import functional
from likewise.losses.encoder_loss import CollapseError
from likewise.recipes.gclsr import GCLSR, GCLSROptions


def by_hand(predictions, projections, size):
    total, groups = 0.0, 0
    for p, z in zip(predictions.tolist(), projections.tolist(), strict=True):
        for start in range(0, len(p), size):
            a, b = p[start : start + size], z[start : start + size]
            dot = sum(x * y for x, y in zip(a, b, strict=True))
            total += dot / (math.sqrt(sum(x * x for x in a)) * math.sqrt(sum(y * y for y in b)))
            groups += 1
    return -total / groups


@pytest.mark.parametrize("size", [1, 2, 4, 8])
def test_grouped_cosine_by_hand(size):
    generator = torch.Generator().manual_seed(0)
    p, z = torch.randn(2, 5, 8, generator=generator)
    assert functional.grouped_cosine(p, z, size).item() == pytest.approx(by_hand(p, z, size), abs=1e-6)


def test_groups_lie_inside_a_row():
    p = torch.tensor([[1.0, 0.0, 0.0, 1.0]])
    z = torch.tensor([[1.0, 0.0, 1.0, 0.0]])
    assert functional.grouped_cosine(p, z, 2).item() == pytest.approx(-0.5)  # cosines 1 and 0
    assert functional.grouped_cosine(p, z, 4).item() == pytest.approx(-0.5)
    assert functional.grouped_cosine(10 * p, z, 2).item() == pytest.approx(-0.5)


def test_projections_get_no_gradient():
    p, z = (torch.randn(3, 8, requires_grad=True) for _ in range(2))
    functional.grouped_cosine(p, z, 4).backward()
    assert p.grad.abs().sum() > 0
    assert z.grad is None


def test_errors(says):
    with says(ValueError):
        functional.grouped_cosine(torch.zeros(2, 8), torch.zeros(2, 8), 3)
    with says(ValueError):
        functional.grouped_cosine(torch.zeros(2, 8), torch.zeros(3, 8), 4)


def test_spread_is_1_for_even_directions_and_0_for_one():
    even = torch.randn(4000, 16, generator=torch.Generator().manual_seed(0))
    assert functional.spread(even).item() == pytest.approx(1, abs=0.01)
    assert functional.spread(torch.rand(50, 1) * torch.ones(1, 16)).item() == pytest.approx(0, abs=1e-3)
    assert functional.spread(torch.tensor([[1.0, 0.0], [-7.0, 0.0]])).item() == pytest.approx(1)


class Views(nn.Module):
    """Gives (B, 8) of a column, and notes what it was asked."""

    def __init__(self, collapsed=False):
        super().__init__()
        self.scale = nn.Parameter(torch.ones(1))
        self.collapsed = collapsed

    def forward(self, features):
        x = features["x"] * self.scale
        if self.collapsed:
            x = torch.ones_like(x) * self.scale
        return {"sentence_embedding": x, "projection": x.roll(1, 1), "prediction": x * x}


def test_loss_is_symmetric_over_two_columns():
    a, b = torch.randn(2, 6, 8, generator=torch.Generator().manual_seed(2))
    loss = GCLSR.build_loss(Views(), GCLSROptions(group_size=4))
    expected = (by_hand(a * a, b.roll(1, 1), 4) + by_hand(b * b, a.roll(1, 1), 4)) / 2
    assert loss([{"x": a}, {"x": b}]).item() == pytest.approx(expected, abs=1e-6)
    assert loss([{"x": b}, {"x": a}]).item() == pytest.approx(expected, abs=1e-6)
    assert set(loss.measures()) == {"embedding_spread", "projection_spread"}
    assert loss.measures() == {}
    whole = GCLSR.build_loss(Views(), GCLSROptions(group_size=0))([{"x": a}, {"x": b}]).item()
    assert whole == pytest.approx((by_hand(a * a, b.roll(1, 1), 8) + by_hand(b * b, a.roll(1, 1), 8)) / 2, abs=1e-6)


def test_collapse_ends_the_run_after_its_patience(says):
    batch = [{"x": torch.randn(6, 8)}]
    options = GCLSROptions(group_size=4, collapse_below=0.01)
    loss = GCLSR.build_loss(Views(collapsed=True), options)
    for _ in range(9):
        loss(batch)
    with says(CollapseError):
        loss(batch)
    never = GCLSR.build_loss(Views(collapsed=True), options.updated(collapse_below=0))
    not_a_number = GCLSR.build_loss(Views(), options)
    for _ in range(9):
        never(batch)
        not_a_number([{"x": torch.full((6, 8), math.nan)}])
    never(batch)
    with says(CollapseError):
        not_a_number([{"x": torch.full((6, 8), math.nan)}])
