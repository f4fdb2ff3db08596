import math

import pytest
import torch

from likewise.losses.pairs import false_negatives, filtered_contrast, similarities_keep


@pytest.fixture
def batch():
    torch.manual_seed(3)
    return torch.randn(5, 8), torch.randn(5, 8)


def cosine(a, b):
    return float(a @ b / (a.norm() * b.norm()))


def test_the_contrast_by_hand(batch):
    first, second = batch
    left_out = torch.zeros(5, 5, dtype=torch.bool)
    left_out[0, 3] = left_out[4, 1] = True
    total = 0.0
    for i in range(5):
        row = [math.exp(cosine(first[i], second[j]) / 0.2) for j in range(5) if not left_out[i, j]]
        column = [math.exp(cosine(first[j], second[i]) / 0.2) for j in range(5) if not left_out[j, i]]
        own = math.exp(cosine(first[i], second[i]) / 0.2)
        total -= math.log(own / sum(row)) + math.log(own / sum(column))
    assert filtered_contrast(first, second, left_out, 0.2).item() == pytest.approx(total / 10, rel=1e-5)


def test_the_margin_turns_the_pairs_own_angle(batch):
    first, second = batch
    nothing = torch.zeros(5, 5, dtype=torch.bool)
    total = 0.0
    for one, other in ((first, second), (second, first)):
        for i in range(5):
            terms = [math.exp(cosine(one[i], other[j]) / 0.2) for j in range(5)]
            terms[i] = math.exp(math.cos(math.acos(cosine(one[i], other[i])) + math.radians(10)) / 0.2)
            total -= math.log(terms[i] / sum(terms))
    assert filtered_contrast(first, second, nothing, 0.2, 10.0).item() == pytest.approx(total / 10, rel=1e-4)


def test_what_may_be_a_false_negative():
    turned = [[math.cos(a), math.sin(a)] for a in (0.0, 0.1, 1.5, 3.0)]
    second = torch.tensor(turned)
    first = torch.tensor([[1.0, 0.0], [0.0, 1.0], [math.cos(1.4), math.sin(1.4)], [-1.0, 0.0]])
    found = false_negatives(first, second)
    assert not found.diagonal().any()
    assert found[0, 1]  # nearly as near as the pair itself
    assert found[1, 0]  # the texts 0 and 1 are nearly one
    assert not found[0, 3]
    assert found[1, 2]  # nearer than its own pair, a poor one that counts as 0.6


def test_the_keep_term_by_hand(batch):
    first, second = batch
    found, wanted = first @ second.T, second @ first.T
    p, q = (wanted / 0.5).softmax(1), (found / 0.5).softmax(1)
    pt, qt = (wanted.T / 0.5).softmax(1), (found.T / 0.5).softmax(1)
    by_hand = ((p * (p / q).log()).sum() + (pt * (pt / qt).log()).sum()) / 10
    assert similarities_keep(found, wanted, 0.5).item() == pytest.approx(by_hand.item(), rel=1e-4)
    assert similarities_keep(wanted, wanted).item() == pytest.approx(0, abs=1e-6)
