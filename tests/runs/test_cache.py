import pytest
from typer.testing import CliRunner

from likewise.cli import build_app
from likewise.corpus import prepare
from likewise.runs.cache import CacheError, clear_cache, kept_in_cache, made_in_cache


@pytest.fixture
def cache(tmp_path, monkeypatch):
    home = tmp_path / "cache"
    monkeypatch.setenv("LIKEWISE_CACHE", str(home))
    for name, size in (("negation/rules.sqlite", 30), ("engines/abc/onnx-fp32/model.onnx", 2_000_000)):
        (home / name).parent.mkdir(parents=True)
        (home / name).write_bytes(b"x" * size)
    (home / "thesis.tex").write_text("mine")
    return home


def run(*arguments):
    return CliRunner().invoke(build_app(), ["cache", *arguments], env={"COLUMNS": "200"})


def test_what_is_kept_is_counted_and_cleared_by_kind(cache, corpus_file):
    prepare(corpus_file)
    found = {kept.kind: (kept.files, kept.bytes) for kept in kept_in_cache()}
    assert (found["negation"], found["engines"]) == ((1, 30), (1, 2_000_000))
    assert found["corpus"][0] == 2
    shown = run("show").output
    assert str(cache) in shown
    assert "2.0 MB        1 file" in shown
    assert [kept.kind for kept in clear_cache("corpus")] == ["corpus"]
    assert sorted(kept.kind for kept in kept_in_cache()) == ["engines", "negation"]
    assert "removed: engines, 1 file, 2.0 MB" in run("clear").output
    assert [path.name for path in cache.iterdir()] == ["thesis.tex"]
    assert "nothing to remove" in run("clear").output


def test_an_unknown_kind_removes_nothing(cache):
    done = run("clear", "thesis.tex")
    assert done.exit_code == 2
    assert "holds no thesis.tex; there are bases, corpus," in done.output
    assert (cache / "thesis.tex").exists()


def test_a_cache_that_cannot_be_written_names_the_variable(tmp_path, corpus_file, monkeypatch):
    (tmp_path / "file").write_text("")
    with pytest.raises(CacheError, match="set LIKEWISE_CACHE"):
        made_in_cache(tmp_path / "file" / "below")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "file"))
    with pytest.raises(CacheError, match=r"file cannot be written \(.*\): set LIKEWISE_CACHE"):
        prepare(corpus_file)
