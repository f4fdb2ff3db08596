import math

import pytest
from torch import nn

from likewise.recipes.optimizers import siamese_sgd


def run(predictor_rate, steps=12, warmup=4):
    model = nn.ModuleDict({"body": nn.Linear(2, 2), "predictor": nn.Linear(2, 2), "frozen": nn.Linear(2, 2)})
    model["frozen"].requires_grad_(False)
    optimizer, schedule = siamese_sgd(
        model, model["predictor"].parameters(), rate=0.12, predictor_rate=predictor_rate, weight_decay=1e-3,
        steps=steps, warmup=warmup, momenta=(0.9, 0.8),
    )  # fmt: skip
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
    assert sum(len(group["params"]) for group in optimizer.param_groups) == 4  # nothing frozen


def test_a_predictor_that_decays_is_one_group_with_all():
    _, _, seen = run(predictor_rate=0.0)
    assert all(len(groups) == 1 for groups in seen)
