"""The tables of the pages are made from the result files, and no figure in them is typed."""

import json
import math
import re
from pathlib import Path

import pytest
from scipy.stats import ttest_1samp

from likewise.cli.demo import MINUTES

ROOT = Path(__file__).parents[2]
RESULTS = sorted((ROOT / "benchmarks/results").glob("*.jsonl"))
FIGURE = re.compile(r"(?<![\w.-])\d+[.,]\d+")
"""A figure with decimals, or with thousands."""


@pytest.fixture(scope="module")
def tables(script):
    return script(ROOT / "benchmarks/tables.py")


def test_the_tables_of_the_pages_are_what_make_tables_makes(tables):
    made = tables.rendered()
    for page in tables.PAGES:
        text = page.read_text(encoding="utf-8")
        assert tables.filled(text, made) == text, f"{page.relative_to(ROOT)}: run make tables"


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_every_table_with_figures_is_made(tables, page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, _ in tables.BLOCK.findall(text):
        assert name in tables.rendered()
    typed = tables.BLOCK.sub("", text)
    for row in re.findall(r"^\|.*\|$", typed, re.MULTILINE):
        assert not FIGURE.search(row), f"{page}: {row}"


def test_no_figure_is_typed_into_the_template(tables):
    template = (ROOT / "benchmarks/tables.md.j2").read_text(encoding="utf-8")
    cells = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", "", template, flags=re.DOTALL)
    cells = re.sub(r"`[^`]*`", "", cells)  # options
    for row in re.findall(r"^\|.*\|$", cells, re.MULTILINE):
        _, _, figures = row.strip("|").partition("|")
        assert not FIGURE.search(figures), row


def test_a_table_is_written_between_its_marks_alone(tables):
    page = "before\n<!-- table: a -->\nold\n<!-- end -->\nafter\n<!-- table: b -->\nkept\n<!-- end -->\n"
    assert tables.filled(page, {"a": "| new |\n"}) == page.replace("old\n", "| new |\n")


def test_a_row_that_is_not_there_is_told_with_its_file(tables, says):
    with says(LookupError):
        tables.rendered('{{ mean("raw-start", "no such arm") }}')


def test_means_and_spreads_are_those_of_the_seeds(tables, monkeypatch):
    rows = [{"arm": "a", "seed": seed, "set": "average", "score": score} for seed, score in ((1, 70.0), (2, 72.0))]
    monkeypatch.setattr(tables, "rows_of", lambda name: [*rows, {"arm": "b", "seed": 1, "set": "average", "score": 69}])
    assert tables.mean("any", "a", digits=1) == "71.0"
    assert tables.spread("any", "a") == "71.00 ± 1.41"
    assert tables.spread("any", "b", bold=True) == "**69.00**"
    assert tables.seeds("any", "a") == "1, 2"
    assert tables.differences("any", "a", "b") == "+1.00 (+1.00)"


def test_the_interval_of_a_difference_is_students_over_the_seeds_of_both(script):
    rows_script = script(ROOT / "benchmarks/rows.py")
    scores = {"a": {1: 70.0, 2: 72.5, 3: 71.0, 4: 99.0}, "b": {3: 70.0, 2: 71.0, 1: 69.5}}
    rows = [{"arm": arm, "seed": s, "set": "x", "score": v} for arm, own in scores.items() for s, v in own.items()]
    gap = rows_script.difference(rows, "a", "b", "x")
    oracle = ttest_1samp([0.5, 1.5, 1.0], 0).confidence_interval(0.95)
    assert gap.seeds == (1, 2, 3)
    assert (gap.mean - gap.half, gap.mean + gap.half) == pytest.approx((oracle.low, oracle.high))
    with pytest.raises(LookupError):
        rows_script.difference(rows, "a", "b", "another set")


def test_a_difference_on_several_sets_is_that_of_their_mean(script):
    rows_script = script(ROOT / "benchmarks/rows.py")
    scores = {("a", "x"): (1.0, 2.0), ("a", "y"): (3.0, 6.0), ("b", "x"): (0.0, 1.0), ("b", "y"): (1.0, 2.0)}
    rows = [
        {"arm": arm, "set": name, "seed": seed, "score": value}
        for (arm, name), values in scores.items()
        for seed, value in enumerate(values, 1)
    ]
    gap = rows_script.difference([*rows, {"arm": "a", "set": "x", "seed": 3, "score": 9.0}], "a", "b", ["x", "y"])
    assert gap.gaps == (1.5, 2.5)
    assert gap.seeds == (1, 2)
    assert gap.chance == pytest.approx(ttest_1samp([1.5, 2.5], 0).pvalue)


def test_holms_correction_leaves_the_differences_that_it_should(tables, monkeypatch):
    gaps = {"a": (1.0, 1.01, 0.99), "b": (1.0, 1.1, 0.9), "c": (1.0, 3.0, -1.0)}  # p: 3e-5, 0.003, 0.5
    rows = [{"arm": name, "set": "average", "seed": n, "score": x} for name, g in gaps.items() for n, x in enumerate(g)]
    rows += [{"arm": "none", "set": "average", "seed": n, "score": 0.0} for n in range(3)]
    monkeypatch.setattr(tables, "rows_of", lambda name: rows)
    shown = "{% for arm in 'abc' %}{{ interval('t', arm, 'none') }}{% endfor %}"
    made = tables.rendered(f"<!-- table: x -->\n{shown}\n{{{{ survivors() }}}}\n<!-- end -->\n")
    assert "3 intervals" in made["x"]
    assert "2 exclude zero" in made["x"]


def test_no_table_reads_rows_that_are_older_than_the_mathematics_of_their_recipe(script, tables, tmp_path):
    results = script(ROOT / "benchmarks/rows.py")
    path = tmp_path / "raw.jsonl"
    header = {"table": "raw", "command": "x", "machine": {}, "versions": {}, "date": "2026-01-01"}
    today, rows = results.MATHEMATICS, [{"arm": arm, "set": "x", "score": 1.0} for arm in ("SNCSE", "ArcCSE", "mean")]
    for measured, left in (
        (today, ["SNCSE", "ArcCSE", "mean"]),
        (today | {"sncse": 0}, ["ArcCSE", "mean"]),
        ({}, ["mean"]),
    ):
        lines = [header | {"mathematics": measured}, *rows]
        path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
        assert [row["arm"] for row in results.ResultFile(path).current()] == left


def test_a_recipe_whose_mathematics_change_has_no_table(tables, monkeypatch, says):
    tables.rendered()
    rows = __import__("rows")
    monkeypatch.setitem(rows.MATHEMATICS, "gclsr", rows.MATHEMATICS["gclsr"] + 1)
    tables.rows_of.cache_clear()
    with says(LookupError):
        tables.rendered()
    tables.rows_of.cache_clear()


def test_the_demonstration_says_the_minutes_that_were_measured(script):
    measured = script(ROOT / "benchmarks/rows.py").ResultFile("demo").rows(set="seconds")
    assert all(math.ceil(row["score"] / 60) == MINUTES for row in measured[-1:])
    assert f"{MINUTES} minutes" in (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_result_file_begins_with_what_made_it(script, path):
    results = script(ROOT / "benchmarks/rows.py").ResultFile(path)
    assert results.rows()
    for header in results.headers():
        assert header["table"] == path.stem
        assert {"command", "machine", "versions", "mathematics", "date"} <= set(header)
