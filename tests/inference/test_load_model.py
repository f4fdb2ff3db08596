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


def test_a_base_that_is_loaded_is_its_folder_unless_it_was_changed(saved, tmp_path, monkeypatch, says):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    assert base_name("bundled:minilm") == "bundled:minilm"
    assert base_name(load(saved)) == str(saved.resolve())
    model = SentenceTransformer(str(saved))
    assert base_name(model) == str(saved)
    model.prompts["query"] = "find: "
    with torch.no_grad():
        next(model.parameters())[:] += 0.1
    kept = base_name(model)
    assert kept.startswith(str(tmp_path / "cache" / "bases"))
    assert base_name(model) == kept
    np.testing.assert_allclose(load(kept, precision="fp32").encode("a cat"), model.encode("a cat"), atol=1e-6)
    assert load(kept).prompts["query"] == "find: "
    with says(LoadError):
        base_name(3)
