"""A comparison of tiny models, from the lines of methods to the table."""

import contextlib
import io
import json
import os
import random
import re
import signal

import pytest

from likewise.evaluation import DataError, evaluate
from likewise.recipes import OptionError
from likewise.runs.job import JobError, read_record, work_of
from likewise.runs.progress import Stopped
from likewise.training import ComparisonError, Method, compare, comparison
from likewise.training.methods import parse_methods

SMALL = {"steps": 4, "batch_size": 8, "eval_steps": 2, "held_out": 20, "max_length": 16}


@pytest.fixture(scope="module")
def data(sentences, tmp_path_factory):
    """A data folder with STS-B dev of few sentences, and nothing else."""
    folder = tmp_path_factory.mktemp("data")
    rng = random.Random(0)
    rows = [f"g\tf\ty\t{i}\t{i % 6}\t{rng.choice(sentences[:12])}\t{rng.choice(sentences[:12])}" for i in range(1500)]
    (folder / "STS/STSBenchmark").mkdir(parents=True)
    (folder / "STS/STSBenchmark/sts-dev.csv").write_text("\n".join(rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def shared(tmp_path_factory, corpus_file, tiny_base, data):
    """A finished comparison, and the lines that it printed."""
    out, printed = tmp_path_factory.mktemp("comparison"), io.StringIO()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LIKEWISE_CACHE", str(tmp_path_factory.mktemp("cache")))
        given = {"base": str(tiny_base), "data": data, "tasks": ["sts-b-dev", "sts12"], "seeds": (1, 2), **SMALL}
        methods = ["simcse", "arccse margin=0 label='no margin'", f"bertscore:{tiny_base} label=tokens", "/nowhere/x"]
        with contextlib.redirect_stderr(printed):
            table = compare(methods, str(corpus_file), out=out, **given)
    return table, out, printed.getvalue().splitlines(), methods, given


def runs_of(out):
    return json.loads((out / "comparison.json").read_text(encoding="utf-8"))["runs"]


def method(line):
    (one,) = parse_methods([line])
    return one


def test_every_method_has_its_runs_and_the_base_is_the_first_row(shared):
    table, out, *_ = shared
    assert table.labels == ("base", "simcse", "no margin", "tokens", "/nowhere/x")
    assert table.reference == "base"
    assert [(run["label"], run["seed"]) for run in runs_of(out)] == [
        *((label, 1) for label in table.labels),
        ("simcse", 2),
        ("no margin", 2),
    ]
    assert all(0 < abs(score) <= 100 for score in table.cells["simcse", "sts-b-dev"].scores.values())
    assert runs_of(out)[2]["options"]["margin"] == 0.0
    assert table.notes_of == {"base": "1", "simcse": "2", "no margin": "2", "tokens": "1", "/nowhere/x": "0, 1 failed"}


def test_a_failed_run_and_a_missing_task_are_named_and_the_others_go_on(shared):
    table, out, lines, *_ = shared
    (failed,) = [run for run in runs_of(out) if run["status"] == "failed"]
    assert "/nowhere/x" in failed["error"]
    assert any("/nowhere/x, seed 1: failed" in line for line in lines)
    text = (out / "comparison.md").read_text(encoding="utf-8")
    assert "Failed: /nowhere/x, seed 1" in text
    assert "Missing: STS12" in text
    assert [column.name for column in table.columns] == ["sts-b-dev"]


def test_a_line_for_each_run(shared):
    _, _, lines, *_ = shared
    assert re.fullmatch(r"\[2/7\] simcse, seed 1: STS-B dev -?\d+\.\d\d \(about \d+ s\)", lines[1])
    assert len(lines) == 7


def test_two_rows_differ_by_an_interval_over_pairs_and_seeds(shared):
    table, out, *_ = shared
    difference = table.difference("simcse", "base")
    means = {label: table.cells[label, "sts-b-dev"].mean for label in ("base", "simcse")}
    assert difference.value == pytest.approx(means["simcse"] - means["base"])
    assert difference.low < difference.value < difference.high
    assert "Difference from base" in (out / "comparison.md").read_text(encoding="utf-8")


def test_the_table_is_that_of_evaluate(saved_model, word_model, data, tmp_path):
    methods, given = ["base", str(saved_model), str(word_model)], {"tasks": "sts-b-dev", "data": data}
    table = compare(methods, base=str(saved_model), out=tmp_path / "out", seeds=(1,), quiet=True, **given)
    scores = evaluate([str(saved_model), str(word_model)], **given).scores
    expected = scores.difference(str(word_model), str(saved_model))
    assert table.difference(str(word_model), "base") == expected
    assert table.difference(str(saved_model), "base").value == 0
    assert expected.low < expected.value < expected.high


def test_texts_in_memory_are_a_corpus(sentences, tiny_base, data, tmp_path):
    given = {"base": str(tiny_base), "data": data, "tasks": "sts-b-dev", "seeds": (1,), "quiet": True, **SMALL}
    table = compare("simcse", sentences[:60], out=tmp_path / "out", **given)
    assert table.notes_of == {"base": "1", "simcse": "1"}


def test_it_becomes_a_frame_and_latex(shared):
    table, out, *_ = shared
    frame = table.to_frame()
    assert frame.loc["simcse", "STS-B dev"] == table.cells["simcse", "sts-b-dev"].mean
    assert frame.loc["simcse", "STS-B dev ±"] == table.cells["simcse", "sts-b-dev"].spread
    assert (out / "comparison.tex").read_text(encoding="utf-8") == table.to_latex()
    assert (out / "comparison.csv").read_text(encoding="utf-8") == table.to_csv()


def test_models_are_not_left_behind(shared):
    _, out, *_ = shared
    assert not work_of(out).exists()
    assert not list(out.rglob("*.safetensors"))


def test_what_is_done_is_not_done_again_and_what_failed_is(shared, corpus_file, monkeypatch):
    table, out, _, methods, given = shared
    evaluated, real = [], comparison.evaluate
    monkeypatch.setattr(comparison, "train", lambda *_, **__: pytest.fail("a run was done again"))
    monkeypatch.setattr(comparison, "evaluate", lambda model, *a, **k: evaluated.append(model) or real(model, *a, **k))
    again = compare(methods, str(corpus_file), out=out, quiet=True, **given)
    assert evaluated == ["/nowhere/x"]
    assert again.cells == table.cells
    assert again.differences() == table.differences() != {}


def test_another_comparison_is_not_mixed_in(shared, corpus_file, says):
    _, out, _, methods, given = shared
    with says(JobError):
        compare(methods, str(corpus_file), out=out, quiet=True, **{**given, "steps": 5})


def test_a_run_that_was_stopped_after_its_training_is_not_trained_again(
    corpus_file, tiny_base, data, tmp_path, monkeypatch
):
    given = {"base": str(tiny_base), "data": data, "tasks": "sts-b-dev", "seeds": (1,), **SMALL}
    first = compare("simcse", str(corpus_file), out=tmp_path / "whole", quiet=True, **given)
    real, trained, calls = comparison.evaluate, comparison.train, []

    def stopped(*model, **how):
        calls.append(model)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return real(*model, **how)

    def only_returned(*args, out, **how):
        assert read_record(out), "it would be trained again"
        return trained(*args, out=out, **how)

    monkeypatch.setattr(comparison, "evaluate", stopped)
    with pytest.raises(KeyboardInterrupt):
        compare("simcse", str(corpus_file), out=tmp_path / "out", quiet=True, **given)
    monkeypatch.setattr(comparison, "train", only_returned)
    again = compare("simcse", str(corpus_file), out=tmp_path / "out", quiet=True, **given)
    assert again.cells == first.cells


def test_a_finished_comparison_grows_and_a_damaged_result_is_made_again(
    corpus_file, tiny_base, saved_model, data, tmp_path, monkeypatch
):
    given = {"base": str(tiny_base), "data": data, "tasks": "sts-b-dev", "out": tmp_path / "out", "quiet": True}
    own = [f"{saved_model} label=own"]
    first = compare(["base", *own], seeds=(1,), **given)
    evaluated, real = [], comparison.evaluate
    monkeypatch.setattr(comparison, "evaluate", lambda model, *a, **k: evaluated.append(model) or real(model, *a, **k))
    grown = compare(["base", *own, f"bertscore:{tiny_base} label=tokens"], seeds=(1, 2), **given)
    assert evaluated == [f"bertscore:{tiny_base}"]  # the seed changes none of them
    assert grown.labels == ("base", "own", "tokens")
    assert grown.cells["own", "sts-b-dev"] == first.cells["own", "sts-b-dev"]
    evaluated.clear()
    (damaged,) = (tmp_path / "out/results").glob(f"{method(own[0]).key}*.json")
    damaged.write_text("{")
    compare(["base", *own], seeds=(1,), **given)
    assert evaluated == [str(saved_model)]
    assert read_record(tmp_path / "out")["plan"]["job"] == "compare"


def test_a_signal_stops_after_the_run_and_the_same_call_goes_on(
    tiny_base, saved_model, data, tmp_path, monkeypatch, says
):
    given = {"base": str(tiny_base), "data": data, "tasks": "sts-b-dev", "seeds": (1,), "quiet": True}
    evaluated, real = [], comparison.evaluate

    def evaluate(model, *args, **how):
        evaluated.append(model)
        if len(evaluated) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return real(model, *args, **how)

    monkeypatch.setattr(comparison, "evaluate", evaluate)
    with says(Stopped):
        compare(["base", str(saved_model)], out=tmp_path / "out", **given)
    assert len(compare(["base", str(saved_model)], out=tmp_path / "out", **given).cells) == 2
    assert evaluated == [str(tiny_base), str(saved_model)]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"steps": None}, ComparisonError),
        ({"minutes": 1.0}, OptionError),
        ({"seeds": (1, 1)}, ComparisonError),
        ({"preset": "huge"}, ComparisonError),
        ({"margin": 1.0}, OptionError),
        ({"data": "/nowhere"}, DataError),
        ({"tasks": "sts12"}, ComparisonError),
        ({"methods": []}, ComparisonError),
        ({"corpus": ()}, ComparisonError),
    ],
)
def test_what_is_wrong_is_told_before_work_starts(changes, error, corpus_file, tiny_base, data, tmp_path, says):
    given = {"methods": ["simcse"], "base": str(tiny_base), "data": data, "tasks": "sts-b-dev", **SMALL}
    with says(error):
        compare(**{"corpus": str(corpus_file), "out": tmp_path / "out", "quiet": True, **given, **changes})
    assert not (tmp_path / "out").exists()


def test_a_function_may_make_a_model(tiny_base, data, tmp_path, saved_model):
    import likewise

    def made(folder, seed):
        return {"model": likewise.load(saved_model, precision="fp32"), "note": seed}

    results = []
    given = {"base": str(tiny_base), "data": data, "tasks": "sts-b-dev", "seeds": (1, 2), "quiet": True}
    table = compare(["base", Method("mine", make=made)], out=tmp_path / "out", on_result=results.append, **given)
    assert [(run["label"], run.get("note")) for run in results] == [("base", None), ("mine", 1), ("mine", 2)]
    assert table.notes_of == {"base": "1", "mine": "2"}


def test_options_have_the_types_of_the_recipe():
    one = method('arccse margin=0 head=false contrastive=nt-xent triplet-min-words=12 label="no margin"')
    assert (one.label, one.recipe) == ("no margin", "arccse")
    assert one.options == {"margin": 0.0, "head": False, "contrastive": "nt-xent", "triplet_min_words": 12}
    assert [type(value) for value in one.options.values()] == [float, bool, str, int]


def test_values_in_braces_are_a_method_each():
    table = parse_methods(["gclsr augmentation={partial,full} group_size={0,16}"])
    assert [tuple(one.options.values()) for one in table] == [
        ("partial", 0),
        ("partial", 16),
        ("full", 0),
        ("full", 16),
    ]
    assert len({one.key for one in table}) == 4


def test_a_contradiction_is_judged_with_the_options_of_the_comparison(says):
    for line in ("sncse alpha=0.2 beta=0.15", "sncse alpha={0.2,0.3} beta=0.15", "sncse alpha=0.35"):
        with says(ComparisonError):
            parse_methods([line])
    assert method("sncse alpha=0.35 beta=2").options == {"alpha": 0.35, "beta": 2.0}


def test_regions_with_commas_are_one_value():
    assert method("gclsr regions=1,2,3").options == {"regions": "1,2,3"}


@pytest.mark.parametrize(
    ("line", "base"),
    [("gclsr", "bundled:glove"), ("gclsr base=words.txt", "words.txt"), ("arccse", "B"), ("base", "B"), ("a/b", "a/b")],
)
def test_which_base_a_method_takes(line, base):
    assert method(line).base_in("B") == base


def test_the_key_is_of_the_options_and_not_of_the_label():
    assert method("arccse margin=0 label=a").key == method("arccse margin=0").key
    assert method("arccse margin=0").key != method("arccse margin=1").key
    assert method("arccse preset=paper-base").key != method("arccse").key


@pytest.mark.parametrize(
    "lines",
    [
        ["arcsce"],
        ["arccse margn=0"],
        ["arccse margin=ten"],
        ["arccse head=2"],
        ["arccse margin"],
        ["arccse margin=1 margin=2"],
        ["arccse preset=huge"],
        ["base preset=cpu"],
        ["a/b margin=1"],
        ["simcse label=a", "arccse label=a"],
        ["arccse label='a"],
        [""],
    ],
)
def test_what_is_wrong_in_a_line_is_told(lines, says):
    with says(ComparisonError):
        parse_methods(lines)


def test_a_method_named_twice_is_one():
    assert parse_methods(["simcse", "simcse"]) == (Method("simcse", "simcse"),)
