"""What cannot be opened is told in one sentence, and nothing of a model's folder runs."""

import json
import os
import pickle
import shutil
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file
from sentence_transformers import SentenceTransformer

from likewise.encoder import location
from likewise.encoder.build import build_encoder, open_base
from likewise.encoder.location import LoadError, check_loadable
from likewise.encoder.saved_models import open_model
from likewise.inference import load


@pytest.fixture
def saved(tiny_model, tmp_path):
    tiny_model.save(str(tmp_path / "run" / "model"))
    return tmp_path / "run" / "model"


@pytest.fixture
def refused(says):
    """Both ways to open a model refuse it with a message of one line."""

    def opened(name):
        for open_one in (load, open_base):
            with says(LoadError) as caught:
                open_one(str(name))
            assert "\n" not in str(caught.value)

    return opened


def test_a_run_folder_names_its_models(saved, tmp_path, refused):
    refused(saved.parent)
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty")


@pytest.mark.parametrize("name", ["./none", "/none/at/all", "a/b/c", "~/none", "", "corpus.txt", "corpus.jsonl.gz"])
def test_paths_are_told_from_hub_names(name, monkeypatch, refused):
    monkeypatch.setattr(location, "_only_here", None)  # is not asked
    refused(name)


def test_a_file(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(location, "_only_here", None)
    (tmp_path / "corpus.txt").write_text("A sentence.\n")
    refused(tmp_path / "corpus.txt")


def test_a_hub_name_without_a_hub(refused):
    refused("nobody/no-such-model")


def test_a_hub_is_asked_once(monkeypatch, says):
    import huggingface_hub
    from huggingface_hub.errors import RepositoryNotFoundError

    asked = []

    def answer(self, name, timeout):
        asked.append(timeout)
        raise errors.pop()

    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(huggingface_hub.HfApi, "model_info", answer)
    errors = [OSError("no route"), RepositoryNotFoundError.__new__(RepositoryNotFoundError)]
    with says(LoadError):
        check_loadable("nobody/mistyped")
    with says(LoadError):
        check_loadable("nobody/mistyped")
    assert asked == [3.0, 3.0]


def test_broken_listings(saved, says):
    (saved / "modules.json").write_text("{")
    with says(LoadError):
        load(saved)
    (saved / "modules.json").write_text("[]")
    with says(LoadError):
        load(saved)


@pytest.mark.parametrize(
    ("file", "setting", "value"),
    [
        ("sentence_bert_config.json", "max_seq_length", -1),
        ("sentence_bert_config.json", "max_seq_length", 64.0),
        ("config_sentence_transformers.json", "truncate_dim", 0),
    ],
)
def test_numbers_that_no_model_can_have(saved, file, setting, value, refused):
    path = saved / file
    path.write_text(json.dumps(json.loads(path.read_text()) | {setting: value}))
    refused(saved)


def test_weights_that_are_cut_short(saved, refused):
    weights = saved / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1000])
    refused(saved)
    weights.write_bytes(b"nothing")
    refused(saved)
    weights.unlink()
    refused(saved)


def test_weights_of_another_shape(saved, refused):
    weights = saved / "model.safetensors"
    tensors = load_file(weights)
    name = next(name for name in tensors if name.endswith("word_embeddings.weight"))
    save_file({**tensors, name: tensors[name][:, :16].contiguous()}, weights, metadata={"format": "pt"})
    refused(saved)


def test_a_folder_without_a_tokenizer(saved, refused):
    for path in saved.iterdir():
        if "token" in path.name or "vocab" in path.name:
            path.unlink()
    refused(saved)


class Hostile:
    """Writes a file when it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "w")


@pytest.mark.parametrize("wrap", [lambda one: one, lambda one: {"embeddings.weight": one}])
def test_pickled_weights_do_not_run(wrap, saved, tmp_path, refused):
    (saved / "model.safetensors").unlink()
    for write in (
        lambda file: pickle.dump(wrap(Hostile(tmp_path / "ran")), file),
        lambda file: torch.save(wrap(Hostile(tmp_path / "ran")), file),
    ):
        with (saved / "pytorch_model.bin").open("wb") as file:
            write(file)
        refused(saved)
        assert not (tmp_path / "ran").exists()


def test_pickled_tensors_are_read(tiny_base, tmp_path):
    shutil.copytree(tiny_base, tmp_path / "model")
    weights = tmp_path / "model" / "model.safetensors"
    torch.save(load_file(weights), weights.with_name("pytorch_model.bin"))
    weights.unlink()
    texts = ["the cat sees a dog"]
    found = build_encoder(str(tmp_path / "model"), head=False).encode(texts)
    np.testing.assert_array_equal(found, build_encoder(str(tiny_base), head=False).encode(texts))


def test_code_of_the_folder_does_not_run(saved, tmp_path, says):
    ran = tmp_path / "ran"
    (saved / "custom.py").write_text(f"open({str(ran)!r}, 'w')\n")
    listing = saved / "modules.json"
    modules = json.loads(listing.read_text())
    for kind in (
        "custom.Evil",
        "likewise.inference.load_model.load",
        "likewise.encoder.modules.NoSuchModule",
        "os.system",
    ):
        modules[1]["type"] = kind
        listing.write_text(json.dumps(modules))
        with says(LoadError):
            load(saved)
    assert not ran.exists()


def test_auto_map_does_not_run(saved, tmp_path, refused):
    ran = tmp_path / "ran"
    (saved / "custom.py").write_text(f"open({str(ran)!r}, 'w')\n")
    config = json.loads((saved / "config.json").read_text())
    config |= {"model_type": "custom", "auto_map": {"AutoConfig": "custom.Evil", "AutoModel": "custom.Evil"}}
    (saved / "config.json").write_text(json.dumps(config))
    refused(saved)
    assert not ran.exists()


@pytest.mark.parametrize(
    "kind",
    [
        "likewise.cli.main",
        "likewise.encoder.saved_models.Path",
        "sentence_transformers.base.modules.dense.json",
        "sentence_transformers.base.modules.dense.torch",
        "sentence_transformers.util.misc.import_from_string",
        "sentence_transformers.none.Pooling",
        "os.system",
    ],
)
def test_a_listing_names_classes_of_modules_alone(kind, saved, says):
    listing = json.loads((saved / "modules.json").read_text())
    listing.append({"idx": len(listing), "name": "x", "path": "", "type": kind})
    (saved / "modules.json").write_text(json.dumps(listing))
    with says(LoadError):
        load(str(saved))


@pytest.mark.parametrize(("lost", "shown"), [("none", False), ("encoder.layer.1.output.dense.weight", True)])
def test_a_model_that_lacks_weights_is_refused(lost, shown, tiny_base, tmp_path, caplog, monkeypatch, says):
    import logging

    monkeypatch.setattr(logging.getLogger("transformers"), "propagate", True)
    shutil.copytree(tiny_base, tmp_path / "base")  # has no pooler
    weights = load_file(tmp_path / "base" / "model.safetensors")
    weights.pop(lost, None)
    save_file(weights, tmp_path / "base" / "model.safetensors", metadata={"format": "pt"})
    for opened in (open_base, load):
        with says(LoadError) if shown else nullcontext():
            opened(str(tmp_path / "base"))
    assert "LOAD REPORT" not in caplog.text


def test_weights_outside_of_the_folder_are_refused(tiny_base, tmp_path, says):
    for name in ("good", "bad"):
        shutil.copytree(tiny_base, tmp_path / name)
    names = dict.fromkeys(load_file(tmp_path / "bad" / "model.safetensors"), "../good/model.safetensors")
    (tmp_path / "bad" / "model.safetensors").unlink()
    (tmp_path / "bad" / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": names}))
    with says(LoadError):
        load(str(tmp_path / "bad"))


def test_own_classes_load_without_the_flag_whatever_file_they_were_in(tmp_path):
    from likewise.encoder.text_cnn import TextCNN
    from likewise.encoder.word_vectors import WordVectors, word_tokenizer

    words = WordVectors(word_tokenizer(["cat", "dog"], lower=True), torch.ones(4, 3))
    model = SentenceTransformer(modules=[words, TextCNN(3, (1,), 2)], device="cpu")
    model.save(str(tmp_path), create_model_card=False)
    listing = tmp_path / "modules.json"
    listing.write_text(listing.read_text().replace("encoder.text_cnn.TextCNN", "encoder.older.TextCNN"))
    again = open_model(SentenceTransformer, check_loadable(str(tmp_path)), "cpu")
    assert isinstance(again[1], TextCNN)
    np.testing.assert_array_equal(again.encode(["cat"]), model.encode(["cat"]))


def test_a_name_that_leads_nowhere_is_said_before_torch_is_imported():
    code = (
        "import sys\n"
        "from likewise.inference.handle import ModelHandle\n"
        "from likewise.encoder.location import LoadError\n"
        "try:\n    ModelHandle('nobody/no-such-model').facts\n"
        "except LoadError as error:\n    print(error)\n"
        "print(sorted({'torch', 'sentence_transformers', 'transformers'} & {*sys.modules}))\n"
    )
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, timeout=120)
    told, imported = done.stdout.splitlines()
    assert "is disabled (HF_HUB_OFFLINE)" in told
    assert imported == "[]"
