import pytest
from typer.testing import CliRunner

from likewise.cli import build_app


def test_demo_goes_the_whole_road(tiny_base, tmp_path, monkeypatch):
    """On a tiny base and the documentation of a part of SciPy."""
    pytest.importorskip("pytrec_eval", reason="needs the extra 'retrieval'")
    import likewise.cli.demo as demo

    monkeypatch.setattr(demo, "BASE", str(tiny_base))
    monkeypatch.setattr(demo, "PACKAGE", "scipy.fft")
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    arguments = ["demo", "--passages", "300", "--out", "runs/demo", "--query", "transform a real signal"]
    done = CliRunner().invoke(build_app(), arguments, env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    for part in ("descriptions of functions", "chosen:", "base as shipped", "nDCG@10", "transform a real signal"):
        assert part in done.output
    assert str(tmp_path / "runs" / "demo" / "model" / "report.html") in done.output
    assert (tmp_path / "runs" / "demo" / "model" / "modules.json").exists()
    again = CliRunner().invoke(build_app(), arguments, env={"COLUMNS": "120"})
    assert again.exit_code == 0, again.output
