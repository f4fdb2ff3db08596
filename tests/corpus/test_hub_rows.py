"""Data sets by the library `datasets`: those of a folder, which need no network."""

import json

import pytest

from likewise import index
from likewise.corpus import CorpusError, CorpusOptions, read_sentences
from likewise.corpus.hub_rows import hub_rows

TEXTS = ["The pump leaks oil.", "The valve is shut.", "The fan is loud."]


@pytest.fixture
def dataset(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "set"
    folder.mkdir()
    rows = [{"text": text, "note": f"Note number {i} of them.", "year": 2000 + i} for i, text in enumerate(TEXTS)]
    (folder / "train.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "test.jsonl").write_text(json.dumps(rows[0] | {"text": "Only a test is here."}) + "\n")
    return folder


@pytest.mark.parametrize(
    ("rest", "wanted"),
    [
        ("", TEXTS),
        ("::test", ["Only a test is here."]),
        ("::train[:2]", TEXTS[:2]),
        ("::train:note", [f"Note number {i} of them." for i in range(3)]),
    ],
)
def test_a_split_and_a_column_are_a_corpus(dataset, rest, wanted):
    assert list(read_sentences(f"hf:{dataset}{rest}")) == wanted


def test_rows_are_streamed_once_and_again_after_a_change(dataset):
    first = hub_rows(f"hf:{dataset}")
    assert hub_rows(f"hf:{dataset}") == first
    (dataset / "train.jsonl").write_text(json.dumps({"text": "All is new now.", "note": "x", "year": 1}) + "\n")
    assert list(read_sentences(f"hf:{dataset}")) == ["All is new now."]


def test_other_columns_are_fields_of_an_index(dataset, saved_model, tmp_path):
    found = index(f"hf:{dataset}", model=saved_model, out=tmp_path / "a.index", quiet=True)
    assert [hit.text for hit in found.search("the", where="year = 2001")] == ["The valve is shut."]


@pytest.mark.parametrize("rest", ["/nowhere", "::none", "::train:none", ":a:b:c:d"])
def test_what_is_not_there_is_named(dataset, rest, says):
    with says(CorpusError):
        list(read_sentences(f"hf:{dataset}{rest}", CorpusOptions()))
