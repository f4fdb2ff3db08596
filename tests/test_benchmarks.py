import argparse
import importlib
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent.parent / "benchmarks"


@pytest.fixture
def scripts(monkeypatch):
    monkeypatch.syspath_prepend(str(HERE))
    for name in ("claims", "all"):
        sys.modules.pop(name, None)
    yield importlib.import_module("claims"), importlib.import_module("all")
    for name in ("claims", "all"):
        sys.modules.pop(name, None)


def test_a_ratio_is_how_many_times_faster_ours_is_whatever_the_unit(scripts):
    claims, _ = scripts
    assert claims.Claim("rate", "/s", 50.0, 100.0).ratio == pytest.approx(2.0)
    assert claims.Claim("time", "s", 3.0, 1.5).ratio == pytest.approx(2.0)
    assert claims.Claim("growth", "s", 1.0, 1.2, "growth").ratio == pytest.approx(1.2)


def test_what_a_script_writes_is_read_and_stands_between_the_marks(scripts, tmp_path, monkeypatch):
    claims, everything = scripts
    monkeypatch.setattr(everything, "RESULTS", tmp_path / "speed")
    earlier = claims.Claim("earlier: peer", "/s", 10.0, 20.0)
    everything.kept([claims.Claim("of a run before: peer", "/s", 1.0, 2.0)], [], add=False)
    everything.kept([earlier, claims.Claim("encode: peer", "/s", 50.0, 60.0)], [], add=False)
    rows = [claims.Claim("encode: peer", "/s", 50.0, 120.0), claims.Claim("reading", "s", 0.001, 0.0011, "growth")]
    claims.finish(argparse.Namespace(claims=tmp_path / "claims.json"), rows)
    assert claims.read(tmp_path / "claims.json") == rows
    readme = tmp_path / "README.md"
    readme.write_text("before\n<!-- make bench -->\nold\n<!-- end of make bench -->\nafter\n")
    everything.kept(rows, ["encode.py"], add=True)
    everything.put(readme, everything.tables())
    text = readme.read_text()
    assert text.startswith("before\n")
    assert text.endswith("<!-- end of make bench -->\nafter\n")
    assert "old" not in text
    assert "| encode: peer | 50.0/s | 120/s | 2.40 |" in text
    assert "| earlier: peer | 10.0/s | 20.0/s | 2.00 |" in text
    assert "60.0/s" not in text
    assert "of a run before" not in text
    assert "| reading | 1.10 |" in text
    assert "Not measured there: encode.py." in text


def test_a_readme_without_marks_is_told_before_anything_is_measured(scripts, tmp_path):
    _, everything = scripts
    readme = tmp_path / "README.md"
    readme.write_text("no marks")
    with pytest.raises(SystemExit, match="make bench"):
        everything.check(readme)


def test_every_script_of_make_bench_is_there(scripts):
    _, everything = scripts
    for name, _ in everything.scripts(Path("corpus.gz"), quick=True):
        assert (HERE / name).is_file()
