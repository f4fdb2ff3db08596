"""MediaWiki: markup, pages, and the sample that gensim ships."""

import bz2

import pytest

from likewise.corpus import CorpusError, CorpusOptions, CorpusReport, read_documents, read_sentences
from likewise.corpus.articles import clean_markup, is_markup
from likewise.corpus.formats import Source
from likewise.documents.wiki_dumps import read_pages, sections_of

PAGE = """  <page>
    <title>{title}</title>
    <ns>{ns}</ns>
    <id>{id}</id>
    <revision><id>99</id><text xml:space="preserve">{text}</text></revision>
  </page>
"""
BODY = (
    "'''Dams''' ({{{{lang|x}}}}) hold water in [[valley|valleys]] all over the world.{filler}\n"
    "== History ==\n[[File:a.jpg|thumb|A dam]]\nThe first stood in Jordan.\n=== Later ===\nMany were built.\n"
    "* A list entry\n== See also ==\n* A link ends here.\n"
)
FILLER = " The water is used for fields, mills and towns." * 5


def dump(*pages: str) -> str:
    return '<mediawiki xmlns="http://www.mediawiki.org/xml/export-0.11/">\n' + "".join(pages) + "</mediawiki>\n"


def article(number: int) -> str:
    return PAGE.format(
        title=f"Dam {number}",
        ns=0,
        id=number,
        text=BODY.format(filler=f" One is {number} years old.{FILLER}"),
    )


@pytest.mark.parametrize(
    ("markup", "text"),
    [
        ("* ''Nature'' , 1999 .", "Nature, 1999."),
        ("Lincoln (; February 12) was", "Lincoln (February 12) was"),
        ("School () is ( ) old [] now", "School is old now"),
        ("the [[dog]] and [[cat|two cats]]", "the dog and two cats"),
        ("a {{convert|1|m}} wall<br/> of __TOC__ stone", "a wall of stone"),
        ("it's the cats' 'own' way", "it's the cats' 'own' way"),
        ("f(x) = (a, b)", "f(x) = (a, b)"),
    ],
)
def test_clean_markup(markup, text):
    assert clean_markup(markup) == text


def test_headings_and_tables():
    assert sections_of("", "== Early life ==\na == b") == [("Early life", ["a == b"])]
    assert [is_markup(line) for line in ("{| class=x", "| a", "=A=", "A = B", "Plain.")] == [True] * 3 + [False] * 2


def test_sections_end_at_their_sub_headings():
    body = "\nOne here.\n===Later===\n* Two here.\n\n====References====\nGone.\n===Empty===\n"
    assert sections_of("History", body) == [("History", ["One here."]), ("Later", ["Two here."])]


def test_pages_come_with_their_lines(write):
    path = write("a.xml", dump(article(1), article(2)))
    lines = path.read_text().splitlines()
    pages = list(read_pages(Source(path)))
    assert [lines[number - 1].strip() for number, _ in pages] == ["<page>"] * 2
    assert "<title>Dam 2</title>" in pages[1][1]


def test_small_dump(write):
    pytest.importorskip("gensim")
    redirect = PAGE.format(title="Weir", ns=0, id=5, text="#REDIRECT [[Dam 1]]" + FILLER)
    talk = PAGE.format(title="Talk:Dam 1", ns=1, id=6, text=FILLER)
    stub = PAGE.format(title="Dyke", ns=0, id=7, text="A dyke is long.")
    path = write("a.xml.bz2", bz2.compress(dump(article(1), redirect, talk, stub, article(2)).encode()))
    documents = list(read_documents(path))
    assert [(one.id, one.title) for one in documents] == [("1", "Dam 1"), ("2", "Dam 2")]
    assert [(part.heading, len(part.sentences)) for part in documents[0].sections] == [
        ("", 7),
        ("History", 1),
        ("Later", 1),
    ]
    assert documents[0].sentences[0] == "Dams hold water in valleys all over the world."
    report = CorpusReport()
    sentences = list(read_sentences(path, CorpusOptions(), report))
    assert sentences == [text for one in documents for text in one.sentences]
    assert report.examples["markup"][0] == f"{path}:2"


def test_without_gensim(write, monkeypatch, says):
    monkeypatch.setitem(__import__("sys").modules, "gensim.scripts.segment_wiki", None)
    with says(CorpusError):
        list(read_sentences(write("a.xml", dump(article(1)))))


def test_bundled_sample():
    """106 of its 206 pages are articles by gensim's own count; one of them holds tables only."""
    pytest.importorskip("gensim")
    documents = list(read_documents("bundled:wiki-sample"))
    assert len(documents) == 105
    assert [one.title for one in documents[:3]] == ["Anarchism", "Autism", "Albedo"]
    assert documents[0].sentences[0].startswith("Anarchism is a political philosophy that advocates")
    text = "\n".join(sentence for one in documents for sentence in one.sentences)
    for leftover in ("'''", "{{", "[[", "==", "()", "  "):
        assert leftover not in text
