import random

import numpy as np
import pytest
import torch

from likewise.evaluation.held_out import HeldOutEvaluator, damaged, reciprocal_rank, separation


def test_reciprocal_rank_by_hand():
    queries = np.array([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1]])
    targets = np.array([[2.0, 0.0], [5.0, 0.1], [0.0, 3.0]])
    # Own cosines: 1.0 (rank 1), 0.02 (rank 2: only the third is nearer), 0.0995 (rank 3).
    assert reciprocal_rank(queries, targets) == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert reciprocal_rank(np.eye(4), np.eye(4)) == 1.0
    assert reciprocal_rank(np.ones((4, 2)), np.ones((4, 2))) == 0.25


def test_separation_by_a_loop():
    rng = np.random.default_rng(0)
    queries, targets = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    own, others = [], []
    for i in range(6):
        for j in range(6):
            cosine = queries[i] @ targets[j] / np.linalg.norm(queries[i]) / np.linalg.norm(targets[j])
            (own if i == j else others).append(cosine)
    assert separation(queries, targets) == pytest.approx((np.mean(own) - np.mean(others)) / np.std(others))
    assert separation(np.ones((4, 3)), np.ones((4, 3))) == 0.0


def test_damage_is_seeded_and_takes_words_out():
    text = "one two three four five six seven eight nine ten"
    left = damaged(text, 0.4, random.Random(1)).split()
    assert len(left) == 6
    assert [word for word in text.split() if word in left] == left
    assert damaged("a b c d e", 0.01, random.Random(1)).count(" ") == 3


def test_metrics_and_seed(tiny_model, sentences):
    evaluator = HeldOutEvaluator([*sentences, "too short", sentences[0]], limit=50, seed=4)
    found = evaluator(tiny_model)
    assert set(found) == {f"held_out_{m}" for m in ("separation", "retrieval", "alignment", "uniformity")}
    assert evaluator.primary_metric == "held_out_separation"
    assert len(set(evaluator.sentences)) == 50
    assert "50 held-out sentences" in evaluator.description
    originals, copies = tiny_model.encode(evaluator.sentences), tiny_model.encode(evaluator.copies)
    assert found["held_out_separation"] == pytest.approx(separation(copies, originals), abs=1e-3)
    same = HeldOutEvaluator([*sentences, "too short"], limit=50, seed=4)
    assert same.copies == evaluator.copies
    assert HeldOutEvaluator(sentences, limit=50, seed=5).sentences != evaluator.sentences


def test_a_collapsed_model_scores_lowest(tiny_model, sentences):
    evaluator = HeldOutEvaluator(sentences[:50])
    good = evaluator(tiny_model)
    with torch.no_grad():
        for parameter in tiny_model.parameters():
            parameter.zero_()
        tiny_model[0].auto_model.encoder.layer[-1].output.LayerNorm.bias.fill_(1.0)  # one vector for every text
    bad = evaluator(tiny_model)
    assert bad["held_out_separation"] == 0.0 < good["held_out_separation"]
    assert bad["held_out_retrieval"] == pytest.approx(2.0)
    assert bad["held_out_uniformity"] == pytest.approx(0.0, abs=1e-5)


def test_bad_values():
    with pytest.raises(ValueError, match="Hold out more"):
        HeldOutEvaluator(["one two three four five", "a b"])
    with pytest.raises(ValueError, match="rate is 1"):
        HeldOutEvaluator(["one two three four five"] * 3, rate=1)
