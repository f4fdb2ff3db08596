import pytest

import likewise
import likewise.inference.loading
from likewise.inference import similarity as cosines


def test_four_decimals(cli, tiny_model, tmp_path):
    tiny_model.save(str(tmp_path / "model"))
    result = cli("similarity", *[str(tmp_path / "model"), "the old cat", "a small dog"])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{cosines('the old cat', 'a small dog', model=tiny_model).item():.4f}\n"
    result = cli("similarity", *["/no/such/model", "a", "b"])
    assert result.exit_code == 2
    assert "There is no folder" in result.stderr


def test_after_the_first_call_an_export_does_without_torch(cli, tiny_model, sentences, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    folder, pair = tmp_path / "model", ("the old cat", "a small dog")
    with monkeypatch.context() as prompted:
        prompted.setattr(tiny_model, "prompts", {"query": "the garden: "})
        prompted.setattr(tiny_model, "default_prompt_name", "query")
        tiny_model.save(str(folder))
        wanted = f"{cosines(*pair, model=tiny_model).item():.4f}\n"
    likewise.load(folder, device="cpu", engine="onnx").encode(sentences[:64])
    assert cli("similarity", str(folder), *pair).stdout == wanted
    monkeypatch.setattr(likewise, "similarity", None)
    monkeypatch.setattr(likewise.inference.loading, "load", None)
    assert cli("similarity", str(folder), *pair).stdout == wanted
