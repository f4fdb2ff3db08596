"""The tables of the pages are made from the result files, and no figure in them is typed."""

import re
from pathlib import Path

import pytest
from scipy.stats import ttest_1samp

ROOT = Path(__file__).parents[2]
RESULTS = sorted((ROOT / "benchmarks/results").glob("*.jsonl"))
FIGURE = re.compile(r"(?<![\w.-])\d+[.,]\d+")
"""A figure with decimals, or with thousands."""

BY_HAND = "measured by hand"


@pytest.fixture(scope="module")
def tables(script):
    return script(ROOT / "benchmarks/tables.py")


def test_the_tables_of_the_pages_are_what_make_tables_makes(tables):
    made = tables.rendered()
    for page in tables.PAGES:
        text = page.read_text(encoding="utf-8")
        assert tables.filled(text, made) == text, f"{page.relative_to(ROOT)}: run make tables"


@pytest.mark.parametrize("page", ["README.md", "docs/results.md"])
def test_every_table_with_figures_is_made_or_says_that_it_was_measured_by_hand(tables, page):
    text = (ROOT / page).read_text(encoding="utf-8")
    for name, _ in tables.BLOCK.findall(text):
        assert name in tables.rendered()
    typed = tables.BLOCK.sub("", text)
    for row in re.findall(r"^\|.*\|$", typed, re.MULTILINE):
        assert not FIGURE.search(row) or BY_HAND in row, f"{page}: {row}"


def test_no_figure_is_typed_into_the_template(tables):
    template = (ROOT / "benchmarks/tables.md.j2").read_text(encoding="utf-8")
    cells = re.sub(r"\{\{.*?\}\}|\{%.*?%\}|\{#.*?#\}", "", template, flags=re.DOTALL)
    cells = re.sub(r"`[^`]*`", "", cells)  # options
    for row in re.findall(r"^\|.*\|$", cells, re.MULTILINE):
        _, _, figures = row.strip("|").partition("|")
        assert not FIGURE.search(figures) or BY_HAND in row, row


def test_a_table_is_written_between_its_marks_alone(tables):
    page = "before\n<!-- table: a -->\nold\n<!-- end -->\nafter\n<!-- table: b -->\nkept\n<!-- end -->\n"
    assert tables.filled(page, {"a": "| new |\n"}) == page.replace("old\n", "| new |\n")


def test_a_row_that_is_not_there_is_told_with_its_file(tables):
    with pytest.raises(LookupError, match=r"raw-start\.jsonl: no row .*no such arm"):
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


@pytest.mark.parametrize("path", RESULTS, ids=lambda path: path.stem)
def test_a_result_file_begins_with_what_made_it(script, path):
    results = script(ROOT / "benchmarks/rows.py").ResultFile(path)
    assert results.rows()
    for header in results.headers():
        assert header["table"] == path.stem
        assert {"command", "machine", "versions", "date"} <= set(header)
