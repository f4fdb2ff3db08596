from dataclasses import replace

from typer.testing import CliRunner

from likewise.cli import build_app
from likewise.data import downloads


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def test_a_file_from_elsewhere_is_put_in_place(tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    text = "A sentence of some words.\n"
    (tmp_path / "wiki1m_for_simcse.txt").write_text(text)
    files = tuple(replace(file, megabytes=len(text) / 1e6) for file in downloads.DATASETS["wiki1m"])
    monkeypatch.setattr(downloads, "DATASETS", {"wiki1m": files})
    out = tmp_path / "data"
    done = run("data", "get", "wiki1m", "--out", out, "--from", tmp_path / "wiki1m_for_simcse.txt")
    assert done.exit_code == 0, done.output
    assert (out / "wiki1m_for_simcse.txt").exists()
    assert f"--data {out}" in done.output
    again = run("data", "get", "wiki1m", "--out", out)
    assert "already there" in again.output


def test_unknown_names_are_one_clean_message(tmp_path):
    done = run("data", "get", "stsb", "--out", tmp_path)
    assert done.exit_code == 2
    assert "sts, transfer, wiki1m, nli" in done.stderr
