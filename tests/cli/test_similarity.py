import pytest

import likewise
import likewise.inference.load_model
from likewise.inference import similarity as cosines


def test_four_decimals(cli, tiny_model, tmp_path):
    tiny_model.save(str(tmp_path / "model"))
    result = cli("similarity", *[str(tmp_path / "model"), "the old cat", "a small dog"])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{cosines('the old cat', 'a small dog', model=tiny_model):.4f}\n"
    result = cli("similarity", *["/no/such/model", "a", "b"])
    assert result.exit_code == 2
    assert "There is no folder" in result.stderr


def test_with_an_export_it_does_without_torch(cli, tiny_model, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    folder, pair = tmp_path / "model", ("the old cat", "a small dog")
    with monkeypatch.context() as prompted:
        prompted.setattr(tiny_model, "prompts", {"query": "the garden: "})
        prompted.setattr(tiny_model, "default_prompt_name", "query")
        tiny_model.save(str(folder))
        wanted = f"{cosines(*pair, model=tiny_model):.4f}\n"
    assert cli("similarity", str(folder), *pair).stdout == wanted
    assert not list((tmp_path / "cache").rglob("model.onnx"))  # nobody asked for one
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "avx2")
    assert cli("export", str(folder), "--quiet").exit_code == 0
    monkeypatch.setattr(likewise, "similarity", None)
    monkeypatch.setattr(likewise.inference.load_model, "load", None)
    assert cli("similarity", str(folder), *pair).stdout == wanted
