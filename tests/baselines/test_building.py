import json
from dataclasses import fields

import pytest

from likewise.baselines import BASELINES, build_baseline, find_baseline
from likewise.baselines.baseline import BaselineError
from likewise.recipes import OptionError
from likewise.training.folder import RunFolderError


def test_the_record_and_the_card_say_how_it_was_made(tiny_base, corpus_file, tmp_path):
    made = build_baseline("whitening", str(tiny_base), tmp_path / "out", corpus_file, dimensions=8, quiet=True)
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

    monkeypatch.setattr(likewise.encoder.build, "load_transformer", loaded)
    with pytest.raises(OptionError, match="word-average"):
        find_baseline("average")
    with pytest.raises(BaselineError, match="--corpus"):
        build_baseline("whitening", str(tiny_base), tmp_path / "a", quiet=True)
    with pytest.raises(BaselineError, match="leave the corpus out"):
        build_baseline("last-average", str(tiny_base), tmp_path / "b", corpus_file, quiet=True)
    with pytest.raises(OptionError, match="dimension"):
        build_baseline("whitening", str(tiny_base), tmp_path / "c", corpus_file, dims=3, quiet=True)
    with pytest.raises(OptionError, match="first-last"):
        build_baseline("whitening", str(tiny_base), tmp_path / "c", corpus_file, pooling="mean", quiet=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("years of work")
    with pytest.raises(RunFolderError, match="not empty"):
        build_baseline("last-average", str(tiny_base), tmp_path / "full", overwrite=True, quiet=True)


def test_a_baseline_may_be_made_again_over_itself(tiny_base, tmp_path):
    build_baseline("cls", str(tiny_base), tmp_path / "out", quiet=True)
    with pytest.raises(RunFolderError, match="overwrite"):
        build_baseline("cls", str(tiny_base), tmp_path / "out", quiet=True)
    made = build_baseline("last-average", str(tiny_base), tmp_path / "out", overwrite=True, quiet=True)
    assert made.record["baseline"] == "last-average"


def test_every_baseline_names_its_source_and_every_option_has_a_help_text():
    for baseline in BASELINES.values():
        assert all(item.metadata["help"].endswith(".") for item in fields(baseline.options))
    assert all(baseline.source and baseline.summary for baseline in BASELINES.values())
    assert [name for name, baseline in BASELINES.items() if baseline.corpus == "required"] == ["whitening", "flow"]
