import pytest
from typer.testing import CliRunner

from likewise.cli import build_app


def test_demo_goes_the_whole_road(corpus_file, tiny_base, tmp_path, monkeypatch):
    """On a tiny base and corpus; the news texts are gensim's real ones."""
    pytest.importorskip("gensim", reason="needs the extra 'bundled'")
    import likewise.cli.demo as demo

    monkeypatch.setattr(demo, "BASE", str(tiny_base))
    monkeypatch.setattr(demo, "CORPUS", str(corpus_file))
    monkeypatch.setenv("LIKEWISE_DATA", str(tmp_path / "none"))
    monkeypatch.chdir(tmp_path)
    arguments = ["demo", "--steps", "5", "--out", "runs/demo", "--query", "The old cat sees the dog."]
    done = CliRunner().invoke(build_app(), arguments, env={"COLUMNS": "120"})
    assert done.exit_code == 0, done.output
    for part in ("base", "trained", "News", "no data found", "Neighbours", str(tmp_path / "runs" / "demo")):
        assert part in done.output
    assert (tmp_path / "runs" / "demo" / "modules.json").exists()
