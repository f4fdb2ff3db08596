import json

import pytest
from typer.testing import CliRunner

from compared.baselines import BaselineError, baseline, baselines, find_baseline
from likewise.cli import build_app
from likewise.recipes import find_recipe
from likewise.runs.job import JobError
from likewise.runs.options import OptionError


def test_the_record_and_the_card_say_how_it_was_made(tiny_base, corpus_file, tmp_path):
    made = baseline("whitening", corpus_file, base=str(tiny_base), out=tmp_path / "out", dimensions=8, quiet=True)
    record = json.loads((made.path / "likewise.json").read_text())
    assert record == made.record
    assert (record["baseline"], record["base"], record["seed"]) == ("whitening", str(tiny_base), 1)
    assert record["options"]["dimensions"] == 8
    assert (record["corpus"]["sources"], record["corpus"]["sentences"]) == ([str(corpus_file)], 400)
    card = (made.path / "README.md").read_text()
    assert "Su et al. 2021" in card
    assert "SentenceTransformer(" in card


def test_what_is_wrong_is_told_before_a_base_is_loaded(tiny_base, corpus_file, tmp_path, monkeypatch):
    import likewise.encoder.build

    def loaded(*_):
        raise AssertionError("a base was loaded before the input was checked")

    for opens in ("open_base", "open_model"):
        monkeypatch.setattr(likewise.encoder.build, opens, loaded)
    with pytest.raises(OptionError, match="word-average"):
        find_baseline("average")
    with pytest.raises(BaselineError, match="--corpus"):
        baseline("whitening", base=str(tiny_base), out=tmp_path / "a", quiet=True)
    with pytest.raises(BaselineError, match="is not fitted to a corpus"):
        baseline("last-average", corpus_file, base=str(tiny_base), out=tmp_path / "b", quiet=True)
    with pytest.raises(OptionError, match="dimension"):
        baseline("whitening", corpus_file, base=str(tiny_base), out=tmp_path / "c", dims=3, quiet=True)
    with pytest.raises(OptionError, match="first-last"):
        baseline("whitening", corpus_file, base=str(tiny_base), out=tmp_path / "c", pooling="mean", quiet=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    with pytest.raises(JobError, match="contains other files"):
        baseline("last-average", base=str(tiny_base), out=tmp_path / "full", overwrite=True, quiet=True)


def test_the_result_loads_its_model_and_the_same_call_makes_nothing_again(tiny_base, tmp_path):
    made = baseline("cls", base=str(tiny_base), out=tmp_path / "out", quiet=True)
    assert made.model.encode("the cat sees a dog").shape == (32,)
    written = (tmp_path / "out" / "likewise.json").read_bytes()
    assert baseline("cls", base=str(tiny_base), out=tmp_path / "out", quiet=True).record == made.record
    assert (tmp_path / "out" / "likewise.json").read_bytes() == written


def test_a_baseline_may_be_made_again_over_itself(tiny_base, tmp_path):
    baseline("cls", base=str(tiny_base), out=tmp_path / "out", quiet=True)
    with pytest.raises(JobError, match="overwrite"):
        baseline("last-average", base=str(tiny_base), out=tmp_path / "out", quiet=True)
    made = baseline("last-average", base=str(tiny_base), out=tmp_path / "out", overwrite=True, quiet=True)
    assert made.record["baseline"] == "last-average"


def test_every_baseline_names_its_source_and_every_option_has_a_help_text():
    every = list(baselines().values())
    for one in every:
        assert all((item.description or "").endswith(".") for item in one.options_type.model_fields.values())
    assert all(one.source and one.summary for one in every)
    assert [one.name for one in every if one.corpus == "required"] == ["flow", "whitening"]


def test_a_system_to_compare_with_that_is_not_installed_says_what_brings_it(monkeypatch):
    monkeypatch.setattr("likewise.runs.plugins.entry_points_of", lambda group: [])
    with pytest.raises(OptionError, match="pip install benchmarks/compared"):
        find_recipe("consert")
    done = CliRunner().invoke(build_app(), ["train", "consert", "--out", "x"])
    assert done.exit_code == 2
    assert "pip install benchmarks/compared" in done.stderr


def test_a_misspelt_name_is_answered_by_the_right_one():
    with pytest.raises(OptionError, match="did you mean simcse"):
        find_recipe("simsce")
