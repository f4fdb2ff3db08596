"""What files, folders and shells do to a run: files that change or vanish, devices, bombs, rights and memory."""

import errno
import gzip
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import typer

import likewise
from likewise import index
from likewise.cli.messages import clean_errors
from likewise.context.harvested import read_harvest
from likewise.context.index import ChunkStore, Retrieval
from likewise.corpus import CorpusError, CorpusOptions, CorpusReport, read_sentences
from likewise.encoder import location
from likewise.errors import limit_of
from likewise.inference.text_pieces import lines_of
from likewise.runs.job import read_record
from likewise.runs.results import read_working_file
from likewise.runs.whole_files import UNFINISHED_FILE, written_whole
from likewise.searching import Index
from likewise.searching.index import index_plan, index_update


def while_reading(monkeypatch, name, change):
    """Call `change` when the file of that name is about to be read, after the run has looked at all files."""
    read = index_update.Splitting.read

    def late(self, path, report=None):
        if path.name == name:
            change(path)
        return read(self, path, report)

    monkeypatch.setattr(index_update.Splitting, "read", late)


def while_looking(monkeypatch, name, change):
    """Call `change` when the content of the file of that name is about to be looked at."""
    checksum = index_plan.checksum

    def late(path):
        if path.name == name:
            change(path)
        return checksum(path)

    monkeypatch.setattr(index_plan, "checksum", late)


@pytest.mark.parametrize("when", [while_looking, while_reading])
def test_a_source_that_vanishes_is_one_sentence_and_nothing_is_lost(
    when, notes, saved_model, tmp_path, monkeypatch, says
):
    out, gone = tmp_path / "a.index", notes / "heads.md"
    index(notes, model=saved_model, out=out, quiet=True)
    gone.write_text(f"{gone.read_text()}\nThe old dog sees the river.\n")
    with monkeypatch.context() as patched:
        when(patched, "heads.md", Path.unlink)
        with says(CorpusError):
            index([notes / "deep", gone], model=saved_model, out=out, quiet=True)
    assert Index(out).table.rows == 42, "the index is as it was"
    found = index(notes, model=saved_model, out=out, quiet=True)
    assert (found.passages, found.files) == (40, 1)


@pytest.mark.parametrize("when", [while_looking, while_reading])
def test_a_file_of_a_folder_that_vanishes_is_passed_over(when, notes, saved_model, tmp_path, monkeypatch):
    when(monkeypatch, "heads.md", Path.unlink)
    found = index(notes, model=saved_model, out=tmp_path / "a.index", quiet=True)
    assert (found.passages, found.files) == (40, 1)
    (reason,) = found.skipped
    assert "heads.md cannot be read" in reason
    assert "No such file" in reason


def test_a_document_that_vanishes_is_passed_over(notes, saved_model, tmp_path, monkeypatch):
    pytest.importorskip("markitdown")
    (notes / "page.html").write_text("<p>The old dog sees the river.</p>")
    while_reading(monkeypatch, "page.html", Path.unlink)
    found = index(notes, model=saved_model, out=tmp_path / "a.index", quiet=True)
    assert found.passages == 42
    assert "page.html cannot be read (No such file" in found.skipped[0]


def test_a_file_that_changes_while_it_is_read_is_read_again_by_the_next_run(notes, saved_model, tmp_path, monkeypatch):
    out, changing = tmp_path / "a.index", notes / "heads.md"
    before = changing.read_text()

    def change(path):
        path.write_text("The green bridge follows the song.\n")

    with monkeypatch.context() as patched:
        while_reading(patched, "heads.md", change)
        found = index(notes, model=saved_model, out=out, quiet=True)
    assert found.passages == 41
    assert "heads.md: it changed while it was read: index again" in found.skipped[0]
    changing.write_text(before)  # what was looked at is there again, and it is not what was read
    assert index(notes, model=saved_model, out=out, quiet=True).passages == 42
    assert "Rivers > Dogs" in {hit.title for hit in Index(out).search("dogs", 42, mode="words")}


@pytest.mark.parametrize("name", ["/dev/zero", "/dev/urandom", "/dev/full"])
def test_a_device_without_an_end_is_refused(name, saved_model, tmp_path, says):
    if not Path(name).exists():
        pytest.skip(f"there is no {name} here")
    with says(likewise.LikewiseError):
        index(name, model=saved_model, out=tmp_path / "a.index", quiet=True)
    with says(likewise.LikewiseError):
        likewise.encode_file(saved_model, name, tmp_path / "a.npy", quiet=True)


@pytest.mark.parametrize("mode", ["words", "vectors", "hybrid"])
def test_any_number_of_hits_may_be_asked_for(mode, indexed):
    found = Index(indexed).search("the cat", 10**30, mode=mode)
    assert len({(hit.file, hit.line) for hit in found}) == len(found)
    assert 0 < len(found) <= 42


EMPTY = gzip.compress(b" " * (1 << 24))
"""16 MiB in 16 kB."""


def zipped(name, content, path):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(name, content)


LAUGHS = "".join(f'<!ENTITY a{i} "{f"&a{i - 1};" * 10 if i else "ha"}">' for i in range(12))
"""An entity that is 2 * 10^11 letters."""
BOMBS = {
    "lines.txt.gz": lambda path: path.write_bytes(EMPTY * 64),
    "rows.jsonl.gz": lambda path: path.write_bytes(gzip.compress(b'{"text": "') + EMPTY * 64),
    "word.docx": lambda path: zipped("word/document.xml", bytes(1 << 28), path),
    "laughs.docx": lambda path: zipped("word/document.xml", f"<!DOCTYPE w [{LAUGHS}]><w>&a11;</w>", path),
    "laughs.xml": lambda path: path.write_text(
        f"<?xml version='1.0'?><!DOCTYPE mediawiki [{LAUGHS}]><mediawiki><page><text>&a11;</text></page></mediawiki>"
    ),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_passed_over_in_a_folder_and_refused_by_name(name, notes, saved_model, tmp_path, says):
    if name.endswith("docx"):
        pytest.importorskip("markitdown")
    BOMBS[name](notes / name)
    options = likewise.CorpusOptions(field="text") if "jsonl" in name else None
    tracemalloc.start()
    with says(CorpusError) as refused:
        index(notes / name, model=saved_model, out=tmp_path / "b.index", corpus_options=options, quiet=True)
    assert "\n" not in str(refused.value)
    found = index(notes, model=saved_model, out=tmp_path / "a.index", corpus_options=options, quiet=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert found.passages == 42
    assert any(name in reason for reason in found.skipped)
    assert peak < 330e6


@pytest.mark.parametrize("megabytes", [50, 70])
def test_a_row_of_many_megabytes_is_read_or_named(megabytes, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"text": "ha" * (megabytes << 19)}) + '\n{"text": "The cat sees the dog."}\n')
    options = likewise.CorpusOptions(field="text")
    report = CorpusReport()
    tracemalloc.start()
    assert list(read_sentences(str(path), options, report)) == ["The cat sees the dog."]
    assert ("bad row" in report.dropped) == (megabytes > 64)
    peak = tracemalloc.get_traced_memory()[1] / (megabytes << 20)
    tracemalloc.stop()
    assert peak < 6


def other_table(folder, name):
    import lancedb

    shutil.rmtree(folder / f"{name}.lance")
    lancedb.connect(folder).create_table(name, [{"a": 1}])


REPLACED = {
    "removed": lambda folder, name: shutil.rmtree(folder / f"{name}.lance"),
    "a file": lambda folder, name: (shutil.rmtree(folder / f"{name}.lance"), (folder / f"{name}.lance").touch()),
    "empty": lambda folder, name: (shutil.rmtree(folder / f"{name}.lance"), (folder / f"{name}.lance").mkdir()),
    "another table": other_table,
    "no rows": lambda folder, name: shutil.rmtree(folder / f"{name}.lance" / "data"),
}


@pytest.mark.parametrize("change", REPLACED)
def test_a_table_that_is_replaced_is_one_sentence(change, indexed, tmp_path, says):
    folder = shutil.copytree(indexed, tmp_path / "a.index")
    opened = Index(folder)
    REPLACED[change](folder, read_record(folder)["table"])
    for mode in ("words", "vectors", "hybrid"):
        for made in (lambda: Index(folder), lambda: opened):
            with says(likewise.LikewiseError, hidden=r"(?<=damaged )\(.*\)"):
                made().search("the cat", mode=mode)


@pytest.mark.parametrize("put", [lambda path: path.symlink_to("/dev/zero"), os.mkfifo, Path.mkdir])
def test_a_record_without_an_end_is_not_read(put, indexed, tmp_path, says):
    folder = shutil.copytree(indexed, tmp_path / "a.index")
    (folder / "likewise.json").unlink()
    put(folder / "likewise.json")
    with says(likewise.LikewiseError):
        Index(folder)


HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(2)> \"'><b>"


def test_texts_on_the_pages_of_adapt_and_choose_stay_texts():
    from likewise.adaptation.adaptation_result import Candidate, adapted_page
    from likewise.searching.choose.choice_result import Choice, System, choice_page
    from likewise.searching.parts.pipeline import Pipeline

    facts = {"base": HOSTILE, "advice": HOSTILE, "chosen": HOSTILE, "reason": HOSTILE, "form": HOSTILE}
    facts |= {"corpus": {"passages": 2, "searched": 2, "pairs": {HOSTILE: 1}}, "beside_bm25": (1.0, 1.0)}
    scores = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    made = Candidate(HOSTILE, 1.0, 1.0, 1.0)
    adapted = adapted_page(facts, [made], [HOSTILE], [HOSTILE, HOSTILE], [0], scores)
    system = System(HOSTILE, HOSTILE, "hybrid", Pipeline(), True, 50.0, milliseconds=1.0, judged=1.0)
    first = {"system": HOSTILE, "rank": None, "text": HOSTILE}
    asked = {"query": HOSTILE, "kind": "rest", "own": HOSTILE, "first": [first, first]}
    facts = {"free": HOSTILE, "queries": {"rest": 1}, "passages": 2, "disagreements": [asked]}
    chosen = choice_page(Choice([system], system, HOSTILE, HOSTILE, facts))
    for page in (adapted, chosen):
        assert page.count("&lt;script&gt;") > 5, "the texts are there"
        assert not re.search(r"<script|<img|'><b>", page)


@pytest.mark.skipif(not hasattr(os, "umask"), reason="of POSIX")
def test_what_a_run_writes_is_for_those_whom_the_umask_allows(notes, saved_model, tmp_path, monkeypatch):
    pytest.importorskip("markitdown")
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "deep" / "cache"))
    (notes / "secret.html").write_text("<p>The old dog sees the river.</p>")
    before = os.umask(0o027)
    try:
        index(notes, model=saved_model, out=tmp_path / "a.index", quiet=True)
    finally:
        os.umask(before)
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (tmp_path / "a.index").rglob("*")}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o640}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o750}
    # The text of a file that nobody else may read is in the cache: with the usual mask, too.
    assert stat.S_IMODE((tmp_path / "deep" / "cache").stat().st_mode) == 0o700
    assert list((tmp_path / "deep" / "cache" / "documents").rglob("*.jsonl"))


def test_names_of_temporary_files_are_hidden_lie_beside_and_do_not_stay(tmp_path):
    seen = []
    with pytest.raises(OSError, match="full"), written_whole(tmp_path / "a.npy") as path:
        path.write_text("half")
        seen += tmp_path.iterdir()
        raise OSError("the disk is full")
    assert len(seen) == 1
    assert seen[0].match(UNFINISHED_FILE)
    assert not list(tmp_path.iterdir())


COMMANDS = """
import json, sys
from typer.testing import CliRunner
from likewise.cli import build_app
found = [CliRunner().invoke(build_app(), words) for words in json.loads(sys.argv[1])]
print(json.dumps([(one.exit_code, one.stderr) for one in found]))
"""


@pytest.mark.skipif(
    os.name != "posix" or (os.geteuid() == 0 and shutil.which("setpriv") is None), reason="root cannot be dropped"
)
def test_without_the_right_to_write_or_read(notes, saved_model, indexed, tmp_path):
    out = shutil.copytree(indexed, tmp_path / "sub" / "a.index")
    (notes / "new.txt").write_text("The old dog sees the river.\n")
    (notes / "new.txt").chmod(0)
    for path in [*out.rglob("*"), out, out.parent]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    lines = [
        ["index", notes, "--out", out],
        ["index", notes, "--model", saved_model, "--out", out.parent / "b.index"],
        ["search", out, "the cat", "--words-only"],
        ["index", notes, "--model", saved_model, "--out", tmp_path / "d.index"],
    ]
    drop = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"] if os.geteuid() == 0 else []
    words = json.dumps([[str(word) for word in line] for line in lines])
    try:
        done = subprocess.run([*drop, sys.executable, "-c", COMMANDS, words], capture_output=True, check=True)
    finally:
        for path in (out.parent, out, *out.rglob("*")):
            path.chmod(0o755)
    updated, made, found, walked = json.loads(done.stdout)
    for code, told in (updated, made):
        assert (code, told.count("\n")) == (2, 1), told
        assert "cannot be written (Permission denied)" in told
    assert (found[0], walked[0]) == (0, 3)
    assert "skipped: " in walked[1]
    assert "new.txt cannot be read: this user may not access it (Permission denied)" in walked[1]


@pytest.mark.skipif(shutil.which("bash") is None, reason="bash is not installed")
@pytest.mark.parametrize("limit", [300_000, 1_000_000])
def test_too_little_memory_is_one_sentence(limit, indexed):
    line = ["bash", "-c", 'ulimit -v $0; exec "$@"', str(limit), sys.executable, "-m", "likewise"]
    found = subprocess.run([*line, "search", str(indexed), "the cat"], capture_output=True, text=True, timeout=120)
    assert found.returncode == 2, found.stderr
    assert "ulimit -v unlimited" in " ".join(found.stderr.split())
    assert found.stderr.count("\n") == 1


OPENED = {
    "chunks": ("pyarrow.memory_map", lambda folder: ChunkStore(folder / "chunks.arrow", 1, 1)),
    "retrieval": ("numpy.load", Retrieval),
    "harvest": ("pyarrow.parquet.ParquetFile", read_harvest),
    "corpus": ("pathlib.Path.open", lambda folder: list(read_sentences(folder / "text.txt"))),
    "rows to encode": ("pathlib.Path.open", lambda folder: list(lines_of(str(folder / "text.txt"), CorpusOptions()))),
    "record": ("likewise.runs.results.read_json", read_record),
    "working file": ("likewise.runs.results.read_json", lambda folder: read_working_file(folder / "plan.json")),
    "files of a model": (
        "likewise.encoder.location.read_json",
        lambda folder: location.ModelPlace("m", str(folder)).modules,
    ),
}
"""How each reader opens its file, and the reader of a folder."""


@pytest.mark.parametrize("number", [errno.EMFILE, errno.EACCES, errno.EIO, errno.ENOMEM, errno.ESTALE])
@pytest.mark.parametrize("reader", OPENED)
def test_what_the_system_refuses_is_named_and_is_no_damage(reader, number, tmp_path, monkeypatch):
    for name in ("text.txt", "shard-0.parquet", "modules.json"):
        (tmp_path / name).write_text("The cat sees the dog.\n")
    error = OSError(number, os.strerror(number))

    def refused(*_, **__):
        raise error

    opened, read = OPENED[reader]
    monkeypatch.setattr(opened, refused)
    with pytest.raises(likewise.LikewiseError) as caught:
        read(tmp_path)
    assert str(caught.value).endswith(f"cannot be read: {limit_of(error)}")


def test_a_user_without_a_home_folder_is_told_about_the_path(monkeypatch, capsys):
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as for a user without HOME and entry
    with pytest.raises(typer.Exit), clean_errors():
        index("~/text.txt", model="model", out="a.index", quiet=True)
    assert "this user has no home folder: set HOME, or give a path without '~'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "error",
    [
        MemoryError(),
        RuntimeError("[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: can't allocate memory: you tried"),
        ImportError("libtorch_cpu.so: failed to map segment from shared object"),
        RuntimeError("can't start new thread"),
        OSError(12, "Cannot allocate memory"),
    ],
    ids=repr,
)
def test_an_error_of_memory_is_one_sentence_and_any_other_is_a_fault(error, capsys):
    with pytest.raises(typer.Exit), clean_errors():
        raise error
    assert "there is not enough memory: free some" in capsys.readouterr().err
    with pytest.raises(RuntimeError, match="a fault"), clean_errors():
        raise RuntimeError("a fault")
