"""The short version of benchmarks/kill.py: two kills of each of five jobs."""

import importlib
import json
import sys
from pathlib import Path

import pytest

from likewise.context.stage_options import DiscriminatorOptions, GeneratorOptions, HarvestOptions


@pytest.fixture
def kill(monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parents[2] / "benchmarks"))
    sys.modules.pop("kill", None)
    yield importlib.import_module("kill")
    sys.modules.pop("kill", None)


@pytest.mark.parametrize("name", ["train simcse", "encode", "index", "context stages", "context harvest"])
def test_a_killed_job_ends_as_an_undisturbed_one(kill, name, sentences, corpus_file, tiny_base, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path))
    articles = tmp_path / "articles.jsonl"
    rows = [{"id": i, "sections": [{"paragraphs": [" ".join(sentences[i : i + 8])]}]} for i in range(0, 160, 8)]
    articles.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    if name == "index":
        pytest.importorskip("lancedb", reason="needs the extra 'search'")
    kill.write_pairs(pairs := tmp_path / "pairs.tsv")
    small = {
        "discriminator": DiscriminatorOptions(rank=4, batch_size=24, epochs=4),
        "generators": GeneratorOptions(rank=4, vocabulary=100, epochs=1, held_out=10),
        "harvest": HarvestOptions(pairs=200, ranks=(1, 4), random=2, anchors=5, min_words=2),
    }
    jobs = kill.jobs(str(tiny_base), str(corpus_file), str(articles), 5, pairs=str(pairs), **small)
    (job,) = [one for one in jobs if one.name == name]
    outcome = kill.try_job(job, tmp_path / "trials", kills=2)
    assert outcome.faults == []
    assert outcome.equal == 2
    assert outcome.killed > 0


def test_a_lost_row_is_seen(kill, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "rows.jsonl").write_text("1\n2\n")
    before = kill.content(tmp_path / "out")
    (tmp_path / "out" / "rows.jsonl").write_text("1\n")
    assert kill.content(tmp_path / "out") != before


def test_times_are_not_compared_and_scores_are(kill, tmp_path):
    def write(score, seconds):
        run = {"label": "a", "seed": 1, "seconds": seconds, "curve": [{"seconds": seconds, "score": score}]}
        (tmp_path / "comparison.json").write_text(json.dumps({"runs": [run]}))
        return kill.runs_of_comparison(tmp_path)

    before = write(1.0, 2.0)
    assert write(1.0, 3.0) == before
    assert write(1.5, 2.0) != before
