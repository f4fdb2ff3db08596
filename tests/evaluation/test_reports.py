"""Several models side by side: one table, as text, DataFrame, CSV and LaTeX."""

import json

import numpy as np
import pytest

import likewise
from likewise.evaluation import EvaluationError
from likewise.evaluation.score_table import Cell, Column, ScoreTable


@pytest.fixture(scope="module")
def pairs(tmp_path_factory, sentences):
    path = tmp_path_factory.mktemp("pairs") / "rated.tsv"
    rng = np.random.default_rng(0)
    rows = [
        f"{rng.integers(6)}\t{first}\t{second}" for first, second in zip(sentences[:80], sentences[80:160], strict=True)
    ]
    path.write_text("\n".join(rows), encoding="utf-8")
    return path


class Lengths:
    """A scorer of pairs by the difference of their lengths."""

    name, settings = "lengths", {"similarity": "length", "precision": "exact"}

    def score_pairs(self, first, second, progress):
        return -np.abs(np.array([len(a) - len(b) for a, b in zip(first, second, strict=True)], dtype=float))


@pytest.fixture(scope="module")
def reports(saved_model, pairs):
    return likewise.evaluate([str(saved_model), Lengths()], f"pairs:{pairs}")


def test_each_report_is_that_of_the_model_alone(reports, saved_model, pairs, says):
    alone = likewise.evaluate(str(saved_model), f"pairs:{pairs}")
    assert reports[str(saved_model)].results == alone.results
    assert [report.model for report in reports.reports] == [str(saved_model), "lengths"]
    with says(KeyError):
        reports["another"]


def test_the_difference_is_that_of_the_scores_with_an_interval_around_it(reports, saved_model, says):
    first, second = (report.results[0].score for report in reports.reports)
    found = reports.scores.difference("lengths", str(saved_model))
    assert found.value == pytest.approx(second - first)
    assert found.low < found.value < found.high
    other_way = reports.scores.difference(str(saved_model), "lengths")
    assert (other_way.value, other_way.p) == (pytest.approx(-found.value), pytest.approx(found.p))
    with says(EvaluationError):
        reports.scores.difference("x", "lengths")


def test_it_is_a_table_a_frame_csv_and_latex(reports, saved_model, tmp_path):
    frame = reports.to_frame()
    (title,) = frame.columns
    assert frame.loc["lengths", title] == reports["lengths"].results[0].score
    assert str(reports) == repr(reports) == reports.table()
    assert "lengths" in reports.table()
    latex = reports.to_latex(tmp_path / "table.tex")
    assert (tmp_path / "table.tex").read_text(encoding="utf-8") == latex
    assert latex.startswith("\\begin{tabular}{lr}\n\\toprule\n")
    assert sum(line.endswith("\\\\") for line in latex.splitlines()) == 3
    assert reports.to_csv().splitlines()[0] == f"Model,{title}"
    assert set(json.loads(json.dumps(reports.to_dict()))["differences"]["lengths"][title]) == {
        "value",
        "low",
        "high",
        "p",
    }


def test_a_report_of_one_model_prints_as_its_table_too(reports):
    report = reports["lengths"]
    assert str(report) == report.table()
    assert report.to_frame().loc[report.results[0].name, "score"] == report.results[0].score
    assert "items" not in report.to_dict()["results"][0]


def test_a_model_twice_is_an_error(saved_model, pairs, says):
    with says(EvaluationError):
        likewise.evaluate([Lengths(), Lengths()], f"pairs:{pairs}")


def test_what_latex_would_read_as_its_own_is_escaped():
    table = ScoreTable(("a_b & 50%", "c~d^e"), (Column("t", "x#1"),), {("a_b & 50%", "t"): Cell({1: 70.0, 2: 72.0})})
    lines = table.to_latex().splitlines()
    assert r"Model & x\#1 \\" in lines
    assert r"a\_b \& 50\% & 71.00 $\pm$ 1.41 \\" in lines
    assert r"c\textasciitilde{}d\textasciicircum{}e & -- \\" in lines


def test_python_takes_what_the_command_line_takes(tmp_path, pairs, says):
    with says(likewise.LikewiseError):
        likewise.evaluate(f"origin:{tmp_path}", f"pairs:{pairs}")


def test_a_star_says_that_a_difference_from_the_reference_is_sure():
    cells = {
        ("base", "t"): Cell({1: 70.0, 2: 70.5, 3: 69.5}),
        ("far", "t"): Cell({1: 80.0, 2: 80.5, 3: 79.5}),
        ("near", "t"): Cell({1: 70.4, 2: 69.4, 3: 70.4}),
    }
    table = ScoreTable(("near", "base", "far"), (Column("t", "T"),), cells, reference="base")
    _, rows = table.texts()
    assert dict(rows) == {"near": "70.07 ± 0.58", "base": "70.00 ± 0.50", "far": "**80.00** ± 0.50*"}
    assert "\\textbf{80.00 $\\pm$ 0.50*}" in table.to_latex()
    assert set(table.differences()) == {"near", "far"}
