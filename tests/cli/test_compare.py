import json
import random

import pytest
from typer.testing import CliRunner

from likewise.cli import build_app


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.fixture
def data(sentences, tmp_path):
    rng = random.Random(0)
    rows = [f"g\tf\ty\t{i}\t{i % 5}\t{rng.choice(sentences[:12])}\t{rng.choice(sentences[:12])}" for i in range(1500)]
    (tmp_path / "data/STS/STSBenchmark").mkdir(parents=True)
    (tmp_path / "data/STS/STSBenchmark/sts-dev.csv").write_text("\n".join(rows), encoding="utf-8")
    return tmp_path / "data"


def test_a_configuration_with_an_ablation_in_one_line(corpus_file, tiny_base, data, tmp_path):
    config = tmp_path / "compare.toml"
    config.write_text(
        f"""
        methods = ["arccse margin=0"]
        corpus = "{corpus_file}"
        base = "{tiny_base}"
        data = "{data}"
        tasks = "sts-b-dev"
        seeds = [7]
        steps = 5
        batch_size = 8
        select_by = "last"
        """,
        encoding="utf-8",
    )
    done = run("compare", "--config", config, "--out", tmp_path / "out", "--steps", 2)
    assert done.exit_code == 0, done.output
    assert "[2/2] arccse margin=0, seed 7: STS-B dev" in done.stderr
    assert f"table: {tmp_path / 'out/comparison.md'}" in done.stdout
    assert "| arccse margin=0 |" in done.stdout
    said = json.loads((tmp_path / "out/comparison.json").read_text())
    assert [run["label"] for run in said["runs"]] == ["base", "arccse margin=0"]
    options = said["runs"][1]["options"]
    assert (options["margin"], options["max_steps"], options["batch_size"]) == (0.0, 2, 8)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            'method = "simcse"',
            "methods",
        ),
        ("methods = [", "compare.toml"),
        ('methods = ["simcse"]\nsteps = 1', "--corpus"),
        ("", "--method"),
    ],
)
def test_bad_configuration_is_one_message(text, message, tmp_path):
    (tmp_path / "compare.toml").write_text(text)
    done = run("compare", "--config", tmp_path / "compare.toml", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.output
