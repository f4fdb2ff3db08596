import os
import subprocess
import sys
from contextlib import closing

import pytest
from typer.testing import CliRunner

from likewise.cli import build_app
from likewise.corpus import prepare
from likewise.runs.cache import CacheError, KeptRows, cached, clear_cache, found_in_cache, kept_in_cache, made_in_cache


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
    with pytest.raises(CacheError, match=r"file/corpus cannot be written \(.*\): set LIKEWISE_CACHE"):
        prepare(corpus_file)


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "texts"


def kept(home):
    return [path.name for path in home.iterdir() if path.name != ".locks"]


def test_what_is_kept_is_made_once_for_each_key(home):
    calls = []

    def make(folder):
        calls.append(1)
        (folder / "a.txt").write_text(f"made {len(calls)}")

    first = cached("texts", ["one", 1], make)
    assert cached("texts", ["one", 1], make) == first
    assert (first / "a.txt").read_text() == "made 1"
    assert cached("texts", ["one", 2], make) != first
    assert len(calls) == 2


@pytest.mark.parametrize("damage", ["flip", "cut", "remove"])
def test_what_is_damaged_is_made_again_and_what_is_copied_is_not(damage, home):
    def make(folder):
        (folder / "below").mkdir()
        (folder / "below" / "a.txt").write_text("all of it")

    file = cached("texts", "one", make) / "below" / "a.txt"
    os.utime(file, (1, 1))
    assert found_in_cache("texts", "one")
    if damage == "remove":
        file.unlink()
    else:
        file.write_text("all oF it" if damage == "flip" else "all")
    assert not found_in_cache("texts", "one")
    assert (cached("texts", "one", make) / "below" / "a.txt").read_text() == "all of it"


def test_what_fails_leaves_nothing_and_what_resumes_stays(home):
    def fails(folder):
        with (folder / "a.txt").open("a") as file:
            file.write("x")
        if len((folder / "a.txt").read_text()) < 3:
            raise KeyboardInterrupt

    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            cached("texts", "fails", fails)
    assert kept(home) == []
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            cached("texts", "resumes", fails, resumes=True)
    assert (cached("texts", "resumes", fails, resumes=True) / "a.txt").read_text() == "xxx"


def test_what_a_killed_call_left_is_removed_and_what_a_living_one_makes_stays(home):
    code = (
        "import sys, time\nfrom likewise.runs.cache import cached\n"
        "def make(folder):\n    (folder / 'a').touch()\n    print(flush=True)\n    time.sleep(100)\n"
        "cached('texts', sys.argv[1], make)"
    )
    calls = []
    for name in ("killed", "alive"):
        calls.append(subprocess.Popen([sys.executable, "-c", code, name], stdout=subprocess.PIPE))
        calls[-1].stdout.readline()
    try:
        calls[0].kill()
        calls[0].wait()
        assert len(kept(home)) == 2
        cached("texts", "another", lambda folder: None)
        assert len(kept(home)) == 2  # the new one and the living one
    finally:
        for call in calls:
            call.kill()
            call.wait()
            call.stdout.close()


def test_four_processes_make_it_once(home):
    code = (
        "from likewise.runs.cache import cached\n"
        "def make(folder):\n    with (folder.parent / 'calls').open('a') as file:\n        file.write('x')\n"
        "cached('texts', 'one', make)"
    )
    calls = [subprocess.Popen([sys.executable, "-c", code]) for _ in range(4)]
    assert [call.wait() for call in calls] == [0] * 4
    assert (home / "calls").read_text() == "x"


def test_rows_are_kept_by_key_and_a_damaged_file_is_begun_anew(home):
    rows = {f"key {i}".encode(): [f"value {i}", None] for i in range(2000)}
    with closing(KeptRows("texts", "x")) as kept:
        kept.put(rows)
    with closing(KeptRows("texts", "x")) as kept:
        assert kept.get([*rows, b"unknown"]) == rows
    with closing(KeptRows("texts", "y")) as kept:
        assert kept.get(rows) == {}
    kept.path.write_bytes(b"no database at all, just text" * 50)
    with closing(KeptRows("texts", "y")) as kept:
        kept.put({b"a": 1})
    with closing(KeptRows("texts", "y")) as kept:
        assert kept.get([b"a"]) == {b"a": 1}


def test_rows_that_cannot_be_kept_are_passed_over(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "file"))
    with closing(KeptRows("texts", "x")) as kept:
        kept.put({b"a": 1})
        assert kept.get([b"b"]) == {}
    with closing(KeptRows("texts", "x")) as kept:
        assert kept.get([b"a"]) == {}
