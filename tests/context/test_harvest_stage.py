"""Shards: a killed run goes on without loss, several machines make the same harvest."""

import signal
import time
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from likewise.context.harvest_pairs import PairSource
from likewise.context.harvested import read_harvest
from likewise.context.harvests import parse_shard, score_shards, shard_name
from likewise.context.stage_options import HarvestOptions
from likewise.context.workspace import ContextError
from likewise.runs.job import JobError
from likewise.runs.progress import Progress, Stopped

OPTIONS = HarvestOptions(pairs=240, ranks=(1, 4), random=2, anchors=6, held_out=0.1)


def build_source() -> PairSource:
    rng = np.random.default_rng(5)
    words = "one two three four five six seven eight nine ten eleven twelve".split()
    texts = [rng.choice(words, size=6).tolist() for _ in range(300)]
    bags = np.array([[text.count(word) for word in words] for text in texts], float)
    return PairSource([" ".join(text) for text in texts], OPTIONS, bags / np.linalg.norm(bags, axis=1, keepdims=True))


def toy_similarity(pairs):
    return np.array([len({*a.split()} & {*b.split()}) / 6 for a, b in pairs])


def slow(pairs):
    time.sleep(0.15)
    return toy_similarity(pairs)


def rows(folder: Path) -> list[tuple]:
    table = pa.concat_tables(
        pq.read_table(path) for path in sorted(folder.rglob("*.parquet"), key=lambda path: path.name)
    )
    return list(zip(*(table[name].to_pylist() for name in table.column_names), strict=True))


def score(source, out, similarity=toy_similarity, **more):
    return score_shards(source, out, similarity, progress=Progress(quiet=True), **more)


@pytest.fixture(scope="module")
def source():
    return build_source()


@pytest.fixture(scope="module")
def whole(source, tmp_path_factory):
    """The rows of a harvest that was never stopped."""
    out = tmp_path_factory.mktemp("whole") / "harvest"
    assert score(source, out).summary is not None
    return rows(out)


def test_every_pair_is_there_with_its_score(source, whole):
    expected = [tuple(p.values()) for k in range(source.shards) for p in source.shard(k).to_pylist()]
    assert [(a, b, kind, split) for a, b, _, kind, split in whole] == expected
    assert [score for _, _, score, _, _ in whole] == pytest.approx(toy_similarity([row[:2] for row in whole]))


def score_slowly(out):
    score(build_source(), out, slow)


def test_a_killed_run_goes_on_and_no_pair_is_lost_or_doubled(source, whole, new_process, tmp_path, says):
    out = tmp_path / "harvest"
    run = new_process(score_slowly, out)
    deadline = time.monotonic() + 90
    while run.is_alive() and time.monotonic() < deadline and len(list(out.rglob("shard-*.parquet"))) < 3:
        time.sleep(0.01)
    run.kill()
    run.join(90)
    assert run.exitcode == -signal.SIGKILL
    shards = sorted(out.rglob("shard-*.parquet"))
    shards[0].write_bytes(b"half a shard")
    (shards[0].parent / f".{shard_name(9)}.123.part").write_bytes(b"half a shard")
    kept = {path: path.stat().st_mtime_ns for path in shards[1:]}
    with says(ContextError):  # what is done already is not scored again
        score(source, out, lambda pairs: np.full(len(pairs), np.nan))
    assert {path: path.stat().st_mtime_ns for path in shards[1:]} == kept
    score(source, out)
    assert rows(out) == whole


def test_a_stopped_run_says_how_far_it_came(source, whole, tmp_path, says):
    calls = []

    def stopping(pairs):
        calls.append(1)
        if len(calls) == 3:
            signal.raise_signal(signal.SIGINT)
        return toy_similarity(pairs)

    with says(Stopped):
        score(source, tmp_path / "harvest", stopping)
    score(source, tmp_path / "harvest")
    assert rows(tmp_path / "harvest") == whole


def test_machines_share_the_shards(source, whole, tmp_path):
    assert score(source, tmp_path, machine=parse_shard("2/3")).summary is None
    assert {int(path.stem[6:]) % 3 for path in tmp_path.rglob("*.parquet")} == {1}
    assert score(source, tmp_path, machine=(1, 3)).summary is None
    summary = score(source, tmp_path, machine=(3, 3)).summary
    assert rows(tmp_path) == whole
    assert sum(summary["splits"].values()) == len(whole) == sum(kind["pairs"] for kind in summary["scores"].values())
    random = [row[2] for row in whole if row[3] == "random"]
    assert summary["scores"]["random"]["mean"] == pytest.approx(np.mean(random))
    read = read_harvest(tmp_path)
    texts = [pair for part in read.splits.values() for pair in zip(*part.texts(), strict=True)]
    assert sorted(texts) == sorted(row[:2] for row in whole)


def test_the_bar_begins_with_what_was_done(source, tmp_path, monkeypatch):
    made = []

    class Bars(Progress):
        @contextmanager
        def bar(self, what, total=None, **more):
            with super().bar(what, total, **more) as bar:
                made.append((bar, bar.done))
                yield bar

    left = iter(range(3))

    def few(pairs):
        return toy_similarity(pairs) if next(left, None) is not None else np.full(1, np.nan)

    with pytest.raises(ContextError):
        score(source, tmp_path / "harvest", few)
    score_shards(source, tmp_path / "harvest", toy_similarity, progress=Bars(quiet=True))
    ((bar, begun),) = made
    assert (begun, bar.done, bar.total) == (3, source.shards, source.shards)


def test_another_harvest_does_not_mix_with_this_one(source, tmp_path, says):
    score(source, tmp_path, scoring={"weights": (1, 2)}, machine=(1, 4))
    score(source, tmp_path, scoring={"weights": (1, 2)}, machine=(2, 4))
    with says(JobError):
        score(source, tmp_path, scoring={"weights": (1, 3)}, machine=(3, 4))
    with says(JobError):
        score(source, tmp_path, scoring={"weights": (1, 2)}, machine=(3, 3))
    score(source, tmp_path / "whole")
    with says(JobError):
        score(source, tmp_path / "whole", machine=(1, 2))


def test_bad_scores_and_bad_parts_are_errors(source, tmp_path, says):
    with says(ContextError):
        score(source, tmp_path / "harvest", lambda pairs: np.full(len(pairs), np.nan))
    assert not list(tmp_path.rglob("*.parquet"))
    assert not list(tmp_path.rglob(".*.part"))
    for text in ("0/3", "4/3", "x", "1"):
        with says(ContextError):
            parse_shard(text)
