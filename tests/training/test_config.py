import pytest

import likewise
from likewise.corpus import CorpusOptions
from likewise.recipes import OptionError
from likewise.runs.options import read_toml
from likewise.training import config_of, read_config


def test_a_finished_training_says_how_to_make_it_again(corpus_file, tiny_base, tmp_path):
    first = likewise.train(
        "simcse", [str(corpus_file)], base=tiny_base, out=tmp_path / "first", seed=3, quiet=True, select_by="last",
        corpus_options=CorpusOptions(min_words=10), max_steps=1, batch_size=8,
    )  # fmt: skip
    given = read_config(first.path / "run.toml")
    assert (given["seed"], given["max_steps"], given["corpus_options"].min_words) == (3, 1, 10)
    assert likewise.train(**given, quiet=True).record == first.record  # it is finished, and the same
    again = likewise.train(**given | {"out": tmp_path / "second"}, quiet=True)
    plans = [result.record["plan"] for result in (first, again)]
    assert plans[0] == plans[1]
    # The file is the dict that it was written from.
    found = read_toml(first.path / "run.toml", ["recipe", "corpus", "base", "out", "seed", "corpus_options", "options"])
    assert read_config(found) == given


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('recipe = "simcse"\nseeed = 1\n', r"run\.toml: there is no option seeed: did you mean seed"),
        ('corpus = "a.txt"\n', "recipe .* or an objective"),
        ('recipe = "simcse"\nrows = "a.tsv"\n', "no option rows"),
        ('recipe = "simcse"\noptions = 3\n', r"\[options\]"),
        ('recipe = "simcse"\n[options]\nout = "b"\n', "out is not an option"),
        ('recipe = "simcse"\n[corpus_options]\nmin_word = 1\n', "min_words"),
        ("recipe = \n", "not TOML"),
    ],
)
def test_what_is_wrong_in_a_file_is_named(text, message, tmp_path):
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(OptionError, match=message):
        read_config(tmp_path / "run.toml")


def test_the_arguments_of_finetune(tmp_path):
    content = config_of(objective="nli", rows=[tmp_path / "a.tsv"], base="b", out=tmp_path, dev=None, options={})
    assert content == {
        "objective": "nli", "rows": [str(tmp_path / "a.tsv")], "base": "b", "out": str(tmp_path), "options": {},
    }  # fmt: skip
    assert read_config(content | {"options": {"epochs": 2}}) == {
        "objective": "nli", "rows": [str(tmp_path / "a.tsv")], "base": "b", "out": str(tmp_path), "epochs": 2,
    }  # fmt: skip
