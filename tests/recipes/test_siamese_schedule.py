import math

import pytest
from torch import nn

from likewise.encoder.training_modules import Predictor
from likewise.recipes import RECIPES

GCLSR = RECIPES["gclsr"]


def run(predictor_rate, steps=12):
    """The rates of the optimizer over some updates, of which a third is warm-up."""
    body, frozen = nn.Linear(2, 2), nn.Linear(2, 2).requires_grad_(False)
    encoder = nn.Sequential(body, Predictor(2, 2), frozen)
    options = GCLSR.options("paper", batch_size=128, sentences=0, learning_rate=0.12, epochs=3, warmup_epochs=1,
                            predictor_rate=predictor_rate)  # fmt: skip
    optimizer, schedule = GCLSR.build_optimizer(encoder, options, steps)
    seen = []
    for _ in range(steps):
        seen.append([(group["lr"], group["momentum"], group["weight_decay"]) for group in optimizer.param_groups])
        optimizer.step()
        schedule.step()
    return optimizer, schedule, seen


def test_rates_and_momenta_of_section_4_1():
    optimizer, _, seen = run(predictor_rate=1.0)
    body, predictor = zip(*seen, strict=True)
    rising = [0.12 * step / 4 for step in (1, 2, 3, 4)]
    falling = [0.12 * (1 + math.cos(math.pi * step / 8)) / 2 for step in range(8)]
    assert [rate for rate, *_ in body] == pytest.approx(rising + falling)
    assert [momentum for _, momentum, _ in body] == [0.9] * 4 + [0.8] * 8
    assert [momentum for _, momentum, _ in predictor] == [0.9] * 4 + [0.8] * 8
    assert {rate for rate, *_ in predictor} == {1.0}
    assert all(group["nesterov"] for group in optimizer.param_groups)
    assert {decay for *_, decay in (*body, *predictor)} == {1e-3}
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 7  # nothing frozen


def test_a_predictor_that_decays_is_one_group_with_all():
    _, _, seen = run(predictor_rate=0.0)
    assert all(len(groups) == 1 for groups in seen)
