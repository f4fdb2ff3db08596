"""Places, headings and rows of PDF files as an index gets them."""

from pathlib import Path

from likewise.corpus import CorpusOptions
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.sources import open_source
from likewise.searching.index.passages import Splitting

FILES = Path(__file__).parent / "files"


def paragraphs(name):
    return list(read_paragraphs(open_source(FILES / name, CorpusOptions()), blocks=True))


def test_a_heading_holds_until_the_next_one_also_on_the_next_page():
    found = paragraphs("reportlab-table.pdf")
    places = {(place, one.headings) for one in found for place, _ in one.sentences}
    assert {headings for _, headings in places} == {
        ("Inspection of the pumps",),
        ("Prices of the spare parts",),
        ("What remains to be done",),
    }
    assert (found[-1].sentences[0][0], found[-1].title) == (2, "What remains to be done")


def test_the_rows_of_a_table_are_one_block_below_their_header():
    (table,) = [one for one in paragraphs("reportlab-table.pdf") if one.kind == "table"]
    lines = [text for _, text in table.sentences]
    assert lines[:2] == ["| Part | Price | Stock | Supplier |", "| --- | --- | --- | --- |"]
    assert "| Pump P-107 | 27.50 | 5 | Abbey Ltd |" in lines
    assert len(lines) == 13
    assert table.headings == ("Prices of the spare parts",)


def test_columns_are_read_one_after_the_other():
    text = " ".join(text for one in paragraphs("reportlab-columns.pdf") for _, text in one.sentences)
    numbers = "first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth".split()
    places = [text.index(f"The {number} pump") for number in numbers]
    assert places == sorted(places)


def test_a_passage_of_a_pdf_has_its_page_and_its_headings():
    passages = list(Splitting(60, CorpusOptions()).read(FILES / "reportlab-table.pdf"))
    rows = [one for one in passages if not one.prose]
    assert len(rows) > 1
    assert {(one.line, one.title) for one in rows} == {(1, "Prices of the spare parts")}
    assert all(one.text.startswith("| Part | Price | Stock | Supplier |\n| --- | --- | --- | --- |\n") for one in rows)
    assert (passages[-1].line, passages[-1].title) == (2, "What remains to be done")


def test_a_table_that_goes_on_on_the_next_page_has_its_header_there():
    tables = [one for one in paragraphs("reportlab-two-pages.pdf") if one.kind == "table"]
    assert [{place for place, _ in one.sentences} for one in tables] == [{1}, {2}]
    assert {one.sentences[0][1] for one in tables} == {"| Valve | Pressure | Station | Year |"}
    assert sum(len(one.sentences) - 2 for one in tables) == 36
