import numpy as np
import pytest
import torch

import likewise
from likewise.evaluation import sentences_evaluator
from likewise.recipes import OptionError
from likewise.training import trainer


def test_asked_for_is_taken_and_auto_follows_the_processor(any_processor):
    assert trainer.use_bf16("auto") is ("bf16" in any_processor)
    assert trainer.use_bf16("bf16") is True
    assert trainer.use_bf16("fp32") is False


def test_what_was_not_measured_is_not_taken(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(trainer.processor, "flags", lambda: frozenset({"asimd", "bf16"}))  # ARM's
    assert not trainer.use_bf16("auto")


def test_a_gpu_decides_for_itself(any_processor, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for has in (True, False):
        monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_, has=has, **__: has)
        assert trainer.use_bf16("auto") is has


def test_a_gpu_without_bfloat16_is_told(monkeypatch, says):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "is_bf16_supported", lambda *_, **__: False)
    with says(OptionError):
        trainer.use_bf16("bf16")


def test_what_is_trained_in_bfloat16_is_scored_as_it_is_saved(corpus_file, tiny_base, tmp_path, sentences):
    result = likewise.train(
        "arccse", corpus_file, base=tiny_base, out=tmp_path / "run", precision="bf16", batch_size=8, max_steps=2,
        eval_steps=1, select_by="held-out", held_out=20, quiet=True,
    )  # fmt: skip
    assert result.record["precision"] == "bf16"
    rows = np.random.default_rng([1, 1]).permutation(len(sentences))
    evaluator = sentences_evaluator([sentences[i] for i in np.sort(rows[:20])], seed=1)
    saved = likewise.load(result.path, precision="fp32")
    assert evaluator(saved)[result.best["metric"]] == pytest.approx(result.best["score"], abs=1e-4)
    with torch.autocast("cpu", torch.bfloat16):
        assert evaluator(saved)[result.best["metric"]] != pytest.approx(result.best["score"], abs=1e-4)
    weights = saved.state_dict().values()
    assert all(torch.isfinite(weight).all() for weight in weights)
    # The saved weights are the float32 masters.
    assert {weight.dtype for weight in weights} == {torch.float32}
