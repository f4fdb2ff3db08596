import signal
from types import SimpleNamespace

import datasets
import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

import likewise
from likewise.inference.encoded_blocks import opened_encoder
from likewise.inference.text_encoder import TextEncoder
from likewise.recipes import RECIPES, OptionError
from likewise.runs.progress import Stopped
from likewise.runs.whole_files import Parts

LIGHT = RECIPES["light"]
SMALL = {"batch_size": 16, "words": 20, "hidden": 80, "eval_steps": 10, "held_out": 20, "quiet": True, "epochs": 1}


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIKEWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def base(tiny_base, tmp_path_factory):
    folder = tmp_path_factory.mktemp("base") / "encoder"
    likewise.load(tiny_base).save_pretrained(str(folder))
    return str(folder)


def train(corpus_file, base, out, **changes):
    return likewise.train("light", corpus_file, base=base, out=out, **(SMALL | changes))


@pytest.fixture(scope="module")
def finished(cache, corpus_file, base, tmp_path_factory):
    return train(corpus_file, base, tmp_path_factory.mktemp("runs") / "run", select_by="last", epochs=12)


def likeness(model, base, texts):
    """The mean cosine with the base's vectors, both less their mean."""
    found, wanted = (SentenceTransformer(str(name)).encode(texts) for name in (model, base))
    found, wanted = found - found.mean(axis=0), wanted - wanted.mean(axis=0)
    return float((found * wanted).sum(axis=1).dot(1 / np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)))


def test_it_comes_to_say_what_the_base_says(finished, cache, corpus_file, base, sentences, tmp_path):
    start = train(corpus_file, base, tmp_path / "start", select_by="last", learning_rate=1e-9, word_rate=1e-9)
    before, after = (likeness(run.path, base, sentences) / len(sentences) for run in (start, finished))
    assert after > before + 0.1


def test_plain_sentence_transformers_loads_it_with_no_flag(finished, sentences):
    plain = SentenceTransformer(str(finished.path))
    assert [type(module).__name__ for module in plain] == ["StaticEmbedding", "LayerNorm", "Dense", "Dense"]
    texts = [*sentences[:40], "", "xyzzy"]
    assert np.allclose(plain.encode(texts), likewise.load(finished.path).encode(texts), atol=1e-6)
    assert "trust_remote_code" not in (finished.path / "README.md").read_text()


def test_training_starts_at_the_mean_of_words(cache, base, sentences, says):
    mean, whole = (LIGHT.build_encoder(base, LIGHT.options(words=5, hidden=h), sentences) for h in (0, 64))
    vectors = mean.encode(sentences[:9])
    wanted, found = vectors - vectors.mean(axis=1, keepdims=True), whole.encode(sentences[:9])  # behind a layer norm
    cosines = (found * wanted).sum(axis=1) / np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)
    assert np.allclose(cosines, 1, atol=1e-4)
    with says(OptionError):
        LIGHT.build_encoder(base, LIGHT.options(words=5, hidden=63), sentences)


def test_it_starts_from_word_vectors_of_a_file(cache, corpus_file, base, sentences, tmp_path, says):
    file = tmp_path / "vectors.txt"
    file.write_text("the 1 0 0\nriver 0 1 0\nold 0 0 1\n")
    words = LIGHT.build_encoder(base, LIGHT.options(words=5, hidden=8, vectors=str(file)), sentences)[0]
    rows = [int(words.preprocess([text])["input_ids"][0]) for text in ("the", "river", "old")]
    found = words.embedding.weight.detach().numpy()[rows]
    # One vector is taken off all, and each is made shorter: differences of two keep their direction before that.
    assert (found.argmax(axis=1) == [0, 1, 2]).all()
    assert words.embedding.weight.detach().abs().sum(axis=1).min() > 0
    run = train(corpus_file, base, tmp_path / "run", select_by="last", vectors=str(file))
    assert likewise.load(run.path).encode("the old river").shape == likewise.load(base).encode("a").shape
    with says(likewise.LikewiseError):
        train(corpus_file, base, tmp_path / "none", vectors=str(tmp_path / "missing.txt"))
    with says(OptionError):
        LIGHT.options(vectors="bundled:glove", hidden=0)


def test_the_vectors_of_the_base_are_made_once(finished, cache, corpus_file, base, tmp_path, monkeypatch):
    def encoded(*_, **__):
        raise AssertionError("encoded again")

    monkeypatch.setattr("likewise.inference.policy.text_encoder", encoded)
    run = train(corpus_file, base, tmp_path / "run", select_by="last", seed=2)
    assert run.steps == finished.steps / 12
    with pytest.raises(AssertionError):
        train(corpus_file, base, tmp_path / "other", select_by="last", max_length=5)


def test_resume_gives_the_weights_of_an_uninterrupted_run(finished, cache, corpus_file, base, tmp_path, stopping_after):
    settings = {"select_by": "last"}
    train(corpus_file, base, tmp_path / "whole", **settings)
    with stopping_after(12):
        train(corpus_file, base, tmp_path / "cut", **settings)
    torch.manual_seed(999)
    train(corpus_file, base, tmp_path / "cut", resume=True, **settings)
    names = ("model.safetensors", "1_LayerNorm/model.safetensors", "2_Dense/model.safetensors")
    for name in names:
        whole, cut = (load_file(tmp_path / run / name) for run in ("whole", "cut"))
        assert all(torch.equal(whole[key], cut[key]) for key in whole), name


def test_quiet_prints_nothing(finished, cache, corpus_file, base, tmp_path, capfd):
    assert not datasets.are_progress_bars_disabled()
    train(corpus_file, base, tmp_path / "run", held_out=30)  # other rows than those before: a selection of them
    assert capfd.readouterr() == ("", "")


def test_contradictions_are_refused(cache, says):
    with says(OptionError):
        LIGHT.options(sam_rho=0.05)


def test_vectors_of_several_blocks_are_those_of_the_base_also_after_a_stop(
    corpus_file, base, sentences, tmp_path, monkeypatch
):
    rows, calls = TextEncoder.rows, []

    def run(name):
        monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / name))
        train(corpus_file, base, tmp_path / f"{name}-run", select_by="last", max_steps=1)
        files = map(np.load, (tmp_path / name).rglob("vectors.npy"))  # also the vectors of words
        (vectors,) = [array for array in files if len(array) == len(sentences)]
        return vectors

    def stopping(self, texts, *rest, **how):
        calls.append(texts)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return rows(self, texts, *rest, **how)

    monkeypatch.setenv("LIKEWISE_PROCESSOR", "avx2")
    monkeypatch.setattr("likewise.recipes.light._BLOCK", 64)
    whole = run("whole")
    np.testing.assert_allclose(whole, SentenceTransformer(base).encode(sentences), atol=1e-5)
    monkeypatch.setattr(TextEncoder, "rows", stopping)
    with pytest.raises(Stopped, match="after 192 rows"):
        run("cut")
    assert np.array_equal(run("cut"), whole)
    assert [calls[place] for place in (0, 2, 3)] == [sentences[:64], sentences[128:192], sentences[192:256]]


def test_blocks_of_an_engine_that_is_gone_are_encoded_again(tmp_path):
    parts = Parts(tmp_path)
    with parts.new("0.npy", engine="onnx fp32") as path:
        path.touch()
    for engine, count in (("onnx fp32", 1), ("torch fp32", 0)):
        encoder = opened_encoder(lambda before, engine=engine: SimpleNamespace(engine=engine, before=before), parts)
        assert encoder.before == "onnx fp32"
        assert len(parts) == count
