"""What cannot be read now stays in the index and is named; what was seen to be gone goes."""

import json
import os
from pathlib import Path

import pytest
from typer.testing import CliRunner

import likewise
from likewise import index
from likewise.corpus import CorpusOptions
from likewise.searching import Index
from likewise.searching.index.index_plan import FilePlan

FIELD = CorpusOptions(field="text")


def texts(out):
    return sorted(Index(out).table._select(["text"])["text"].to_pylist())


@pytest.fixture
def forbid(monkeypatch):
    """A function after which a file or folder cannot be opened, as one without rights, also for root."""
    scandir, opened = os.scandir, Path.open
    barred: set[Path] = set()

    def check(path):
        if not isinstance(path, int) and Path(path) in barred:
            raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(os, "scandir", lambda path: (check(path), scandir(path))[1])
    monkeypatch.setattr(Path, "open", lambda self, *args, **named: (check(self), opened(self, *args, **named))[1])
    return barred


@pytest.mark.parametrize("what", ["deep", "heads.md"])
def test_what_cannot_be_opened_keeps_its_passages(what, notes, saved_model, tmp_path, forbid):
    out = tmp_path / "a.index"
    index(notes, model=saved_model, out=out, quiet=True)
    before = texts(out)
    forbid.add(notes / what)
    found = index(notes, out=out, quiet=True)
    assert texts(out) == before
    assert len(found.unread) == 1
    assert found.unread[0].startswith(f"{notes / what} cannot be read: ")
    assert found.removed == 0
    forbid.clear()
    assert index(notes, out=out, quiet=True).unread == ()


def test_a_file_that_is_damaged_now_keeps_its_passages_and_one_that_is_gone_goes(saved_model, sentences, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    folder, out = tmp_path / "rows", tmp_path / "a.index"
    folder.mkdir()
    (folder / "a.txt").write_text(sentences[0] + "\n")
    (folder / "b.txt").write_text(sentences[1] + "\n")
    parquet.write_table(pa.table({"text": [sentences[2]]}), folder / "c.parquet")
    index(folder, model=saved_model, out=out, corpus_options=FIELD, quiet=True)
    (folder / "c.parquet").write_bytes((folder / "c.parquet").read_bytes()[:40])
    (folder / "b.txt").unlink()
    found = index(folder, out=out, corpus_options=FIELD, quiet=True)
    assert texts(out) == sorted([sentences[0], sentences[2]])
    assert [reason.partition(":")[0] for reason in found.unread] == [str(folder / "c.parquet")]


def test_rows_that_are_none_cost_no_others(saved_model, sentences, tmp_path):
    path, out = tmp_path / "a.jsonl", tmp_path / "a.index"
    rows = [{"id": i, "text": text, "price": i} for i, text in enumerate(sentences[:4])]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    index(path, model=saved_model, out=out, corpus_options=FIELD, quiet=True)
    rows[1]["price"] = 5.5
    path.write_text("".join(json.dumps(row) + "\n" for row in rows) + '{"id": 9, "te')
    found = index(path, out=out, corpus_options=FIELD, quiet=True)
    assert texts(out) == sorted(sentences[:4])
    assert {f"{path}:2", f"{path}:5"} <= {":".join(reason.split(":")[:2]) for reason in found.skipped}
    assert Index(out).search("the", k=9, where="price >= 2")


def test_a_row_without_text_takes_the_place_of_the_old_one(saved_model, sentences, tmp_path):
    made = index(
        [{"id": "a", "text": sentences[0]}, {"id": "b", "text": sentences[1]}],
        model=saved_model,
        out=tmp_path / "a.index",
        quiet=True,
    )
    made.add([{"id": "a", "text": "!!!"}, {"id": "c", "text": "👍"}])
    assert texts(made.path) == sorted([sentences[1], "👍"])
    made.add([{"id": "b", "text": ""}])
    assert texts(made.path) == ["👍"]


def test_a_title_alone_is_a_passage_and_front_matter_is_fields(saved_model, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "a.md").write_text("---\ntags: [oil, seal]\nyear: 2024\n---\n# Pumps\n\nThey leak.\n")
    (tmp_path / "d" / "b.jsonl").write_text('{"title": "Fire", "text": ""}\n{"title": "Water", "text": "It is wet."}\n')
    found = index(tmp_path / "d", model=saved_model, out=tmp_path / "a.index", corpus_options=FIELD, quiet=True)
    assert texts(found.path) == ["Fire", "It is wet.", "They leak."]
    assert [hit.text for hit in found.search("it", where="tags LIKE '%seal%' AND year > 2000")] == ["They leak."]


def test_the_exit_code_says_that_something_was_not_read(notes, saved_model, tmp_path):
    from likewise.cli import build_app

    run = CliRunner()
    command = ["index", str(notes), "--model", str(saved_model), "--out", str(tmp_path / "a.index")]
    assert run.invoke(build_app(), command).exit_code == 0
    (notes / "broken.txt").symlink_to(notes / "nowhere.txt")
    (notes / "old.txt").write_bytes("Die Brücke ist alt.\n".encode("cp1252"))
    result = run.invoke(build_app(), command)
    assert result.exit_code == 3
    assert "broken.txt" in result.output
    assert "cp1252" in result.output
    (notes / "broken.txt").unlink()
    assert run.invoke(build_app(), command).exit_code == 0
    (notes / "rows.jsonl").write_text('{"text": "The pump leaks."}\n{"text": \n')
    for _ in range(2):  # also where nothing has changed since
        result = run.invoke(build_app(), command)
        assert result.exit_code == 3
        assert "rows.jsonl:2" in result.output
    (notes / "rows.jsonl").write_text('{"text": "The pump leaks."}\n')
    assert run.invoke(build_app(), command).exit_code == 0


def test_the_parts_of_a_plan(tmp_path):
    listing = likewise.corpus.sources.Listing(tmp_path, unread={tmp_path / "sub": "sub: cannot be read"})
    change = likewise.searching.index.index_plan.Change(listings=[listing])
    there = {
        name: (str(tmp_path / path), 1, True)
        for name, path in {"1": "sub/a.txt", "2": "subs.txt", "3": "b.txt"}.items()
    }
    plan = FilePlan(change, there)
    assert plan.stale(keep=False) == ["2", "3"]
    assert plan.stale(keep=True) == []
