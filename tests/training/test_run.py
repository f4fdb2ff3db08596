import json
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers.utils.logging import is_progress_bar_enabled

import likewise
from likewise.corpus import CorpusError
from likewise.recipes import OptionError
from likewise.training.folder import RunFolderError

SMALL = {
    "batch_size": 8,
    "max_steps": 6,
    "eval_steps": 2,
    "held_out": 20,
    "select_by": "held-out",
    "quiet": True,
}


def weights(folder):
    return load_file(folder / "model.safetensors")


def train(corpus_file, tiny_base, out, recipe="arccse", **changes):
    return likewise.train(recipe, corpus_file, str(tiny_base), out, **(SMALL | changes))


@pytest.fixture(scope="module")
def finished(corpus_file, tiny_base, tmp_path_factory):
    """A run with SAM, accumulation, triplets and training head that went through in one go."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    return train(corpus_file, tiny_base, out, sam_rho=0.05, accumulation=2)


def test_the_folder_loads_with_no_flag_and_has_no_head(finished, sentences):
    plain = SentenceTransformer(str(finished.path))
    assert [type(module).__name__ for module in plain] == ["Transformer", "Pooling"]
    assert np.array_equal(plain.encode(sentences[:20]), likewise.load(finished.path).encode(sentences[:20]))
    assert finished.finished
    assert finished.steps == 6
    assert not (finished.path / "checkpoints").exists()


def test_the_bars_of_transformers_are_shown_again(finished):
    assert is_progress_bar_enabled()


def test_what_is_saved_is_what_was_evaluated(finished, sentences):
    from likewise.evaluation import sentences_evaluator

    rows = np.random.default_rng([1, 1]).permutation(len(sentences))
    held_out = [sentences[i] for i in np.sort(rows[:20])]
    scores = sentences_evaluator(held_out, seed=1)(SentenceTransformer(str(finished.path)))
    assert scores[finished.best["metric"]] == pytest.approx(finished.best["score"], abs=1e-3)


def test_the_record_says_how_it_was_made(finished, corpus_file):
    record = json.loads((finished.path / "likewise.json").read_text())
    assert record["status"] == "finished"
    assert record["recipe"] == "arccse"
    assert record["options"]["sam_rho"] == 0.05
    assert record["seed"] == 1
    assert record["corpus"]["sources"] == [str(corpus_file)]
    assert len(record["corpus"]["sha256"]) == 64
    assert record["versions"]["torch"] == torch.__version__
    assert "held-out" in record["selection"]
    assert "arccse" in (finished.path / "README.md").read_text()


def test_the_log_holds_every_part_and_score(finished):
    entries = [json.loads(line) for line in (finished.path / "log.jsonl").read_text().splitlines()]
    evaluated = [e["step"] for e in entries if finished.best and f"eval_{finished.best['metric']}" in e]
    assert evaluated == [0, 2, 4, 6]
    assert all(
        "eval_held_out_alignment" in e and "eval_held_out_uniformity" in e for e in entries if "eval_runtime" in e
    )
    losses = [e for e in entries if "contrastive" in e]
    assert losses
    assert all("triplet" in e for e in losses)
    # The parts add up to what was minimised (each is a mean over the same steps, rounded by the trainer).
    assert all(e["contrastive"] + e["triplet"] == pytest.approx(e["loss"], abs=2e-3) for e in losses)


@pytest.mark.parametrize("sam_rho", [0.0, 0.05])
def test_resume_gives_the_weights_of_an_uninterrupted_run(corpus_file, tiny_base, tmp_path, sam_rho, monkeypatch):
    settings = {"sam_rho": sam_rho, "accumulation": 2, "select_by": "last"}
    train(corpus_file, tiny_base, tmp_path / "whole", **settings)

    from likewise.training.callbacks import OrderlyStop

    before = OrderlyStop.on_step_end

    def stop_after_three(self, args, state, control, **rest):
        self.asked = state.global_step == 3
        before(self, args, state, control, **rest)

    monkeypatch.setattr(OrderlyStop, "on_step_end", stop_after_three)
    stopped = train(corpus_file, tiny_base, tmp_path / "cut", **settings)
    assert not stopped.finished
    assert stopped.steps == 3
    monkeypatch.setattr(OrderlyStop, "on_step_end", before)
    torch.manual_seed(999)  # nothing may depend on what happened in between
    resumed = train(corpus_file, tiny_base, tmp_path / "cut", resume=True, **settings)
    assert resumed.finished
    whole, cut = weights(tmp_path / "whole"), weights(tmp_path / "cut")
    assert whole.keys() == cut.keys()
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    steps = [json.loads(line)["step"] for line in (tmp_path / "cut" / "log.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)


def test_same_seed_same_weights_other_seed_others(corpus_file, tiny_base, tmp_path):
    short = {"max_steps": 2, "select_by": "last"}
    for name, seed in (("a", 1), ("b", 1), ("c", 2)):
        train(corpus_file, tiny_base, tmp_path / name, seed=seed, **short)
    a, b, c = (weights(tmp_path / name) for name in "abc")
    assert all(torch.equal(a[name], b[name]) for name in a)
    assert any(not torch.equal(a[name], c[name]) for name in a)


def test_ctrl_c_saves_first(corpus_file, tiny_base, tmp_path):
    out = tmp_path / "run"
    code = (
        "import likewise, sys; r = likewise.train('simcse', sys.argv[1], sys.argv[2], sys.argv[3], batch_size=8, "
        "epochs=400, eval_steps=10000, held_out=20, select_by='last'); sys.exit(0 if r.finished else 130)"
    )
    command = [sys.executable, "-c", code, str(corpus_file), str(tiny_base), str(out)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 120
    while not (out / "log.jsonl").exists() and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "saved first" in errors
    checkpoints = list((out / "checkpoints").iterdir())
    assert len(checkpoints) == 1
    assert json.loads((out / "likewise.json").read_text())["status"] == "stopped"
    assert (checkpoints[0] / "optimizer.pt").stat().st_size > 0


def test_selects_by_sts_b_dev_where_it_is_found(corpus_file, tiny_base, tmp_path, data_dir):
    result = train(corpus_file, tiny_base, tmp_path / "run", select_by="auto", data=data_dir, max_steps=2, eval_steps=1)
    assert result.best["metric"] == "sts_dev_spearman"
    entries = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    scores = {e["step"]: e["eval_sts_dev_spearman"] for e in entries if "eval_sts_dev_spearman" in e}
    assert set(scores) == {0, 1, 2}
    assert result.best["score"] == pytest.approx(max(scores[1], scores[2]))
    assert result.best["improved"] == (result.best["score"] > scores[0])
    assert "STS-B dev" in result.record["selection"]


def test_input_that_is_wrong_is_told_before_a_model_is_loaded(corpus_file, tiny_base, tmp_path, monkeypatch):
    import likewise.encoder.build

    def loaded(*_):
        raise AssertionError("a model was loaded before the input was checked")

    monkeypatch.setattr(likewise.encoder.build, "load_transformer", loaded)
    with pytest.raises(OptionError, match="learning_rat"):
        train(corpus_file, tiny_base, tmp_path / "a", learning_rat=1)
    with pytest.raises(CorpusError, match=r"missing\.txt"):
        train(tmp_path / "missing.txt", tiny_base, tmp_path / "b")
    with pytest.raises(CorpusError, match="400"):
        train(corpus_file, tiny_base, tmp_path / "c", batch_size=401)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    with pytest.raises(RunFolderError, match="not empty"):
        train(corpus_file, tiny_base, tmp_path / "full", overwrite=True)
    assert (tmp_path / "full" / "thesis.txt").exists()


def test_resume_of_another_run_is_refused(corpus_file, tiny_base, tmp_path, monkeypatch):
    from likewise.training.callbacks import OrderlyStop

    monkeypatch.setattr(OrderlyStop, "asked", True, raising=False)
    monkeypatch.setattr(OrderlyStop, "__init__", lambda self, console: None)
    monkeypatch.setattr(OrderlyStop, "__exit__", lambda self, *_: None)
    monkeypatch.setattr(OrderlyStop, "__enter__", lambda self: self)
    out = tmp_path / "run"
    assert not train(corpus_file, tiny_base, out, select_by="last").finished
    with pytest.raises(RunFolderError, match="seed 1, not 2"):
        train(corpus_file, tiny_base, out, select_by="last", seed=2, resume=True)
    with pytest.raises(RunFolderError, match="learning_rate"):
        train(corpus_file, tiny_base, out, select_by="last", learning_rate=1.0, resume=True)
    with pytest.raises(RunFolderError, match="--resume"):
        train(corpus_file, tiny_base, out, select_by="last")
    with pytest.raises(RunFolderError, match="no checkpoint"):
        train(corpus_file, tiny_base, tmp_path / "none", resume=True)
