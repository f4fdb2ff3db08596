"""Formats of documents: each is text with a place, and loses nothing that a reader of it sees."""

import mailbox
from email.message import EmailMessage
from pathlib import Path

import pytest

from likewise.corpus import CorpusOptions
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.sources import open_source
from likewise.documents.front_matter import front_matter
from likewise.documents.pdf_files import Hyphens
from likewise.searching.query.hit import place_in

OPTIONS = CorpusOptions()
PARTS = Path(__file__).parent / "parts"


def blocks(path):
    """The place, the headings, the kind and the text of each paragraph."""
    found = read_paragraphs(open_source(path, OPTIONS), blocks=True)
    return [
        (one.sentences[0][0], one.headings, one.kind, "\n".join(text for _, text in one.sentences)) for one in found
    ]


def whole(path):
    return "\n".join(text for *_, text in blocks(path))


def test_org(write):
    text = "#+TITLE: Manual\n* Pumps\nStop if > 5 bar.\n- open *it*\n- close\n#+BEGIN_SRC sh\n* make\n#+END_SRC\n"
    text += "** Parts\n| a | b |\n|---+---|\n| 1 | 2 |\n* Fire\n"
    assert blocks(write("a.org", text)) == [
        (3, ("Manual", "Pumps"), "prose", "Stop if > 5 bar.\n- open *it*\n- close"),
        (6, ("Manual", "Pumps"), "code", "`````\n* make\n`````"),
        (10, ("Manual", "Pumps", "Parts"), "table", "| a | b |\n|---|---|\n| 1 | 2 |"),
        (13, ("Manual",), "heading", "Fire"),
    ]


def test_asciidoc(write):
    text = "= Manual\n\n== Pumps\n\nStop if > 5 bar.\n\n* open\n** it\n\n----\n== make\n----\n// a comment\n"
    assert blocks(write("a.adoc", text)) == [
        (5, ("Manual", "Pumps"), "prose", "Stop if > 5 bar."),
        (7, ("Manual", "Pumps"), "prose", "- open\n- it"),
        (10, ("Manual", "Pumps"), "code", "`````\n== make\n`````"),
    ]


RST = """\
==========
Pump guide
==========

.. _start:

The *pump* is **heavy**, see :ref:`the valve <v>`, ``a * b`` or `the site <https://x.org>`_.

.. note:: Mind the seal.
   It is brittle.

* One entry
* Another

Parts
=====

.. This is a comment,
   and goes on.

Run this::

    pip install pump

Then read on.

.. code-block:: python
   :linenos:

   open(5)

Sizes
-----

.. image:: a.png
   :alt: A drawing

+-------+------+
| Part  | Size |
+=======+======+
| Valve | 3    |
+-------+------+

=====  ====
Part   Size
=====  ====
Seal   4
=====  ====

-----

.. [1] A note.
.. versionadded:: 3.8
"""


def test_what_stands_above_the_line_is_no_part_of_a_word(write):
    page = "<p><ruby>東京<rp>(</rp><rt>とうきょう</rt><rp>)</rp></ruby>へ行く。</p>"
    assert whole(write("a.html", page)) == "東京へ行く。"


def test_nothing_below_an_empty_comment_or_a_broken_table_is_lost(write):
    assert whole(write("a.rst", "Pumps leak.\n\n..\n\n   A quotation.\n\n.. _there:\n\n   Another one.\n")) == (
        "Pumps leak.\nA quotation.\nAnother one."
    )
    table = "   ====  ====\n   Part  Size\n   ====  ====\n   Seal  4\n\nThe table has no end.\n"
    assert "The table has no end." in whole(write("b.rst", table)).replace("|", "").replace("  ", " ")


def test_restructured_text(write):
    parts = ("Pump guide", "Parts")
    sizes = (*parts, "Sizes")
    assert blocks(write("a.rst", RST)) == [
        (7, ("Pump guide",), "prose", "The pump is heavy, see the valve, `a * b` or the site."),
        (9, ("Pump guide",), "prose", "Mind the seal.\nIt is brittle."),
        (12, ("Pump guide",), "prose", "- One entry\n- Another"),
        (21, parts, "prose", "Run this:"),
        (23, parts, "code", "`````\n    pip install pump\n\n`````"),
        (25, parts, "prose", "Then read on."),
        (30, parts, "code", "`````\n   open(5)\n\n`````"),
        (36, sizes, "prose", "A drawing"),
        (39, sizes, "table", "| Part | Size |\n| --- | --- |\n| Valve | 3 |"),
        (45, sizes, "table", "| Part | Size |\n| --- | --- |\n| Seal | 4 |"),
        (52, sizes, "prose", "A note.\nversionadded: 3.8"),
    ]


def test_front_matter_is_fields_and_what_is_none_is_text(write):
    source = open_source(write("a.md", "---\ntitle: Pumps\ntags: [oil, seal]\nyear: 2024\n---\n\nText.\n"), OPTIONS)
    (paragraph,) = read_paragraphs(source)
    assert paragraph.fields == {"title": "Pumps", "tags": ["oil", "seal"], "year": 2024}
    assert paragraph.headings == ("Pumps",)
    long = "How the pumps of the cellar are opened, cleaned, and closed again."
    assert long in whole(write("c.md", f"---\ndescription: {long}\n---\nText.\n"))
    assert ("not: [closed",) in [headings for _, headings, *_ in blocks(write("b.md", "---\nnot: [closed\n---\nText."))]
    bomb = ["---", "a: &a [x, x]", *(f"{c}: &{c} [*{b}, *{b}]" for b, c in zip("abcde", "bcdef", strict=True)), "---"]
    assert front_matter(enumerate(bomb, 1))[0] == {}, "what stands for gigabytes is not read as YAML"


def test_comments_go_and_headings_without_text_stay(write):
    text = "# Manual\n\n<!-- one\n\ntwo -->\nSome text.\n\n## Descaling\n\n## Oil\n\nChange it.\n\n# Fire\n"
    assert blocks(write("a.md", text)) == [
        (6, ("Manual",), "prose", "Some text."),
        (8, ("Manual",), "heading", "Descaling"),
        (12, ("Manual", "Oil"), "prose", "Change it."),
        (14, (), "heading", "Fire"),
    ]


@pytest.fixture
def converts():
    pytest.importorskip("markitdown")


@pytest.mark.usefixtures("converts")
class TestConverted:
    def test_a_page_keeps_forms_asides_and_signs(self, write):
        page = "<nav>Home</nav><form><h1>Pumps</h1><p>File &gt; Save max_open_files, 10<sup>6</sup> *.txt</p></form>"
        page += "<aside>The surface is hot.</aside><ol><li>Open</li><li>1. Close</li></ol><footer>Imprint</footer>"
        found = whole(write("a.html", page))
        for part in ("File > Save max_open_files, 10^6 *.txt", "The surface is hot.", "1. Open", "1. Close"):
            assert part in " ".join(found.split())
        assert "Home" not in found
        assert "only this" in whole(write("b.html", "<nav><p>There is only this.</p></nav>"))

    def test_a_page_says_its_encoding_or_it_is_seen(self, write):
        text = "Die Größe der Ölpumpe ist außen angeschrieben."
        assert text in whole(write("a.html", f"<meta charset=iso-8859-1><p>{text}</p>".encode("latin-1")))
        assert text in whole(write("b.html", f"<p>{text}</p>".encode("cp1252")))

    def test_slides_have_titles_of_their_own(self, tmp_path):
        pptx = pytest.importorskip("pptx")
        slides = pptx.Presentation()
        for title, text in (("Pumps", "Oil them."), ("", "Valves > pumps"), ("In case of fire", "")):
            slide = slides.slides.add_slide(slides.slide_layouts[1])
            slide.shapes.title.text, slide.placeholders[1].text = title, text
        slides.save(tmp_path / "a.pptx")
        assert blocks(tmp_path / "a.pptx") == [
            (1, ("Pumps",), "prose", "Oil them."),
            (2, (), "prose", "Valves > pumps"),
            (3, (), "heading", "In case of fire"),
        ]

    def test_sheets_are_tables_with_rows_as_places(self, tmp_path):
        openpyxl = pytest.importorskip("openpyxl")
        book = openpyxl.Workbook()
        book.active.title = "Parts"
        for row in (["no", "name"], [7, "Seal"], [8, "Ring"]):
            book.active.append(row)
        book.save(tmp_path / "a.xlsx")
        source = open_source(tmp_path / "a.xlsx", OPTIONS)
        (table,) = read_paragraphs(source, blocks=True)
        assert (table.headings, table.kind) == (("Parts",), "table")
        assert table.sentences == [(1, "| no | name |"), (1, "| --- | --- |"), (2, "| 7 | Seal |"), (3, "| 8 | Ring |")]

    def test_chapters_of_a_book(self):
        assert blocks(PARTS / "chapters.epub") == [
            (1, ("Preface",), "prose", "Read this."),
            (2, ("Pumps",), "prose", "Oil them."),
        ]
        assert place_in("a.epub", 2) == "a.epub, chapter 2"

    def test_mails(self, tmp_path):
        first, second = EmailMessage(), EmailMessage()
        for message, subject in ((first, "Pump 7"), (second, "")):
            message["Subject"], message["From"], message["Date"] = (
                subject,
                "Ada <ada@a.org>",
                "Mon, 4 Mar 2024 10:00:00",
            )
        first.set_content("It leaks.\n\n> Is it > 5 bar?\n# no heading\n")
        first.add_attachment(b"x", maintype="application", subtype="pdf", filename="plan.pdf")
        second.set_content("<p>It is <b>hot</b>.</p>", subtype="html")
        (tmp_path / "a.eml").write_bytes(bytes(first))
        text = whole(tmp_path / "a.eml")
        for part in ("It leaks.", "> Is it > 5 bar?", "# no heading", "plan.pdf"):
            assert part in text
        box = mailbox.mbox(tmp_path / "b.mbox")
        box.add(first)
        box.add(second)
        box.close()
        found = list(read_paragraphs(open_source(tmp_path / "b.mbox", OPTIONS), blocks=True))
        assert {one.headings for one in found} == {("Pump 7",), ()}
        assert [one.sentences[0] for one in found][-1] == (2, "It is hot.")
        assert found[0].fields["from"] == "Ada <ada@a.org>"

    def test_open_document(self):
        assert blocks(PARTS / "list-and-table.odt") == [
            (0, ("Pumps",), "prose", "Stop if > 5 bar_x."),
            (0, ("Pumps",), "prose", "- Open"),
            (0, ("Pumps",), "table", "| a | b |\n| --- | --- |"),
        ]


@pytest.mark.parametrize(
    ("lines", "joined", "right"),
    [
        (["The con\u2010", "denser. A condenser."], "The condenser.", "The condenser."),
        (["A well-", "known pump."], "A wellknown pump.", "A well-known pump."),
        (["A well-", "known pump."], "A well- known pump.", "A well-known pump."),
        (["Vor-", "und Nachteile"], "Vorund Nachteile", "Vor- und Nachteile"),
        (["An up-", "and-coming pump."], "An upand-coming pump.", "An up-and-coming pump."),
        (["The turbo\u00ad", "charger is hot."], "The turbocharger is hot.", "The turbocharger is hot."),
    ],
)
def test_words_that_a_line_of_a_pdf_divides(lines, joined, right):
    assert Hyphens(lines).restored(joined) == right


@pytest.mark.parametrize("below", ["---", "![](a.png)", "<hr>", "..."])
def test_a_heading_above_a_rule_or_a_picture_stays(write, below):
    path = write("a.md", f"# Manual\n\nText.\n\n## Descaling\n\n{below}\n\n## Oil\n\nChange it.\n")
    found = read_paragraphs(open_source(path, OPTIONS), blocks=True)
    assert [(5, "Descaling")] in [paragraph.sentences for paragraph in found if paragraph.kind == "heading"]
