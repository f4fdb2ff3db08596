import os
import sqlite3
import subprocess
import sys
from contextlib import closing

import pytest
from typer.testing import CliRunner

from likewise.cli import build_app
from likewise.corpus import prepare
from likewise.runs.cache import (
    CachedRows,
    CacheError,
    cache_folder,
    cached,
    data_folder,
    find_in_cache,
)
from likewise.runs.cache_contents import cache_entries, clear_cache


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
    found = {kept.kind: (kept.files, kept.bytes) for kept in cache_entries()}
    assert (found["negation"], found["engines"]) == ((1, 30), (1, 2_000_000))
    assert found["corpus"][0] == 2
    shown = run("show").output
    assert str(cache) in shown
    assert "2.0 MB        1 file" in shown
    assert [kept.kind for kept in clear_cache("corpus")] == ["corpus"]
    assert sorted(kept.kind for kept in cache_entries()) == ["engines", "negation"]
    assert "removed: engines, 1 file, 2.0 MB" in run("clear").output
    assert [path.name for path in cache.iterdir()] == ["thesis.tex"]
    assert "nothing to remove" in run("clear").output


def test_an_unknown_kind_removes_nothing(cache):
    done = run("clear", "thesis.tex")
    assert done.exit_code == 2
    assert "does not contain thesis.tex; choose one of bases, corpus," in done.output
    assert (cache / "thesis.tex").exists()


def test_a_cache_that_cannot_be_written_names_the_variable(tmp_path, corpus_file, monkeypatch, says):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "file"))
    with says(CacheError):
        prepare(corpus_file)


def test_without_a_home_folder_the_variable_is_named(monkeypatch, says):
    monkeypatch.delenv("LIKEWISE_CACHE")
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)

    def none():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("pathlib.Path.home", none)
    for place in (cache_folder, data_folder):
        with says(CacheError):
            place()


def test_evaluation_data_lies_in_the_folder_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.delenv("LIKEWISE_DATA", raising=False)
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path))
    assert data_folder() == tmp_path / "data"


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
    assert find_in_cache("texts", "one")
    if damage == "remove":
        file.unlink()
    else:
        file.write_text("all oF it" if damage == "flip" else "all")
    assert not find_in_cache("texts", "one")
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
    with closing(CachedRows("texts", "x")) as kept:
        kept.put(rows)
    with closing(CachedRows("texts", "x")) as kept:
        assert kept.get([*rows, b"unknown"]) == rows
    with closing(CachedRows("texts", "y")) as kept:
        assert kept.get(rows) == {}
    kept.path.write_bytes(b"no database at all, just text" * 50)
    with closing(CachedRows("texts", "y")) as kept:
        kept.put({b"a": 1})
    with closing(CachedRows("texts", "y")) as kept:
        assert kept.get([b"a"]) == {b"a": 1}


@pytest.mark.parametrize("damaged", [None, "", "[", b"\xff\xfe", 5, '["another text", null]', "[" * 5000, "0" * 9000])
def test_a_damaged_row_is_made_again_and_the_others_stay(damaged, home):
    with closing(CachedRows("texts", "x")) as kept:
        kept.put({b"a": ["x", None], b"b": ["y", None]})
        path = kept.path
    with closing(sqlite3.connect(path)) as base, base:
        base.execute("UPDATE rows SET value = ? WHERE key = ?", (damaged, b"a"))
    with closing(CachedRows("texts", "x")) as kept:
        assert kept.get([b"a", b"b"]) == {b"b": ["y", None]}
        kept.put({b"a": ["x", None]})
        assert kept.get([b"a"]) == {b"a": ["x", None]}


def test_a_row_of_one_changed_letter_is_made_again(home):
    with closing(CachedRows("texts", "x")) as kept:
        kept.put({b"a": ["a longer text \ud800", None]})
        assert kept.get([b"a"]) == {b"a": ["a longer text \ud800", None]}
    kept.path.write_bytes(kept.path.read_bytes().replace(b"longer", b"langer"))
    with closing(CachedRows("texts", "x")) as kept:
        assert kept.get([b"a"]) == {}


def test_what_another_job_uses_is_left_and_named(home):
    code = (
        "import sys\nfrom likewise.runs.cache import cached\n"
        "cached('texts', 1, lambda folder: (folder / 'a').touch())\nprint(flush=True)\nsys.stdin.read()"
    )
    cached("pipes", 1, lambda folder: (folder / "a").touch())
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as job:
        job.stdout.readline()
        assert [one.kind for one in clear_cache()] == ["pipes"]
        assert find_in_cache("texts", 1)
        done = run("clear", "texts")
        assert done.exit_code == 1
        assert "texts" in done.output
        job.stdin.close()
    assert run("clear", "texts").exit_code == 0
    assert not find_in_cache("texts", 1)


def test_clearing_while_jobs_fill_the_cache_ends_neither(home):
    code = (
        "import sys\nfrom likewise.runs.cache import cached\n"
        "for i in range(60):\n    cached('texts', [sys.argv[1], i % 7], lambda folder: (folder / 'a').touch())"
    )
    for _ in range(3):  # each job begins while the cache is being cleared
        jobs = [subprocess.Popen([sys.executable, "-c", code, str(n)]) for n in range(2)]
        while any(job.poll() is None for job in jobs):
            clear_cache()
        assert [job.wait() for job in jobs] == [0, 0]
    assert clear_cache("texts") or not find_in_cache("texts", ["0", 0])


def test_rows_that_cannot_be_kept_are_passed_over(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "file"))
    with closing(CachedRows("texts", "x")) as kept:
        kept.put({b"a": 1})
        assert kept.get([b"b"]) == {}
    with closing(CachedRows("texts", "x")) as kept:
        assert kept.get([b"a"]) == {}
