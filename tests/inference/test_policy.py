"""The engine of a default call, `load(name).encode(texts)`."""

import gc
import logging
import weakref

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from likewise.encoder.modules import with_linear_in
from likewise.inference import export, load
from likewise.inference.engines.engine import EngineChoice, EngineError, TorchEngine
from likewise.inference.engines.store import ENOUGH, Fidelity
from likewise.inference.handle import ModelHandle
from likewise.inference.model_export import keep_export
from likewise.inference.model_tokens import tokens_of
from likewise.inference.policy import policy_of
from likewise.inference.sample import Sample
from likewise.inference.text_encoder import TextEncoder
from likewise.inference.vectors import encode
from likewise.inference.verdict import PairFacts, verdict
from likewise.runs.progress import Progress


@pytest.fixture
def folder(tiny_model, tmp_path):
    tiny_model.save(str(tmp_path / "model"), create_model_card=False)
    return tmp_path / "model"


@pytest.fixture
def bf16(monkeypatch, tmp_path):
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "bf16")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))


def judge(model, lowest):
    fidelity = Fidelity(cosine=1.0, lowest=lowest, rank=1.0, difference=0.01, sentences=32)
    policy_of(model).engines.store.keep(("torch", "bf16"), fidelity)
    return policy_of(model).engines.store


def lowest(found, wanted):
    return float(((found * wanted).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)).min())


def test_bfloat16_once_it_was_judged_on_own_texts(folder, sentences, bf16, caplog):
    caplog.set_level(logging.INFO, "likewise")
    plain = SentenceTransformer(str(folder), device="cpu")
    model = load(folder, device="cpu")
    assert model.engine.startswith("torch fp32: not chosen yet")
    assert (model.encode(sentences[:20]) == plain.encode(sentences[:20])).all()  # to the last bit
    assert not caplog.records
    assert (model.encode(sentences[20:40]) == plain.encode(sentences[20:40])).all()
    assert model.last_engine == "torch fp32"
    assert model.engine.startswith("torch bf16: minimum cosine with float32 ")
    (record,) = caplog.records
    assert record.message.startswith(f"{folder} runs on {model.engine}")
    found, exact = model.encode(sentences[:60]), plain.encode(sentences[:60])
    assert model.last_engine == "torch bf16"
    assert not (found == exact).all()
    assert lowest(found, exact) >= 0.999

    again = load(folder, device="cpu")  # as in the next process: it was judged
    assert (again.encode(sentences[:20]) == model.encode(sentences[:20])).all()
    assert again.last_engine == "torch bf16"


def test_a_long_first_call_is_judged_before_it_runs(folder, sentences, bf16):
    model = load(folder, device="cpu")
    model.encode(sentences[:200])
    assert model.last_engine == "torch bf16"


def test_vectors_that_are_not_close_stay_in_float32(folder, sentences, bf16):
    judge(load(folder, device="cpu"), 0.9989)
    model = load(folder, device="cpu")
    assert (model.encode(sentences[:20]) == SentenceTransformer(str(folder), device="cpu").encode(sentences[:20])).all()
    assert "torch bf16: minimum cosine with float32 0.99890 on 32 texts" in model.engine
    assert model.engine.startswith("torch fp32: ")


def test_a_judgement_holds_for_one_processor(folder, bf16, monkeypatch):
    store = judge(load(folder, device="cpu"), 1.0)
    assert store.verdict(("torch", "bf16"))
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "bf16+vnni")
    assert store.verdict(("torch", "bf16")) is None


def test_a_cache_that_cannot_be_written_or_is_damaged(folder, sentences, bf16, tmp_path, monkeypatch):
    store = judge(load(folder, device="cpu"), 1.0)
    (facts,) = (tmp_path / "cache").rglob("facts.json")
    facts.write_text("{")
    assert store.verdict(("torch", "bf16")) is None
    monkeypatch.setenv("LIKEWISE_CACHE", str(folder / "modules.json" / "none"))
    model = load(folder, device="cpu")
    model.encode(sentences[:40])
    assert model.engine.startswith("torch bf16")  # judged, and not remembered


@pytest.mark.parametrize("processor", ["none", "avx2"])
def test_without_bfloat16_it_is_float32(processor, folder, sentences, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_PROCESSOR", processor)
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    model = load(folder, device="cpu")
    assert (model.encode(sentences[:20]) == SentenceTransformer(str(folder), device="cpu").encode(sentences[:20])).all()
    assert model.engine.startswith("torch fp32: ")


def test_a_kept_export_is_taken_from_the_first_text_on(folder, sentences, tmp_path, monkeypatch):
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "avx2")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    plain = load(folder, device="cpu")
    exact = plain.encode(sentences[:40])
    policy = policy_of(plain)
    policy.engines.make(("onnx", "fp32"), Sample(plain, sentences[:ENOUGH]))
    model = load(folder, device="cpu")
    np.testing.assert_allclose(model.encode(sentences[:1]), exact[:1], atol=1e-5)
    assert model.last_engine == "onnx fp32"
    assert plain.encode(sentences[:1]) is not None
    assert plain.last_engine == "torch fp32"

    def broken(*args, **settings):
        raise RuntimeError("no such kernel")

    monkeypatch.setattr("likewise.inference.engines.onnx_engine.OnnxEngine.open", broken)
    worse = load(folder, device="cpu")
    np.testing.assert_allclose(worse.encode(sentences[:40]), exact, atol=1e-5)
    assert worse.engine == "torch fp32: onnx fp32 fails: no such kernel"


def test_a_changed_model_is_judged_anew(folder, sentences, bf16):
    model = load(folder, device="cpu")
    model.encode(sentences[:40])
    assert model.engine.startswith("torch bf16")
    with torch.no_grad():
        next(model.parameters()).mul_(1.5)
    changed = model.encode(sentences[:20])
    assert model.engine.startswith("torch fp32: not chosen yet")
    model[1].pooling_mode = "mean"
    assert np.abs(model.encode(sentences[:20]) - changed).max() > 0.01


def test_hooks_see_every_call(folder, sentences, bf16):
    model, calls = load(folder, device="cpu"), []
    model.encode(sentences[:40])
    model[0].register_forward_hook(lambda *given: calls.append(1))
    model.encode(sentences[:40])
    assert calls
    assert "hooks" in model.engine


def test_what_is_compared_is_in_float32(folder, sentences, bf16):
    model = load(folder, device="cpu")
    model.encode(sentences[:40])
    exact = load(folder, device="cpu", precision="fp32")
    assert (encode(model, sentences[:40]) == encode(exact, sentences[:40])).all()
    assert model.choice == EngineChoice("auto", "close")
    assert load(folder, device="cpu", engine="torch").choice == EngineChoice("torch", "fp32")


def test_bfloat16_weights_are_cast_once_and_to_the_same_bits(encoders, texts):
    for model in encoders.values():
        twin = with_linear_in(model.eval(), torch.bfloat16)
        with torch.inference_mode(), torch.autocast("cpu", dtype=torch.bfloat16):
            # Autocast holds in this thread alone.
            each_way = [TextEncoder(tokens_of(model), TorchEngine(one)) for one in (model, twin)]
            batches = [np.arange(start, start + 20) for start in range(0, len(texts), 20)]
            wanted, found = (each.in_batches(each.items(texts), batches)[0] for each in each_way)
        assert torch.equal(wanted, found)
        assert all(part.weight.dtype == torch.float32 for part in model.modules() if isinstance(part, torch.nn.Linear))


def test_a_model_is_free_to_go(folder, sentences, bf16):
    model = load(folder, device="cpu")
    model.encode(sentences[:200])
    assert model.last_engine == "torch bf16"
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_a_job_keeps_the_export_of_its_model(folder, sentences, tmp_path, monkeypatch, capsys):
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "avx2")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    keep_export(folder, sentences, Progress())
    assert not (tmp_path / "cache").exists()  # the variable says never
    monkeypatch.delenv("LIKEWISE_EXPORTS")
    with monkeypatch.context() as patched:
        patched.setattr("likewise.inference.model_export._LARGEST", 1000)
        keep_export(folder, sentences, Progress())
        assert not (tmp_path / "cache").exists()
    keep_export(folder, sentences, Progress())
    assert "exporting the model for onnx" in capsys.readouterr().err
    model = load(folder, device="cpu")
    model.encode(sentences[:1])
    assert model.engine == "onnx fp32: its vectors are torch's up to rounding"


def test_an_export_that_is_asked_for_is_found_by_load(folder, sentences, bf16, caplog):
    pytest.importorskip("openvino")
    caplog.set_level(logging.INFO, "likewise")
    model = load(folder, device="cpu")
    model.encode(sentences[:200])
    assert model.last_engine == "torch bf16"
    (line,) = [record.message for record in caplog.records]
    assert f"likewise export {folder}" in line  # what would be faster
    files = export(folder)
    assert {path.name for path in files} >= {"model.xml", "model.bin"}
    assert export(folder) == files  # is there already
    caplog.clear()
    later = load(folder, device="cpu")
    later.encode(sentences[0])
    assert later.engine.startswith("openvino bf16: minimum cosine with float32 ")
    assert "likewise export" not in caplog.text
    assert lowest(later.encode(sentences[:40]), model.encode(sentences[:40])) >= 0.998
    # In float32 the same graph is torch's, and encodes a query without torch.
    exact = load(folder, device="cpu", engine="torch").encode(sentences[:3], normalize_embeddings=True)
    np.testing.assert_allclose(ModelHandle(folder).export()(sentences[:3]), exact, atol=1e-5)


def test_no_export_is_made_where_none_would_be_faster(folder, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "none")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    assert export(folder) == []
    assert not list((tmp_path / "cache").rglob("model.*"))


def test_a_folder_for_others_names_its_format(folder, tmp_path, says):
    with says(EngineError):
        export(folder, out=tmp_path / "out")
    with says(EngineError):
        export(folder, "model2vec")


OWN_FORWARD = "its parts have a custom forward"
CLOSE, EXACT, INT8 = EngineChoice("auto", "close"), EngineChoice("auto", "fp32"), EngineChoice("auto", "int8")


@pytest.mark.parametrize(
    ("pair", "facts", "expected"),
    [
        (("onnx", "fp32"), PairFacts(CLOSE, exported=True), ("check", "")),
        (("onnx", "fp32"), PairFacts(CLOSE, pays=True), ("check", "")),
        (("onnx", "fp32"), PairFacts(CLOSE), ("skip", "there is no export for onnx")),
        (("onnx", "fp32"), PairFacts(CLOSE, few=True), ("skip", "there is no export for onnx")),
        (("onnx", "fp32"), PairFacts(EXACT, few=True, exported=True), ("skip", "onnx does not pay off for few texts")),
        (("onnx", "fp32"), PairFacts(EXACT, few=True, is_open=True), ("check", "")),
        (
            ("openvino", "fp32"),
            PairFacts(EXACT, on_cpu=False, exported=True),
            ("skip", "openvino runs on the CPU alone"),
        ),
        (("openvino", "fp32"), PairFacts(EXACT, installed=False, pays=True), ("skip", "openvino is not installed")),
        (("onnx", "fp32"), PairFacts(EXACT, failure="too large", exported=True), ("skip", "onnx fp32: too large")),
        (("onnx", "int8"), PairFacts(INT8, few=True), ("check", "")),  # it was requested by name
        (("onnx", "int8"), PairFacts(EngineChoice("onnx", "int8"), failure="x", installed=False), ("check", "")),
        (("torch", "bf16"), PairFacts(CLOSE), ("check", "")),
        (("torch", "bf16"), PairFacts(CLOSE, judged=False), ("wait", "")),
        (
            ("torch", "bf16"),
            PairFacts(CLOSE, own_forward=True),
            ("skip", "torch bf16: its parts have a custom forward"),
        ),
        (("torch", "bf16"), PairFacts(INT8, own_forward=True), ("check", "")),
    ],
)
def test_what_is_done_with_an_engine(pair, facts, expected):
    assert verdict(pair, facts) == expected
