import pytest
from typer.testing import CliRunner

from likewise.cli import build_app


def test_demo_goes_the_whole_road(tiny_base, tmp_path, monkeypatch):
    """On a tiny base and a part of the CWE list."""
    pytest.importorskip("pytrec_eval", reason="needs the extra 'retrieval'")
    pytest.importorskip("cwe2", reason="needs the extra 'bundled'")
    import likewise.cli.demo as demo
    from likewise.corpus import weaknesses

    monkeypatch.setattr(demo, "BASE", str(tiny_base))
    some = weaknesses.read_weaknesses()[:120]
    monkeypatch.setattr(weaknesses, "read_weaknesses", lambda: some)
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    arguments = ["demo", "--passages", "300", "--out", "runs/demo", "--query", "a password in the code"]
    done = CliRunner().invoke(build_app(), arguments, env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    for part in ("reports of real", "chosen:", "base as shipped", "nDCG@10", "a password in the code"):
        assert part in done.output
    assert str(tmp_path / "runs" / "demo" / "report.html") in done.output
    assert (tmp_path / "runs" / "demo" / "modules.json").exists()
    assert "Verdict: " in done.output
    assert (tmp_path / "runs" / "demo-choice" / "report.html").exists()
    again = CliRunner().invoke(build_app(), arguments, env={"COLUMNS": "120"})
    assert again.exit_code == 0, again.output


def test_demo_leaves_what_stands_where_its_text_would_go(tmp_path):
    (tmp_path / "demo-text").write_text("mine")
    done = CliRunner().invoke(build_app(), ["demo", "--out", str(tmp_path / "demo")])
    assert done.exit_code != 0
    assert "holds other files" in f"{done.output}{done.exception}"
    assert (tmp_path / "demo-text").read_text() == "mine"
