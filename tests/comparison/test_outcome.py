"""Tables against means and standard deviations that were computed by hand."""

import json
from pathlib import Path

import pytest

from likewise.comparison.comparison_page import (
    making,
    markdown,
    markdown_table,
    notes,
    open_folder,
    scores_table,
    verdict,
)
from likewise.comparison.methods import ComparisonError, parse_methods
from likewise.comparison.outcome import Comparison

SETTINGS = {
    "base": "bundled:minilm",
    "vectors": "bundled:glove",
    "sentences": 1000,
    "tasks": ["sts-b", "sick-r", "sts12"],
    "steps": 40,
    "minutes": None,
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
    assert found.best(stsb) == {"base", "simcse"}
    assert found.best(sick) == {"arccse margin=0"}


def test_the_table_as_it_is_printed(found):
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in scores_table(found).splitlines()] == [
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
    assert "STS12" in markdown(found)


def test_the_gap_of_negations_has_no_best():
    base, cls = parse_methods(["base", "cls"])
    scores = [
        {**result(label, 1, {"negation-gap": score}), "titles": {"negation-gap": "Negation gap"}, "missing": {}}
        for label, score in (("base", 3.0), ("cls", 4.0))
    ]
    found = Comparison(Path("out"), {**SETTINGS, "tasks": ["negation-gap"]}, (1,), ((base, 1), (cls, 1)), tuple(scores))
    (column,) = found.columns
    assert found.best(column) == frozenset()


def test_json_holds_every_score(found):
    said = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    row = said["rows"][1]
    assert row["cells"]["sts-b"] == {"mean": 72.0, "spread": 2.0, "scores": {"1": 70.0, "2": 72.0, "3": 74.0}}
    assert said["rows"][2]["failed"] == [3]
    assert said["columns"][0]["best"] == ["base", "simcse"]


def test_how_a_row_was_made():
    (method,) = parse_methods(["arccse margin=0"])
    runs = [
        result(
            "arccse margin=0",
            seed,
            {"sts-b": 70.0},
            options={"batch_size": 16, "accumulation": 4},
            preset="cpu",
            steps=40,
            training_seconds=seconds,
            dev={"metric": "sts_dev_spearman", "score": 80.0, "step": step},
        )
        for seed, seconds, step in ((1, 10.0, 20), (2, 13.0, 40))
    ]
    found = Comparison(Path("out"), SETTINGS, (1, 2), ((method, 1), (method, 2)), tuple(runs))
    cells = making(found.rows[0])
    assert cells == ("arccse margin=0", "bundled:minilm", "cpu", "margin 0", "40", "64", "20, 40", "12", "–", "–")


def test_a_folder_is_made_or_refused(tmp_path):
    assert open_folder(tmp_path / "a" / "b").is_dir()
    assert open_folder(tmp_path / "a").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(ComparisonError, match="cannot be made a folder"):
        open_folder(tmp_path / "file")


def test_a_cell_cannot_break_the_table():
    lines = markdown_table(("Text", "N"), [("a | b\nc", "1")]).splitlines()
    assert lines[2] == "| a \\| b c |   1 |"
    assert len({len(line) for line in lines}) == 1


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        ({1: 72.0, 2: 73.0}, "simcse is best by STS-B: 72.50 ± 0.71, +2.50 over the unchanged base."),
        ({1: 69.0, 2: 73.0}, "simcse is best by STS-B: 71.00 ± 2.83, +1.00 over the unchanged base. That is less than "
         "twice the spread over the seeds."),
        ({1: 69.0, 2: 70.0}, "Nothing is better than the unchanged base, which scores 70.00 by STS-B."),
        ({}, "Nothing is better than the unchanged base, which scores 70.00 by STS-B."),
    ],
)  # fmt: skip
def test_the_verdict_names_the_best_and_what_it_gains(scores, said):
    base, simcse = parse_methods(["base", "simcse"])
    results = (result("base", 1, {"sts-b": 70.0}), *(result("simcse", n, {"sts-b": s}) for n, s in scores.items()))
    runs = ((base, 1), (simcse, 1), (simcse, 2))
    assert verdict(Comparison(Path("out"), SETTINGS, (1, 2), runs, results)) == said
