import pytest
from typer.testing import CliRunner

import likewise
from likewise.cli import build_app
from likewise.corpus import CorpusOptions
from likewise.runs.job import read_record
from likewise.runs.toml_files import read_toml


def run(*arguments):
    return CliRunner().invoke(build_app(), [str(argument) for argument in arguments], env={"COLUMNS": "200"})


def test_a_finished_training_says_how_to_make_it_again(corpus_file, tiny_base, tmp_path):
    first = likewise.train(
        "simcse", [str(corpus_file)], base=tiny_base, out=tmp_path / "first", seed=3, quiet=True, select_by="last",
        corpus_options=CorpusOptions(min_words=10), max_steps=1, batch_size=8,
    )  # fmt: skip
    found = read_toml(first.path / "run.toml")
    assert (found["recipe"], found["seed"], found["options"]["max_steps"]) == ("simcse", 3, 1)
    assert found["corpus_options"]["min_words"] == 10
    done = run("train", "--config", first.path / "run.toml", "--out", tmp_path / "second", "--quiet")
    assert done.exit_code == 0, done.output
    assert read_record(tmp_path / "second")["plan"] == first.record["plan"]


def test_a_finished_finetuning_says_how_to_make_it_again(tiny_base, tmp_path):
    rows = [f"sentence {i}\tsentence {i % 7}\t{i % 5}\n" for i in range(40)]
    (tmp_path / "rows.tsv").write_text("sentence1\tsentence2\tscore\n" + "".join(rows))
    first = likewise.finetune(
        "sts", tmp_path / "rows.tsv", base=tiny_base, out=tmp_path / "first", quiet=True, select_by="last",
        max_steps=1, batch_size=8,
    )  # fmt: skip
    done = run("finetune", "sts", "--config", first.path / "run.toml", "--out", tmp_path / "second", "--quiet")
    assert done.exit_code == 0, done.output
    assert read_record(tmp_path / "second")["plan"] == first.record["plan"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('recipe = "simcse"\nseeed = 1\n', r"run.toml: there is no option seeed: did you mean seed"),
        ('corpus = "a.txt"\n', "does not name a recipe"),
        ('recipe = "simcse"\nrows = "a.tsv"\n', "no option rows"),
        ('recipe = "simcse"\noptions = 3\n', "[options]"),
        ('recipe = "simcse"\n[corpus_options]\nmin_word = 1\n', "min_words"),
        ("recipe = \n", "not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(text, message, tmp_path):
    (tmp_path / "run.toml").write_text(text)
    done = run("train", "--config", tmp_path / "run.toml", "--corpus", "a.txt", "--out", tmp_path / "out")
    assert done.exit_code == 2
    assert message in done.stderr
