import math

import numpy as np
import pytest
import torch

from likewise.evaluation import vector_measures
from likewise.evaluation.vector_measures import alignment, separation_of_each, uniformity


def by_hand(x, y):
    """Both by plain loops over numbers."""

    def unit(row):
        length = math.sqrt(sum(v * v for v in row))
        return [v / length for v in row]

    def squared(a, b):
        return sum((p - q) ** 2 for p, q in zip(a, b, strict=True))

    xs, ys = [unit(r) for r in x.tolist()], [unit(r) for r in y.tolist()]
    align = sum(squared(a, b) for a, b in zip(xs, ys, strict=True)) / len(xs)
    terms = [math.exp(-2 * squared(a, b)) for i, a in enumerate(xs) for j, b in enumerate(xs) if i != j]
    return align, math.log(sum(terms) / len(terms))


@pytest.mark.parametrize("block", [2, 3, 7, 2048])
def test_against_plain_loops_whatever_the_blocks(block, monkeypatch):
    monkeypatch.setattr(vector_measures, "_ROWS_AT_A_TIME", block)
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(14, 5)), rng.normal(size=(14, 5))
    align, uniform = by_hand(x, y)
    assert alignment(x, y) == pytest.approx(align, abs=1e-12)
    assert uniformity(x) == pytest.approx(uniform, abs=1e-12)


def test_known_values():
    # Orthogonal rows lie sqrt(2) apart: log e^(-2 * 2).
    assert uniformity(np.eye(6) * 3) == pytest.approx(-4.0)
    assert uniformity(np.array([[1.0, 0.0], [-5.0, 0.0]])) == pytest.approx(-8.0)
    assert uniformity(np.ones((5, 3))) == pytest.approx(0.0)
    assert alignment(np.eye(3), 2 * np.eye(3)) == 0.0
    assert alignment(np.eye(3), -np.eye(3)) == pytest.approx(4.0)


def test_tensors_of_any_float_type():
    x = torch.randn(6, 4, generator=torch.Generator().manual_seed(0)).requires_grad_()
    assert uniformity(x) == pytest.approx(uniformity(x.detach().numpy()))
    half = x.to(torch.bfloat16)
    assert uniformity(half) == pytest.approx(uniformity(half.detach().float().numpy()))
    assert type(alignment(x, x)) is float


def test_wrong_shapes(says):
    with says(ValueError):
        uniformity(np.ones((1, 3)))
    with says(ValueError):
        alignment(np.ones((2, 3)), np.ones((3, 3)))
    with says(ValueError):
        uniformity(np.ones(3))
    with says(ValueError):
        alignment(np.ones((0, 3)), np.ones((0, 3)))


def test_separation_by_a_loop():
    rng = np.random.default_rng(0)
    queries, targets = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    own, others = [], []
    for i in range(6):
        for j in range(6):
            cosine = queries[i] @ targets[j] / np.linalg.norm(queries[i]) / np.linalg.norm(targets[j])
            (own if i == j else others).append(cosine)
    assert separation_of_each(queries, targets).mean() == pytest.approx(
        (np.mean(own) - np.mean(others)) / np.std(others)
    )
    assert separation_of_each(np.ones((4, 3)), np.ones((4, 3))).max() == 0.0
