"""Recipes with modules of training alone: a run that was stopped goes on to the same weights."""

import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer

import likewise


@pytest.mark.parametrize("recipe", ["mask-distillation", "esimcse", "ct", "tsdae"])
def test_resume_gives_the_weights_of_an_uninterrupted_run(recipe, corpus_file, tiny_base, tmp_path, stopping_after):
    settings = {"batch_size": 8, "max_steps": 4, "eval_steps": 2, "select_by": "last", "quiet": True}
    settings["learning_rate"] = 1e-3  # what goes wrong shall show
    settings["base"] = tiny_base
    likewise.train(recipe, corpus_file, out=tmp_path / "whole", **settings)
    with stopping_after(2):
        likewise.train(recipe, corpus_file, out=tmp_path / "cut", **settings)
    torch.manual_seed(999)  # nothing may depend on what happened in between
    likewise.train(recipe, corpus_file, out=tmp_path / "cut", resume=True, **settings)
    whole, cut = (load_file(tmp_path / name / "model.safetensors") for name in ("whole", "cut"))
    assert whole.keys() == cut.keys()
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    # It has moved, loads with no flag, and nothing of training is left in it.
    start = load_file(tiny_base / "model.safetensors")
    assert any(not torch.equal(whole[name], start[name]) for name in start)
    kinds = {type(module).__module__.partition(".")[0] for module in SentenceTransformer(str(tmp_path / "cut"))}
    assert kinds == {"sentence_transformers"}
