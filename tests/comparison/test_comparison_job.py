"""A comparison of tiny models, from the command to the page."""

import contextlib
import io
import json
import os
import re
import signal

import pytest

from likewise.comparison import Method, compare, one_run
from likewise.comparison.compared_methods import ComparisonError
from likewise.comparison.one_run import RunMaker
from likewise.evaluation import DataError
from likewise.recipes import OptionError
from likewise.runs.job import JobError, read_record, work_of
from likewise.runs.progress import Stopped

SMALL = {"steps": 4, "batch_size": 8, "eval_steps": 2, "held_out": 20, "max_length": 16}


@pytest.fixture(scope="module")
def shared(tmp_path_factory, corpus_file, tiny_base, data):
    """A finished comparison, and the lines that it told."""
    out, told = tmp_path_factory.mktemp("comparison"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIKEWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        given = {"base": str(tiny_base), "data": data, "tasks": ["sts-b-dev", "sts12"], "seeds": (1, 2), **SMALL}
        methods = [
            "simcse",
            "arccse margin=0 label='no margin'",
            "whitening",
            "bertscore",
            "model path=/nowhere label=lost",
        ]
        with contextlib.redirect_stderr(told):
            found = compare(methods, str(corpus_file), out=out, **given)
    return found, out, told.getvalue().splitlines(), methods, given


def test_every_method_has_its_runs(shared):
    found, *_ = shared
    assert {row.label: [r["seed"] for r in row.finished] for row in found.rows} == {
        "base": [1],
        "simcse": [1, 2],
        "no margin": [1, 2],
        "whitening": [1],  # the corpus is below what it draws: another seed is the same
        "bertscore": [1],
        "lost": [],
    }
    assert found.waiting == 0
    simcse = found.rows[1]
    assert all(0 < abs(score) <= 100 for score in simcse.cells["sts-b-dev"].scores.values())
    assert found.rows[2].finished[0]["options"]["margin"] == 0.0


def test_a_failed_run_is_recorded_and_the_others_go_on(shared):
    found, out, told, *_ = shared
    (failure,) = found.failures
    assert failure["label"] == "lost"
    assert "/nowhere" in failure["error"]
    assert any("lost, seed 1: failed" in line for line in told)
    assert "Failed: lost, seed 1" in (out / "comparison.md").read_text(encoding="utf-8")


def test_a_missing_task_is_named(shared):
    found, out, *_ = shared
    assert list(found.missing) == ["STS12"]
    assert "Missing: STS12" in (out / "comparison.html").read_text(encoding="utf-8")
    assert [column.name for column in found.columns] == ["sts-b-dev"]


def test_a_line_for_each_run(shared):
    _, _, told, *_ = shared
    assert told[0] == "8 runs, 0 of them done"
    assert re.fullmatch(r"\[2/8\] simcse, seed 1: STS-B dev -?\d+\.\d\d \(.*, about .* left\)", told[2])
    assert len(told) == 9


def test_the_page_needs_nothing_else(shared):
    _, out, *_ = shared
    text = (out / "comparison.html").read_text(encoding="utf-8")
    assert re.findall(r"(?i)(?:https?:)?//[a-z]", text) == []
    assert re.findall(r"(?:src|href)=", text) == []
    assert "<script" not in text
    assert "url(" not in text
    assert text.count("<svg ") == 1
    assert {path.name for path in out.glob("comparison.*")} == {
        f"comparison.{kind}" for kind in ("json", "md", "html", "csv", "tex")
    }


def test_two_rows_differ_by_an_interval_over_pairs_and_seeds(shared):
    found, out, *_ = shared
    difference = found.scores.difference("simcse", "base")
    means = {row.label: row.cells["sts-b-dev"].mean for row in found.rows if row.cells}
    assert difference.value == pytest.approx(means["simcse"] - means["base"])
    assert difference.low < difference.value < difference.high
    written = json.loads((out / "comparison.json").read_text(encoding="utf-8"))
    assert written["differences"]["simcse"]["STS-B dev"]["low"] == difference.low
    assert "Difference from base" in (out / "comparison.md").read_text(encoding="utf-8")


def test_it_becomes_a_frame_and_latex(shared):
    found, out, *_ = shared
    frame = found.to_frame()
    assert frame.loc["simcse", "STS-B dev"] == found.rows[1].cells["sts-b-dev"].mean
    assert frame.loc["simcse", "STS-B dev ±"] == found.rows[1].cells["sts-b-dev"].spread
    assert (out / "comparison.tex").read_text(encoding="utf-8") == found.to_latex()
    assert (out / "comparison.csv").read_text(encoding="utf-8") == found.to_csv()
    assert "simcse" in str(found)


def test_models_are_not_left_behind(shared):
    _, out, *_ = shared
    assert not (out / "runs").exists()
    assert not work_of(out).exists()


def test_what_is_done_is_not_done_again(shared, corpus_file, monkeypatch):
    found, out, _, methods, given = shared
    monkeypatch.setattr(RunMaker, "run", lambda *_: pytest.fail("a run was done again"))
    again = compare(methods, str(corpus_file), out=out, quiet=True, **given)
    assert [row.cells for row in again.rows] == [row.cells for row in found.rows]


def test_another_comparison_is_not_mixed_in(shared, corpus_file):
    _, out, _, methods, given = shared
    with pytest.raises(JobError, match="steps"):
        compare(methods, str(corpus_file), out=out, quiet=True, **{**given, "steps": 5})


def test_failed_runs_are_done_again_if_asked(shared, corpus_file, monkeypatch):
    _, out, _, methods, given = shared
    again = []

    def run(self, method, seed, items):
        again.append(method.label)
        return {"label": method.label, "seed": seed, "status": "failed", "error": "still lost", "seconds": 0.0}

    monkeypatch.setattr(RunMaker, "run", run)
    found = compare(methods, str(corpus_file), out=out, quiet=True, retry_failed=True, **given)
    assert again == ["lost"]
    assert [failure["error"] for failure in found.failures] == ["still lost"]


def test_a_run_that_was_stopped_after_its_training_is_not_trained_again(
    corpus_file, tiny_base, data, tmp_path, monkeypatch
):
    given = {"base": str(tiny_base), "data": data, "tasks": "sts-b-dev", "seeds": (1,), **SMALL}
    first = compare("simcse", str(corpus_file), out=tmp_path / "whole", quiet=True, **given)
    real, calls = one_run.evaluate, []

    def stopped(*model, **how):
        calls.append(model)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*model, **how)

    monkeypatch.setattr(one_run, "evaluate", stopped)
    with pytest.raises(KeyboardInterrupt):
        compare("simcse", str(corpus_file), out=tmp_path / "out", quiet=True, **given)
    monkeypatch.setattr("likewise.train", lambda *_, **__: pytest.fail("it was trained again"), raising=False)
    again = compare("simcse", str(corpus_file), out=tmp_path / "out", quiet=True, **given)
    assert again.failures == []
    assert again.rows[1].cells == first.rows[1].cells
    assert again.rows[1].finished[0]["dev"] == first.rows[1].finished[0]["dev"]


def test_a_stopped_comparison_goes_on(corpus_file, tiny_base, data, tmp_path, monkeypatch, capsys):
    given = {"base": str(tiny_base), "data": data, "tasks": "sts-b-dev", "seeds": (1,)}
    real = RunMaker.run

    def stopped(self, method, seed, items):
        if method.name == "last-average":
            raise KeyboardInterrupt
        return real(self, method, seed, items)

    monkeypatch.setattr(RunMaker, "run", stopped)
    with pytest.raises(KeyboardInterrupt):
        compare(["cls", "last-average"], str(corpus_file), out=tmp_path, quiet=True, **given)
    assert "1 run is still to be done" in (tmp_path / "comparison.html").read_text(encoding="utf-8")
    monkeypatch.setattr(RunMaker, "run", real)
    capsys.readouterr()
    found = compare(["cls", "last-average"], str(corpus_file), out=tmp_path, **given)
    assert "3 runs, 2 of them done" in capsys.readouterr().err
    assert found.waiting == 0
    # The base as it comes is a plain checkpoint, which is read with mean pooling: the same as the last average.
    base, _, last = found.rows
    assert last.cells["sts-b-dev"].mean == pytest.approx(base.cells["sts-b-dev"].mean, abs=1e-4)


def test_a_finished_comparison_grows(corpus_file, tiny_base, data, tmp_path, monkeypatch):
    given = {"base": str(tiny_base), "data": data, "tasks": "sts-b-dev", "out": tmp_path, "quiet": True}
    first = compare("cls", str(corpus_file), seeds=(1,), **given)
    made, real = [], RunMaker.run
    monkeypatch.setattr(RunMaker, "run", lambda self, *run: made.append((run[0].label, run[1])) or real(self, *run))
    with pytest.raises(ComparisonError, match="steps"):
        compare(["cls", "simcse"], str(corpus_file), **given)
    grown = compare(["cls", "whitening sentences=50"], str(corpus_file), seeds=(1, 2), **given)
    assert made == [("whitening sentences=50", 1), ("whitening sentences=50", 2)]
    assert [row.label for row in grown.rows] == ["base", "cls", "whitening sentences=50"]
    assert grown.rows[1].cells == first.rows[1].cells
    made.clear()
    (damaged,) = (tmp_path / "results").glob("cls-*.json")
    damaged.write_text("{")
    compare(["cls", "whitening sentences=50"], str(corpus_file), seeds=(1, 2), **given)
    assert made == [("cls", 1)]
    assert read_record(tmp_path)["plan"]["job"] == "compare"


def test_a_signal_stops_after_the_run_and_the_same_call_goes_on(corpus_file, tiny_base, data, tmp_path, monkeypatch):
    given = {"base": str(tiny_base), "data": data, "tasks": "sts-b-dev", "seeds": (1,), **SMALL, "quiet": True}
    made, real = [], RunMaker.run

    def run(self, method, seed, items):
        made.append(method.label)
        if len(made) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return real(self, method, seed, items)

    monkeypatch.setattr(RunMaker, "run", run)
    with pytest.raises(Stopped, match="1 of 2"):
        compare("cls", str(corpus_file), out=tmp_path, **given)
    assert "1 run is still to be done" in (tmp_path / "comparison.md").read_text(encoding="utf-8")
    assert compare("cls", str(corpus_file), out=tmp_path, **given).waiting == 0
    assert made == ["base", "cls"]


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"steps": None}, ComparisonError, "steps"),
        ({"minutes": 1.0}, OptionError, "minutes"),
        ({"seeds": (1, 1)}, ComparisonError, "1, 1"),
        ({"preset": "huge"}, ComparisonError, "huge"),
        ({"margin": 1.0}, OptionError, "margin"),
        ({"data": "/nowhere"}, DataError, "/nowhere"),
        ({"tasks": "sts12"}, ComparisonError, "STS12"),
        ({"methods": []}, ComparisonError, ""),
    ],
)
def test_what_is_wrong_is_told_before_work_starts(changes, error, message, corpus_file, tiny_base, data, tmp_path):
    given = {"methods": ["simcse"], "base": str(tiny_base), "data": data, "tasks": "sts-b-dev", **SMALL, **changes}
    with pytest.raises(error, match=message):
        compare(corpus=str(corpus_file), out=tmp_path / "out", quiet=True, **given)
    assert not (tmp_path / "out").exists()


def test_a_function_may_make_a_model_and_no_corpus_is_needed_if_nothing_learns(tiny_base, data, tmp_path, saved_model):
    import likewise

    def made(folder, seed):
        return {"model": likewise.load(saved_model, precision="fp32"), "note": seed}

    own = Method("mine", "made", "mine", make=made)
    given = {"base": str(tiny_base), "data": data, "tasks": "sts-b-dev", "seeds": (1, 2), "quiet": True}
    found = compare(["base", own], out=tmp_path, **given)
    assert [(row.label, [run.get("note") for run in row.finished]) for row in found.rows] == [
        ("base", [None]),
        ("mine", [1, 2]),
    ]
    assert found.failures == []
    with pytest.raises(ComparisonError, match="simcse"):
        compare("simcse", out=tmp_path / "other", steps=1, **given)
