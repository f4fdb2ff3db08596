import json

import pytest
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

from likewise.cli import build_app
from likewise.recipes import find_recipe, recipe_names

SMALL = ["--batch-size", "8", "--max-steps", "2", "--select-by", "last", "--quiet"]


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.mark.parametrize("recipe", recipe_names())
def test_every_option_of_a_recipe_is_on_the_command_line(recipe):
    shown = run("train", recipe, "--help-all").output
    for name in find_recipe(recipe).options().to_dict():
        assert f"--{name.replace('_', '-')}" in shown


def test_trains_with_the_options_that_were_given(corpus_file, tiny_base, tmp_path):
    out = tmp_path / "run"
    arguments = ("train", "arccse", "--corpus", corpus_file, "--base", tiny_base, "--out", out, *SMALL, "--margin", 7,
                 "--no-head", "--min-words", 12)  # fmt: skip
    done = run(*arguments)
    assert done.exit_code == 0, done.output
    assert (
        f"{out} is already complete; use --overwrite to rebuild it"
        in run(*(one for one in arguments if one != "--quiet")).output
    )
    record = json.loads((out / "likewise.json").read_text())
    assert record["options"]["margin"] == 7
    assert record["options"]["head"] is False
    assert record["options"]["max_steps"] == 2
    assert record["corpus"]["report"]["dropped"]["too short"] > 0
    # What was not given is the preset's.
    assert record["options"]["temperature"] == find_recipe("arccse").options().to_dict()["temperature"]
    assert SentenceTransformer(str(out)).encode("the cat sees a dog").shape == (32,)


def test_preset_is_taken(corpus_file, tiny_base, tmp_path):
    out = tmp_path / "run"
    done = run("train", "arccse", "--corpus", corpus_file, "--base", tiny_base, "--out", out, "--preset", "paper-large",
               *SMALL)  # fmt: skip
    assert done.exit_code == 0, done.output
    record = json.loads((out / "likewise.json").read_text())
    assert record["preset"] == "paper-large"
    assert record["options"]["learning_rate"] == 1e-5


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (["--margin", "200"], "at most 90"),
        (["--preset", "huge"], "paper-base"),
        (["--batch-size", "5000"], "needs 5,000"),
        (["--corpus", "nowhere/*.txt"], "nowhere"),
    ],
)
def test_bad_input_is_one_clean_message(corpus_file, tiny_base, tmp_path, changes, message):
    corpus = [] if "--corpus" in changes else ["--corpus", corpus_file]
    done = run("train", "simcse", *corpus, "--base", tiny_base, "--out", tmp_path / "run", *SMALL, *changes)
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_misspelt_option_is_refused(corpus_file, tmp_path):
    done = run("train", "simcse", "--corpus", corpus_file, "--out", tmp_path / "run", "--temprature", 0.1)
    assert done.exit_code == 2
    assert "--temperature" in done.stderr
