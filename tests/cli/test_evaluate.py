import json
import random

import pytest


@pytest.fixture
def folder(tiny_model, sentences, tmp_path):
    """A model and the STS-B dev set of a made data folder."""
    tiny_model.save(str(tmp_path / "model"))
    rng = random.Random(0)
    rows = [f"g\tf\ty\t{i}\t{i % 5}\t{rng.choice(sentences[:30])}\t{rng.choice(sentences[:30])}" for i in range(1500)]
    (tmp_path / "data/STS/STSBenchmark").mkdir(parents=True)
    (tmp_path / "data/STS/STSBenchmark/sts-dev.csv").write_text("\n".join(rows))
    return tmp_path


def test_table_and_json(cli, folder):
    wanted = [str(folder / "model"), "--tasks", "sts-b-dev", "--data", str(folder / "data")]
    result = cli("evaluate", *[*wanted, "--json", str(folder / "scores.json")])
    assert result.exit_code == 0, result.output
    report = json.loads((folder / "scores.json").read_text())
    row = next(line for line in result.stdout.splitlines() if line.startswith("| STS-B dev"))
    spearman, pearson = (f"{report['results'][0][name]:.2f}" for name in ("spearman", "pearson"))
    assert row.replace("|", "").split()[2:] == [spearman, pearson, "-", "-", "1500"]
    assert "Spearman" in result.stdout


def test_missing_tasks_are_named(cli, folder):
    wanted = [str(folder / "model"), "--tasks", "sts,sts-b-dev", "--data", str(folder / "data")]
    result = cli("evaluate", *wanted)
    assert result.exit_code == 0, result.output
    assert "Missing: STS12, there is no file" in result.stdout
    assert "Average of sts: - (a task is missing" in result.stdout


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--tasks", "sts99"], "Unknown task 'sts99'. Choose from"),
        (["--data", "/nowhere"], "No evaluation data in '/nowhere'"),
        (["--json", "/nowhere/x.json"], "create it first"),
    ],
)
def test_errors_are_one_message(options, message, cli, folder):
    result = cli("evaluate", *[str(folder / "model"), *options])
    assert result.exit_code == 2
    assert message in result.stderr
    assert "Traceback" not in result.output
