import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

from compared.baselines import BaselineError, baseline
from compared.whitening import fit_whitening


@pytest.fixture
def vectors():
    rng = np.random.default_rng(0)
    return (rng.normal(size=(300, 6)) @ rng.normal(size=(6, 6)) + rng.normal(size=6)).astype(np.float32)


def test_the_fitting_sample_has_mean_zero_and_covariance_one(vectors):
    mean, matrix = fit_whitening(vectors)
    white = (vectors.astype(np.float64) - mean) @ matrix
    assert np.allclose(white.mean(axis=0), 0, atol=1e-8)
    assert np.allclose(np.cov(white.T), np.eye(6), atol=1e-8)


def test_it_is_the_paper_s_matrix_up_to_the_signs_of_its_columns(vectors):
    u, s, _ = np.linalg.svd(np.cov(vectors.astype(np.float64).T))
    paper = u / np.sqrt(s)
    _, found = fit_whitening(vectors, 4)
    assert found.shape == (6, 4)
    assert np.allclose(np.abs(found), np.abs(paper[:, :4]), atol=1e-8)


def test_directions_that_do_not_vary_are_left_out(vectors):
    flat = np.concatenate([vectors, vectors[:, :2] * 2], axis=1)
    assert fit_whitening(flat)[1].shape == (8, 6)
    with pytest.raises(BaselineError, match="at most 6"):
        fit_whitening(flat, 7)
    with pytest.raises(BaselineError, match="more than 6 sentences"):
        fit_whitening(vectors[:6])


@pytest.mark.parametrize(("pooling", "dimensions"), [("last", 0), ("first-last", 5), ("own", 0)])
def test_a_model_with_it_loads_with_no_flag_and_whitens_its_corpus(
    tiny_base, corpus_file, sentences, tmp_path, pooling, dimensions
):
    base = str(tiny_base)
    if pooling == "own":
        base = str(baseline("cls", base=base, out=tmp_path / "base", quiet=True).path)
    settings = {"pooling": pooling, "dimensions": dimensions, "sentences": 0, "quiet": True}
    made = baseline("whitening", corpus_file, base=base, out=tmp_path / "out", **settings)
    model = SentenceTransformer(str(made.path))
    found = model.encode(sentences).astype(np.float64)
    size = found.shape[1]
    assert size == (dimensions or size) > 4
    assert model.get_embedding_dimension() == size
    # A BERT's layer norm takes away one direction or two; of the others each has variance 1.
    assert np.allclose(found.mean(axis=0), 0, atol=1e-2)
    assert np.allclose(np.cov(found.T), np.eye(size), atol=2e-2)


def test_a_sample_is_the_same_for_the_same_seed(tiny_base, corpus_file, tmp_path):
    matrices = []
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        made = baseline(
            "whitening", corpus_file, base=str(tiny_base), out=tmp_path / name, sentences=60, seed=seed, quiet=True
        )
        matrices.append(SentenceTransformer(str(made.path))[-1].linear.weight.detach().numpy())
    assert np.array_equal(matrices[0], matrices[1])
    assert not np.array_equal(matrices[0], matrices[2])
