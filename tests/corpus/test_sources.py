"""Which files a spec names, and what each holds."""

import json
import os
import threading
import time
from pathlib import Path

import pytest

from likewise.corpus import CorpusError, CorpusOptions
from likewise.corpus.folders import list_folder
from likewise.corpus.rows import field_names, read_rows
from likewise.corpus.sources import find_files, find_sources
from likewise.runs.progress import Progress

DEFAULT = CorpusOptions()


def told_lines():
    """A display, and the lines that it is told."""
    progress, told = Progress(quiet=True), []
    progress.tell = told.append
    return progress, told


def test_files_are_sorted_and_none_is_named_twice(write, tmp_path):
    b, a, c = write("b.txt", "x"), write("a.txt", "x"), write("sub/c.txt", "x")
    spec = [b, str(tmp_path / "*.txt"), a, tmp_path / "sub" / ".." / "a.txt", str(tmp_path / "**" / "*.txt")]
    assert [path.resolve() for path in find_files(spec)] == [a, b, c]


def test_a_name_with_signs_of_a_pattern_is_a_file_first(write):
    path = write("odd[1].txt", "x")
    assert find_files(path) == [path]


@pytest.mark.parametrize(
    "spec",
    [
        "nowhere.txt",
        "nowhere*.txt",
        [],
        "bundled:all",
    ],
)
def test_nothing_found(spec, says):
    with says(CorpusError):
        find_files(spec)


def test_folder(tmp_path, says):
    with says(CorpusError):
        find_files(tmp_path)
    (tmp_path / "deep").mkdir()
    for name in ("b.txt", "a.MD.gz", "c.png", "deep/d.jsonl"):
        (tmp_path / name).touch()
    assert find_files(tmp_path) == [tmp_path / "a.MD.gz", tmp_path / "b.txt", tmp_path / "deep" / "d.jsonl"]


ARTICLE = json.dumps({"id": "1", "title": "T", "sections": [{"heading": "", "paragraphs": ["One two three."]}]})


@pytest.mark.parametrize(
    ("name", "content", "options", "kind"),
    [
        ("a.txt", "One two three.", DEFAULT, "text"),
        ("a", "{braces} may begin a text\n", DEFAULT, "text"),
        ("a.jsonl", '\n{"t": "x"}\n', CorpusOptions(field="t"), "jsonl"),
        ("a.data", '{"t": "x"}\n', CorpusOptions(field="t"), "jsonl"),
        ("a.jsonl", ARTICLE, DEFAULT, "articles"),
        ("a.txt", ARTICLE, DEFAULT, "articles"),
        ("a.jsonl", ARTICLE, CorpusOptions(field="title"), "jsonl"),
        ("a.json", '[\n {"t": "x"},\n {"t": "y"}\n]', CorpusOptions(field="t"), "json"),
        ("a.jsonl", '[{"t": "x"}, {"t": "y"}]', CorpusOptions(field="t"), "json"),
        ("a.json", '{\n "t": "pretty printed"\n}', CorpusOptions(field="t"), "json"),
        ("a.csv", "t,n\nOne two three.,1\n", CorpusOptions(field="t"), "csv"),
        ("a.tsv", "t\tn\nOne two three.\t1\n", CorpusOptions(field="t"), "csv"),
        ("a.md", "# One\n\nTwo three four.\n", DEFAULT, "markdown"),
        ("a.xml", "<mediawiki>\n</mediawiki>", DEFAULT, "wiki"),
        ("a.txt", "<?xml version='1.0'?>\n<mediawiki>\n", DEFAULT, "wiki"),
    ],
)
def test_kind_is_seen_from_the_content(write, name, content, options, kind):
    (source,) = find_sources(write(name, content), options)
    assert source.kind == kind
    assert source.size == len(content)


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("a.txt", "One two three.", CorpusOptions(field="text")),
        ("a.jsonl", ARTICLE, CorpusOptions(split="line")),
    ],
)
def test_options_that_do_not_fit_a_file_are_refused(write, name, content, options, says):
    with says(CorpusError):
        find_sources(write(name, content), options)


def test_field_is_for_the_jsonl_files_of_a_mixed_corpus(write):
    spec = [write("a.txt", "One two three."), write("b.jsonl", '{"t": "x"}')]
    assert [source.kind for source in find_sources(spec, CorpusOptions(field="t"))] == ["text", "jsonl"]


def test_looking_needs_no_heavy_library():
    import subprocess
    import sys

    code = (
        "import sys, likewise.corpus as c\n"
        "try: list(c.read_sentences('/nowhere.txt'))\n"
        "except c.CorpusError: pass\n"
        "heavy = {'torch', 'transformers', 'datasets', 'pyarrow', 'gensim', 'nupunkt'} & set(sys.modules)\n"
        "assert not heavy, heavy"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=Path(__file__).parent)


def test_a_pipe_is_read_once_and_kept_by_its_content(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))
    kept = []
    for name in ("one", "two"):
        os.mkfifo(tmp_path / name)
        writer = threading.Thread(target=(tmp_path / name).write_text, args=("The old cat sees a dog.\n",))
        writer.start()
        kept += [find_sources(str(tmp_path / name), DEFAULT), find_sources(str(tmp_path / name), DEFAULT)]
        writer.join()
    assert all(sources == kept[0] for sources in kept)
    assert kept[0][0].path.read_text() == "The old cat sees a dog.\n"
    assert list((tmp_path / "cache" / "pipes").glob("*/text")) == [kept[0][0].path]


def test_files_of_a_folder_that_cannot_be_read_are_left_out_with_the_reason(tmp_path, says):
    texts = {"a.txt": "One two three.", "b.ndjson": '{\n "name": "x', "c.xml": "<html/>", "d.csv": "t,n\nx,1\n"}
    texts |= {f"e{number}.jsonl": '{"t": "x"}' for number in range(7)}
    for name, text in (texts | {".hidden.txt": "Four five six."}).items():
        (tmp_path / name).write_text(text)
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "f.txt").write_text("Seven eight nine.")
    progress, told = told_lines()
    assert [source.path.name for source in find_sources(tmp_path, DEFAULT, progress)] == ["a.txt"]
    assert [line.partition(": ")[0] for line in told] == ["skipped"] * 10
    assert f"{tmp_path}/b.ndjson:1: not a JSON object" in told[0]
    assert "this XML is not a MediaWiki dump" in told[1]
    assert "the field with the text" in told[2]
    assert told[9].startswith("skipped: 1 more")
    with says(CorpusError):
        find_sources([tmp_path / "a.txt", tmp_path / "b.ndjson"], DEFAULT, progress)
    (tmp_path / "a.txt").unlink()
    with says(CorpusError):
        find_sources(tmp_path, DEFAULT, progress)


def test_of_a_folder_prose_is_read_and_a_line_counts_the_rest(tmp_path):
    prose = ("a.txt", "b.md", "c.jsonl.gz", "d.xml-p1p9.bz2", "README", "wiki_00")
    for name in (*prose, "e.svg", "f.svg", "g.sql", "h.json", "i.py", "j.svg", "k.css", "Makefile"):
        (tmp_path / name).touch()
    (tmp_path / "README").write_text("How to open the valve.\n")
    (tmp_path / "run").write_text("#!/bin/sh\necho valve\n")
    (tmp_path / "core").write_bytes(b"ab\0cd")
    listing = list_folder(tmp_path)
    read, (others,) = listing.files, listing.left_out
    assert [path.name for path in read] == sorted(prose)
    assert others.startswith("10 files in other formats (3 .svg, 1 .css, ")
    assert others.endswith(", 3 more); name a text file explicitly to read it")
    assert find_files(tmp_path) == read
    progress, told = told_lines()
    for name in ("c.jsonl.gz", "d.xml-p1p9.bz2"):
        (tmp_path / name).unlink()
    assert len(find_sources(tmp_path, DEFAULT, progress)) == 4
    assert told == [f"skipped: {others}"]
    assert find_files(tmp_path / "i.py") == [tmp_path / "i.py"]


def test_a_compressed_document_of_a_folder_is_counted_as_that(tmp_path):
    for name in ("a.txt", "b.html.gz", "c.pdf.xz", "d.md.xz"):
        (tmp_path / name).touch()
    assert [line.split(";")[0] for line in list_folder(tmp_path).left_out] == [
        "2 files in other formats (1 .html.gz, 1 .pdf.xz)"
    ]


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("a.jsonl", '{"n": 1, "text": "One pump."}\n{"text": "Two valves."}\n'),
        ("a.json", '[{"n": 1, "text": "One pump."}, {"text": "Two valves."}]'),
        ("a.csv", "id,text\n7,One pump.\n8,Two valves.\n"),
    ],
)
def test_the_field_text_is_read_where_none_is_named(name, body, tmp_path):
    (tmp_path / name).write_text(body)
    (source,) = find_sources(tmp_path / name, CorpusOptions())
    assert [row["text"] for _, row in read_rows(source)] == ["One pump.", "Two valves."]
    assert source.options.field == "text"
    (named,) = find_sources(tmp_path / name, CorpusOptions(field="other"))
    assert named.options.field == "other"


def test_columns_without_end_are_named_in_a_time_that_grows_with_their_number():
    begun = time.process_time()
    names = field_names(["text", *[""] * 100_000, "text"])
    assert time.process_time() - begun < 5
    assert len(names) == len(set(names)) == 100_002
