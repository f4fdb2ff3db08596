import argparse
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def scripts(script):
    return script(HERE / "claims.py"), script(HERE / "all.py")


def test_a_ratio_is_how_many_times_faster_ours_is_whatever_the_unit(scripts):
    claims, _ = scripts
    assert claims.Claim("rate", "/s", 50.0, 100.0).ratio == pytest.approx(2.0)
    assert claims.Claim("time", "s", 3.0, 1.5).ratio == pytest.approx(2.0)
    assert claims.Claim("growth", "s", 1.0, 1.2, "growth").ratio == pytest.approx(1.2)


def test_what_a_script_writes_is_read_and_shown(scripts, tmp_path):
    claims, everything = scripts
    rows = [claims.Claim("encode: peer", "/s", 50.0, 120.0), claims.Claim("reading", "s", 0.001, 0.0011, "growth")]
    claims.finish(argparse.Namespace(claims=tmp_path / "claims.json"), rows)
    assert claims.read(tmp_path / "claims.json") == rows
    assert "| encode: peer | 50.0/s | 120/s | 2.40 |" in everything.table(rows)


def test_every_script_of_make_bench_is_there(scripts):
    _, everything = scripts
    for name, _ in everything.scripts(Path("corpus.gz"), quick=True):
        assert (HERE / name).is_file()
