"""The exporting engines; each test is skipped where its package is not installed."""

import logging
import subprocess
import sys

import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Dense

from likewise.errors import MissingExtraError
from likewise.inference import checked_engines, export, load, policy
from likewise.inference.engines import onnx_engine, openvino_engine, store
from likewise.inference.engines.engine import CannotExport, EngineChoice, QuantisationRefused
from likewise.inference.engines.store import Store
from likewise.inference.policy import policy_of
from likewise.inference.verdict import candidates

KINDS = ["cls", "mean", "last token", "whitening", "mask prompt", "text cnn"]


@pytest.fixture(params=["openvino", "onnx"])
def engine(request):
    for package in {"openvino": ("openvino",), "onnx": ("onnx", "onnxruntime")}[request.param]:
        pytest.importorskip(package, reason=f"{package} is not installed: pip install 'likewise[{request.param}]'")
    return request.param


@pytest.fixture
def an_engine():
    """Any engine, for what the store and the policy do with all of them: ONNX Runtime's exports take the least time."""
    if store.release("onnx"):
        return "onnx"
    pytest.importorskip("openvino", reason="openvino is not installed: pip install 'likewise[openvino]'")
    return "openvino"


def saved(model, folder, **settings):
    model.save(str(folder), create_model_card=False)
    return load(folder, device="cpu", **({"precision": "fp32"} | settings))


SIGNALS = """
import gc, signal, sys
from likewise.inference.engines.openvino_engine import OpenVINOEngine
from pathlib import Path
engines = [OpenVINOEngine(Path(sys.argv[1]), "fp32", 1) for _ in range(2)]
for engine in engines:
    engine.open(1)
while engines:
    engines.pop(0)
    gc.collect()
del engine
gc.collect()
signal.signal(signal.SIGINT, signal.default_int_handler)  # a process in the background ignores it
try:
    signal.raise_signal(signal.SIGINT)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_nothing_is_reported_over_the_network():
    """As they come, openvino and nncf send what they are used for to Intel, from a process that they fork."""
    pytest.importorskip("openvino_telemetry")
    program = (
        "import sys; from likewise.inference.engines import openvino_engine; openvino_engine._openvino(); "
        "from openvino.tools.ovc import telemetry_utils; print(telemetry_utils.tm.__name__)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["openvino.tools.ovc.telemetry_stub"]


def test_an_interruption_after_openvino(tiny_model, tmp_path):
    """OpenVINO's cores change the stack that signals are handled on: Ctrl-C after two engines must not crash."""
    pytest.importorskip("openvino")
    openvino_engine.export(tiny_model, tmp_path)
    found = subprocess.run(
        [sys.executable, "-X", "faulthandler", "-c", SIGNALS, tmp_path], capture_output=True, text=True
    )
    assert (found.returncode, found.stdout) == (0, "interrupted\n")


@pytest.mark.parametrize(
    ("engine", "kind"),
    # An export to OpenVINO takes seconds, and its other kinds are those of `test_one_text`.
    [*(("onnx", kind) for kind in KINDS), ("openvino", "mask prompt"), ("openvino", "text cnn")],
    indirect=["engine"],
)
def test_the_vectors_are_torchs(kind, engine, encoders, texts, tmp_path):
    model = saved(encoders[kind], tmp_path / "model", engine=engine)
    np.testing.assert_allclose(model.encode(texts), encoders[kind].encode(texts), atol=1e-5, rtol=0)
    assert model.last_engine == f"{engine} fp32"
    # As short as a batch can be.
    np.testing.assert_allclose(model.encode("cat"), encoders[kind].encode("cat"), atol=1e-5, rtol=0)


def test_an_export_is_kept_and_made_anew_for_other_weights(an_engine, tiny_model, texts, tmp_path, monkeypatch):
    engine = an_engine
    cache = tmp_path / "cache"
    monkeypatch.setenv("LIKEWISE_CACHE", str(cache))
    made = []
    module = {"openvino": openvino_engine, "onnx": onnx_engine}[engine]
    export = module.export
    monkeypatch.setattr(module, "export", lambda model, folder: (made.append(1), export(model, folder)))
    folder = tmp_path / "model"
    model = saved(tiny_model, folder, engine=engine)
    model.encode(texts[:5])
    before = policy_of(model).engines.store
    assert before.folder((engine, "fp32")).is_relative_to(cache / "engines")
    assert not (folder / "engines").exists()
    load(folder, device="cpu", engine=engine).encode(texts[:5])
    assert len(made) == 1
    with torch.no_grad():  # as an optimizer does
        model[0].auto_model.embeddings.word_embeddings.weight.mul_(1.5)
    wanted = model.encode(texts[:5], output_value="token_embeddings")[0][0]  # [CLS] by sentence-transformers itself
    np.testing.assert_allclose(model.encode(texts[:5])[0], wanted, atol=1e-5)
    assert len(made) == 2
    after = policy_of(model).engines.store
    assert after.fingerprint != before.fingerprint
    assert {before.folder((engine, "fp32")), after.folder((engine, "fp32"))} < set((cache / "engines").iterdir())


def test_short_calls_take_an_export_once_it_pays(an_engine, tiny_model, texts, tmp_path, monkeypatch):
    engine = an_engine
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "avx2")
    monkeypatch.setattr(policy, "release", lambda name: store.release(name) if name == engine else "")
    model = saved(tiny_model, tmp_path / "model")
    wanted = model.encode("a cat")
    policy_of(model).encoded = policy.FEW
    np.testing.assert_array_equal(model.encode("a cat"), wanted)  # no export is made for a short call
    assert model.last_engine == "torch fp32"
    load(tmp_path / "model", device="cpu", engine=engine).encode(texts)
    np.testing.assert_allclose(model.encode("a cat"), wanted, atol=1e-5)
    assert model.last_engine == f"{engine} fp32"
    again = load(tmp_path / "model", device="cpu", precision="fp32")
    again.encode("a cat")
    assert again.last_engine == "torch fp32"  # opening an export takes as long as some hundred texts


def test_a_short_call_takes_the_engine_of_the_long_one_before(tiny_model, sentences, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "avx2")
    monkeypatch.setattr(policy, "LONG", 0)
    model = saved(tiny_model, tmp_path / "model", precision="auto")
    model.encode("a cat")
    assert model.last_engine == "torch fp32"
    model.encode([f"{i} {sentence}" for i in range(4) for sentence in sentences][: policy.FEW])
    long = model.last_engine
    assert long.startswith("onnx ")
    model.encode("a cat")
    assert model.last_engine == long


def test_int8_is_near_or_refused_with_the_figures(engine, tiny_model, sentences, tmp_path, monkeypatch, says):
    if engine == "openvino":
        pytest.importorskip("nncf", reason="nncf is not installed: pip install 'likewise[openvino]'")
    model = saved(tiny_model, tmp_path / "model", engine=engine, precision="int8")
    found, wanted = model.encode(sentences[:40]), tiny_model.encode(sentences[:40])
    assert np.abs(found - wanted).max() > 1e-5
    cosines = (found * wanted).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)
    assert cosines.mean() > store.MIN_COSINE
    assert "mean cosine 0.99" in model.last_engine or "mean cosine 1.0" in model.last_engine
    monkeypatch.setattr(checked_engines, "MIN_COSINE", 1.01)
    monkeypatch.setattr(store, "MIN_COSINE", 1.01)
    again = load(tmp_path / "model", device="cpu", engine=engine, precision="int8")
    with says(QuantisationRefused, hidden=r"[01]\.\d+"):
        again.encode(sentences[:40])
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "vnni")
    relaxed = load(tmp_path / "model", device="cpu", engine=engine, precision="auto")
    np.testing.assert_allclose(relaxed.encode(sentences[:40]), wanted, atol=1e-5)
    assert relaxed.last_engine == f"{engine} fp32"


def test_what_an_engine_cannot_take_runs_on_torch_and_is_said(an_engine, tiny_model, texts, tmp_path, caplog):
    class Odd(Dense):
        def forward(self, features, **kwargs):
            # A trace keeps one side of a branch.
            factor = 2 if features["attention_mask"].shape[1] > 12 else 3
            features["sentence_embedding"] = features["sentence_embedding"] * factor
            return features

    engine = an_engine
    model = saved(tiny_model, tmp_path / "model", engine=engine)
    model.append(Odd(32, 32))
    with caplog.at_level(logging.WARNING):
        found = model.encode(texts, batch_size=1)
    assert model.last_engine == "torch fp32"
    assert f"The engine {engine} (fp32) cannot be used" in caplog.text
    assert "torch runs instead" in caplog.text
    model.choice = EngineChoice("torch")
    np.testing.assert_allclose(found, model.encode(texts, batch_size=1), atol=1e-5)
    model = load(tmp_path / "model", device="cpu", engine=engine).bfloat16()
    caplog.clear()
    model.encode(texts[:3])
    assert "weights are bfloat16" in caplog.text


def no_call(call):
    raise RuntimeError("another length than that of the example")


def wrong_alone(call):
    return lambda ids, mask: (call(ids, mask)[0] * (np.nan if len(ids) == 1 else 1), None)


@pytest.mark.parametrize(
    ("broken", "told"),
    [(no_call, "does not run the model (RuntimeError: another length"), (wrong_alone, "differ from")],
)
def test_a_graph_that_fails_is_replaced(broken, told, an_engine, tiny_model, texts, tmp_path, monkeypatch, caplog):
    kind = store.MAKERS[an_engine].ENGINE
    opened = kind.open
    monkeypatch.setattr(kind, "open", lambda self, *args, **settings: broken(opened(self, *args, **settings)))
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    model = saved(tiny_model, tmp_path / "model", engine=an_engine)
    assert np.isfinite(model.encode(texts)).all()
    assert model.last_engine == "torch fp32"
    assert told in caplog.text


def test_where_the_fastest_export_fails_the_next_is_made(loaded, monkeypatch, tmp_path, capsys):
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "avx2")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(policy, "release", lambda engine: "1" if engine == "onnx" else "")

    def refuse(*_):
        raise CannotExport("of no use here")

    monkeypatch.setattr(onnx_engine, "export", refuse)
    assert export(loaded, quiet=False) == []
    told = capsys.readouterr().err
    assert "onnx fp32: of no use here" in told
    assert "no export is faster" in told


def test_int8_of_a_model_without_matrices(encoders, sentences, tmp_path, caplog):
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'likewise[onnx]'")
    model = saved(encoders["text cnn"], tmp_path / "model", engine="onnx", precision="int8")
    model.encode(sentences[:5])
    assert "nothing to quantize" in caplog.text


@pytest.mark.parametrize("engine", ["openvino", "onnx"])
def test_a_package_that_is_not_there(engine, loaded, monkeypatch, says):
    for package in ("openvino", "onnx", "onnxruntime"):
        monkeypatch.setitem(sys.modules, package, None)
    loaded.choice = EngineChoice(engine)
    with says(MissingExtraError):
        loaded.encode(["a cat"])


@pytest.mark.parametrize(
    ("processor", "precision", "pairs"),
    [
        ("none", "auto", ["torch fp32"]),
        ("none", "fp32", ["torch fp32"]),
        ("avx2", "auto", ["onnx int8", "onnx fp32", "openvino fp32", "torch fp32"]),
        ("avx2", "fp32", ["onnx fp32", "openvino fp32", "torch fp32"]),
        ("avx2", "int8", ["onnx int8", "openvino int8"]),
        ("avx2", "bf16", ["openvino bf16", "torch bf16"]),
        ("avx2", "close", ["onnx fp32", "openvino fp32", "torch fp32"]),
        ("bf16", "close", ["openvino bf16", "torch bf16", "onnx fp32", "openvino fp32", "torch fp32"]),
        (
            "bf16+vnni",
            "auto",
            [
                *("openvino int8", "onnx int8", "openvino bf16", "torch bf16"),
                *("onnx fp32", "openvino fp32", "torch fp32"),
            ],
        ),
        ("vnni", "int8", ["openvino int8", "onnx int8"]),
    ],
)
def test_what_is_fast_follows_from_the_processor(processor, precision, pairs, monkeypatch):
    monkeypatch.setenv("LIKEWISE_PROCESSOR", processor)
    assert [" ".join(pair) for pair in candidates(EngineChoice("auto", precision))] == pairs


def test_auto_exports_for_a_long_job_and_takes_an_export_that_is_there(an_engine, loaded, sentences, monkeypatch):
    engine, texts = an_engine, sentences[:300]
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "avx2")
    monkeypatch.setattr(policy, "release", lambda name: "1" if name == engine else "")

    def chosen(*lines):
        return str(policy_of(loaded).choose(loaded, EngineChoice("auto", "fp32"), lines, len(lines)).engine)

    assert chosen(*texts[:10]) == "torch fp32"
    assert chosen(*texts) == "torch fp32"  # a second of work
    monkeypatch.setattr(policy, "LONG", 0.0)
    assert chosen(*texts) == f"{engine} fp32"
    monkeypatch.setattr(policy, "LONG", 5e12)
    assert chosen(*texts) == f"{engine} fp32"
    assert chosen(*texts[:10]) == f"{engine} fp32"  # which is open
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "none")
    assert chosen(*texts) == "torch fp32"


def test_operations_by_hand(loaded, sentences):
    weights = 2 * (4 * 32 * 32 + 2 * 32 * 64) + 32 * 32  # two layers, and the pooler
    tokens = len(loaded.tokenizer(sentences[0])["input_ids"])
    sample = policy.Sample(loaded, sentences[:1])
    assert sample.operations(1000) == 2 * weights * tokens * 1000


def test_a_precision_asked_for_by_name_is_given_or_refused(loaded, sentences, monkeypatch, says):
    """By auto too, and for three texts too."""
    monkeypatch.setattr(policy, "release", lambda engine: "")
    monkeypatch.setenv("LIKEWISE_PROCESSOR", "avx2")  # which engine is tried first, and refused first
    with says(QuantisationRefused, hidden=r"[01]\.\d+"):
        policy_of(loaded).choose(loaded, EngineChoice("auto", "int8"), sentences[:3], 3)
    found = policy_of(loaded).choose(loaded, EngineChoice("auto", "bf16"), sentences[:40], 40)
    assert str(found.engine) == "torch bf16"
    assert 1e-5 < found.fidelity.difference < 0.1


@pytest.mark.parametrize("engine", ["torch", "openvino", "onnx"])
def test_auto_tries_what_the_processor_has(engine, any_processor):
    int8 = engine == "onnx" or (engine == "openvino" and "vnni" in any_processor)  # ONNX Runtime's pays anywhere
    bf16 = engine != "onnx" and "bf16" in any_processor
    wanted = ["int8"] * int8 + ["bf16"] * bf16 + ["fp32"]
    assert [precision for _, precision in candidates(EngineChoice(engine, "auto"))] == wanted
    assert candidates(EngineChoice(engine, "fp32")) == [(engine, "fp32")]


def test_int8_keeps_a_bit_back_where_products_overflow(any_processor, tiny_model, tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'likewise[onnx]'")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'likewise[onnx]'")
    (tmp_path / "int8").mkdir()
    onnx_engine.export(tiny_model, tmp_path)
    onnx_engine.quantise(tmp_path, tmp_path / "int8")
    weights = onnx.load(tmp_path / "int8" / onnx_engine.FILE).graph.initializer
    largest = max(abs(onnx.numpy_helper.to_array(one)).max() for one in weights if one.name.endswith("_quantized"))
    assert largest == (127 if "vnni" in any_processor else 64)


def test_the_product_that_ends_a_feed_forward_network_stays_in_float32(tiny_model, tmp_path):
    onnx = pytest.importorskip("onnx", reason="onnx is not installed: pip install 'likewise[onnx]'")
    pytest.importorskip("onnxruntime", reason="onnxruntime is not installed: pip install 'likewise[onnx]'")
    (tmp_path / "int8").mkdir()
    onnx_engine.export(tiny_model, tmp_path)
    onnx_engine.quantise(tmp_path, tmp_path / "int8")
    before, after = (onnx.load(folder / onnx_engine.FILE).graph for folder in (tmp_path, tmp_path / "int8"))
    weights = {weight.name: tuple(weight.dims) for weight in before.initializer}
    products = [weights[node.input[1]] for node in before.node if node.op_type == "MatMul" and node.input[1] in weights]
    narrowing = [shape for shape in products if shape[0] > shape[1]]
    left = [node for node in after.node if node.op_type == "MatMul" and node.input[1] in weights]
    assert len(narrowing) == len(left) == tiny_model[0].auto_model.config.num_hidden_layers
    assert len([node for node in after.node if node.op_type == "MatMulInteger"]) == len(products) - len(narrowing)


def test_a_store_forgets_other_weights(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path))
    one, other, pair = Store("a" * 32), Store("a" * 16 + "b" * 16), ("onnx", "fp32")
    made = one.put(pair, lambda folder: (folder / "model.onnx").write_text("x"))
    assert one.folder(pair) == made
    assert other.folder(pair) is None
    assert one.put(pair, lambda folder: pytest.fail("it is there")) == made
    (made / "model.onnx").write_text("cut")  # damaged
    assert one.folder(pair) is None
    with pytest.raises(OSError, match="full"):
        one.put(pair, lambda folder: (_ for _ in ()).throw(OSError("full")))
    assert one.folder(pair) is None
    one.put(pair, lambda folder: (folder / "model.onnx").write_text("y"))
