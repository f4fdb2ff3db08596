"""A format of another package is read like the library's own: here, and in the process that converts."""

import os

import pytest

from likewise.corpus import CorpusError, CorpusOptions, known_formats, read_sentences
from likewise.corpus.clean_text import digest_of
from likewise.corpus.rows import read_rows
from likewise.corpus.sources import find_sources
from likewise.documents import guard
from likewise.runs.plugins import entry_points_of
from likewise.searching.query.hit import place_in

CODE = """
from likewise.corpus import Page
from likewise.documents import PagedFormat


class Subtitles(PagedFormat):
    suffixes = (".srt", ".html")
    unit = "cue"

    def pages(self, path):
        for number, cue in enumerate(path.read_text(encoding="utf-8").split("\\n\\n"), 1):
            yield Page(number, "NOTE: " + " ".join(cue.splitlines()[2:]))
"""
CUES = "1\n0:01 --> 0:02\nThe old pump leaks at the seal.\n\n2\n0:03 --> 0:04\nThe fan is loud at night.\n"


ROWS = """
from likewise.corpus import Format


class Logs(Format):
    suffixes = (".log",)
    holds = "rows"

    def read(self, source):
        for number, line in enumerate(source.path.read_text().splitlines(), 1):
            level, _, text = line.partition(" ")
            yield number, {"level": level, "text": text}
"""


def forget():
    """Have the list of formats be made anew."""
    entry_points_of.cache_clear()
    known_formats.formats.cache_clear()
    known_formats._by_suffix.cache_clear()


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A function that installs a package with a format, as pip does."""

    def install(code, value="subtitles:Subtitles"):
        name = f"subtitles_{digest_of(f'{tmp_path} {code} {value}').hex()[:8]}"
        site = tmp_path / name
        (site / f"{name}-1.0.dist-info").mkdir(parents=True)
        (site / f"{name}.py").write_text(code)
        about = site / f"{name}-1.0.dist-info"
        (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (about / "entry_points.txt").write_text(f"[likewise.formats]\nsubtitles = {value.replace('subtitles', name)}\n")
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")]))
        forget()
        guard.GUARD.end()
        return site / f"{name}.py"

    yield install
    forget()
    guard.GUARD.end()


def test_its_files_are_read_also_those_of_a_folder(tmp_path, installed):
    folder = tmp_path / "talks"
    folder.mkdir()
    (folder / "talk.srt").write_text(CUES)
    (folder / "page.html").write_text("<p>The web page stays with the library.</p>")
    assert list(read_sentences(str(folder))) == ["The web page stays with the library."]
    installed(CODE)
    assert sorted(read_sentences(str(folder))) == [
        "NOTE: The fan is loud at night.",
        "NOTE: The old pump leaks at the seal.",
        "The web page stays with the library.",
    ]
    assert place_in("talk.srt", 2) == "talk.srt, cue 2"


def test_rows_of_another_package_are_rows(tmp_path, installed):
    (tmp_path / "machine.log").write_text("info The pump starts now.\nerror The old seal leaks.\n")
    installed(ROWS, "subtitles:Logs")
    (source,) = find_sources(tmp_path / "machine.log", CorpusOptions())
    assert list(read_rows(source))[1] == (2, {"level": "error", "text": "The old seal leaks."})
    assert list(read_sentences(str(source.path))) == ["The pump starts now.", "The old seal leaks."]


def test_changed_code_reads_a_file_anew(tmp_path, installed):
    (tmp_path / "talk.srt").write_text(CUES)
    file = installed(CODE)
    assert "NOTE: The fan is loud at night." in list(read_sentences(str(tmp_path / "talk.srt")))
    guard.GUARD.end()
    file.write_text(CODE.replace("NOTE", "CUE"))
    assert "CUE: The fan is loud at night." in list(read_sentences(str(tmp_path / "talk.srt")))


@pytest.mark.parametrize(
    ("code", "value"),
    [
        (CODE, "subtitles:Nothing"),
        ("Subtitles = int", "subtitles:Subtitles"),
        ("1 / 0", "subtitles:Subtitles"),
        (CODE.replace('(".srt", ".html")', '".srt"'), "subtitles:Subtitles"),
        (CODE.replace('".srt"', '".SRT"'), "subtitles:Subtitles"),
    ],
)
def test_a_broken_package_is_named(tmp_path, installed, code, value, says):
    (tmp_path / "talk.srt").write_text(CUES)
    installed(code, value)
    with says(CorpusError, hidden=r"_[0-9a-f]{8}"):
        list(read_sentences(str(tmp_path / "talk.srt")))


@pytest.mark.parametrize(
    "body",
    [
        "yield 'text'",
        "yield Page('first', 'text')",
        "raise __import__('likewise').corpus.CorpusError('cue 3 has no end')",
    ],
)
def test_what_is_wrong_with_a_page_or_a_file_is_told(tmp_path, installed, body, says):
    (tmp_path / "talk.srt").write_text(CUES)
    installed(CODE[: CODE.index("        for number")] + f"        {body}\n")
    with says(CorpusError):
        list(read_sentences(str(tmp_path / "talk.srt")))
