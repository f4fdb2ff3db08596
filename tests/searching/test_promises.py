"""The promises of an index about other files, readers, and what a folder may hold."""

import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

import pytest
from typer.testing import CliRunner

import likewise
from likewise import index
from likewise.cli import build_app
from likewise.corpus import CorpusError
from likewise.runs.job import read_record
from likewise.searching import Index
from likewise.searching.index import table as tables
from likewise.searching.index.index_record import left_in


@pytest.fixture
def mine(notes, saved_model, tmp_path):
    """An index of one's own, of two passages."""
    index(notes / "heads.md", model=saved_model, out=tmp_path / "a.index", quiet=True)
    return tmp_path / "a.index"


def again(mine, notes, saved_model, **options):
    return index(notes / "heads.md", model=saved_model, out=mine, quiet=True, **options)


def test_nothing_is_removed_that_the_record_does_not_name(mine, notes, saved_model, monkeypatch):
    monkeypatch.setattr("likewise.searching.index.index_update.GRACE", -1.0)
    others = ["other.lance/data", "passages-0123abcd.lance/data", "geometry-0123abcd/data", ".tmp-mine", "sub/.tmpfile"]
    for name in others:
        (mine / name).parent.mkdir(exist_ok=True)
        (mine / name).write_text("of somebody else")
    again(mine, notes, saved_model)
    again(mine, notes, saved_model, overwrite=True)
    assert all((mine / name).read_text() == "of somebody else" for name in others)


def test_a_record_from_elsewhere_leads_to_no_other_folder(mine, notes, saved_model, monkeypatch, tmp_path):
    monkeypatch.setattr("likewise.searching.index.index_update.GRACE", -1.0)
    (tmp_path / "precious").mkdir()
    (mine / "other").mkdir()
    record = read_record(mine)
    record["left"] = dict.fromkeys(["../precious", "other", str(tmp_path / "precious"), "."], 0.0)
    (mine / "likewise.json").write_text(json.dumps(record))
    again(mine, notes, saved_model, overwrite=True)
    assert (tmp_path / "precious").is_dir()
    assert (mine / "other").is_dir()


def test_old_tables_are_kept_for_readers_and_removed_later(mine, notes, saved_model, monkeypatch):
    reader = Index(mine)
    again(mine, notes, saved_model, overwrite=True)
    assert len(list(mine.glob("*.lance"))) == 2
    assert len(reader._opened.stored.table.passages(reader._opened.stored.table.keys()[0])) == 2, (
        "the reader's own table is still there"
    )
    monkeypatch.setattr("likewise.searching.index.index_update.GRACE", -1.0)
    again(mine, notes, saved_model)
    assert [path.stem for path in mine.glob("*.lance")] == [read_record(mine)["table"]]
    assert likewise.search(mine, "the cat", k=1)


def test_a_clock_that_was_ahead_keeps_no_old_table_until_then(mine, notes, saved_model):
    again(mine, notes, saved_model, overwrite=True)
    record = read_record(mine)
    assert record["left"]
    record["left"] = dict.fromkeys(record["left"], time.time() + 1e9)
    (mine / "likewise.json").write_text(json.dumps(record))
    left = left_in(mine)
    assert record["left"].keys() <= left.keys()
    assert max(left.values()) <= time.time()


def test_a_reader_whose_table_was_replaced_reads_the_record_again(mine, notes, saved_model, monkeypatch):
    first = tables.Table.__init__
    replaced = []

    def late(self, folder, name, version=None):
        if version is not None and not replaced:
            replaced.append(name)
            monkeypatch.setattr("likewise.searching.index.index_update.GRACE", -1.0)
            again(mine, notes, saved_model, overwrite=True)
            assert not (mine / f"{name}.lance").exists()
        first(self, folder, name, version)

    monkeypatch.setattr(tables.Table, "__init__", late)
    assert Index(mine).search("the cat", 1)
    assert replaced


@pytest.mark.parametrize(
    "change",
    [
        {"table": 7},
        {"table": None},
        {"table": ["a"]},
        {"table": "../a"},
        {"geometry": None},
        {"geometry": "../../a"},
        {"version": "x"},
        {"pipeline": 3},
        {"plan": None},
        {"plan": []},
        {"plan": {"job": "index"}},
        {"query": "x"},
        {"files": 3},
        {"pipeline": {"neighbours": 2}},
    ],
)
def test_a_record_that_is_none_is_one_sentence(mine, change, says):
    record = json.loads((mine / "likewise.json").read_text())
    (mine / "likewise.json").write_text(json.dumps(record | change))
    with says(likewise.LikewiseError):
        likewise.search(mine, "the cat")


@pytest.mark.parametrize("step", [-1, 1, 100])
def test_an_index_of_another_format_is_refused(step, mine, says):
    record = json.loads((mine / "likewise.json").read_text())
    plan = record["plan"] | {"format": record["plan"]["format"] + step}
    (mine / "likewise.json").write_text(json.dumps(record | {"plan": plan}))
    with says(likewise.LikewiseError):
        likewise.search(mine, "the cat")


def test_an_option_that_is_gone_names_the_index_and_the_cure(mine, says):
    record = json.loads((mine / "likewise.json").read_text())
    changes = {
        "pipeline": record["pipeline"] | {"whitening": 0.5},
        "plan": record["plan"] | {"versions": {"likewise": "0.9"}},
    }
    (mine / "likewise.json").write_text(json.dumps(record | changes))
    with says(likewise.LikewiseError):
        likewise.search(mine, "the cat")
    with pytest.raises(likewise.LikewiseError, match="no search option whitening"):
        likewise.index(["The cat."], out=mine, quiet=True)


@pytest.mark.parametrize("table", [7, None, ["a"], {}])
def test_a_record_of_another_kind_is_one_sentence_of_the_command(mine, table):
    record = json.loads((mine / "likewise.json").read_text())
    (mine / "likewise.json").write_text(json.dumps(record | {"table": table}))
    found = CliRunner().invoke(build_app(), ["search", str(mine), "the cat", "--words-only"])
    assert isinstance(found.exception, SystemExit), "anything else is a traceback"
    assert found.exit_code == 2
    assert "likewise.json is damaged (its 'table'): rebuild it" in " ".join(found.stderr.split())


def test_a_name_that_is_not_utf8_is_passed_over_with_a_line(notes, saved_model, tmp_path, says):
    bad = os.fsencode(notes) + b"/bad\xff.txt"
    try:
        with open(bad, "w") as file:  # noqa: PTH123
            file.write("the old river\n")
    except OSError:
        pytest.skip("this file system has no such names")
    found = index(notes, model=saved_model, out=tmp_path / "b.index", quiet=True)
    assert found.passages == 42
    assert len(found.skipped) == 1
    assert "is not UTF-8: rename" in found.skipped[0]
    with says(CorpusError):
        index(os.fsdecode(bad), model=saved_model, out=tmp_path / "c.index", quiet=True)


def limited(limit, *words):
    # -B: a module whose compiled file is cut off by the limit could not be imported by any later process.
    command = f'ulimit {limit}; exec "$0" -B -m likewise "$@"'
    return subprocess.run(["bash", "-c", command, sys.executable, *map(str, words)], capture_output=True, text=True)


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
def test_a_limit_of_the_shell_is_one_sentence(mine, notes, saved_model, tmp_path):
    for limit, words in {
        "-n 16": ("index", notes, "--model", saved_model, "--out", tmp_path / "b.index"),
        "-f 1": ("index", notes, "--model", saved_model, "--out", tmp_path / "c.index"),
    }.items():
        found = limited(limit, *words)
        assert "Traceback" not in found.stderr, limit
        assert found.returncode in (0, 2), limit


def test_a_name_with_an_escape_reaches_no_terminal(notes, saved_model, tmp_path, capsys):
    from likewise.searching.commands import print_hits

    (notes / "a\x1b[31mred.txt").write_text("the old river \x1b]0;title\x07\n")
    index(notes, model=saved_model, out=tmp_path / "b.index", quiet=True)
    print_hits(Index(tmp_path / "b.index").search("the old river", 42))
    shown = capsys.readouterr().out
    assert "\x1b[31m" not in shown
    assert "\\x1b[31mred.txt" in shown


def test_a_local_model_asks_no_hub(notes, saved_model, tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as hub:
        asked = []

        def listen():
            while True:
                try:
                    opened, _ = hub.accept()
                except OSError:
                    return
                asked.append(opened.recv(300))
                opened.close()

        threading.Thread(target=listen, daemon=True).start()
        place = f"http://127.0.0.1:{hub.getsockname()[1]}"
        free = {name: value for name, value in os.environ.items() if not name.endswith("_OFFLINE")}
        proxies = dict.fromkeys(("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "HF_ENDPOINT"), place)
        words = ["encode", saved_model, notes / "deep" / "lines.txt", "--out", tmp_path / "v.npy", "--engine", "torch"]
        command = [sys.executable, "-m", "likewise", *map(str, words)]
        environment = free | proxies | {"HF_HOME": str(tmp_path), "NO_PROXY": "", "no_proxy": ""}
        subprocess.run(command, env=environment, check=True, capture_output=True)
        time.sleep(0.2)
    assert asked == []
