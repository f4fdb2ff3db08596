"""Caches that were cut, changed, or are written by several processes at once: they are made again, and equal."""

import os
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import likewise
from likewise.corpus import prepare
from likewise.encoder.word_vectors import distill
from likewise.inference import load
from likewise.recipes.light import LIGHT, with_teacher
from likewise.recipes.recipe import Run
from likewise.runs.job import work_of
from likewise.runs.progress import Progress


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)


@pytest.mark.parametrize("damage", [cut, flip])
def test_a_damaged_export_is_made_again(damage, tiny_model, sentences, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    pytest.importorskip("onnx")
    pytest.importorskip("onnxruntime")
    tiny_model.save(str(tmp_path / "model"), create_model_card=False)
    wanted = load(tmp_path / "model", engine="onnx", device="cpu").encode(sentences[:5])
    graphs = sorted((tmp_path / "cache").rglob("*.onnx"))
    assert [graph.name for graph in graphs] == ["model.onnx", "with-tokens.onnx"]  # it pools one token
    for graph in graphs:
        before = graph.read_bytes()
        damage(graph)
        found = load(tmp_path / "model", engine="onnx", device="cpu").encode(sentences[:5])
        np.testing.assert_array_equal(found, wanted)
        assert graph.read_bytes() == before


def test_damaged_word_vectors_are_made_again(tiny_model, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path))
    words = Counter({"cat": 3, "river": 2})
    wanted = distill("distilled:tiny", words, 0, tiny_model, True).vectors
    (kept,) = (tmp_path / "distilled").rglob("*.npy")
    cut(kept)
    np.testing.assert_array_equal(distill("distilled:tiny", words, 0, tiny_model, True).vectors, wanted)


STEPS = {"batch_size": 8, "max_steps": 4, "eval_steps": 2, "held_out": 40, "precision": "fp32", "quiet": True}


@pytest.mark.parametrize(("name", "damage"), [("notes.json", Path.unlink), ("log.jsonl", flip)])
def test_what_was_noted_is_made_again(name, damage, corpus_file, tiny_base, stopping_after, tmp_path):
    whole = likewise.train("simcse", corpus_file, base=tiny_base, out=tmp_path / "whole", **STEPS)
    with stopping_after(3):
        likewise.train("simcse", corpus_file, base=tiny_base, out=tmp_path / "run", **STEPS)
    damage(work_of(tmp_path / "run") / name)
    found = likewise.train("simcse", corpus_file, base=tiny_base, out=tmp_path / "run", **STEPS)
    assert [found.record[one] for one in ("before", "best")] == [whole.record[one] for one in ("before", "best")]
    models = [(tmp_path / one / "model.safetensors").read_bytes() for one in ("run", "whole")]
    assert models[0] == models[1]


def taught(corpus, base: str) -> list[bytes]:
    options, progress = LIGHT.options(max_length=0), Progress(quiet=True)
    run = Run(LIGHT, options, base, 1, corpus, corpus.dataset, None, progress, lambda *_: None)
    return with_teacher(run).rows["teacher"][:]


@pytest.mark.parametrize("damage", [cut, flip])
def test_damaged_vectors_of_a_teacher_are_made_again(damage, corpus_file, saved_model, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    corpus = prepare(str(corpus_file))
    wanted = taught(corpus, str(saved_model))
    (kept,) = (tmp_path / "cache" / "stages").rglob("*.npy")
    damage(kept)
    assert taught(corpus, str(saved_model)) == wanted


def read(corpus: str, cache: str, out: str) -> None:
    os.environ["LIKEWISE_CACHE"] = cache
    Path(out).write_text(prepare(corpus).sha256)


def learn(corpus: str, cache: str, base: str, out: str) -> None:
    os.environ["LIKEWISE_CACHE"] = cache
    Path(out).write_bytes(b"".join(taught(prepare(corpus), base)))


@pytest.mark.parametrize("work", [read, learn])
def test_four_processes_at_once_on_one_cache(work, corpus_file, saved_model, new_process, tmp_path):
    cache, base = str(tmp_path / "cache"), [str(saved_model)] if work is learn else []
    outs = [tmp_path / f"{i}.txt" for i in range(4)]
    processes = [new_process(work, str(corpus_file), cache, *base, str(out)) for out in outs]
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * 4
    assert len({out.read_bytes() for out in outs}) == 1
    assert len(list((tmp_path / "cache").rglob("*.arrow"))) == 1
    assert len(list((tmp_path / "cache").rglob("*.npy"))) == (work is learn)
