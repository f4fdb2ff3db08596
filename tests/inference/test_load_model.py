import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from likewise.encoder.location import LoadError
from likewise.inference import load
from likewise.inference.load_model import base_name


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


def test_a_base_that_is_loaded_is_its_folder_unless_it_was_changed(saved):
    assert base_name("bundled:minilm") == "bundled:minilm"
    assert base_name(load(saved)) == str(saved.resolve())
    model = SentenceTransformer(str(saved))
    assert base_name(model) == str(saved)
    with torch.no_grad():
        next(model.parameters())[:] += 0.1
    with pytest.raises(LoadError, match="was changed after it was loaded"):
        base_name(model)
    with pytest.raises(LoadError, match="a base is a folder, a name or a loaded sentence encoder, and int is none"):
        base_name(3)
