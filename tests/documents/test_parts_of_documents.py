"""Parts of documents that are easily passed over: texts within texts of mails, fields of Word, forms of PDF, boxes."""

import io
import zipfile
from pathlib import Path

import pytest

from likewise.corpus import CorpusError, CorpusOptions
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.sources import open_source
from likewise.documents.markdown import markdown_blocks
from likewise.documents.page_edges import edges_of

pytest.importorskip("markitdown")
OFFICE = "http://schemas.openxmlformats.org"


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
        pages = pages_of(path)
        return "\n".join(f"{page.title}\n{page.text}" for page in pages).replace("\\", "")

    return text_of


def zipped(**parts: str) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return made.getvalue()


def many(kind: str, *parts: str, mark: str = "b") -> str:
    """A mail, or a part of one, that has parts itself."""
    inside = "".join(f"--{mark}\n{part}\n" for part in parts)
    return f"Content-Type: multipart/{kind}; boundary={mark}\n\n{inside}--{mark}--\n"


def plain(text: str, more: str = "") -> str:
    return f"Content-Type: text/plain\n{more}\n{text}\n"


HEAD = "Subject: S\nMIME-Version: 1.0\n"


@pytest.mark.parametrize(
    ("mail", "texts"),
    [
        (
            many(
                "mixed",
                many("mixed", plain("First."), plain("Second.", "Content-Disposition: inline\n"), mark="c"),
                plain("Footer."),
            ),
            ["First.", "Second.", "Footer."],
        ),
        (
            many(
                "signed",
                many("mixed", plain("Signed."), plain("Notes.", "Content-Disposition: attachment\n"), mark="c"),
                "Content-Type: application/pgp-signature; name=sig.asc\n\n-----BEGIN\n",
            ),
            ["Signed.", "Notes.", "sig.asc"],
        ),
        (many("digest", "\nSubject: One\n\nThe first.\n", "\nSubject: Two\n\nThe second.\n"), ["One", "The second."]),
        ("Content-Type: message/rfc822\n\nSubject: Inner\n\nForwarded.\n", ["Inner", "Forwarded."]),
        (
            many(
                "mixed",
                plain("See it."),
                "Content-Type: message/rfc822\nContent-Transfer-Encoding: base64\n\n"
                "U3ViamVjdDogSW5uZXIKCklubmVyIHRleHQgaGVyZS4K\n",
            ),
            ["Inner text here."],
        ),
        (plain("Body.", 'Content-Disposition: attachment; filename="x.txt"\n'), ["Body.", "x.txt"]),
        (
            many(
                "alternative", plain("Show me as HTML."), f"Content-Type: text/html\n\n<p>{'The pump leaks. ' * 9}</p>"
            ),
            ["The pump leaks."],
        ),
    ],
)
def test_every_text_of_a_mail_is_read(read, mail, texts):
    found = read("a.eml", HEAD + mail)
    assert all(text in found for text in texts), found
    assert "U3Vi" not in found


@pytest.mark.parametrize("sender", ['"a" <', "a b <x@[1.2.3"])
def test_a_header_that_cannot_be_parsed_loses_no_mail(read, sender):
    mails = [f"From x@y Wed May  1 10:00:00 2024\nSubject: M{i}\nFrom: {who}\n\nText {i}.\n\n"
             for i, who in enumerate(["a@x.org", sender, "b@x.org"])]  # fmt: skip
    found = read("a.mbox", "".join(mails))
    assert all(f"M{i}\nText {i}." in found for i in range(3)), found


def test_a_saved_web_page_is_read(read):
    page = many("related", "Content-Type: text/html\n\n<p>The page.</p>", "Content-Type: text/css\n\np {}")
    found = read("a.mht", HEAD + page)
    assert "The page." in found
    assert "{" not in found


def test_fields_ruby_and_directions_of_word_are_text(read):
    def run(text):
        return f'<w:r><w:t xml:space="preserve">{text}</w:t></w:r>'

    body = f'<w:p>{run("Table ")}<w:fldSimple w:instr=" SEQ ">{run("7")}</w:fldSimple>{run(": seals")}</w:p>'
    body += f"<w:p><w:r><w:ruby><w:rt>{run('とう')}</w:rt><w:rubyBase>{run('東京')}</w:rubyBase></w:ruby></w:r></w:p>"
    body += f'<w:p><w:dir w:val="rtl">{run("שלום")}</w:dir></w:p>'
    kinds = f"{OFFICE}/package/2006/content-types"
    document = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    office = f"{OFFICE}/officeDocument/2006/relationships/officeDocument"
    content = zipped(**{
        "[Content_Types].xml": f'<Types xmlns="{kinds}"><Default Extension="rels" ContentType="application/vnd.openxmlf'
        'ormats-package.relationships+xml"/>'
        f'<Override PartName="/word/document.xml" ContentType="{document}"/></Types>',
        "_rels/.rels": f'<Relationships xmlns="{OFFICE}/package/2006/relationships"><Relationship Id="r"'
        f' Type="{office}" Target="word/document.xml"/></Relationships>',
        "word/document.xml": f'<w:document xmlns:w="{OFFICE}/wordprocessingml/2006/main"><w:body>{body}</w:body>'
        "</w:document>",
    })  # fmt: skip
    found = read("a.docx", content)
    assert all(text in found for text in ("Table 7: seals", "東京", "שלום"))
    assert "とう" not in found


def pdf(*objects: str) -> bytes:
    made, places = b"%PDF-1.7\n", []
    for number, content in enumerate(objects, 1):
        places.append(len(made))
        made += f"{number} 0 obj\n{content}\nendobj\n".encode()
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 {len(objects) + 1}\n0000000000 65535 f \n{table}trailer<</Size {len(objects) + 1}/Root 1 0 R>>"
    return made + f"{end}\nstartxref\n{len(made)}\n%%EOF".encode()


def stream(content: str) -> str:
    return f"<</Length {len(content)}>>\nstream\n{content}\nendstream"


@pytest.mark.parametrize(("code", "word"), [("\\255", "turbocharger"), ("-", "turbo-charger")])
def test_a_soft_hyphen_of_a_pdf_joins_and_a_hyphen_of_the_word_stays(read, code, word):
    """Octal 255 is the soft hyphen of the encoding of Windows."""
    lines = [f"The long-term pump was opened and the turbo{code}", "charger is hot and must be cooled by then."]
    content = pdf(
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        stream("BT /F1 12 Tf 72 720 Td " + " ".join(f"({line}) Tj 0 -14 Td" for line in lines) + " ET"),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    )
    assert read("a.pdf", content).strip().startswith(f"The long-term pump was opened and the {word} is hot")
    alone = read("b.pdf", content.replace(b"long-term", b"long term"))
    assert f"the {word} is hot" in alone, "no other hyphen shows the code of one"


def test_what_is_typed_into_a_pdf_is_text(read):
    content = pdf(
        "<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[6 0 R 8 0 R]>>>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>"
        "/Annots[6 0 R 7 0 R 8 0 R]>>",
        stream("BT /F1 12 Tf 72 700 Td (The name:) Tj ET"),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        "<</Type/Annot/Subtype/Widget/FT/Tx/T(name)/V(Ada Miller)/Rect[72 640 400 660]/P 3 0 R/F 4>>",
        "<</Type/Annot/Subtype/FreeText/Contents(A note on the page)/Rect[72 600 400 620]/F 4>>",
        "<</Type/Annot/Subtype/Widget/FT/Ch/Ff 2097152/T(kind)/V[(Oil)(Seal)]/Opt[(Oil)(Seal)(Ring)]/P 3 0 R/F 4"
        "/Rect[72 560 400 580]>>",
    )
    found = read("a.pdf", content)
    assert "The name:\n\nAda Miller\n\nOil, Seal\n\nA note on the page" in found


def test_pages_without_letters_are_told(read, tmp_path):
    font = "<</Type/Font/Subtype/Type0/BaseFont/X/Encoding/Identity-H/DescendantFonts[8 0 R]>>"
    content = pdf(
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R 6 0 R]/Count 2>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        stream("BT /F1 12 Tf 72 700 Td (A page with letters.) Tj ET"),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 9 0 R/Resources<</Font<</F1 7 0 R>>>>>>",
        font,
        "<</Type/Font/Subtype/CIDFontType2/BaseFont/X/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>"
        "/FontDescriptor 10 0 R/DW 600>>",
        stream("BT /F1 12 Tf 72 700 Td <00240025002600270028> Tj ET"),
        "<</Type/FontDescriptor/FontName/X/Flags 4/FontBBox[0 0 1000 1000]/ItalicAngle 0/Ascent 800/Descent -200"
        "/CapHeight 700/StemV 80>>",
    )
    assert "cid:" not in read("a.pdf", content)
    source = open_source(tmp_path / "a.pdf", CorpusOptions())
    texts = [text for one in read_paragraphs(source, blocks=True) for _, text in one.sentences]
    assert texts == ["A page with letters."]
    assert source.report.is_partial
    assert "a.pdf:2:" in source.report.messages[0]


def test_boxes_and_notes_of_open_document_are_apart(read):
    body = "<t:p>Before<d:frame><d:text-box><t:p>Inside</t:p><t:p>Second</t:p></d:text-box></d:frame>after.</t:p>"
    body += "<t:p>A claim<t:note><t:note-citation>1</t:note-citation><t:note-body><t:p>One.</t:p><t:p>Two.</t:p>"
    body += "</t:note-body></t:note> goes on.</t:p>"
    content = f'<o:d xmlns:o="o" xmlns:t="t" xmlns:d="d"><o:body><o:text>{body}</o:text></o:body></o:d>'
    found = read("a.odt", zipped(**{"content.xml": content}))
    assert "Before after." in found
    assert "Inside\n\nSecond" in found
    assert "A claim (One. Two.) goes on." in found


def test_a_book_with_prefixes_fragments_and_a_missing_chapter_is_read(read, tmp_path):
    package = "<opf:package xmlns:opf='x'><opf:manifest>"
    package += "".join(f"<opf:item id='{name}' href='{name}.xhtml#top'/>" for name in "abc")
    package += "</opf:manifest><opf:spine>" + "".join(f"<opf:itemref idref='{name}'/>" for name in "abc")
    content = zipped(**{
        "META-INF/container.xml": "<c:container><c:rootfile full-path='B/content.opf'/></c:container>",
        "B/content.opf": f"{package}</opf:spine></opf:package>",
        "B/a.xhtml": "<p>Pump.</p>",
        "B/c.xhtml": "<p>Valve.</p>",
    })  # fmt: skip
    assert read("a.epub", content).split() == ["Pump.", "Valve."]
    source = open_source(tmp_path / "a.epub", CorpusOptions())
    list(read_paragraphs(source, blocks=True))
    assert "b.xhtml" in source.report.messages[0]


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


def test_upright_text_of_a_pdf_is_read_in_lines(read):
    turned = "BT /F1 12 Tf 0 1 -1 0 100 100 Tm (The gasket is red) Tj 0 1 -1 0 116 100 Tm (and of steel.) Tj ET"
    content = pdf(
        "<</Type/Catalog/Pages 2 0 R>>",
        "<</Type/Pages/Kids[3 0 R]/Count 1>>",
        "<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>",
        stream(turned),
        "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    )
    assert "The gasket is red and of steel." in " ".join(read("a.pdf", content).split())


def test_rich_text_is_refused(tmp_path):
    path: Path = tmp_path / "a.rtf"
    path.write_bytes(rb"{\rtf1\ansi\f0 The pump leaks.\par}")
    with pytest.raises(CorpusError, match="Rich Text"):
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


def test_a_text_with_an_equation_on_a_slide_is_read(read):
    pptx = pytest.importorskip("pptx")
    from pptx.oxml import parse_xml

    slides, made = pptx.Presentation(), io.BytesIO()
    box = slides.slides.add_slide(slides.slide_layouts[6]).shapes.add_textbox(0, 0, 9, 9)
    box.text_frame.text = "We see"
    power = "<m:sSup><m:e><m:r><m:t>c</m:t></m:r></m:e><m:sup><m:r><m:t>2</m:t></m:r></m:sup></m:sSup>"
    spaces = f'xmlns:m="{OFFICE}/officeDocument/2006/math"'
    equation = f"<x:m xmlns:x='x'><m:oMath {spaces}><m:r><m:t>E=m</m:t></m:r>{power}</m:oMath></x:m>"
    box.text_frame.paragraphs[0]._p.append(parse_xml(equation))
    box.text_frame.paragraphs[0].add_run().text = "here"
    both = parse_xml(
        f'<mc:AlternateContent xmlns:mc="{OFFICE}/markup-compatibility/2006"><mc:Choice Requires="a14"/>'
        "<mc:Fallback/></mc:AlternateContent>"
    )
    box._element.addprevious(both)
    both[0].append(box._element)
    slides.save(made)
    assert read("a.pptx", made.getvalue()).strip() == "We see E=mc^{2} here"


def test_a_title_behind_a_chart_is_a_title(read):
    pptx = pytest.importorskip("pptx")
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    slides, made = pptx.Presentation(), io.BytesIO()
    slide = slides.slides.add_slide(slides.slide_layouts[5])
    slide.shapes.title.text, slide.shapes.title.top = "Sales", Inches(5)
    data = CategoryChartData()
    data.categories = ["East", "West"]
    data.add_series("Sold", (1, 2))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, Inches(1), Inches(1), Inches(3), Inches(3), data)
    slides.save(made)
    assert read("a.pptx", made.getvalue()).startswith("Sales\n")


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


def test_smartart_is_read(tmp_path):
    pptx = pytest.importorskip("pptx")
    made = pptx.Presentation()
    made.slides.add_slide(made.slide_layouts[5]).shapes.title.text = "T"
    made.save(tmp_path / "before.pptx")
    relation = (
        f'<Relationship Id="rD" Type="{OFFICE}/officeDocument/2006/relationships/diagramData" '
        'Target="../diagrams/data1.xml"/></Relationships>'
    )
    kind = "application/vnd.openxmlformats-officedocument.drawingml.diagramData+xml"
    override = f'<Override PartName="/ppt/diagrams/data1.xml" ContentType="{kind}"/></Types>'
    spaces = f'xmlns:dgm="{OFFICE}/drawingml/2006/diagram" xmlns:a="{OFFICE}/drawingml/2006/main"'
    point = "<dgm:pt><dgm:t><a:p><a:r><a:t>Order the </a:t></a:r><a:r><a:t>pump</a:t></a:r></a:p></dgm:t></dgm:pt>"
    with zipfile.ZipFile(tmp_path / "before.pptx") as before, zipfile.ZipFile(tmp_path / "a.pptx", "w") as after:
        for part in before.infolist():
            content = before.read(part).decode("utf-8", "surrogateescape")
            if part.filename == "ppt/slides/_rels/slide1.xml.rels":
                content = content.replace("</Relationships>", relation)
            if part.filename == "[Content_Types].xml":
                content = content.replace("</Types>", override)
            after.writestr(part, content.encode("utf-8", "surrogateescape"))
        after.writestr("ppt/diagrams/data1.xml", f"<dgm:dataModel {spaces}>{point}</dgm:dataModel>")
    (page,) = pages_of(tmp_path / "a.pptx")
    assert page.text.strip() == "Order the pump"


WORD = (
    'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" '
    'xmlns:m="http://schemas.openxmlformats.org/officeDocument/2006/math" '
    'xmlns:mc="http://schemas.openxmlformats.org/markup-compatibility/2006" '
    'xmlns:wps="http://schemas.microsoft.com/office/word/2010/wordprocessingShape" '
    'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
)


def docx(body: str) -> bytes:
    relation = f'<Relationship Id="r" Type="{OFFICE}/officeDocument/2006/relationships/officeDocument" '
    kind = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    return zipped(
        **{
            "[Content_Types].xml": f'<Types xmlns="{OFFICE}/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{kind}"/></Types>',
            "_rels/.rels": f'<Relationships xmlns="{OFFICE}/package/2006/relationships">{relation}'
            'Target="word/document.xml"/></Relationships>',
            "word/document.xml": f"<w:document {WORD}><w:body>{body}</w:body></w:document>",
        }
    )


def runs(*texts: str) -> str:
    return "".join(f"<w:r><w:t>{text}</w:t></w:r>" for text in texts)


@pytest.mark.parametrize("mark", ['<w:br w:type="page"/>', "<w:cr/>", '<w:ptab w:alignment="right"/>'])
def test_breaks_of_word_divide_words(read, mark):
    text = read("a.docx", docx(f"<w:p>{runs('One.')}<w:r>{mark}</w:r>{runs('Two.')}</w:p>"))
    assert "One." in text
    assert "One.Two" not in text


def test_nothing_is_added_to_a_note_of_word(read):
    """Mammoth links a note back to its place by an arrow."""
    reference = '<w:r><w:footnoteReference w:id="2"/></w:r>'
    with zipfile.ZipFile(io.BytesIO(docx(f"<w:p>{runs('Text')}{reference}</w:p>"))) as archive:
        parts = {name: archive.read(name).decode() for name in archive.namelist()}
    target = '<Relationship Id="rF" Type="{}/officeDocument/2006/relationships/footnotes" Target="footnotes.xml"/>'
    spaces = f'xmlns="{OFFICE}/package/2006/relationships"'
    parts["word/_rels/document.xml.rels"] = f"<Relationships {spaces}>{target.format(OFFICE)}</Relationships>"
    note = f'<w:footnote w:id="2"><w:p>{runs("A note.")}</w:p></w:footnote>'
    parts["word/footnotes.xml"] = f"<w:footnotes {WORD}>{note}</w:footnotes>"
    assert read("a.docx", zipped(**parts)).split() == ["Text^[1]", "1.", "A", "note."]


@pytest.mark.parametrize(
    "around", ["{}", '<mc:AlternateContent><mc:Choice Requires="wps">{}</mc:Choice></mc:AlternateContent>']
)
def test_a_box_of_a_drawing_is_read(read, around):
    box = f"<wps:txbx><w:txbxContent><w:p>{runs('Ends in May.')}</w:p></w:txbxContent></wps:txbx>"
    drawing = around.format(f"<w:drawing><a:graphic>{box}</a:graphic></w:drawing>")
    text = read("a.docx", docx(f"<w:p><w:r>{drawing}</w:r></w:p><w:p>{runs('Body.')}</w:p>"))
    assert text.split() == ["Ends", "in", "May.", "Body."]


def test_a_file_within_a_file_of_word_is_told(tmp_path):
    (tmp_path / "a.docx").write_bytes(docx(f"<w:p>{runs('Write your name')}</w:p><w:altChunk r:id='r9'/>"))
    source = open_source(tmp_path / "a.docx", CorpusOptions())
    assert [paragraph.sentences[0][1] for paragraph in read_paragraphs(source)] == ["Write your name"]
    assert source.report.messages == [f"{source.path}: an embedded file is not read: open it in Word, and save it"]
    assert source.report.is_partial


def test_an_equation_that_cannot_be_written_costs_no_other(read):
    def equation(inner: str) -> str:
        return f"<m:oMath>{inner}</m:oMath>"

    letters = "<m:r><m:t>{}</m:t></m:r>".format
    odd = equation(f"<m:f><m:num>{letters('aa')}</m:num><m:den>{letters('bb')}</m:den></m:f>")
    text = read("a.docx", docx(f"<w:p>{runs('Of ')}{odd}{runs(' and ')}{equation(letters('E=mc'))}</w:p>"))
    assert all(part in text for part in ("aa", "bb", "E=mc"))


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
    assert words == "* a. Rent * b. Repairs + IV. Roof * 1. One * 5. Five * 6. Six * 2. Two * 1. One"
