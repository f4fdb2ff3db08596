import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import likewise
from compared.normalizing_flow import NormalizingFlow


@pytest.fixture(params=["additive", "affine"])
def flow(request):
    torch.manual_seed(0)
    module = NormalizingFlow(7, steps=3, hidden=16, coupling=request.param).double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    module.standardise_by(3 * torch.randn(40, 7, dtype=torch.double) + 1)
    return module


def test_it_is_invertible_and_its_log_determinant_is_that_of_the_jacobian(flow):
    x = torch.randn(5, 7, dtype=torch.double)
    z, log_det = flow.latent(x)
    assert (z - x).abs().max() > 0.1
    assert torch.allclose(flow.flow().transform.inv(z) * flow.deviation + flow.mean, x, atol=1e-10)
    for row, found in zip(x, log_det, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda v: flow.latent(v[None])[0][0], row)
        assert torch.linalg.slogdet(jacobian)[1].item() == pytest.approx(found.item(), abs=1e-9)


def test_the_density_is_the_gaussian_s_after_a_change_of_variables(flow):
    x = torch.randn(5, 7, dtype=torch.double)
    z, log_det = flow.latent(x)
    normal = torch.distributions.MultivariateNormal(torch.zeros(7).double(), torch.eye(7).double())
    assert torch.allclose(flow.log_prob(x), normal.log_prob(z) + log_det)


def test_a_number_that_does_not_vary_keeps_its_scale(flow):
    flow.standardise_by(torch.ones(10, 7))
    assert flow.deviation.tolist() == [1.0] * 7


def test_a_saved_model_with_it_loads_by_likewise_and_gives_the_same(flow, tiny_base, tmp_path):
    from likewise.encoder.build import build_encoder

    encoder = build_encoder(str(tiny_base), head=False)
    model = SentenceTransformer(modules=[*encoder.children(), NormalizingFlow(32, steps=2, hidden=8)]).eval()
    model.save_pretrained(str(tmp_path / "model"))
    loaded = likewise.load(tmp_path / "model", engine="torch")
    texts = ["the cat sees a dog", "a river"]
    assert np.array_equal(loaded.encode(texts), model.encode(texts))
    assert loaded.get_embedding_dimension() == 32
