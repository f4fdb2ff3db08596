"""Tables against means and standard deviations that were computed by hand."""

import json
from pathlib import Path

import numpy as np
import pytest

from likewise.comparison.compared_methods import parse_methods
from likewise.comparison.comparison_result import Comparison, notes, verdict
from likewise.comparison.one_run import idle_parts, keep_items, kept_items
from likewise.evaluation.score_table import markdown_table
from likewise.evaluation.task import Items, TaskResult

SETTINGS = {
    "base": "bundled:minilm",
    "vectors": "bundled:glove",
    "sentences": 1000,
    "tasks": ["sts-b", "sick-r", "sts12"],
    "steps": 40,
    "preset": None,
    "shared": {},
}


def result(label, seed, scores, **more):
    return {
        "label": label,
        "seed": seed,
        "status": "finished",
        "scores": scores,
        "titles": {"sts-b": "STS-B", "sick-r": "SICK-R"},
        "averages": {},
        "missing": {"STS12": "there is no file"},
        "base": "bundled:minilm",
        **more,
    }


@pytest.fixture
def found():
    base, simcse, arccse = parse_methods(["base", "simcse", "arccse margin=0"])
    failed = {"label": "arccse margin=0", "seed": 3, "status": "failed", "error": "OptionError: no"}
    return Comparison(
        Path("out"),
        settings=SETTINGS,
        seeds=(1, 2, 3),
        runs=((base, 1), *((method, seed) for seed in (1, 2, 3) for method in (simcse, arccse))),
        results=(
            result("base", 1, {"sts-b": 72.0, "sick-r": None}),
            # Mean 72, deviations -2, 0, 2: variance 8 / 2 = 4.
            result("simcse", 1, {"sts-b": 70.0, "sick-r": 60.0}),
            result("simcse", 2, {"sts-b": 72.0, "sick-r": 61.0}),
            result("simcse", 3, {"sts-b": 74.0, "sick-r": 62.0}),
            # Mean 71, deviations -1, 1: variance 2 / 1 = 2.
            result("arccse margin=0", 1, {"sts-b": 70.0, "sick-r": 66.0}),
            result("arccse margin=0", 2, {"sts-b": 72.0, "sick-r": 67.0}),
            failed,
        ),
    )


def test_means_and_spreads(found):
    base, simcse, arccse = found.rows
    assert (simcse.cells["sts-b"].mean, simcse.cells["sts-b"].spread) == (72.0, 2.0)
    assert arccse.cells["sts-b"].mean == 71.0
    assert arccse.cells["sts-b"].spread == pytest.approx(1.4142, abs=1e-4)
    assert (base.cells["sts-b"].mean, base.cells["sts-b"].spread) == (72.0, None)
    assert "sick-r" not in base.cells  # undefined, and no number stands in its place


def test_the_best_is_marked_and_equals_share_it(found):
    stsb, sick = found.columns
    assert found.scores.best(stsb) == {"base", "simcse"}
    assert found.scores.best(sick) == {"arccse margin=0"}


def test_the_table_as_it_is_printed(found):
    table = found.scores.table().split("\n\n")[0]
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in table.splitlines()] == [
        ["Method", "STS-B", "SICK-R", "Seeds"],
        ["---------------", "---------------:", "---------------:", "-----------:"],
        ["base", "**72.00**", "–", "same for all"],
        ["simcse", "**72.00** ± 2.00", "61.00 ± 1.00", "3"],
        ["arccse margin=0", "71.00 ± 1.41", "**66.50** ± 0.71", "2 (1 failed)"],
    ]


def test_what_is_missing_or_failed_is_named(found):
    assert notes(found) == [
        "Missing: STS12, there is no file.",
        "Failed: arccse margin=0, seed 3: OptionError: no",
    ]
    assert "STS12" in found.table()


def test_the_gap_of_negations_has_no_best():
    base, cls = parse_methods(["base", "cls"])
    scores = [
        {**result(label, 1, {"negation-gap": score}), "titles": {"negation-gap": "Negation gap"}, "missing": {}}
        for label, score in (("base", 3.0), ("cls", 4.0))
    ]
    found = Comparison(Path("out"), {**SETTINGS, "tasks": ["negation-gap"]}, (1,), ((base, 1), (cls, 1)), tuple(scores))
    (column,) = found.columns
    assert found.scores.best(column) == frozenset()


def test_json_holds_every_score(found):
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    row = said["rows"][1]
    assert row["cells"]["sts-b"] == {"mean": 72.0, "spread": 2.0, "scores": {"1": 70.0, "2": 72.0, "3": 74.0}}
    assert said["rows"][2]["failed"] == [3]
    assert said["columns"][0]["best"] == ["base", "simcse"]


def test_a_cell_cannot_break_the_table():
    lines = markdown_table(("Text", "N"), [("a | b\nc", "1")]).splitlines()
    assert lines[2] == "| a \\| b c |   1 |"
    assert len({len(line) for line in lines}) == 1


def test_the_verdict_names_the_best_its_gain_and_the_interval():
    base, simcse = parse_methods(["base", "simcse"])
    runs = ((base, 1), (simcse, 1), (simcse, 2), (simcse, 3))

    def said(*scores):
        results = (
            result("base", 1, {"sts-b": 70.0}),
            *(result("simcse", i, {"sts-b": score}) for i, score in enumerate(scores, 1)),
        )
        return verdict(Comparison(Path("out"), SETTINGS, (1, 2, 3), runs, results))

    clear, close = said(72.0, 73.0, 72.5), said(69.0, 73.0, 72.0)
    assert "simcse is best by STS-B: 72.50 ± 0.50, +2.50 over the unchanged base (95% interval +" in clear
    assert "chance" not in clear
    assert close.endswith("It may be chance.")
    assert said(69.0, 69.0, 70.0) == "Nothing is better than the unchanged base, which scores 70.00 by STS-B."


def test_the_verdict_sets_the_best_beside_the_next():
    base, simcse, arccse = parse_methods(["base", "simcse", "arccse"])
    runs = ((base, 1), *((method, seed) for method in (simcse, arccse) for seed in (1, 2, 3)))
    results = [result("base", 1, {"sts-b": 70.0})]
    for method, scores in (("simcse", (72.0, 73.0, 72.5)), ("arccse", (72.1, 73.0, 72.5))):
        results += [result(method, seed, {"sts-b": score}) for seed, score in enumerate(scores, 1)]
    told = verdict(Comparison(Path("out"), SETTINGS, (1, 2, 3), runs, tuple(results)))
    assert "arccse is best by STS-B" in told
    assert "Beside simcse: +0.03" in told
    assert "may be chance" in told


def test_an_unfinished_comparison_says_so_far():
    base, simcse = parse_methods(["base", "simcse"])
    runs = ((base, 1), (simcse, 1), (simcse, 2))
    found = Comparison(Path("out"), SETTINGS, (1, 2), runs, (result("base", 1, {"sts-b": 70.0}),))
    assert verdict(found).startswith("So far (1 of 3 runs): nothing that was scored is better")
    assert verdict(Comparison(Path("out"), SETTINGS, (1, 2), runs, ())) == (
        "So far (0 of 3 runs): nothing has been scored yet."
    )


def test_a_collapsed_base_and_an_idle_loss_are_told():
    base, arccse, simcse = parse_methods(["base", "arccse margin=0", "simcse"])
    results = (
        result("base", 1, {"sts-b": 20.0}, uniformity=-0.0001),
        result("arccse margin=0", 1, {"sts-b": 70.0}, uniformity=-2.0, idle=["triplets"]),
        result("simcse", 1, {"sts-b": 70.0}, uniformity=-2.0, idle=[]),
    )
    runs = ((base, 1), (arccse, 1), (simcse, 1))
    collapsed, idle = notes(Comparison(Path("out"), SETTINGS, (1,), runs, results))[1:]
    assert collapsed.startswith("base: ")
    assert "-0.000" in collapsed
    assert idle.startswith("arccse margin=0: ")
    assert "'triplets'" in idle


def test_a_part_of_the_loss_that_was_always_0_is_idle():
    log = [{"step": 1, "loss": 1.0, "triplets": 0.0, "contrastive": 1.0}, {"step": 2, "loss": 1.0, "triplets": 0.0}]
    assert idle_parts(log) == ["triplets"]


def test_what_scores_are_statistics_of_comes_back(tmp_path):
    results = [
        TaskResult("a", "A", "spearman", 1.0, 2, items=Items(np.array([0.5, 0.25]), np.array([1.0, 3.0]))),
        TaskResult("c", "C", "accuracy", 1.0, 2, items=Items(np.array([1.0, 0.0]))),
        TaskResult("d", "D", "f1", 1.0, 2),
    ]
    keep_items(tmp_path / "items.npz", tuple(results))
    found = kept_items(tmp_path / "items.npz")
    assert set(found) == {"a", "c"}
    for result_ in results[:2]:
        again = found[result_.name]
        assert again.values.tolist() == result_.items.values.tolist()
        assert (again.gold is None) == (result_.items.gold is None)
    assert kept_items(tmp_path / "none.npz") == {}
