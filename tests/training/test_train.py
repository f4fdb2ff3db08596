import dataclasses
import json
import os
import shutil
import signal
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers.utils.logging import is_progress_bar_enabled

import likewise
from likewise.context import distill
from likewise.corpus import CorpusError, prepare
from likewise.encoder.build import build_encoder
from likewise.encoder.location import LoadError
from likewise.recipes import OptionError, find_recipe
from likewise.runs.job import JobError, work_of
from likewise.runs.progress import Stopped
from likewise.runs.whole_files import is_sealed
from likewise.training import TrainingError
from likewise.training.selection import choose_selection

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
    return likewise.train(recipe, corpus_file, base=tiny_base, out=out, **(SMALL | changes))


@pytest.fixture(scope="module")
def finished(corpus_file, tiny_base, tmp_path_factory):
    """A run with SAM, accumulation, triplets and training head that went through in one go."""
    out = tmp_path_factory.mktemp("runs") / "whole"
    return train(corpus_file, tiny_base, out, sam_rho=0.05, accumulation=2, triplet_weight=0.1)


def test_texts_of_python_are_the_same_corpus(finished, corpus_file, tiny_base):
    given = (line for line in corpus_file.read_text().splitlines())
    again = train(given, tiny_base, finished.path, sam_rho=0.05, accumulation=2, triplet_weight=0.1)
    assert again.record == finished.record


def test_the_folder_loads_with_no_flag_and_has_no_head(finished, sentences):
    plain = SentenceTransformer(str(finished.path))
    assert [type(module).__name__ for module in plain] == ["Transformer", "Pooling"]
    own = likewise.load(finished.path, engine="torch")
    assert np.array_equal(plain.encode(sentences[:20]), own.encode(sentences[:20]))
    assert finished.steps == 6
    assert not (finished.path / "checkpoints").exists()
    assert not work_of(finished.path).exists()
    default = likewise.load(finished.path).encode(sentences[:20])
    assert np.array_equal(default, finished.model.encode(sentences[:20]))
    exact = likewise.load(finished.path, precision="fp32").encode(sentences[:20])
    assert np.allclose(exact, plain.encode(sentences[:20]), rtol=0, atol=1e-6)


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
def test_resume_gives_the_weights_of_an_uninterrupted_run(corpus_file, tiny_base, tmp_path, sam_rho, stopping_after):
    settings = {"sam_rho": sam_rho, "accumulation": 2, "select_by": "last", "triplet_weight": 0.1}
    train(corpus_file, tiny_base, tmp_path / "whole", **settings)
    with stopping_after(3):
        train(corpus_file, tiny_base, tmp_path / "cut", **settings)
    assert not (tmp_path / "cut" / "modules.json").exists()
    torch.manual_seed(999)  # nothing may depend on what happened in between
    train(corpus_file, tiny_base, tmp_path / "cut", resume=True, **settings)
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


def train_until_stopped(corpus, base, out, said):
    signal.signal(signal.SIGINT, signal.default_int_handler)  # tests that run in the background ignore it
    settings = {"batch_size": 8, "epochs": 400, "eval_steps": 10_000, "held_out": 20, "select_by": "last"}
    with said.open("w") as sys.stderr:
        try:
            likewise.train("simcse", corpus, base=base, out=out, **settings)
        except Stopped as stopped:
            print(stopped, file=sys.stderr)
            sys.exit(130)


def test_ctrl_c_saves_first(corpus_file, tiny_base, new_process, tmp_path):
    out, said = tmp_path / "run", tmp_path / "said.txt"
    process = new_process(train_until_stopped, corpus_file, tiny_base, out, said)
    deadline = time.monotonic() + 120
    log = work_of(out) / "log.jsonl"
    while not (log.exists() and log.stat().st_size) and process.is_alive() and time.monotonic() < deadline:
        time.sleep(0.05)
    os.kill(process.pid, signal.SIGINT)
    process.join(60)
    assert process.exitcode == 130
    assert "finished and saved" in said.read_text()
    assert "Run the same command again to resume." in said.read_text()
    (checkpoint,) = (work_of(out) / "checkpoints").iterdir()
    assert is_sealed(checkpoint)
    assert (checkpoint / "optimizer.pt").stat().st_size > 0


def test_selects_by_sts_b_dev_where_it_is_found(corpus_file, tiny_base, tmp_path, sentences):
    dev = tmp_path / "data" / "STS" / "STSBenchmark" / "sts-dev.csv"
    dev.parent.mkdir(parents=True)
    rows = (f"news\tX\t2015\t{i}\t{i % 6}\t{sentences[i % 20]}\t{sentences[i % 23]}\n" for i in range(1500))
    dev.write_text("".join(rows), encoding="utf-8")
    data = tmp_path / "data"
    result = train(corpus_file, tiny_base, tmp_path / "run", select_by="auto", data=data, max_steps=2, eval_steps=1)
    assert result.best["metric"] == "sts_dev_spearman"
    entries = [json.loads(line) for line in (tmp_path / "run" / "log.jsonl").read_text().splitlines()]
    scores = {e["step"]: e["eval_sts_dev_spearman"] for e in entries if "eval_sts_dev_spearman" in e}
    assert set(scores) == {0, 1, 2}
    assert result.best["score"] == pytest.approx(max(scores[1], scores[2]))
    assert result.best["improved"] == (result.best["score"] - scores[0] > (result.best["noise"] or 0))
    assert "STS-B dev" in result.record["selection"]


def test_input_that_is_wrong_is_told_before_a_model_is_loaded(corpus_file, tiny_base, tmp_path, monkeypatch, says):
    import likewise.encoder.build

    def loaded(*_):
        raise AssertionError("a model was loaded before the input was checked")

    for opens in ("open_base", "open_model"):
        monkeypatch.setattr(likewise.encoder.build, opens, loaded)
    with says(OptionError):
        train(corpus_file, tiny_base, tmp_path / "a", learning_rat=1)
    with says(CorpusError):
        train(tmp_path / "missing.txt", tiny_base, tmp_path / "b")
    with says(CorpusError):
        train(corpus_file, tiny_base, tmp_path / "c", batch_size=401)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    with says(JobError):
        train(corpus_file, tiny_base, tmp_path / "full", overwrite=True)
    assert (tmp_path / "full" / "thesis.txt").exists()


def test_resume_of_another_run_is_refused(corpus_file, tiny_base, tmp_path, stopping_after, says):
    out = tmp_path / "run"
    with stopping_after(1):
        train(corpus_file, tiny_base, out, select_by="last")
    for changes in (
        {"seed": 2},
        {"learning_rate": 1.0},
        {"recipe": "simcse"},
        {"select_by": "held-out"},
    ):
        with says(JobError):
            train(corpus_file, tiny_base, out, **({"select_by": "last"} | changes))
    with says(JobError):
        train(corpus_file, tiny_base, tmp_path / "none", resume=True)


def test_data_found_or_gone_between_start_and_resume_is_refused(
    corpus_file, tiny_base, tmp_path, stopping_after, data_dir, monkeypatch, says
):
    """The data selects the checkpoint and decides which sentences are trained on."""
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "nothing"))
    out, settings = tmp_path / "run", {"select_by": "auto", "max_steps": 2, "eval_steps": 1}
    with stopping_after(1):
        train(corpus_file, tiny_base, out, **settings)
    with says(JobError):
        train(corpus_file, tiny_base, out, data=data_dir, **settings)
    assert "separation" in train(corpus_file, tiny_base, out, **settings).record["selection"]


def test_the_same_again_is_not_trained_again_and_overwriting_replaces_only_at_the_end(
    finished, corpus_file, tiny_base, tmp_path, stopping_after, says
):
    again = train(corpus_file, tiny_base, finished.path, sam_rho=0.05, accumulation=2, triplet_weight=0.1)
    assert again.record == finished.record
    out, settings = tmp_path / "run", {"select_by": "last", "max_steps": 2}
    train(corpus_file, tiny_base, out, **settings)
    (out / "thesis.txt").write_text("years of work")
    old = weights(out)
    with says(JobError):
        train(corpus_file, tiny_base, out, seed=2, **settings)
    with pytest.raises(CorpusError):
        train(tmp_path / "missing.txt", tiny_base, out, overwrite=True, **settings)
    with says(ValueError):
        train(corpus_file, tmp_path / "nowhere", out, overwrite=True, **settings)
    with stopping_after(1):
        train(corpus_file, tiny_base, out, seed=2, overwrite=True, **settings)
    assert all(torch.equal(weights(out)[name], old[name]) for name in old)
    train(corpus_file, tiny_base, out, seed=2, **settings)
    assert any(not torch.equal(weights(out)[name], old[name]) for name in old)
    # From itself, over itself.
    second = weights(out)
    made = train(corpus_file, out, out, overwrite=True, **settings)
    assert made.record["base_run"]["seed"] == 2
    assert any(not torch.equal(weights(out)[name], second[name]) for name in second)
    assert (out / "thesis.txt").read_text() == "years of work"


def test_input_that_is_wrong_leaves_no_folder(corpus_file, tiny_base, tmp_path):
    out = tmp_path / "run"
    for changes in ({"seed": -1}, {"base": tmp_path / "nowhere"}, {"batch_size": 1}, {"data": tmp_path}):
        given = {"base": tiny_base} | SMALL | {"select_by": "auto"} | changes
        with pytest.raises(ValueError):
            likewise.train("simcse", corpus_file, out=out, **given)
        assert not out.exists()


EACH_STEP = {"select_by": "last", "eval_steps": 1, "max_steps": 4}


@pytest.fixture(scope="module")
def stopped(corpus_file, tiny_base, tmp_path_factory, stopping_after):
    """A folder with a run that went through, and the same one stopped after its third step."""
    root = tmp_path_factory.mktemp("stopped")
    train(corpus_file, tiny_base, root / "whole", **EACH_STEP)
    with stopping_after(3):
        train(corpus_file, tiny_base, root / "cut", **EACH_STEP)
    return root


@pytest.mark.parametrize("damage", ["optimizer.pt", "cut", "flipped", "all"])
def test_a_damaged_checkpoint_is_passed_over(damage, stopped, corpus_file, tiny_base, tmp_path):
    out = tmp_path / "cut"
    shutil.copytree(work_of(stopped / "cut"), work_of(out))
    checkpoints = sorted((work_of(out) / "checkpoints").iterdir())
    assert [one.name for one in checkpoints] == ["checkpoint-2", "checkpoint-3"]
    for checkpoint in checkpoints if damage == "all" else checkpoints[1:]:
        path = checkpoint / "model.safetensors"
        if damage == "cut":
            path.write_bytes(path.read_bytes()[:-100])
        elif damage == "flipped":
            content = bytearray(path.read_bytes())
            content[-1] ^= 1
            path.write_bytes(content)
        else:
            (checkpoint / ("optimizer.pt" if damage == "all" else damage)).unlink()
    train(corpus_file, tiny_base, out, resume=True, **EACH_STEP)
    whole, cut = weights(stopped / "whole"), weights(out)
    assert all(torch.equal(whole[name], cut[name]) for name in whole)
    steps = [json.loads(line)["step"] for line in (out / "log.jsonl").read_text().splitlines()]
    assert steps == sorted(steps)


# Seven batches make an epoch: the last step lies inside the second.
NINE_STEPS = {"eval_steps": 3, "max_steps": 9, "batch_size": 48}


@pytest.fixture(scope="module", params=["last", "held-out"])
def undisturbed(request, corpus_file, tiny_base, tmp_path_factory):
    """How a checkpoint is chosen, and the folder of a run that went through."""
    out = tmp_path_factory.mktemp("undisturbed") / "whole"
    train(corpus_file, tiny_base, out, select_by=request.param, **NINE_STEPS)
    return request.param, out


@pytest.mark.parametrize("moment", ["before the first checkpoint", "after the last step", "before the record"])
def test_a_killed_training_goes_on_to_the_same_weights(
    moment, undisturbed, corpus_file, tiny_base, tmp_path, monkeypatch
):
    from likewise.runs import results
    from likewise.training import training_job
    from likewise.training.training_job import Course

    class Killed(BaseException):
        pass

    def killed(*_, **__):
        raise Killed

    settings = {"select_by": undisturbed[0], **NINE_STEPS}
    with monkeypatch.context() as patched, pytest.raises(Killed):
        if moment == "before the first checkpoint":
            patched.setattr(Course, "on_step_end", killed)
        elif moment == "after the last step":
            patched.setattr(training_job, "trained_card", killed)
        else:
            write = results.write_json
            at = {"likewise.json": killed}
            patched.setattr(results, "write_json", lambda path, content: at.get(path.name, write)(path, content))
        train(corpus_file, tiny_base, tmp_path / "cut", **settings)
    torch.manual_seed(999)
    cut = train(corpus_file, tiny_base, tmp_path / "cut", **settings)
    whole = weights(undisturbed[1])
    assert all(torch.equal(whole[name], weights(cut.path)[name]) for name in whole)
    assert cut.record["best"] == json.loads((undisturbed[1] / "likewise.json").read_text())["best"]
    entries = [json.loads(line) for line in (cut.path / "log.jsonl").read_text().splitlines()]
    assert [entry["step"] for entry in entries] == sorted(entry["step"] for entry in entries)


def test_a_training_that_diverges_says_so_and_leaves_nothing(corpus_file, tiny_base, tmp_path, says):
    with says(TrainingError):
        train(corpus_file, tiny_base, tmp_path / "run", recipe="simcse", learning_rate=1e30, eval_steps=100)
    assert not (tmp_path / "run").exists()


def test_a_base_with_vectors_that_are_not_finite_is_refused(corpus_file, tiny_model, tmp_path, says):
    tiny_model[0].auto_model.embeddings.word_embeddings.weight.data[:] = float("nan")
    tiny_model.save_pretrained(str(tmp_path / "base"))
    with says(TrainingError):
        train(corpus_file, tmp_path / "base", tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_recipe_may_be_an_object(corpus_file, tiny_base, tmp_path):
    mine = dataclasses.replace(find_recipe("simcse"), name="mine")
    result = train(corpus_file, tiny_base, tmp_path / "run", recipe=mine, max_steps=1)
    assert result.record["recipe"] == "mine"


@pytest.mark.parametrize("base", ["", "runs/nowhere/at/all"])
def test_a_base_that_is_not_there_is_told_before_the_corpus_is_read(base, tmp_path, says):
    for run in (
        lambda: train(tmp_path / "no-corpus.txt", base, tmp_path / "run"),
        lambda: likewise.finetune("sts", tmp_path / "no-rows.tsv", base=base, out=tmp_path / "run", quiet=True),
        lambda: distill(tmp_path / "no-harvest", base=base, out=tmp_path / "run", quiet=True),
    ):
        with says(LoadError):
            run()


def test_a_killed_installation_in_place_of_the_base_is_completed(corpus_file, tiny_base, tmp_path, monkeypatch):
    """`--base runs/x --out runs/x --overwrite`: in the middle of its installation there is no base to load."""
    out = tmp_path / "run"
    settings = {"recipe": "simcse", "max_steps": 1, "overwrite": True}
    train(corpus_file, tiny_base, out, **settings)
    replace = Path.replace

    def killed(self, target):
        if Path(target) == out / "modules.json":
            raise KeyboardInterrupt
        return replace(self, target)

    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(Path, "replace", killed)
        train(corpus_file, out, out, seed=2, **settings)
    assert not (out / "modules.json").exists()
    result = train(corpus_file, out, out, seed=2, **settings)
    assert (result.record["seed"], result.record["base_run"]["seed"]) == (2, 1)  # not trained a second time
    assert result.record == json.loads((out / "likewise.json").read_text())
    assert not work_of(out).exists()


def test_a_base_that_is_no_model_is_told_before_the_corpus_is_read(corpus_file, tmp_path, says):
    for base in (corpus_file, "", "nobody/mistyped"):
        with says(LoadError):
            likewise.train("simcse", tmp_path / "missing.txt", base=base, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_saved_weights_lie_between_the_base_s_and_the_trained_ones(corpus_file, tiny_base, tmp_path):
    """Two runs of the same updates: the second saves a quarter of the way, and scores what it saves."""
    settings = {"max_steps": 2, "pooling": "mean", "head": False, "learning_rate": 0.01}
    whole = train(corpus_file, tiny_base, tmp_path / "whole", **settings)
    part = train(corpus_file, tiny_base, tmp_path / "part", interpolation=0.25, **settings)
    base = build_encoder(str(tiny_base), pooling="mean", head=False).state_dict()  # a pooler in it is random
    ends, found = whole.model.state_dict(), part.model.state_dict()
    assert any((ends[name] - value).abs().max() > 1e-6 for name, value in base.items())
    for name in base.keys() - {name for name in base if "pooler" in name}:
        torch.testing.assert_close(found[name], base[name] + 0.25 * (ends[name] - base[name]), atol=1e-6, rtol=0)
    rows = prepare(corpus_file).dataset
    evaluator = choose_selection(
        rows, find_recipe("arccse").options(**{n: SMALL[n] for n in ("held_out", "select_by")}), 1, None
    ).evaluator
    assert part.best["score"] == pytest.approx(evaluator(part.model)[part.best["metric"]], abs=1e-4)
    assert part.best["score"] != pytest.approx(whole.best["score"], abs=1e-4)
