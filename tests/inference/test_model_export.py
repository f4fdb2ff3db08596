import json

import numpy as np
import pytest
from tokenizers import Tokenizer

from likewise.encoder.location import LoadError
from likewise.inference import export, load
from likewise.inference.engines import openvino_engine
from likewise.inference.engines.engine import CannotExport, EngineError
from likewise.runs.job import JobError


def test_onnx_graph_and_what_to_feed_it(tiny_model, sentences, tmp_path, says):
    """Run as a stranger would: the files and onnxruntime, nothing of likewise."""
    pytest.importorskip("onnx", reason="onnx is not installed: pip install 'likewise[onnx]'")
    runtime = pytest.importorskip("onnxruntime", reason="not installed: pip install 'likewise[onnx]'")
    files = export(tiny_model, "onnx", tmp_path / "out")
    assert {path.name for path in files} == {"model.onnx", "tokenizer.json", "likewise_export.json"}
    about = json.loads((tmp_path / "out" / "likewise_export.json").read_text())
    tokenizer = Tokenizer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    tokenizer.enable_padding(pad_id=about["pad_id"])
    texts = [*sentences[:5], "the cat " * 300]
    read = tokenizer.encode_batch(texts)
    session = runtime.InferenceSession(str(tmp_path / "out" / "model.onnx"), providers=["CPUExecutionProvider"])
    feed = {"input_ids": [r.ids for r in read], "attention_mask": [r.attention_mask for r in read]}
    (found,) = session.run([about["output"]], {name: np.array(rows, dtype=np.int64) for name, rows in feed.items()})
    np.testing.assert_allclose(found, tiny_model.encode(texts), atol=1e-5)
    assert set(export(tiny_model, "onnx", tmp_path / "out")) == set(files)  # is there already
    with says(JobError):
        export(tiny_model, "openvino", tmp_path / "out")
    with says(LoadError):
        load(tmp_path / "out")
    (tmp_path / "mine.txt").write_text("")
    with says(JobError):
        export(tiny_model, "onnx", tmp_path)


def test_openvino_graph(tiny_model, sentences, tmp_path):
    pytest.importorskip("openvino", reason="not installed: pip install 'likewise[openvino]'")
    export(tiny_model, "openvino", tmp_path)
    read = tiny_model.preprocess(sentences[:5])
    compiled = openvino_engine._core().compile_model(tmp_path / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    (found,) = compiled([read["input_ids"].numpy(), read["attention_mask"].numpy()]).values()
    np.testing.assert_allclose(found, tiny_model.encode(sentences[:5]), atol=1e-5)


def test_what_cannot_be_exported(tiny_model, tmp_path, says):
    with says(EngineError):
        export(tiny_model, "gguf", tmp_path)
    with says(CannotExport):
        export(tiny_model.bfloat16(), "onnx", tmp_path)
    assert not list(tmp_path.iterdir())
