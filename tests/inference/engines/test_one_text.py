"""One text runs on a graph of its own length, and bfloat16 on a traced graph; the oracle is the model itself."""

import numpy as np
import pytest
import torch

from likewise.inference.engines import openvino_engine
from likewise.inference.engines.engine import CannotExport, TorchEngine
from likewise.inference.model_tokens import tokens_of
from likewise.inference.text_encoder import TextEncoder

WORDS = "the old cat sees a small dog near the river and the garden of the captain"


@pytest.fixture
def model(request, encoders):
    return encoders[getattr(request, "param", "mean")].eval()


@pytest.fixture
def engine(model, tmp_path):
    pytest.importorskip("openvino")
    openvino_engine.export(model, tmp_path)
    return openvino_engine.OpenVINOEngine(tmp_path, "fp32", 2)


def text_of(words):
    return " ".join((WORDS.split() * 10)[:words])


@pytest.mark.parametrize("model", ["mean", "last token"], indirect=True)
def test_vectors_of_any_length_are_the_models(engine, model):
    encoder = TextEncoder(tokens_of(model), engine)
    for words in (1, 13, 14, 15, 16, 30, 31, 62, 63, 70):
        text = text_of(words)
        with torch.inference_mode():
            features = model(dict(model.preprocess([text])))
        np.testing.assert_allclose(encoder.rows([text])[0], features["sentence_embedding"][0], atol=1e-5)
        _, (tokens,) = encoder.with_tokens(encoder.items([text]), np.copy)
        assert len(tokens) == len(encoder.items([text])[0])
        np.testing.assert_allclose(tokens, features["token_embeddings"][0], atol=1e-5)


def test_single_texts_alone_are_filled_up(engine):
    assert [engine.filled_to(1, length) for length in (2, 16, 17, 33, 64, 65)] == [16, 16, 32, 64, 64, 65]
    assert [engine.filled_to(2, length) for length in (1, 17, 65)] == [2, 17, 65]


class Gate(torch.nn.Module):
    def forward(self, ids):
        values = ids.float() @ torch.ones(5, 5)
        return torch.nn.functional.silu(values) * (ids.float() @ torch.full((5, 5), 2.0))


def test_gates_are_not_run_in_bfloat16(tmp_path, says):
    """OpenVINO's kernel of them ends the process, which no test can see and live."""
    openvino = pytest.importorskip("openvino")
    openvino.save_model(openvino.convert_model(Gate(), example_input=torch.ones(1, 5)), tmp_path / "model.xml")
    openvino_engine.OpenVINOEngine(tmp_path, "fp32", 2)
    with says(CannotExport):
        openvino_engine.OpenVINOEngine(tmp_path, "bf16", 2)


def test_a_model_that_reads_less_is_not_filled_beyond_it(tiny_model, tmp_path):
    pytest.importorskip("openvino")
    embeddings = tiny_model[0].auto_model.embeddings
    embeddings.position_embeddings = torch.nn.Embedding.from_pretrained(embeddings.position_embeddings.weight[:24])
    for name in ("position_ids", "token_type_ids"):
        if hasattr(embeddings, name):
            setattr(embeddings, name, getattr(embeddings, name)[:, :24])
    tiny_model[0].auto_model.config.max_position_embeddings = 24
    openvino_engine.export(tiny_model, tmp_path)
    engine = openvino_engine.OpenVINOEngine(tmp_path, "fp32", 2)
    encoder, text = TextEncoder(tokens_of(tiny_model), engine), text_of(20)
    with torch.inference_mode():
        wanted = tiny_model(dict(tiny_model.preprocess([text])))["sentence_embedding"][0]
    np.testing.assert_allclose(encoder.rows([text])[0], wanted, atol=1e-5)


@pytest.mark.parametrize("kind", ["cls", "mean", "mask prompt", "text cnn"])
def test_a_traced_graph_gives_the_same_in_bfloat16(encoders, texts, kind):
    model = encoders[kind].eval()
    plain, traced = (
        TextEncoder(tokens_of(model), TorchEngine(model, "bf16", traced=is_traced)) for is_traced in (False, True)
    )
    for some in (texts, texts[:1], [text_of(40)], ["cat"]):
        np.testing.assert_allclose(traced.rows(some), plain.rows(some), atol=0.02)
        assert traced.rows(some).dtype == plain.rows(some).dtype
    assert traced.runs._graphs[False] is not None


def test_what_cannot_be_traced_runs_as_it_is(tiny_model, texts, monkeypatch):
    def refuse(*_, **__):
        raise RuntimeError("no trace")

    monkeypatch.setattr(torch.jit, "trace", refuse)
    plain, traced = (
        TextEncoder(tokens_of(tiny_model), TorchEngine(tiny_model, "bf16", traced=is_traced))
        for is_traced in (False, True)
    )
    assert torch.equal(traced.rows(texts), plain.rows(texts))
