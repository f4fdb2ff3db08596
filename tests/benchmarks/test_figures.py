"""SNCSE's figure 4 and table 4; the oracles are counting, scipy and the model without dropout."""

from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import rankdata, spearmanr

FIGURES = Path(__file__).parents[2] / "benchmarks/negation/figures.py"


def test_partners_are_others_and_each_is_taken_once(script):
    partners = script(FIGURES).partners
    for count in (2, 3, 10, 1001):
        other = partners(count, seed=7)
        assert (other != np.arange(count)).all()
        assert sorted(other.tolist()) == list(range(count))


def test_views_differ_by_dropout_alone_and_leave_no_trace(script, tiny_model):
    views_of = script(FIGURES).dropout_views
    texts = ["the cat sees a dog", "the farmer", "the old captain likes the small garden near the bridge"]
    before = torch.get_rng_state()
    first, second = views_of(tiny_model, texts, seed=1, batch_size=2)
    assert torch.equal(torch.get_rng_state(), before)
    assert not any(module.training for module in tiny_model.modules())
    assert not np.allclose(first, second)
    for module in tiny_model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = 1e-6
    still = tiny_model.encode(texts)
    for view in views_of(tiny_model, texts, seed=1, batch_size=2):
        distances = ((view[:, None] - still[None]) ** 2).sum(-1)  # (3, 3)
        assert distances.argmin(1).tolist() == [0, 1, 2]


def test_equation_10_agrees_with_scipy_where_there_are_no_ties(script):
    rng = np.random.default_rng(1)
    gold, cosines = rng.permutation(200) / 40, rng.normal(size=200)
    ours = script(FIGURES).equation_10(rankdata(cosines), rankdata(gold))
    assert ours == pytest.approx(spearmanr(cosines, gold).statistic, abs=1e-12)
