import copy
import json
import pickle
import threading

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

from likewise.inference import load
from likewise.inference.engines.engine import EngineError, TorchEngine
from likewise.inference.load_model import Encoder
from likewise.inference.model_tokens import tokens_of
from likewise.inference.text_encoder import TextEncoder

KINDS = ["cls", "mean", "whitening", "mask prompt", "text cnn"]


@pytest.mark.parametrize("kind", KINDS)
def test_the_vectors_of_sentence_transformers(kind, encoders, texts, tmp_path):
    encoders[kind].save(str(tmp_path / "model"), create_model_card=False)
    model = load(tmp_path / "model", device="cpu", precision="fp32")
    wanted = encoders[kind].encode(texts)
    np.testing.assert_allclose(model.encode(texts), wanted, atol=1e-5, rtol=0)
    assert model.last_engine == "torch fp32"


def test_by_torch_a_batch_or_less_has_the_vectors_of_sentence_transformers_to_the_last_bit(
    loaded, tiny_model, texts, tmp_path
):
    asked = load(tmp_path / "model", device="cpu", engine="torch")
    prompt = "the dog "
    for some, settings in [(texts[:1], {}), (texts[:32], {}), (texts[:9], {"batch_size": 4, "prompt": prompt})]:
        assert np.array_equal(asked.encode(some, **settings), tiny_model.encode(some, **settings))
    assert asked.last_engine == "torch fp32"
    np.testing.assert_allclose(loaded.encode(texts[:32]), asked.encode(texts[:32]), atol=1e-5, rtol=0)
    assert loaded.last_engine == "torch fp32"


def test_a_submodule_in_training_mode_is_put_back_before_a_call(loaded, tiny_model, texts):
    loaded.encode(texts[0])
    loaded[0].auto_model.train()
    np.testing.assert_allclose(loaded.encode(texts[0]), tiny_model.encode(texts[0]), atol=1e-5, rtol=0)
    assert not any(module.training for module in loaded.modules())


def test_everything_else_of_encode(loaded, tiny_model, texts):
    wanted = tiny_model.encode(texts[:9])
    one = loaded.encode(texts[0])
    assert one.shape == (32,)
    np.testing.assert_allclose(one, wanted[0], atol=1e-5)
    tensors = loaded.encode(texts[:9], convert_to_tensor=True, normalize_embeddings=True)
    np.testing.assert_allclose(tensors, tiny_model.encode(texts[:9], normalize_embeddings=True), atol=1e-5)
    short = loaded.encode(texts[:9], truncate_dim=5, normalize_embeddings=True)
    np.testing.assert_allclose(
        short, tiny_model.encode(texts[:9], truncate_dim=5, normalize_embeddings=True), atol=1e-5
    )
    np.testing.assert_allclose(
        loaded.encode(texts[:9], prompt="the dog "), tiny_model.encode(texts[:9], prompt="the dog "), atol=1e-5
    )
    assert loaded.encode(texts[:9], precision="binary").dtype == np.int8
    many = loaded.encode(texts * 9, truncate_dim=5, normalize_embeddings=True)
    assert loaded.last_engine == "torch fp32"
    np.testing.assert_allclose(many, tiny_model.encode(texts * 9, truncate_dim=5, normalize_embeddings=True), atol=1e-5)
    tokens = loaded.encode(texts[:2], output_value="token_embeddings")
    assert loaded.last_engine is None
    torch.testing.assert_close(tokens, tiny_model.encode(texts[:2], output_value="token_embeddings"))
    assert loaded.encode([]).shape == (0,)
    with pytest.raises(ValueError, match="does not use"):
        loaded.encode(texts[:2], no_such_option=1)


def test_repeats_are_encoded_once_and_the_order_is_kept(tiny_model, sentences):
    class Counted(TorchEngine):
        seen = 0

        def open(self, workers, tokens=False):
            call = super().open(workers, tokens)

            def counted(ids, mask):
                self.seen += len(ids)
                return call(ids, mask)

            return counted

    engine = Counted(tiny_model.eval())
    texts = [sentences[i % 7] for i in (3, 0, 0, 5, 3, 3, 1)]
    steps = []
    found = TextEncoder(tokens_of(tiny_model), engine).rows(texts, steps.append)
    assert engine.seen == 4
    assert sum(steps) == 7
    np.testing.assert_allclose(found, np.stack([tiny_model.encode(text) for text in texts]), atol=1e-5)


def test_two_cores_give_what_one_gives(tiny_model, texts):
    tiny_model.eval()
    encoder = TextEncoder(tokens_of(tiny_model), TorchEngine(tiny_model), batch_size=3)
    one = encoder.rows(texts)
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        encoder.workers = 2
        two = encoder.rows(texts)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
    torch.testing.assert_close(one, two, atol=1e-5, rtol=0)


def test_overlapping_calls_leave_the_threads_as_they_were(tiny_model, texts):
    """Also those of a thread that torch meets for the first time while others are encoding."""
    tiny_model.eval()
    before, seen = torch.get_num_threads(), []

    def work():
        for _ in range(5):
            TextEncoder(tokens_of(tiny_model), TorchEngine(tiny_model), batch_size=3).rows(texts)
        seen.append(torch.get_num_threads())

    torch.set_num_threads(2)
    try:
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        work()
        for thread in threads:
            thread.join()
        assert seen == [2] * 4
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)


def test_it_is_saved_as_any_model(loaded, texts, tmp_path):
    loaded.encode(texts[:3])
    loaded.save(str(tmp_path / "again"))
    assert json.loads((tmp_path / "again" / "config_sentence_transformers.json").read_text())["model_type"] == (
        "SentenceTransformer"
    )
    assert "SentenceTransformer" in (tmp_path / "again" / "README.md").read_text()
    plain = SentenceTransformer(str(tmp_path / "again"), device="cpu")
    np.testing.assert_allclose(plain.encode(texts[:3]), loaded.encode(texts[:3]), atol=1e-5)
    for copied in (copy.deepcopy(loaded), pickle.loads(pickle.dumps(loaded))):
        assert isinstance(copied, Encoder)
        np.testing.assert_allclose(copied.encode(texts[:3]), loaded.encode(texts[:3]), atol=1e-6)


@pytest.mark.parametrize(
    ("engine", "precision"),
    [("tensorrt", "fp32"), ("torch", "int4"), ("torch", "int8")],
)
def test_engines_that_there_are_not(engine, precision, tmp_path, says):
    with says(EngineError):
        load(tmp_path, engine=engine, precision=precision)
