"""The short version of benchmarks/kill.py: three kills of each of four jobs."""

import importlib
import json
import sys
from pathlib import Path

import pytest

from likewise.context.options import DiscriminatorOptions


@pytest.fixture
def kill(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    sys.modules.pop("kill", None)
    yield importlib.import_module("kill")
    sys.modules.pop("kill", None)


@pytest.mark.parametrize("name", ["train simcse", "encode", "index", "context index, discriminator"])
def test_a_killed_job_ends_as_an_undisturbed_one(kill, name, sentences, corpus_file, tiny_base, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path))
    articles = tmp_path / "articles.jsonl"
    rows = [{"id": i, "sections": [{"paragraphs": [" ".join(sentences[i : i + 8])]}]} for i in range(0, 160, 8)]
    articles.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    if name == "index":
        pytest.importorskip("lancedb", reason="needs the extra 'search'")
    small = DiscriminatorOptions(rank=4, batch_size=24, epochs=4)
    jobs = kill.jobs(str(tiny_base), str(corpus_file), str(articles), 5, small)
    (job,) = [one for one in jobs if one.name == name]
    outcome = kill.try_job(job, tmp_path / "trials", kills=3)
    assert outcome.faults == []
    assert outcome.equal == 3
    assert outcome.killed > 0


def test_a_lost_row_is_seen(kill, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "rows.jsonl").write_text("1\n2\n")
    before = kill.content(tmp_path / "out")
    (tmp_path / "out" / "rows.jsonl").write_text("1\n")
    assert kill.content(tmp_path / "out") != before
