import json

import numpy as np
import pytest

from likewise.inference import LoadError, load, loading


@pytest.fixture
def saved(tiny_model, tmp_path):
    tiny_model.save(str(tmp_path / "run" / "model"))
    return tmp_path / "run" / "model"


def test_a_folder(saved, tiny_model):
    found = load(saved, device="cpu")
    np.testing.assert_allclose(found.encode("the cat"), tiny_model.encode("the cat"), atol=1e-6)


def test_bundled_names_are_resolved(saved, monkeypatch):
    from likewise.corpus import bundled

    monkeypatch.setattr(bundled, "resolve_model", lambda name: str(saved) if name == "bundled:tiny" else "")
    assert load("bundled:tiny").get_embedding_dimension() == 32


def test_a_run_folder_names_its_models(saved, tmp_path):
    with pytest.raises(LoadError, match=r"it holds some\. Give one of: '.*run/model'"):
        load(saved.parent)
    (tmp_path / "empty").mkdir()
    with pytest.raises(LoadError, match=r"neither modules\.json nor config\.json"):
        load(tmp_path / "empty")


@pytest.mark.parametrize("name", ["./none", "/none/at/all", "a/b/c", "~/none", ""])
def test_paths_are_told_from_hub_names(name):
    with pytest.raises(LoadError, match="There is no folder"):
        load(name)


def test_a_file(tmp_path):
    (tmp_path / "model.bin").write_text("")
    with pytest.raises(LoadError, match="is a file"):
        load(tmp_path / "model.bin")


def test_a_hub_name_without_a_hub(monkeypatch):
    monkeypatch.setattr(loading, "_hub_answers", lambda: False)
    with pytest.raises(LoadError, match=r"cannot be reached.*bundled:minilm"):
        load("nobody/no-such-model")


def test_broken_files(saved):
    (saved / "modules.json").write_text("{")
    with pytest.raises(LoadError, match=r"modules\.json' cannot be read"):
        load(saved)
    (saved / "modules.json").write_text("[]")
    with pytest.raises(LoadError, match="cannot be loaded"):
        load(saved)


def test_code_of_the_folder_is_refused_and_ours_is_not(saved):
    listing = saved / "modules.json"
    modules = json.loads(listing.read_text())
    modules[0]["type"] = "likewise.inference.loading.NoSuchModule"
    listing.write_text(json.dumps(modules))
    with pytest.raises(LoadError, match="another release of likewise"):
        load(saved)
    modules[0]["type"] = "custom.Evil"
    (saved / "custom.py").write_text("raise SystemExit('ran')")
    listing.write_text(json.dumps(modules))
    with pytest.raises(LoadError, match=r"custom\.Evil"):
        load(saved)


def test_own_module_classes_load_without_the_flag(saved, monkeypatch):
    """A class that counts as installed code is taken as it is, and nothing in the folder runs."""
    from sentence_transformers.sentence_transformer.modules import Pooling

    listing = saved / "modules.json"
    modules = json.loads(listing.read_text())
    modules[1]["type"] = "likewise.encoder.Stand.In"
    listing.write_text(json.dumps(modules))
    monkeypatch.setattr(loading, "import_from_string", lambda name: Pooling)
    assert isinstance(load(saved)[1], Pooling)
