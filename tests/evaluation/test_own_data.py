"""Tasks on one's own files through `evaluate`, the command line and a comparison's settings."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from likewise.evaluation import EvaluationError, evaluate
from likewise.evaluation.pairs import pair_cosines
from likewise.evaluation.registry import resolve


@pytest.fixture
def own(tmp_path, few, monkeypatch):
    """Files of all three families in the working folder, in upper and lower case."""
    folder = tmp_path / "My-Data"
    folder.mkdir()
    rows = [json.dumps({"_id": f"d{i}", "text": text}) for i, text in enumerate(few)]
    (folder / "corpus.jsonl").write_text("\n".join(rows))
    (folder / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": few[3]}))
    for part in ("dev", "test"):
        (folder / f"qrels-{part}.tsv").write_text("q\td3\t1\n")
    (folder / "Pairs.tsv").write_text("".join(f"{i}\t{few[i]}\t{few[i + 1]}\n" for i in range(20)))
    (folder / "train.tsv").write_text("".join(f"{i % 2}\t{few[i]}\n" for i in range(20)))
    (folder / "test.tsv").write_text("".join(f"{i % 2}\t{few[i]}\n" for i in range(20, 30)))
    monkeypatch.chdir(tmp_path)
    return folder


NAMES = "retrieval:My-Data,retrieval:My-Data:dev,pairs:My-Data/Pairs.tsv,classes:My-Data"


def test_they_are_evaluated_like_every_other_task(own, few, tiny_model):
    report = evaluate(tiny_model, NAMES)
    assert [found.name for found in report.results] == NAMES.split(",")
    assert report["retrieval:My-Data"].score == 100  # the query is the text of its document
    vectors = tiny_model.encode(few[:21])
    cosines = pair_cosines(vectors[:-1], vectors[1:])
    ranks = np.argsort(np.argsort(cosines))
    expected = 100 * np.corrcoef(ranks, np.arange(20))[0, 1]
    assert report["pairs:My-Data/Pairs.tsv"].score == pytest.approx(expected, abs=1e-3)
    # Two titles that are equal give way to the names, and every title stands in the table.
    assert [found.title for found in report.results] == [
        "retrieval:My-Data",
        "My-Data dev",
        "My-Data/Pairs",
        "classes:My-Data",
    ]
    assert all(found.title in report.table() for found in report.results)
    assert json.loads(json.dumps(report.to_dict()))["results"][0]["recall"] == 100


def test_on_the_command_line(own, tiny_base):
    from likewise.cli import build_app

    found = CliRunner().invoke(build_app(), ["evaluate", str(tiny_base), "--tasks", NAMES], env={"COLUMNS": "200"})
    assert found.exit_code == 0, found.output
    assert "nDCG@10" in found.output
    assert "10 neighbours" in found.output


def test_in_a_comparison(own, saved_model, tmp_path):
    from likewise.training import compare

    table = compare("base", base=str(saved_model), out=tmp_path / "out", tasks=NAMES, quiet=True)
    assert [column.name for column in table.columns] == NAMES.split(",")


def test_a_path_with_a_comma_or_a_colon_is_given_in_a_list(tmp_path):
    folder = tmp_path / "a, b:c"
    folder.mkdir()
    (task,), _ = resolve([f"retrieval:{folder}"])
    assert (task.path, task.part) == (folder, "test")


@pytest.mark.parametrize("wrong", ["retrieval:", "retrieval", "files:x"])
def test_a_family_without_a_path_is_unknown(wrong, says):
    with says(EvaluationError):
        resolve(wrong)


def test_the_extra_is_named(own, monkeypatch, says):
    monkeypatch.setattr("likewise.errors.find_spec", lambda name: None)
    with says(EvaluationError.__mro__[1]):
        evaluate("nowhere", "retrieval:My-Data")
