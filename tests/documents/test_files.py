"""Documents of every kind, each beside a text file with the lines that must come: headings behind '# ', rows, words."""

from pathlib import Path

import pytest

from likewise.corpus import CorpusOptions
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.sources import open_source

FILES = sorted(path for path in (Path(__file__).parent / "files").iterdir() if path.suffix != ".txt")


def text_of(path: Path) -> str:
    """All that is read of a file on one line, with each heading where it first holds."""
    parts: dict[str, None] = {}
    for one in read_paragraphs(open_source(path, CorpusOptions()), blocks=True):
        headings = one.headings if one.kind != "heading" else (*one.headings, one.sentences[0][1])
        parts.update(dict.fromkeys(f"# {heading}" for heading in headings))
        parts["\n".join(text for _, text in one.sentences)] = None
    return " ".join(" ".join(parts).split())


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_all_that_must_come_of_a_file_comes(path, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path))
    lines = path.with_name(f"{path.name}.txt").read_text(encoding="utf-8").splitlines()
    text = text_of(path)
    assert [line for line in lines if " ".join(line.split()) not in text] == []


@pytest.mark.parametrize("name", "guide.rst letter.odt notes.org page.html parts.xlsx report.docx talk.pptx".split())
def test_the_rows_of_a_table_are_one_block_below_their_header(name, tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path))
    path = next(path for path in FILES if path.name == name)
    row = next(line for line in path.with_name(f"{name}.txt").read_text().splitlines() if line.startswith("| "))
    found = read_paragraphs(open_source(path, CorpusOptions()), blocks=True)
    tables = [[text for _, text in one.sentences] for one in found if one.kind == "table"]
    (table,) = [lines for lines in tables if row in [" ".join(line.split()) for line in lines[2:]]]
    assert all(line.startswith("|") for line in table)
    assert not table[1].strip("|- ")
