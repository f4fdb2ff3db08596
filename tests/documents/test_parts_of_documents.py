"""Parts of documents that are easily passed over: texts within texts of mails, fields of Word, forms of PDF, boxes."""

import re
import zipfile
from pathlib import Path

import pytest

from likewise.corpus import CorpusError, CorpusOptions
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.sources import open_source
from likewise.documents.markdown import markdown_blocks
from likewise.documents.page_edges import edges_of

pytest.importorskip("markitdown")
PARTS = Path(__file__).parent / "parts"
"""Small files with one such part each; the text file of the same name has all that is read of it."""
FILES = sorted(path.with_suffix("") for path in PARTS.glob("*.txt"))


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LIKEWISE_CACHE", str(tmp_path / "cache"))


def pages_of(path: Path) -> list:
    """The pages of a file."""
    source = open_source(path, CorpusOptions())
    return list(source.format.read(source))


@pytest.fixture
def read(tmp_path):
    """A function that writes a file and returns all of its text."""

    def text_of(name: str, content: bytes | str) -> str:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return "\n".join(f"{page.title}\n{page.text}" for page in pages_of(path)).replace("\\", "")

    return text_of


def paragraphs(text: str) -> list[str]:
    """The paragraphs of a text, each on one line."""
    return [" ".join(one.split()) for one in re.split(r"\n\s*\n", text) if one.strip()]


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_all_that_is_read_of_a_file(path):
    found = "\n\n".join(f"{page.title}\n\n{page.text}" for page in pages_of(path)).replace("\\", "")
    assert paragraphs(found) == paragraphs(path.with_name(f"{path.name}.txt").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("name", "texts", "message"),
    [
        ("no-letters.pdf", ["A page with letters."], "no-letters.pdf:2:"),
        ("prefixes.epub", ["Pump.", "Valve."], "b.xhtml"),
        (
            "embedded.docx",
            ["Write your name"],
            "embedded.docx: an embedded file is not read: open it in Word, and save it",
        ),
    ],
)
def test_what_is_not_read_of_a_file_is_reported(name, texts, message):
    source = open_source(PARTS / name, CorpusOptions())
    assert [text for one in read_paragraphs(source, blocks=True) for _, text in one.sentences] == texts
    assert message in source.report.messages[0]
    assert source.report.is_partial


def test_rows_of_a_sheet_with_macros_are_rows(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["id", "text"])
    book.active.append(["a", "one_x000D_\nsecond"])
    for name in ("a.xlsx", "a.xlsm"):
        book.save(tmp_path / name)
        source = open_source(tmp_path / name, CorpusOptions(field="text"))
        assert source.kind == "xlsx"
        (paragraph,) = read_paragraphs(source)
        assert " ".join(paragraph.sentences[0][1].split()) == "one second"


def test_a_formula_without_a_value_is_told(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for row in (["id", "text"], ["a", "The pump leaks."], ["b", '=CONCATENATE("valve", 2)']):
        book.active.append(row)
    book.save(tmp_path / "a.xlsx")
    for field in (None, "text"):
        source = open_source(tmp_path / "a.xlsx", CorpusOptions(field=field))
        texts = str([paragraph.sentences for paragraph in read_paragraphs(source, blocks=not field)])
        assert "The pump leaks." in texts
        assert any(":3: a formula" in told for told in source.report.messages), field
        assert source.report.is_partial


@pytest.mark.parametrize(("name", "part"), [("a.odt", "content.xml"), ("a.docx", "word/document.xml")])
def test_a_cut_part_of_an_archive_is_no_shorter_text(name, part, tmp_path):
    whole = PARTS / {"a.odt": "boxes.odt", "a.docx": "fields.docx"}[name]
    with zipfile.ZipFile(whole) as before, zipfile.ZipFile(tmp_path / name, "w") as after:
        for one in before.namelist():
            content = before.read(one)
            after.writestr(one, content[: len(content) // 2] if one == part else content)
    with pytest.raises(CorpusError, match=f"cannot be read as .{name[2:]}"):
        pages_of(tmp_path / name)


def test_rich_text_is_refused(tmp_path, says):
    path: Path = tmp_path / "a.rtf"
    path.write_bytes(rb"{\rtf1\ansi\f0 The pump leaks.\par}")
    with says(CorpusError):
        open_source(path, CorpusOptions())


@pytest.mark.parametrize(
    "page",
    ["further<b> </b>reference", "further<a href='x'><i> </i></a>reference", "further<a name='x'> reference</a>"],
)
def test_a_blank_that_is_marked_up_divides_words(read, page):
    assert read("a.html", f"<p>{page}</p>").strip() == "further reference"


@pytest.mark.parametrize(
    "table",
    [
        "<caption>Sold</caption><tr><th>a</th></tr><tr><td>b</td></tr><tr><td>c</td></tr>",
        "<colgroup><col></colgroup><tr><th>a</th></tr><tr><td>b</td></tr><tr><td>c</td></tr>",
        "<thead><tr><th>a</th></tr></thead><tbody><tr><td>b</td></tr></tbody><tfoot><tr><td>c</td></tr></tfoot>",
        "<tr><th>a</th></tr><tbody><tr><td>b</td></tr></tbody><tfoot><tr><td>c</td></tr></tfoot>",
        "<tbody><tr><th>a</th></tr></tbody><tbody><tr><td>b</td></tr></tbody><tbody><tr><td>c</td></tr></tbody>",
    ],
)
def test_a_table_has_one_header_whatever_stands_before_it(read, table):
    text = read("a.html", f"<table>{table}</table>").strip()
    assert text.endswith("| a |\n| --- |\n| b |\n| c |")
    assert ("Sold" in text) == ("Sold" in table)


def test_brackets_and_backslashes_of_a_page_stay(read):
    text = "As shown by Smith [12](page5), call handlers[0](event)."
    assert text in read("a.html", f"<p>{text}</p>")
    path = Path(r"C:\_temp\-x")
    (block,) = markdown_blocks([(1, f"Open `{path}`, and a\\[1\\]\\_b.")], escaped=True)
    assert block.lines == [(1, f"Open `{path}`, and a[1]_b.")]


WESTERN = "The “pump” – it’s 5 €"
FRENCH = "Le café est fermé à cause de l’été. Déjà élevé."


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.html", f"<html><head><meta charset=iso-8859-1></head><p>{WESTERN}</p>"),
        ("a.eml", f"Subject: S\nContent-Type: text/plain; charset=iso-8859-1\n\n{WESTERN}\n"),
        ("b.eml", f"Subject: S\nContent-Type: text/html; charset=iso-8859-1\n\n<p>{WESTERN}</p>\n"),
        ("b.html", f"<p>{FRENCH}</p>"),
        ("c.html", f"<html><head><meta charset=utf-8></head><p>{FRENCH}</p>"),
        ("c.eml", f"Subject: {FRENCH}\n\nText.\n"),
    ],
)
def test_windows_signs_of_pages_and_mails_are_read(read, name, content):
    assert any(text in read(name, content.encode("cp1252")) for text in (WESTERN, FRENCH))


@pytest.mark.parametrize("tag", "details summary fieldset legend address aside figure menu option button".split())
def test_words_of_elements_on_lines_of_their_own_are_not_glued(read, tag):
    text = read("a.html", f"<div><p>text</p><{tag}>alpha</{tag}><{tag}>beta</{tag}></div>")
    assert "alpha" in text
    assert "alphabeta" not in text


def test_conditions_of_word_are_no_text(read):
    page = "<p><![if !supportLists]><span>1. </span><![endif]>Check the pump</p>"
    assert read("a.html", page).split("\n")[-1] == "1. Check the pump"


def test_a_line_that_begins_with_from_is_text(tmp_path):
    box = (
        "From a@x Wed May  1 10:00:00 2024\nSubject: A\n\nFrom here on it is dry.\n\n>From the pump.\n\n"
        "From - Wed May 01 10:00:00 2024\nSubject: B\n\nSecond.\n"
    )
    (tmp_path / "a.mbox").write_text(box)
    pages = pages_of(tmp_path / "a.mbox")
    assert [(page.place, page.title) for page in pages] == [(1, "A"), (2, "B")]
    assert "From here on it is dry.\n\nFrom the pump." in pages[0].text


def test_a_cell_that_spans_rows_keeps_the_others_in_their_columns(read):
    table = "<table><tr><th>Region<th>City<th>Sales<tr><td rowspan=2>North<td>Oslo<td>11<tr><td>Bergen<td>12</table>"
    assert [[cell.strip() for cell in row.split("|")[1:-1]] for row in read("a.html", table).strip().split("\n")] == [
        ["Region", "City", "Sales"],
        ["---", "---", "---"],
        ["North", "Oslo", "11"],
        ["", "Bergen", "12"],
    ]


def test_end_tags_may_be_left_out(read):
    text = read("a.html", "<ul><li>Open\n<li>Close\n<ul><li>Slowly</ul></ul><dl><dt>Pump<dd>It moves water.</dl>")
    assert [line.strip(" *+-") for line in text.strip().split("\n") if line.strip()][:3] == ["Open", "Close", "Slowly"]


def test_powers_and_fractions_are_no_digits(read):
    page = "10<sup>6</sup>, <math><msup><mn>10</mn><mn>7</mn></msup></math>, <mfrac><mn>1</mn><mn>2</mn></mfrac>"
    assert read("a.html", f"<p>{page}</p>").strip() == "10^6, 10^7, 1/2"


def test_a_card_is_a_heading_with_its_text(read):
    text = read("a.html", "<a href='/x'><h2>Pump recall</h2><p>All pumps.</p></a> See <a href='/y'>the list</a>.")
    assert "## Pump recall" in text
    assert "(/x)" not in text
    assert "See the list." in text


def test_links_beside_each_other_are_words(read):
    page = "<a href='x'>One</a><a href='y'>Two</a>, note<a href='#n'>[1]</a> and Donau<a href='z'>dampf</a>er"
    assert read("a.html", f"<p>{page}</p>").strip() == "One Two, note[1] and Donaudampfer"
    heading = "<h2>Use<a href='#use'>¶</a></h2>"
    assert read("b.html", f"{heading}<p><a href='#'>本</a><a href='#b'>屋</a></p>").split() == ["##", "Use", "本屋"]


def test_lines_of_pages_whose_numbers_are_their_own_are_no_edges():
    invoices = [
        [f"Invoice number {number}", f"To {name}.", "Page 1"] for number, name in ((471, "A"), (482, "B"), (499, "C"))
    ]
    assert edges_of(invoices) == [[2], [2], [2]]
    pages = [["Manual 2024", f"Text {name}.", f"{number} / 9"] for number, name in ((4, "A"), (5, "B"), (6, "C"))]
    assert edges_of(pages) == [[0, 2], [0, 2], [0, 2]]
    assert edges_of([["Page 1"], ["Page 2"], ["Page 3"]]) == [[], [], []]


def test_tables_within_tables(read):
    inner = "<table><tr><td>Weight<td>12 kg<tr><td>Power<td>300 W</table>"
    data = f"<table><tr><th>Name<th>Detail<tr><td>Pump<td>{inner}</table>"
    assert read("a.html", data).strip().split("\n")[-1] == "| Pump | Weight 12 kg; Power 300 W |"
    assert read("a.html", data.replace("th>", "td>")).strip().split("\n")[-1] == "| Pump | Weight 12 kg; Power 300 W |"
    layout = f"<table><tr><td>Menu</td><td><h2>Pumps</h2><p>They leak.</p>{data}</td></tr></table>"
    text = read("a.html", layout).strip().split("\n")
    assert text[:5:2] == ["Menu", "## Pumps", "They leak."]
    assert text[-3:] == read("a.html", data).strip().split("\n")


def test_numbers_of_lists(read):
    law = "<ol type=a><li>Rent<li><p>Repairs</p><ol type=I start=4><li>Roof</ol></ol>"
    page = f"{law}<ol><li>One<li value=5>Five<li>Six</ol><ol reversed><li>Two<li>One</ol>"
    words = " ".join(read("a.html", page).replace("\\", "").split())
    assert words == "- a. Rent - b. Repairs - IV. Roof - 1. One - 5. Five - 6. Six - 2. Two - 1. One"
