import json

import pytest
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

from likewise.cli import build_app
from likewise.training import OBJECTIVES

SMALL = ["--batch-size", "4", "--max-steps", "2", "--select-by", "last", "--quiet"]


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.fixture
def triplets(sentences, tmp_path):
    path = tmp_path / "train.csv"
    rows = [f'"{sentences[i]}","{sentences[i + 1]}","{sentences[i + 2]}"' for i in range(20)]
    path.write_text("\n".join(["Sentence1,Sentence2,Sentence3", *rows]) + "\n")
    return path


@pytest.mark.parametrize("name", list(OBJECTIVES))
def test_every_option_of_an_objective_is_on_the_command_line(name):
    shown = run("finetune", name, "--help-all").output
    for option in OBJECTIVES[name].options().to_dict():
        assert f"--{option.replace('_', '-')}" in shown
    assert "sbert" in shown


def test_trains_with_the_options_that_were_given(triplets, tiny_base, tmp_path):
    out = tmp_path / "run"
    done = run("finetune", "triplets", "--base", tiny_base, "--out", out, "--train", triplets, *SMALL, "--margin", 0.5)
    assert done.exit_code == 0, done.output
    record = json.loads((out / "likewise.json").read_text())
    assert record["options"]["margin"] == 0.5
    # What was not given is the preset's.
    assert record["options"]["learning_rate"] == 2e-5
    assert SentenceTransformer(str(out)).encode("the cat sees a dog").shape == (32,)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--preset", "huge"], "sbert"),
        (["--train", "nowhere.csv"], "nowhere.csv"),
        (["--base", "./nowhere"], "nowhere"),
        (["--margin", "-1"], "margin must be 0 or more"),
    ],
)
def test_bad_input_is_one_clean_message(triplets, tiny_base, tmp_path, changes, message):
    given = [
        *([] if "--train" in changes else ["--train", triplets]),
        *([] if "--base" in changes else ["--base", tiny_base]),
    ]
    done = run("finetune", "triplets", *given, "--out", tmp_path / "run", *SMALL, *changes)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_broken_line_is_named(triplets, tiny_base, tmp_path):
    triplets.write_text(triplets.read_text() + "one cell\n")
    done = run("finetune", "triplets", "--base", tiny_base, "--out", tmp_path / "run", "--train", triplets, *SMALL)
    assert done.exit_code == 2
    assert f"{triplets}:22: 1 columns" in done.stderr
