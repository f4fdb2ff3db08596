import json

import pytest

from likewise.errors import LikewiseError
from likewise.evaluation.pairs import PairResult, SubsetResult
from likewise.evaluation.report import EvaluationReport, MissingTask
from likewise.evaluation.task import TaskResult


@pytest.fixture
def report():
    pair = PairResult(
        "sts12",
        "STS12",
        "spearman",
        71.234,
        10,
        71.234,
        70.0,
        (SubsetResult("a", 1.0, 2.0, 10),),
        70.126,
        69.0,
    )
    flat = PairResult("sts13", "STS13", "spearman", float("nan"), 5, float("nan"), float("nan"))
    probe = TaskResult("mr", "MR", "accuracy", 81.0, 100)
    missing = (MissingTask("sts14", "STS14", "there is no file X"),)
    return EvaluationReport("m", (pair, flat, probe), missing, {"sts": None}, {"precision": "float32"}, 1.5)


def test_table(report):
    text = report.table()
    lines = text.split("\n")
    assert lines[0].startswith("| Task  | Spearman")
    assert set(lines[1]) <= set("|-: ")
    assert [cell.strip() for cell in lines[2].split("|")[1:-1]] == [
        "STS12",
        "71.23",
        "70.00",
        "70.13",
        "69.00",
        "10",
    ]
    assert len({len(line) for line in lines[:4]}) == 1
    # Another kind of result has a table of its own.
    assert "| MR   | accuracy | 81.00 |   100 |" in text
    assert "Average of sts: - (a task is missing or undefined)" in text
    assert "Missing: STS14, there is no file X" in text
    assert "Undefined: STS13" in text


def test_json(report, tmp_path, says):
    path = tmp_path / "scores.json"
    path.write_text("older")
    report.to_json(path, overwrite=True)
    found = json.loads(path.read_text())
    assert found["results"][0]["subsets"] == [{"name": "a", "spearman": 1.0, "pearson": 2.0, "n": 10}]
    assert found["results"][1]["score"] is None
    assert found["averages"] == {"sts": None}
    assert found["missing"][0]["name"] == "sts14"
    assert {p.name for p in tmp_path.iterdir()} == {"scores.json", ".scores.json.likewise"}
    with says(LikewiseError):
        report.to_json(tmp_path / "no" / "scores.json")


def test_by_name(report, says):
    assert report["mr"].score == 81.0
    with says(KeyError):
        report["sts14"]
    with says(KeyError):
        report["sick-r"]
