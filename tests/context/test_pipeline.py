"""Generators, score and harvest on a workspace, from the command line."""

import shutil

import pytest
from typer.testing import CliRunner

from likewise.cli import build_app
from likewise.context.origin import open_origin
from likewise.context.stage_options import ScoreOptions, read_sections
from likewise.context.weights import Weights

PAPER = ScoreOptions(form="paper")
SETTINGS = (
    *("generators.reads=text", "generators.width=16", "generators.heads=2", "generators.feed_forward=32"),
    *("generators.layers=1", "generators.vocabulary=400", "generators.batch_size=8", "generators.held_out=20"),
    *("generators.max_steps=6", "generators.eval_steps=3", "score.form=paper"),
    *("selection.size=3", "selection.candidates=50", "selection.screened=40"),
    *("harvest.pairs=40", "harvest.ranks=1,4", "harvest.random=2", "harvest.anchors=5", "harvest.min_words=2"),
)
SET = [word for setting in SETTINGS for word in ("--set", setting)]
SELECTION = read_sections(SETTINGS)["selection"]


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def work(trained, tmp_path_factory):
    """A workspace with all three models."""
    work = tmp_path_factory.mktemp("origin") / "work"
    shutil.copytree(trained, work)
    done = run("context", "train", "generators", "--work", work, *SET)
    assert done.exit_code == 0, done.output
    assert "held-out perplexity of a word with its own context: centre " in done.output
    return work


def test_two_sentences(work):
    a, b = "The ship stood beside the wave.", "The cow stood beside the barn."
    done = run("context", "score", a, b, "--work", work, *SET)
    assert done.exit_code == 0, done.output
    assert "opening the workspace" in done.stderr
    origin = open_origin(work, PAPER, SELECTION)
    assert float(done.stdout) == pytest.approx(origin([(a, b)])[0], abs=1e-4)
    assert origin([(a, a)])[0] == pytest.approx(1)


def test_chosen_weights_are_recorded_and_used(work, twelve_pairs, tmp_path):
    copy = tmp_path / "work"
    shutil.copytree(work, copy)
    by_discriminator = ("--set", "selection.screened=0")  # other weights, the same contexts
    given = ("--task", "sts-b-dev", "--work", copy, *SET)
    given = (*given, *by_discriminator)
    done = run("context", "score", "--choose", *given)
    assert done.exit_code == 0, done.output
    chosen = Weights.load(copy / "weights.json")
    assert chosen.source == "sts-b-dev, 12 pairs"
    assert open_origin(copy, PAPER).weights.tolist() == list(chosen.values)
    again = run("context", "score", *given)
    assert f"Spearman {chosen.spearman:.2f}" in done.output
    assert f"Spearman {chosen.spearman:.2f}" in again.output
    other = run("context", "score", *given, "--set", "score.form=pmi")
    assert other.exit_code == 2
    assert "choose weights again" in other.output
    assert open_origin(copy, ScoreOptions(form="paper", weights=(0, 1, 0, 0))).weights.tolist() == [0, 1, 0, 0]


def test_word_pieces_alone_have_no_pmi(work):
    done = run("context", "score", "a ship", "a cow", "--work", work)
    assert done.exit_code == 2
    assert "contains only word pieces" in done.output


def test_harvest_in_two_parts(work, tmp_path):
    out = tmp_path / "harvest"
    one = run("context", "harvest", "--work", work, "--out", out, "--shard", "1/2", *SET)
    assert one.exit_code == 0, one.output
    assert "the shards of other machines are missing" in one.output
    two = run("context", "harvest", "--work", work, "--out", out, "--shard", "2/2", *SET)
    assert two.exit_code == 0, two.output
    assert "random:" in two.output
    assert sorted(path.name for path in out.glob("*/shard-*.parquet")) == [
        "shard-000000.parquet",
        "shard-000001.parquet",
    ]
    given = ("context", "harvest", "--work", work, "--out", out, *SET)
    other = run(*given, "--shard", "1/2", "--set", "harvest.seed=2")
    assert other.exit_code == 2
    assert "was built with seed 1, not 2" in other.output
    whole = run(*given)
    assert whole.exit_code == 2
    assert "contains other files (part-1-of-2" in whole.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("only one",), "give two sentences"),
        (("a", "b", "--task", "sts-b-dev"), "give two sentences"),
        (("a", " "), "a sentence is empty"),
        (("a", "b", "--choose"), "--choose needs rated pairs"),
        (("--task", "nothing"), "'nothing' is not a task of rated pairs. Choose one of "),
    ],
)
def test_bad_input_is_one_clean_message(work, arguments, message):
    done = run("context", "score", *arguments, "--work", work)
    assert done.exit_code == 2
    assert message in done.output
