import json

import pytest
from sentence_transformers import SentenceTransformer
from typer.testing import CliRunner

from likewise.baselines import baseline_names, find_baseline
from likewise.cli import build_app


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.mark.parametrize("name", baseline_names())
def test_every_option_of_a_baseline_is_on_the_command_line(name):
    shown = run("baseline", name, "--help").output
    for option in find_baseline(name).options().to_dict():
        assert f"--{option.replace('_', '-')}" in shown
    assert ("--corpus" in shown) == (find_baseline(name).corpus != "none")


def test_makes_a_model_with_the_options_that_were_given(tiny_base, corpus_file, tmp_path):
    out = tmp_path / "white"
    done = run("baseline", "whitening", "--base", tiny_base, "--corpus", corpus_file, "--out", out,
               "--dimensions", 8, "--pooling", "last", "--min-words", 12)  # fmt: skip
    assert done.exit_code == 0, done.output
    record = json.loads((out / "likewise.json").read_text())
    assert (record["options"]["dimensions"], record["options"]["pooling"]) == (8, "last")
    assert 0 < record["corpus"]["sentences"] < 400
    assert SentenceTransformer(str(out)).encode("the cat sees a dog").shape == (8,)
    done = run("baseline", "last-average", "--base", tiny_base, "--out", out, "--overwrite")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["whitening", "--base", "bundled:minilm"], "--corpus"),
        (["last-average", "--base", "/nowhere/x"], "There is no folder '/nowhere/x'. Give a folder that holds a model"),
        (["word-average", "--base", "/nowhere/glove.txt"], "no file of word vectors"),
    ],
)
def test_bad_input_is_one_clean_message(tmp_path, arguments, message):
    done = run("baseline", *arguments, "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
