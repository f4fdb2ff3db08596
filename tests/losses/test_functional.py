import math

import numpy as np
import pytest
import torch

from likewise.errors import LikewiseError
from likewise.losses import functional as F


def rows(n, d=6, seed=0):
    return torch.randn(n, d, generator=torch.Generator().manual_seed(seed), dtype=torch.float32)


def arccon_by_hand(anchors, positives, degrees, temperature):
    """Equation 3, written with angles and plain loops in float64."""
    h, p = np.asarray(anchors, dtype=float), np.asarray(positives, dtype=float)
    losses = []
    for i in range(len(h)):
        angles = [math.acos(h[i] @ p[j] / np.linalg.norm(h[i]) / np.linalg.norm(p[j])) for j in range(len(p))]
        own = math.exp(math.cos(angles[i] + math.radians(degrees)) / temperature)
        others = sum(math.exp(math.cos(angles[j]) / temperature) for j in range(len(p)) if j != i)
        losses.append(-math.log(own / (own + others)))
    return np.mean(losses)


@pytest.mark.parametrize("degrees", [0, 5, 10, 45])
@pytest.mark.parametrize("temperature", [0.05, 0.5])
def test_arccon_is_equation_3(degrees, temperature):
    anchors = rows(7)
    positives = anchors + 0.3 * rows(7, seed=1)  # angles well below 180 - 45
    got = F.arccon(anchors, positives, degrees, temperature)
    assert got.item() == pytest.approx(arccon_by_hand(anchors, positives, degrees, temperature), rel=1e-4)


def test_without_margin_it_is_nt_xent():
    anchors, positives = rows(9), rows(9, seed=1)
    cosines = torch.nn.functional.cosine_similarity(anchors[:, None], positives[None], dim=-1)
    oracle = torch.nn.functional.cross_entropy(cosines / 0.07, torch.arange(9))
    assert torch.allclose(F.arccon(anchors, positives, 0.0, 0.07), oracle, atol=1e-6)
    assert torch.equal(F.nt_xent(anchors, positives, 0.07), F.arccon(anchors, positives, 0.0, 0.07))


def test_the_margin_makes_the_task_harder():
    anchors = rows(8)
    positives = anchors + 0.2 * rows(8, seed=1)
    losses = [F.arccon(anchors, positives, m, 0.05).item() for m in (0, 5, 10, 20)]
    assert losses == sorted(losses)
    assert losses[0] < losses[-1]


def test_known_value_for_two_orthogonal_pairs():
    # cos(0 + m) = cos m for each own pair, 0 for the other: -log(e^(cos m / tau) / (e^(cos m / tau) + 1)).
    eye = torch.eye(2)
    expected = math.log1p(math.exp(-math.cos(math.radians(10)) / 0.5))
    # The sine at angle 0 is held at 0.001, hence the tolerance.
    assert F.arccon(eye, eye, 10, 0.5).item() == pytest.approx(expected, abs=2e-4)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_gradients_are_finite_where_cosine_is_one_or_minus_one(sign):
    anchors = rows(5).requires_grad_()
    positives = (sign * anchors.detach().clone()).requires_grad_()
    F.arccon(anchors, positives, 10, 0.05).backward()
    assert torch.isfinite(anchors.grad).all()
    assert torch.isfinite(positives.grad).all()


def test_add_angle_falls_with_the_angle_from_0_to_180_and_has_no_jump():
    angles = torch.linspace(0, math.pi, 20_001, dtype=torch.float64)
    cosines = angles.cos().requires_grad_()
    for degrees in (1, 10, 60, 90):
        shifted = F.add_angle(cosines, degrees)
        steps = shifted.detach().diff()
        assert (steps <= 1e-9).all()
        # No step is larger than the slope allows: sin(theta + m) is at most 1, times the spacing of the angles.
        assert steps.abs().max() < 2.5 * math.pi / 20_000
        (slope,) = torch.autograd.grad(shifted.sum(), cosines)
        assert torch.isfinite(slope).all()
        assert (slope >= -1e-9).all()


def test_add_angle_is_the_cosine_of_the_sum_below_180_degrees():
    angles = torch.linspace(0.01, math.radians(169), 500, dtype=torch.float64)
    assert torch.allclose(F.add_angle(angles.cos(), 10), (angles + math.radians(10)).cos(), atol=1e-9)


def test_offset_names_the_own_rows_among_gathered_positives():
    anchors, positives = rows(3), rows(9, seed=1)
    rolled = torch.cat([positives[3:6], positives[:3], positives[6:]])
    assert torch.allclose(F.arccon(anchors, positives, 10, 0.05, offset=3), F.arccon(anchors, rolled, 10, 0.05))


def test_scale_of_the_embeddings_does_not_matter():
    anchors, positives = rows(5), rows(5, seed=1)
    assert torch.allclose(F.arccon(anchors, positives), F.arccon(3 * anchors, 0.1 * positives), atol=1e-5)


def test_bfloat16_embeddings_are_compared_in_float32():
    anchors = rows(5).bfloat16()
    assert F.arccon(anchors, anchors).dtype == torch.float32


def triplet_by_hand(anchors, closer, farther, margin):
    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    a, c, f = (np.asarray(x, dtype=float) for x in (anchors, closer, farther))
    return np.mean([max(0, cosine(a[i], f[i]) - cosine(a[i], c[i]) + margin) for i in range(len(a))])


@pytest.mark.parametrize("margin", [0.0, 0.1])
def test_triplet_is_equation_4(margin):
    parts = rows(6), rows(6, seed=1), rows(6, seed=2)
    assert F.entailment_triplet(*parts, margin).item() == pytest.approx(triplet_by_hand(*parts, margin), abs=1e-6)


def test_triplet_in_order_costs_nothing_and_no_triplet_is_zero():
    anchors = rows(4)
    assert F.entailment_triplet(anchors, anchors, -anchors).item() == 0
    assert F.entailment_triplet(anchors, -anchors, anchors).item() == pytest.approx(2)
    empty = torch.zeros(0, 6, requires_grad=True)
    loss = F.entailment_triplet(empty, empty, empty)
    loss.backward()
    assert loss.item() == 0


def test_bidirectional_margin_by_hand(says):
    """Cosines of 1, 0.5 and 0 with the positive at 1: differences 0, -0.5 and -1."""
    anchor = torch.tensor([[1.0, 0.0]] * 3)
    negations = torch.tensor([[2.0, 0.0], [1.0, 3**0.5], [0.0, 1.0]])
    each = [F.bidirectional_margin(anchor[:1], anchor[:1], n[None], 0.1, 0.3).item() for n in negations]
    assert each == pytest.approx([0.1, 0.2, 0.7], abs=1e-6)
    assert F.bidirectional_margin(anchor, anchor, negations, 0.1, 0.3).item() == pytest.approx(1 / 3, abs=1e-6)
    assert F.outside_margins(anchor, anchor, negations, 0.1, 0.3) == pytest.approx(
        sum(loss > 1e-6 for loss in each) / 3
    )
    # Inside the interval it costs nothing and pulls nowhere.
    inside = torch.tensor([[0.8, 0.6]], requires_grad=True)
    assert F.outside_margins(anchor[:1], anchor[:1], inside, 0.1, 0.3) == 0
    loss = F.bidirectional_margin(anchor[:1], anchor[:1], inside, 0.1, 0.3)
    loss.backward()
    assert loss.item() == 0
    assert inside.grad.abs().sum() == 0
    assert F.bidirectional_margin(anchor, anchor, negations, 0.1, 2.0).item() == pytest.approx(0.1 / 3, abs=1e-6)
    with says(ValueError):
        F.bidirectional_margin(anchor, anchor, negations, 0.4, 0.3)


def test_no_negation_at_all_is_zero():
    empty = torch.zeros(0, 6, requires_grad=True)
    F.bidirectional_margin(empty, empty, empty).backward()


def test_hard_negative_is_equation_9():
    h, p, n = rows(4), rows(4, seed=1), rows(2, seed=2)
    which = torch.tensor([1, 3])
    a, b, c = (np.asarray(x, dtype=float) for x in (h, p, n))

    def e(x, y):
        return math.exp(x @ y / np.linalg.norm(x) / np.linalg.norm(y) / 0.3)

    losses = []
    for i in range(4):
        own = e(a[i], c[which.tolist().index(i)]) if i in which else 0.0
        losses.append(-math.log(e(a[i], b[i]) / (own + sum(e(a[i], b[j]) for j in range(4)))))
    got = F.nt_xent_with_hard_negative(h, p, n, which, 0.3)
    assert got.item() == pytest.approx(np.mean(losses), rel=1e-5)
    none = F.nt_xent_with_hard_negative(h, p, n[:0], which[:0], 0.3)
    assert torch.allclose(none, F.nt_xent(h, p, 0.3))


@pytest.mark.parametrize(
    "call",
    [
        lambda: F.arccon(rows(3), rows(3, d=5)),
        lambda: F.arccon(rows(3), rows(2)),
        lambda: F.arccon(rows(3), rows(3), margin_degrees=91),
        lambda: F.arccon(rows(3), rows(3), temperature=0),
        lambda: F.entailment_triplet(rows(3), rows(3), rows(2)),
    ],
)
def test_refuses_what_cannot_be(call):
    with pytest.raises(ValueError):
        call()


def cosine(a, b):
    return float(sum(a * b)) / math.sqrt(float(sum(a * a)) * float(sum(b * b)))


def test_agreeing_opposites_against_a_loop_over_the_questions():
    four = torch.randn(4, 3, 6, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    losses = []
    for row in range(3):
        for asked, right in ((0, 3), (1, 2), (2, 1), (3, 0)):
            scores = {
                other: math.exp(cosine(four[asked, row], four[other, row]) / 0.2)
                for other in range(4)
                if other != asked
            }
            losses.append(-np.log(scores[right] / sum(scores.values())))
    found = F.agreeing_opposites(*four, temperature=0.2)
    assert float(found) == pytest.approx(np.mean(losses), rel=1e-5)


def test_agreeing_opposites_is_log_3_where_all_are_alike_and_0_without_any(says):
    same = torch.ones(2, 5)
    assert float(F.agreeing_opposites(same, same, same, same)) == pytest.approx(np.log(3))
    none = torch.zeros(0, 5, requires_grad=True)
    F.agreeing_opposites(none, none, none, none).backward()
    with says(ValueError):
        F.agreeing_opposites(same, same, same, torch.ones(3, 5))


def test_the_queue_s_vectors_are_further_negatives(says):
    anchors, positives, queue = rows(5), rows(5, seed=1), rows(4, seed=2)
    h, p, q = (np.asarray(x, dtype=float) for x in (anchors, positives, queue))

    def similar(a, b):
        return math.exp(a @ b / np.linalg.norm(a) / np.linalg.norm(b) / 0.2)

    losses = [
        -math.log(similar(h[i], p[i]) / (sum(similar(h[i], x) for x in p) + sum(similar(h[i], x) for x in q)))
        for i in range(5)
    ]
    found = F.nt_xent(anchors, torch.cat([positives, queue]), 0.2)
    assert found.item() == pytest.approx(np.mean(losses), rel=1e-5)
    with says(ValueError):
        F.nt_xent(anchors, positives, 0.0)


def test_the_divergence_of_profiles_by_hand(says):
    sentences, contexts, logits = rows(3), rows(4, seed=1), 2 * rows(3, d=4, seed=2)
    s, c = (np.asarray(some, dtype=float) for some in (sentences, contexts))
    expected = 0.0
    for i in range(3):
        cosines = [s[i] @ c[j] / np.linalg.norm(s[i]) / np.linalg.norm(c[j]) for j in range(4)]
        student = np.exp(np.array(cosines) / 0.2)
        teacher = np.exp(logits[i].numpy().astype(float))
        student, teacher = student / student.sum(), teacher / teacher.sum()
        expected += sum(t * math.log(t / q) for t, q in zip(teacher, student, strict=True)) / 3
    assert F.profile_divergence(sentences, contexts, logits, 0.2).item() == pytest.approx(expected, rel=1e-4)
    own = F.cosine_matrix(sentences, contexts) / 0.2
    assert F.profile_divergence(sentences, contexts, own, 0.2).item() == pytest.approx(0, abs=1e-6)
    with says(LikewiseError):
        F.profile_divergence(sentences, contexts, logits, 0.0)
