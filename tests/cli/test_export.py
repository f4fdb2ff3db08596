import pytest


def test_a_folder_with_the_graph(cli, tiny_model, tmp_path):
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'likewise[onnx]'")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'likewise[onnx]'")
    tiny_model.save(str(tmp_path / "model"))
    wanted = [str(tmp_path / "model"), "--format", "onnx", "--out", str(tmp_path / "graph")]
    result = cli("export", *wanted)
    assert result.exit_code == 0, result.output
    assert str(tmp_path / "graph" / "model.onnx") in result.stdout
    result = cli("export", *wanted)
    assert result.exit_code == 0, result.output  # it is there already
    result = cli("export", *[*wanted[:2], "openvino", *wanted[3:]])
    assert result.exit_code == 2
    assert "built with format 'onnx'" in result.stderr
