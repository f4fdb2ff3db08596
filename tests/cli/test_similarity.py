import pytest

import likewise
import likewise.inference.load_model
from likewise.inference import similarity as cosines
from likewise.inference.engines import onnx_engine
from likewise.inference.engines.engine import CannotExport


def test_four_decimals(cli, tiny_model, tmp_path):
    tiny_model.save(str(tmp_path / "model"))
    result = cli("similarity", *[str(tmp_path / "model"), "the old cat", "a small dog"])
    assert result.exit_code == 0, result.output
    assert result.stdout == f"{cosines('the old cat', 'a small dog', model=tiny_model):.4f}\n"
    result = cli("similarity", *["/no/such/model", "a", "b"])
    assert result.exit_code == 2
    assert "There is no folder" in result.stderr


def test_after_the_first_call_an_export_does_without_torch(cli, tiny_model, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime", reason="needs the extra 'onnx'")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    folder, pair = tmp_path / "model", ("the old cat", "a small dog")
    with monkeypatch.context() as prompted:
        prompted.setattr(tiny_model, "prompts", {"query": "the garden: "})
        prompted.setattr(tiny_model, "default_prompt_name", "query")
        tiny_model.save(str(folder))
        wanted = f"{cosines(*pair, model=tiny_model):.4f}\n"
    assert cli("similarity", str(folder), *pair).stdout == wanted
    monkeypatch.setattr(likewise, "similarity", None)
    monkeypatch.setattr(likewise.inference.load_model, "load", None)
    assert cli("similarity", str(folder), *pair).stdout == wanted


def test_what_cannot_be_exported_is_no_error(cli, tiny_model, tmp_path, monkeypatch):
    def refused(*_):
        raise CannotExport("no")

    tiny_model.save(str(tmp_path / "model"))
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(onnx_engine, "export", refused)
    for _ in range(2):
        result = cli("similarity", str(tmp_path / "model"), "a cat", "a dog")
        assert (result.exit_code, result.stderr) == (0, "")
