import numpy as np
import pytest

from likewise.inference import load


@pytest.fixture
def saved(tiny_model, tmp_path):
    tiny_model.save(str(tmp_path / "run" / "model"))
    return tmp_path / "run" / "model"


def test_a_folder(saved, tiny_model):
    found = load(saved, device="cpu")
    np.testing.assert_allclose(found.encode("the cat"), tiny_model.encode("the cat"), atol=1e-6)


def test_bundled_names_are_resolved(saved, monkeypatch):
    from likewise.encoder import location

    monkeypatch.setattr(location, "resolve_model", lambda name: str(saved) if name == "bundled:tiny" else "")
    assert load("bundled:tiny").get_embedding_dimension() == 32
