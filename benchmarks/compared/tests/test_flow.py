import json

import numpy as np
import pytest
import torch

import likewise
from compared.baselines import BaselineError, baseline
from compared.flow import FLOW, fit_flow
from likewise.runs.progress import Progress


def skewed(count, seed=0):
    """Two numbers that no linear map makes Gaussian: x, and x squared with noise."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=count)
    return np.stack([x, x**2 + 0.3 * rng.normal(size=count)], axis=1).astype(np.float32)


def test_it_beats_the_best_gaussian_on_what_is_not_gaussian():
    vectors, fresh = skewed(2000), torch.from_numpy(skewed(1000, seed=1))
    options = FLOW.options(steps=4, hidden=32, epochs=6, learning_rate=1e-2, coupling="affine")
    flow = fit_flow(vectors, options, 1, Progress(quiet=True))
    sample = torch.from_numpy(vectors)
    gaussian = torch.distributions.MultivariateNormal(sample.mean(dim=0), torch.cov(sample.T))
    with torch.no_grad():
        assert flow.log_prob(fresh).mean() > gaussian.log_prob(fresh).mean() + 0.3


def test_the_same_seed_gives_the_same_flow_and_leaves_the_global_chance_alone():
    options = FLOW.options(steps=2, hidden=8)
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    flows = [fit_flow(skewed(100), options, seed, Progress(quiet=True)) for seed in (1, 1, 2)]
    assert torch.equal(torch.rand(3), expected)
    x = torch.from_numpy(skewed(5))
    first, second, third = (flow.latent(x)[0] for flow in flows)
    assert torch.equal(first, second)
    assert not torch.equal(first, third)


def test_too_few_sentences_are_told():
    with pytest.raises(BaselineError, match="flow_batch_size"):
        fit_flow(skewed(20), FLOW.options(), 1, Progress(quiet=True))


def test_a_model_with_it_loads_by_likewise_and_is_nearer_to_gaussian(tiny_base, corpus_file, sentences, tmp_path):
    settings = {"steps": 3, "hidden": 16, "epochs": 5, "sentences": 0, "quiet": True}
    made = baseline("flow", corpus_file, base=str(tiny_base), out=tmp_path / "out", **settings)
    found = likewise.load(made.path, precision="fp32").encode(sentences)
    assert found.shape == (400, 32)
    plain = baseline("last-average", base=str(tiny_base), out=tmp_path / "plain", quiet=True)
    before = likewise.load(plain.path, precision="fp32").encode(sentences)

    def off_centre(vectors):
        return np.linalg.norm(vectors.mean(axis=0)) / np.linalg.norm(vectors, axis=1).mean()

    assert off_centre(found) < 0.2 < off_centre(before)
    assert "likewise.load" in (made.path / "README.md").read_text()
    assert json.loads((made.path / "likewise.json").read_text())["options"]["steps"] == 3
