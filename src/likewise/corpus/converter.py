"""The converters of documents, and the process in which they run: `python -m likewise.corpus.converter`.

A format is a subclass of `Converter`; other packages register theirs by entry points. The process reads a task a line
and answers in lines, so that a file that crashes a library, or fills the memory, ends only this process. See
`likewise.corpus.paged_documents`, which starts it.
"""

from __future__ import annotations

import ctypes
import errno
import io
import json
import math
import os
import re
import signal
import sys
import unicodedata
import zipfile
from base64 import b64decode
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from functools import cache, partial
from itertools import chain, repeat, zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple
from urllib.parse import unquote
from xml.etree.ElementTree import Element, fromstring

from likewise.corpus.encodings import AUTO, decoded_as, named_encoding
from likewise.corpus.sentence_splitter import JOINING, gap
from likewise.errors import LikewiseError

if TYPE_CHECKING:
    from email.message import Message

    from bs4 import BeautifulSoup, Tag
    from markitdown import StreamInfo
    from pypdfium2 import PdfDocument, PdfPage

MEMORY = 2 << 30
"""Bytes that one file may take beyond what the libraries do."""
TEXT = 256 << 20
"""The most bytes of text that one file may have."""

_NO_TEXT = ("script", "style", "noscript", "template", "svg")
_AROUND = ("nav", "footer")
"""What stands on each page of a site; it is text only where there is no other."""

_BLOCKS = tuple(
    "details summary fieldset legend address aside figure figcaption center hgroup menu option optgroup".split()
)
_APART = ("button", "label")
_INLINE = ("b", "strong", "i", "em", "code", "kbd", "samp", "del", "s", "sub")
_CHARSET = re.compile(rb"""(?:charset|<\?xml[^>]{0,99}encoding)\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]+)""", re.IGNORECASE)

_FROM = re.compile(
    rb"From (?=[^\n]{0,999}\d\d:\d\d)[^\n]{0,999}\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b[^\n]{0,99}\b\d{4}\b"
)
"""The line between the mails of a box; another one that begins with this word is text."""
_QUOTED_FROM = re.compile(rb"^>(>*From )", re.MULTILINE)

_SLIDE = re.compile(r"^<!-- Slide number: (\d+) -->$", re.MULTILINE)
_FIELDS = (4, 5, 6)  # of PDF forms: choices, lists and texts, as PDFium numbers them
_BEHIND_ROW = re.compile(r"^(\| .* \|)(?=[^\s|])", re.MULTILINE)  # what follows a chart, by MarkItDown
_NO_LETTERS = "this page has no text, only pictures or glyphs without letters: docling can turn a scan into text"
_EACH = 7  # letters of a page of which one is looked at
_UPRIGHT = 0.1
"""From this share of upright letters on, a page of a PDF is read by PDFium, which sees no tables."""
_FORMULA = re.compile(rb"<f[ >/]")
_NO_VALUE = "a formula in this row has no value: open the file in Excel or LibreOffice, and save it"
_NO_INNER = "a file within it is not read: open it in Word, and save it"
_WORD = re.compile(r"\w")
_PERCENT = re.compile(r"""(?:"[^"]*"|\\.|[^"%\\])*%""")
"""A format of Excel that shows a number times 100; a sign in quotes is shown as it is."""
_GLYPH = re.compile(r"\(cid:\d+\)")
_AROUND_RUNS = re.compile(
    rb"</?w:(?:fldSimple|dir|bdo|ruby|rubyBase)(?:\s[^>]*)?/?>|<w:rubyPr>.*?</w:rubyPr>|<w:rt>.*?</w:rt>", re.DOTALL
)
"""Fields, ruby and directions around the runs of a Word file; of ruby, what is above the line is left out."""
_RAISED = re.compile(
    rb'(<a:r>\s*<a:rPr[^>]*\sbaseline="[1-9]\d*"(?:[^>]*/>|(?:(?!</a:r>).)*?</a:rPr>)\s*<a:t>)(?=\d)', re.DOTALL
)
_BREAK = re.compile(rb"<w:(?:br|cr)(?:\s[^>]*)?/>")
_TAB = re.compile(rb"<w:ptab(?:\s[^>]*)?/>")
_BUTTON = re.compile(rb"<w:instrText(?:\s[^>]*)?>\s*MACROBUTTON\s+\S+\s([^<]*)</w:instrText>")
"""A field that shows what stands in its own code, such as 'Click here to write a name'."""
_ALTERNATIVE = re.compile(rb"<mc:AlternateContent(?:\s[^>]*)?>.*?</mc:AlternateContent>", re.DOTALL)
_DRAWING = re.compile(rb"<w:drawing(?:\s[^>]*)?>.*?</w:drawing>", re.DOTALL)
_BOX = re.compile(rb"<w:txbxContent(?:\s[^>]*)?>.*?</w:txbxContent>", re.DOTALL)
_EQUATION = re.compile(rb"<m:oMath(?:\s[^>]*)?>.*?</m:oMath>", re.DOTALL)
_MATH_TEXT = re.compile(rb"<m:t(?:\s[^>]*)?>([^<]*)</m:t>")
_LIGATURES = re.compile("[\ufb00-\ufb06]")
_HYPHEN = re.compile("(?<!\\w)(\\w+)([-\u2010\u00ad])\n(\\w+)")
_JOINING = re.compile(rf"{JOINING}(?=\s)")
_ROWS_TOLD = 1000  # rows after which an answer says that it goes on
_EDGE = 2  # blocks at the top and the bottom of a page that may be its header and footer
_LONGEST_EDGE = 100  # characters of one
_MARKS = re.compile(r"([\\`*_{}\[\]<>#+\-.!|~=()&])")


class Page(NamedTuple):
    """A part of a document that has a place of its own.

    Attributes:
        place: its number, such as that of a page, from 1; 0 where there are none.
        text: what it says.
        title: the heading above all of it.
        form: "markdown", in which each sign that is no mark is escaped; or "plain", paragraphs between blank lines.
        fields: what the document says of itself, such as the sender of a mail.
        cells: those of a row of a sheet.
        left_out: why something on it is not read, '' if all is.
    """

    place: int
    text: str
    title: str = ""
    form: Literal["markdown", "plain"] = "plain"
    fields: Mapping[str, object] = {}
    cells: Sequence[object] = ()
    left_out: str = ""


class Converter:
    """A format of documents; a new one is a subclass, in `CONVERTERS` or registered by an entry point.

    Attributes:
        suffixes: the endings of its files, in small letters.
        unit: what a place in it is called, "" if it has none.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    unit: ClassVar[str] = ""

    @property
    def is_own(self) -> bool:
        """True if it is a format of this library, which the extra `files` reads."""
        return type(self).__module__ in (__name__, "likewise.corpus.converter")

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the pages of a file; a number says how many there will be, and that it goes on."""
        raise NotImplementedError


class WebPage(Converter):
    """Web pages, without what stands on each page of a site."""

    suffixes = (".html", ".htm", ".xhtml")

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the one page."""
        yield _of_html(path.read_bytes())


class Word(Converter):
    """Word files."""

    suffixes = (".docx",)

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the one page."""
        import mammoth
        from markitdown.converter_utils.docx.pre_process import pre_process_docx

        page = _of_html(mammoth.convert_to_html(pre_process_docx(_rewritten(path, _readable))).value)
        with zipfile.ZipFile(path) as parts:
            has_inner = any(b"<w:altChunk" in parts.read(name) for name in parts.namelist() if name.endswith(".xml"))
        yield page._replace(left_out=_NO_INNER) if has_inner else page


class Slides(Converter):
    """Slides of PowerPoint."""

    suffixes = (".pptx",)
    unit = "slide"

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the slides, each with its own title."""
        from markitdown.converters import PptxConverter

        diagrams = _diagrams(path)
        text = PptxConverter().convert(_rewritten(path, _readable_slide), _info(".pptx")).markdown
        parts = _SLIDE.split(_BEHIND_ROW.sub(r"\1\n", text))
        for number, text in zip(parts[1::2], parts[2::2], strict=True):
            lines = text.strip().split("\n")
            title = next((line for line in lines if line.startswith("# ")), "")
            # Each line of a box is a paragraph.
            rest = re.sub(r"\n(?!\|)", "\n\n", "\n".join(line for line in lines if line is not title))
            rest = "\n\n".join([rest.replace("### Notes:", "Notes:"), *diagrams.get(int(number), ())])
            yield Page(int(number), rest, title[2:].strip())


class Pdf(Converter):
    """PDF files, without the lines that stand above or below the text of most pages."""

    suffixes = (".pdf",)
    unit = "page"

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the pages."""
        import pypdfium2

        with path.open("rb") as file:
            whole = pypdfium2.PdfDocument(file)
            whole.init_forms()
            pages: list[list[str]] = []
            left_out: dict[int, str] = {}
            for number in range(count := len(whole)):
                with closing(whole[number]) as page:
                    text = _turned(page) or _laid_out(whole, number)
                    has_letters = _has_letters(text)
                    pages.append([*(blocks_of(text) if has_letters else []), *_typed(page)])
                    if not pages[-1] and (not has_letters or _is_picture(page)):
                        left_out[number + 1] = _NO_LETTERS
                yield count
            whole.close()
        for number, text in enumerate(without_edges(pages), 1):
            yield Page(number, text, left_out=left_out.get(number, ""))


class Sheets(Converter):
    """Sheets of Excel: a row a page; the first row with cells is the header."""

    suffixes = (".xlsx", ".xlsm")
    unit = "row"

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the rows."""
        import openpyxl
        from openpyxl.utils.escape import unescape

        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        written = openpyxl.load_workbook(path, read_only=True).worksheets if _has_formulas(path) else [None]
        for sheet, formulas in zip_longest(book.worksheets, written):
            sheet.reset_dimensions()  # a file may say that it ends where it does not
            rows_written: Iterable[Sequence[object]] = repeat(())
            if formulas is not None:
                formulas.reset_dimensions()
                rows_written = formulas.iter_rows(values_only=True)
            for number, (placed, as_written) in enumerate(zip(sheet.iter_rows(), rows_written, strict=False), 1):
                row = tuple(cell.value for cell in placed)
                lost = sum(cell is None and other is not None for cell, other in zip(row, as_written, strict=False))
                cells = row[: max((place for place, cell in enumerate(row, 1) if cell is not None), default=0)]
                cells = tuple(unescape(cell) if isinstance(cell, str) and "_x" in cell else cell for cell in cells)
                shown = ["" if cell is None else " ".join(str(cell).split()) for cell in cells]
                for place, cell in enumerate(cells):
                    if type(cell) in (float, int) and _PERCENT.match(placed[place].number_format or ""):
                        shown[place] = f"{100 * cell:.12g}%"  # as the sheet shows 0.475
                if any(shown) or lost:
                    text = f"| {' | '.join(shown)} |" if any(shown) else ""
                    yield Page(number, text, sheet.title, cells=list(cells), left_out=_NO_VALUE if lost else "")


class Book(Converter):
    """E-books: a chapter a page."""

    suffixes = (".epub",)
    unit = "chapter"

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the chapters in the order in which they are read."""
        from bs4 import BeautifulSoup

        with zipfile.ZipFile(path) as archive:
            container: Any = BeautifulSoup(archive.read("META-INF/container.xml"), "html.parser")
            name = container.find(_called("rootfile"))["full-path"]
            package: Any = BeautifulSoup(archive.read(name), "html.parser")
            items = {item.get("id"): item.get("href") or "" for item in package.find_all(_called("item"))}
            named = [items.get(reference.get("idref"), "") for reference in package.find_all(_called("itemref"))]
            # A spine may name one a million times.
            chapters = list(dict.fromkeys(unquote(chapter).partition("#")[0] for chapter in named if chapter))
            for number, chapter in enumerate(chapters, 1):
                yield len(chapters)
                try:
                    page = _of_html(archive.read(os.path.normpath(Path(name).parent / chapter)))
                except KeyError:
                    page = Page(number, "", left_out=f"the book has no file {chapter!r} for this chapter")
                yield page._replace(place=number)


class OpenDocument(Converter):
    """Texts of LibreOffice."""

    suffixes = (".odt",)

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the one page."""
        with zipfile.ZipFile(path) as archive:
            content = fromstring(archive.read("content.xml"))
        _raise(content)
        body = next(element for element in content.iter() if element.tag.endswith("}body"))
        yield Page(0, "\n\n".join(_of_open_document(body)), form="markdown")


class Mail(Converter):
    """Mails, and web pages that are saved as such: the subject is the title."""

    suffixes = (".eml", ".mht", ".mhtml")

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the one mail."""
        yield _mail(path.read_bytes(), 0)


class Mailbox(Converter):
    """Boxes of mails: a mail a page."""

    suffixes = (".mbox",)
    unit = "mail"

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the mails."""
        with path.open("rb") as box:
            begins, ends, at = list[int](), list[int](), 0
            for line in box:
                if _FROM.match(line):
                    begins.append(at + len(line))
                    ends.append(at)
                at += len(line)
            if at and not begins:
                raise LikewiseError("it holds no line 'From ADDRESS DATE', which begins each mail of a box")
            box.seek(0)
            if ends and box.read(ends[0]).strip():
                yield Page(0, "", left_out="what stands before the first line 'From ADDRESS DATE' is no mail")
            # A box without mails, as mail programs keep for an empty folder, has no begin.
            for number, (begin, end) in enumerate(zip(begins, [*ends[1:], at], strict=bool(at)), 1):
                yield len(begins)
                box.seek(begin)
                yield _mail(_QUOTED_FROM.sub(rb"\1", box.read(end - begin)), number)


CONVERTERS: tuple[Converter, ...] = (
    WebPage(), Word(), Slides(), Pdf(), Sheets(), Book(), OpenDocument(), Mail(), Mailbox(),
)  # fmt: skip
"""The formats of this library that are converted."""


@cache
def converters() -> dict[str, Converter]:
    """Return what converts files, by their endings: the formats of this library, then those of other packages.

    Raises:
        CorpusError: what another package registers cannot be loaded, or is no subclass of `Converter`.
    """
    from importlib.metadata import entry_points

    from likewise.corpus.corpus_options import CorpusError
    from likewise.runs.plugins import FORMATS_GROUP, load_registered

    entries = sorted(entry_points(group=FORMATS_GROUP), key=lambda entry: entry.name)
    others: list[Converter] = []
    for entry in entries:
        kind = load_registered(entry, type, f"the format {entry.name!r}", CorpusError)
        if not issubclass(kind, Converter):
            raise CorpusError(f"the format {entry.name!r} ({entry.value}) is no subclass of likewise.corpus.Converter")
        if wrong := [suffix for suffix in kind.suffixes if not re.fullmatch(r"\.[^\sA-Z]+", suffix)]:
            raise CorpusError(
                f"the format {entry.name!r} ({entry.value}) has the suffix {wrong[0]!r}: `suffixes` is a tuple of "
                "endings in small letters, each with its dot, such as ('.srt',)"
            )
        others.append(kind())
    known: dict[str, Converter] = {}
    for converter in (*CONVERTERS, *others):
        for suffix in converter.suffixes:
            known.setdefault(suffix, converter)
    return known


def _info(suffix: str) -> StreamInfo:
    from markitdown import StreamInfo

    return StreamInfo(extension=suffix, charset="utf-8")


def _of_html(content: bytes | str) -> Page:
    """Return the text of HTML."""
    from bs4 import BeautifulSoup
    from bs4.element import Declaration

    if isinstance(content, bytes):
        content = _text_of_page(content)
    soup = BeautifulSoup(_without_open_comments(content), "html.parser")
    for tag in soup(_NO_TEXT):
        tag.decompose()
    for condition in soup.find_all(string=lambda text: isinstance(text, Declaration)):  # Word's <![if ...]>
        condition.extract()
    _end_where_implied(soup)
    for tag in soup(_BLOCKS):
        tag.name = "div"  # the only block that markdownify knows
    for tag in soup(_APART):
        tag.insert_before(" ")
        tag.insert_after(" ")
    for tag in soup(("u", "sup", "msup", "mfrac")):
        if tag.name == "sup" and tag.get_text().strip():
            tag.insert_before("^")
        elif tag.name.startswith("m") and len(parts := tag.find_all(recursive=False)) == 2:
            parts[1].insert_before("^" if tag.name == "msup" else "/")
        tag.unwrap()
    for link in soup("a"):  # of which the words alone are read
        if str(link.get("href")).startswith("#") and not _WORD.search(link.get_text()) and not link.find("img"):
            link.extract()  # a sign that leads to its own heading, or back from a note
            continue
        follower = link.next_sibling
        if follower is not None and getattr(follower, "name", "") == "a":  # as tags and menus have them
            link.insert_after(gap(link.get_text(), follower.get_text()))
        link.unwrap()
    for blank in soup(string=str.isspace):
        while blank.parent.name in _INLINE and len(blank.parent.contents) == 1:  # markdownify would drop a bold blank
            blank.parent.unwrap()
    _order_rows(soup)
    _fill_spans(soup)
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    around = [tag.extract() for tag in soup(_AROUND)]
    text = _markdown(soup)
    if not text and around:
        text = "\n\n".join(map(_markdown, around))
    return Page(0, text, title, "markdown")


def _end_where_implied(soup: BeautifulSoup) -> None:
    """Take entries and cells out of those before them, whose end tags HTML lets one leave out."""
    for names in (("li",), ("dt", "dd"), ("option",), ("td", "th")):
        for tag in soup(names):
            if tag.parent is not None and tag.parent.name in names:
                tag.parent.insert_after(tag.extract())
    for row in soup("tr"):
        outer = row.find_parent(("tr", "table"))
        if outer is not None and outer.name == "tr":
            outer.insert_after(row.extract())


def _order_rows(soup: BeautifulSoup) -> None:
    """Leave nothing before the header of a table, and no groups of rows below it: each would have a header."""
    for column in soup(("col", "colgroup")):
        column.unwrap()
    for caption in soup("caption"):
        if table := caption.find_parent("table"):
            table.insert_before(caption.extract())
        caption.name = "div"
    for rows in soup(("tbody", "tfoot")):
        rows.name = "tbody"
        if rows.find_previous_sibling(("thead", "tbody", "tr")):
            rows.unwrap()


def _fill_spans(soup: BeautifulSoup) -> None:
    """Add an empty cell for each place of a table that a cell of a row above takes."""
    for spanning in soup(("td", "th"), rowspan=re.compile(r"^\s*(?:[2-9]|[1-9]\d)\s*$")):
        row = spanning.find_parent("tr")
        place = len(spanning.find_previous_siblings(("td", "th"))) if row else 0
        below = row.find_next_siblings("tr", limit=int(str(spanning["rowspan"])) - 1) if row else []
        del spanning["rowspan"]
        for other in below:
            cells = other.find_all(("td", "th"), recursive=False)
            empty = soup.new_tag("td")
            if place < len(cells):
                cells[place].insert_before(empty)
            else:
                other.append(empty)


def _text_of_page(content: bytes) -> bytes | str:
    """Return the text of a page in the encoding that it names, if it is in that, or that its bytes look like."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf")):
        return content
    if named := _CHARSET.search(content[:4096]):
        name = named[1].decode()
        # A name that was read byte by byte is no UTF-16.
        with suppress(LookupError, UnicodeDecodeError):
            return decoded_as(content, "utf-8" if name.lower().startswith(("utf-16", "utf-32")) else name)
    encoding = _seen_encoding(content)
    return content.decode(encoding, "replace") if encoding else content


def _seen_encoding(content: bytes) -> str:
    """Return the encoding that bytes look like; "" if they are no text."""
    return named_encoding(AUTO, content[: 1 << 16], len(content) < 1 << 16)


def _without_open_comments(content: bytes | str) -> bytes | str:
    """Return HTML without the marks of comments that never end: Python's parser looks for the end of each anew."""
    if isinstance(content, bytes):
        end = content.rfind(b"-->") + 1
        return content[:end] + content[end:].replace(b"<!--", b"")
    end = content.rfind("-->") + 1
    return content[:end] + content[end:].replace("<!--", "")


def _markdown(soup: Tag) -> str:
    from markitdown.converters import HtmlConverter

    content = io.BytesIO(str(soup).encode("utf-8", "replace"))
    how = {"escape_misc": True, "strong_em_symbol": ""}
    return str(HtmlConverter().convert(content, _info(".html"), **how).markdown)


def _laid_out(document: PdfDocument, number: int) -> str:
    """Return the text of a page of a PDF, with its tables."""
    import pypdfium2
    from markitdown.converters import PdfConverter

    content = io.BytesIO()
    single = pypdfium2.PdfDocument.new()
    single.import_pages(document, [number])
    single.save(content)
    single.close()
    content.seek(0)
    return str(PdfConverter().convert(content, _info(".pdf")).markdown)


def _is_picture(page: PdfPage) -> bool:
    """Return whether a picture stands on a page of a PDF."""
    from pypdfium2 import raw

    return next(page.get_objects(filter=[raw.FPDF_PAGEOBJ_IMAGE]), None) is not None


def _turned(page: PdfPage) -> str:
    """Return the text of a page of a PDF on which some stands upright, such as a wide table; "" for any other page.

    pdfminer gives such text letter by letter.
    """
    from pypdfium2 import raw

    text = page.get_textpage()
    angles = [raw.FPDFText_GetCharAngle(text.raw, place) for place in range(0, text.count_chars(), _EACH)]
    upright = sum(abs(math.sin(angle)) > 0.5 for angle in angles)
    if upright > _UPRIGHT * len(angles):
        return str(text.get_text_range()).replace("\r\n", "\n")
    page.set_rotation(0)  # somebody has turned it in a viewer
    return ""


def _typed(page: PdfPage) -> Iterator[str]:
    """Yield what was typed into the fields of a page of a PDF, and the notes that show on it."""
    from pypdfium2 import raw

    form = page.pdf.formenv
    for place in range(raw.FPDFPage_GetAnnotCount(page.raw)):
        note = raw.FPDFPage_GetAnnot(page.raw, place)
        kind, read = raw.FPDFAnnot_GetSubtype(note), None
        if kind == raw.FPDF_ANNOT_FREETEXT:
            read = partial(raw.FPDFAnnot_GetStringValue, note, b"Contents")
        elif form and kind == raw.FPDF_ANNOT_WIDGET and raw.FPDFAnnot_GetFormFieldType(form.raw, note) in _FIELDS:
            read = partial(raw.FPDFAnnot_GetFormFieldValue, form.raw, note)
        room = ctypes.create_string_buffer(read(None, 0) + 2 if read else 0)
        size = read(ctypes.cast(room, ctypes.POINTER(ctypes.c_ushort)), len(room)) if read else 0
        raw.FPDFPage_CloseAnnot(note)
        if text := " ".join(room.raw[:size].decode("utf-16-le", "replace").strip("\0").split()):
            yield text


def _has_letters(text: str) -> bool:
    """Return whether the text of a PDF page is more than the numbers of glyphs whose letters no font tells."""
    rest, glyphs = _GLYPH.subn("", text)
    return 2 * glyphs <= len("".join(rest.split())) or not glyphs


def _rewritten(path: Path, change: Callable[[str, bytes], bytes]) -> io.BytesIO:
    """Return a zipped document with the content of each part changed by a function of its name and content."""
    made = io.BytesIO()
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(made, "w") as after:
        for part in before.infolist():
            after.writestr(part, change(part.filename, before.read(part)))
    made.seek(0)
    return made


def _readable_slide(name: str, content: bytes) -> bytes:
    """Return a part of a PowerPoint file of which MarkItDown passes over less.

    A sign stands before each raised number, as 10^6 would be 106. What stands beside another form for older programs,
    such as a text with an equation, takes the place of both, and an equation becomes LaTeX.
    """
    if not name.startswith("ppt/slides/slide"):
        return content
    content = _RAISED.sub(rb"\1^", content)
    if b":AlternateContent" not in content and b":oMath" not in content:
        return content
    from pptx.opc.oxml import serialize_part_xml
    from pptx.oxml import parse_xml

    slide: Any = parse_xml(content)
    for choice in slide.xpath("//*[local-name()='AlternateContent']/*[local-name()='Choice'][1]"):
        both = choice.getparent()
        both.getparent()[:] = chain.from_iterable(choice if other is both else [other] for other in both.getparent())
    for equation in slide.xpath("//*[local-name()='oMath']"):
        line = next(equation.iterancestors("{*}p"))
        run = line.add_r(f" {_latex(equation) or ''.join(equation.itertext())} ")
        line.replace(next(above for above in equation.iterancestors() if above.getparent() is line), run)
    return bytes(serialize_part_xml(slide))


def _diagrams(path: Path) -> dict[int, list[str]]:
    """Return the texts of SmartArt by the numbers of their slides; MarkItDown passes over it."""
    with zipfile.ZipFile(path) as archive:
        if not any(name.startswith("ppt/diagrams/data") for name in archive.namelist()):
            return {}
    from pptx import Presentation

    texts: dict[int, list[str]] = {}
    for number, slide in enumerate(Presentation(str(path)).slides, 1):
        for relation in slide.part.rels.values():
            if relation.reltype.endswith("/diagramData") and not relation.is_external:
                for point in fromstring(relation.target_part.blob).iter():
                    if point.tag.endswith("}pt"):
                        text = "".join(run.text or "" for run in point.iter() if run.tag.endswith("/main}t"))
                        texts.setdefault(number, []).extend([text] if text.strip() else [])
    return texts


def _has_formulas(path: Path) -> bool:
    """Return whether a file of Excel has formulas, which some programs write without their values."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("xl/worksheets/") and name.endswith(".xml"):
                with archive.open(name) as part:
                    before = b""
                    while piece := part.read(1 << 20):
                        if _FORMULA.search(before + piece):
                            return True
                        before = piece[-4:]
    return False


def _called(name: str) -> re.Pattern[str]:
    """Return what matches the tags of a name, with any prefix or none."""
    return re.compile(rf"^(?:.*:)?{name}$")


def _readable(name: str, content: bytes) -> bytes:
    """Return a part of a Word file of which mammoth and MarkItDown pass over less.

    Elements around its runs are removed, each break becomes that of a line, the text of a box takes the place of its
    drawing, and an equation that MarkItDown cannot write becomes its letters.
    """
    if not name.endswith(".xml"):
        return content
    content = _AROUND_RUNS.sub(b"", content)
    content = _BREAK.sub(b"<w:br/>", _TAB.sub(b"<w:tab/>", content))
    content = _BUTTON.sub(rb'<w:t xml:space="preserve">\1</w:t>', content)
    content = _DRAWING.sub(_boxed, _ALTERNATIVE.sub(_boxed, content))
    return _EQUATION.sub(_letters_or_equation, content)


def _boxed(drawing: re.Match[bytes]) -> bytes:
    """Return the text of a box in place of a drawing, unless another form of it is read."""
    boxes = _BOX.findall(drawing[0])
    if not boxes or b"<v:textbox" in drawing[0]:
        return drawing[0]
    inner = b"".join(b'<v:textbox xmlns:v="urn:schemas-microsoft-com:vml">' + box + b"</v:textbox>" for box in boxes)
    return b"<w:pict>" + inner + b"</w:pict>"


def _letters_or_equation(equation: re.Match[bytes]) -> bytes:
    """Return an equation of Word, or its letters if MarkItDown would not write all of them, or end the whole file."""
    from markitdown.converter_utils.docx.pre_process import MATH_ROOT_TEMPLATE

    with suppress(Exception):  # what is no XML by itself
        if _latex(fromstring(MATH_ROOT_TEMPLATE.format(equation[0].decode("utf-8")))[0]):
            return equation[0]
    texts = [text.decode("utf-8", "replace") for text in _MATH_TEXT.findall(equation[0])]
    return f'<w:r><w:t xml:space="preserve"> {" ".join(texts)} </w:t></w:r>'.encode()


def _latex(equation: Any) -> str:
    """Return an equation as MarkItDown writes it; "" if that has not all of its letters."""
    from markitdown.converter_utils.docx.math.omml import OMML_NS, oMath2Latex

    words = [word for text in equation.iter(f"{OMML_NS}t") for word in re.findall(r"[A-Za-z0-9]+", text.text or "")]
    with suppress(Exception):  # it raises of every kind
        written = str(oMath2Latex(equation).latex)
        return written if all(word in written for word in words) else ""
    return ""


def _mail(content: bytes, number: int) -> Page:
    """Return a mail as a page. A header that cannot be parsed, such as that of spam, stays as it is written."""
    from email import message_from_bytes, policy

    content = _with_readable_headers(content)
    try:
        return _of_mail(message_from_bytes(content, policy=policy.default), number)
    except Exception:  # of the parser of headers: IndexError, AttributeError ...
        return _of_mail(message_from_bytes(content), number)


def _with_readable_headers(content: bytes) -> bytes:
    """Return a mail with headers in UTF-8, if they are in 8 bits of another encoding, which none of them names."""
    match = re.search(rb"\r?\n\r?\n", content)
    head = content[: match.start()] if match else content
    try:
        head.decode("utf-8")
    except UnicodeDecodeError:
        return head.decode(_seen_encoding(content) or "cp1252", "replace").encode("utf-8") + content[len(head) :]
    return content


def _of_mail(message: Message, number: int) -> Page:
    """Return a mail, with the texts and mails that are attached to it, and the names of all that is."""
    from email.utils import parsedate_to_datetime

    names: list[str] = []
    parts = [(text, form) for text, form in _parts_of(message, names) if text.strip()]
    parts += [(f"Attached: {', '.join(names)}", "plain")] if names else []
    form: Literal["markdown", "plain"] = "markdown" if any(form == "markdown" for _, form in parts) else "plain"
    fields = {name: _header(message, name) for name in ("from", "to", "date") if message[name]}
    with suppress(ValueError, TypeError, IndexError):
        # So that mails can be filtered by it.
        fields["date"] = parsedate_to_datetime(fields.get("date", "")).isoformat()
    texts = [text if own == form else re.sub(_MARKS, r"\\\1", text) for text, own in parts]
    return Page(number, "\n\n".join(texts), _header(message, "subject"), form, fields)


def _header(message: Message, name: str) -> str:
    from email.header import decode_header, make_header

    value = str(message[name] or "")
    with suppress(Exception):  # it stays as it is written
        return str(make_header(decode_header(value))) if "=?" in value else value
    return value


def _parts_of(part: Any, names: list[str], related: bool = False) -> Iterator[tuple[str, str]]:
    """Yield the texts of a part of a mail, and whether each is "plain" or "markdown".

    Args:
        names: takes the names of what is attached.
        related: it may be a picture of a page, which is no attachment.
    """
    kind, inner = part.get_content_type(), part.get_payload()
    if (name := part.get_filename()) and not (related and part.get_content_disposition() != "attachment"):
        names.append(name)
    if kind == "message/rfc822" and isinstance(inner, list) and inner:
        mail = inner[0]
        if str(part["content-transfer-encoding"] or "").strip().lower() == "base64":  # against the rules
            page = _mail(b64decode("".join(str(mail.get_payload()).split())), 0)
        else:
            page = _of_mail(mail, 0)
        yield f"{page.title}\n\n{page.text}", page.form
    elif isinstance(inner, list) and kind == "multipart/alternative":
        yield from _alternative([list(_parts_of(other, names)) for other in inner])
    elif isinstance(inner, list):
        for other in inner:
            yield from _parts_of(other, names, kind == "multipart/related")
    elif kind == "text/html":
        yield _of_html(_decoded(part)).text, "markdown"
    elif part.get_content_maintype() in ("text", "multipart") and kind not in ("text/css", "text/javascript"):
        yield _decoded(part).replace("\r\n", "\n"), "plain"


def _alternative(forms: Sequence[list[tuple[str, str]]]) -> list[tuple[str, str]]:
    """Return the plain form of a text, or another one if the plain one is empty or only says that it is not shown."""
    texts = [parts for parts in forms if any(text.strip() for text, _ in parts)]
    plain = next((parts for parts in texts if all(form == "plain" for _, form in parts)), None)
    other = next((parts for parts in reversed(texts) if parts is not plain), [])
    words, more = (sum(len(text.split()) for text, _ in parts) for parts in (plain or [], other))
    return plain if plain is not None and 3 * words >= more else other


def _decoded(part: Any) -> str:
    """Return the text of a part of a mail, in the encoding that it names, or that it is in."""
    content = part.get_payload(decode=True) or b""
    for name in (part.get_content_charset("utf-8"), "utf-8"):
        with suppress(LookupError, UnicodeDecodeError):
            return decoded_as(content, name)
    return str(content.decode(_seen_encoding(content) or "latin-1", "replace"))


def _of_open_document(element: Element, depth: int = 0) -> Iterator[str]:
    """Yield the blocks of an element of an OpenDocument text as Markdown."""
    for child in element:
        name = child.tag.rpartition("}")[2]
        if name in ("h", "p"):
            level = next((value for key, value in child.attrib.items() if key.endswith("}outline-level")), "1")
            text = re.sub(_MARKS, r"\\\1", _inline(child)).strip()
            if text:
                yield f"{'#' * min(6, int(level))} {text}" if name == "h" else text
            for box in _nearest(child, "text-box"):
                yield from _of_open_document(box, depth)
        elif name == "list":
            for item in child:
                yield from ("- " + block.replace("\n", "\n  ") for block in _of_open_document(item, depth + 1))
        elif name == "table":
            rows = [
                "| " + " | ".join(" ".join(_of_open_document(cell)) for cell in _cells_of(row)) + " |"
                for row in _nearest(child, "table-row")
            ]
            rule = ["|" + " --- |" * (rows[0].count(" | ") + 1)] if rows else []
            yield "\n".join([*rows[:1], *rule, *rows[1:]])
        elif not name.endswith("changes"):
            yield from _of_open_document(child, depth)


def _raise(content: Element) -> None:
    """Put a sign before each raised number of an OpenDocument text: 10^6 would be 106."""
    raised = set()
    for style in content.iter():
        if style.tag.endswith("}style"):
            positions = (
                value for part in style for key, value in part.attrib.items() if key.endswith("}text-position")
            )
            if any(position.startswith("super") for position in positions):
                raised |= {value for key, value in style.attrib.items() if key.endswith("style:1.0}name")}
    for span in content.iter():
        if span.tag.endswith("}span") and raised & set(span.attrib.values()) and (span.text or "")[:1].isdigit():
            span.text = f"^{span.text}"


def _cells_of(row: Element) -> list[Element]:
    """Return the cells of a row of an OpenDocument table; one that is repeated is there as often, but for the last."""
    cells = [cell for cell in row if "cell" in cell.tag]
    count = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}number-columns-repeated"
    times = [int(cell.get(count, "1")) for cell in cells[:-1]] + [1]
    return [cell for cell, many in zip(cells, times, strict=False) for _ in range(min(many, 100))]


def _nearest(element: Element, name: str) -> Iterator[Element]:
    """Yield the elements of a name within another one, without those that are within one of them."""
    for child in element:
        if child.tag.endswith(f"}}{name}"):
            yield child
        else:
            yield from _nearest(child, name)


def _inline(element: Element) -> str:
    parts = [element.text or ""]
    for child in element:
        name = child.tag.rpartition("}")[2]
        if name in ("s", "tab", "line-break"):
            parts.append(" ")
        elif name == "note":
            texts = (_inline(inner).split() for inner in child.iter() if inner.tag.endswith("}p"))
            parts.append(f" ({' '.join(chain.from_iterable(texts))})")
        elif name in ("frame", "text-box"):
            parts.append(" ")
        elif name not in ("annotation", "ruby-text"):
            parts.append(_inline(child))
        parts.append(child.tail or "")
    return "".join(parts)


def main() -> None:
    """Convert the files that standard input names, until it ends."""
    _end_with(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer

    def answer(**content: object) -> None:
        print(json.dumps(content), file=answers, flush=True)

    with suppress(ImportError):  # formats of other packages may not need it
        import markitdown  # noqa: F401 (its memory is not the file's)

    _limit_memory()
    answer(ready=True)
    for line in sys.stdin:
        task = json.loads(line)
        try:
            with Path(task["out"]).open("w", encoding="utf-8") as out:
                pages = 1
                converter = converters().get(task["suffix"])
                if converter is None:
                    raise LookupError("no installed package reads such files")
                for page in converter.convert(Path(task["path"])):
                    if isinstance(page, int):
                        pages = page
                    elif not isinstance(getattr(page, "place", None), int):
                        raise TypeError(
                            f"`convert` has to yield Page(place, text), with a number as the place: {page!r}"
                        )
                    else:
                        out.write(json.dumps(page._asdict(), default=str) + "\n")
                    if isinstance(page, int) or page.place % _ROWS_TOLD == 0 or not page.cells:
                        answer(of=pages)
            answer(written=True)
        except MemoryError:
            answer(error=f"it takes more than {MEMORY >> 30} GiB of memory to read")
        except Exception as error:
            answer(error=_reason(error))


def _end_with(parent: int) -> None:
    """Have the system end this process with the one that started it, even if both are in the middle of something."""
    with suppress(OSError, AttributeError):  # another system: it ends after the file that it reads
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        sys.exit()


def _limit_memory() -> None:
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (TEXT, TEXT))
    except (ImportError, OSError, ValueError):  # another system: the time alone is limited
        return


def _reason(error: Exception) -> str:
    if getattr(error, "errno", None) == errno.EFBIG:
        return f"it has more than {TEXT >> 20} MiB of text: divide it"
    line = next(iter(str(error).strip().splitlines()), "")
    if isinstance(error, LikewiseError):  # a converter says what is wrong in its own words
        return line
    if "password" in line.lower():
        return "it is locked by a password: save it without one"
    return f"{type(error).__name__}: {line}"[:200] if line else type(error).__name__


def blocks_of(text: str) -> list[str]:
    r"""Return the blocks of a page: what blank lines divide.

    >>> blocks_of("The \ufb01rst.\n\n\nThe second\nline.\f")
    ['The first.', 'The second\nline.']
    """
    text = _LIGATURES.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text.replace("\f", ""))
    return [block.strip("\n") for block in re.split(r"\n\s*\n", text) if block.strip()]


def _goes_on(places: Sequence[tuple[int, Sequence[int]]]) -> bool:
    """Return whether the numbers of blocks on several pages are the same, or those of the pages, on most of these.

    >>> _goes_on([(0, [7, 3]), (1, [8, 3]), (2, [9, 3])]), _goes_on([(0, [471]), (1, [482]), (2, [499])])
    (True, False)
    """

    def most(values: Iterable[int]) -> int:
        return Counter(values).most_common(1)[0][1]

    pages = [page for page, _ in places]
    columns = zip(*(numbers for _, numbers in places), strict=True)
    as_pages = ((column, [number - page for page, number in zip(pages, column, strict=True)]) for column in columns)
    return all(2 * max(most(column), most(distances)) > len(places) for column, distances in as_pages)


def without_edges(pages: list[list[str]]) -> list[str]:
    r"""Return the text of pages of blocks without headers and footers, and with divided words joined.

    A header or footer is a short block among the first or last two of a page that is on more than half of the pages,
    and on three at least, with the same numbers or with those of the pages. A word that a hyphen divides at a line's
    end is joined if it is elsewhere joined in the text, or if the hyphen is a soft one.

    >>> texts = ["Open the valve.", "Turn the valve-\nwheel.", "Then close the val-\nve."]
    >>> without_edges([["Manual", text, f"{i}/3"] for i, text in enumerate(texts)])
    ['Open the valve.', 'Turn the valve-wheel.', 'Then close the valve.']
    """

    def form(block: str) -> str:
        return re.sub(r"\d+", "0", " ".join(block.split()))

    edges = [{form(block): block for block in [*page[:_EDGE], *page[-_EDGE:]]} for page in pages]
    seen: dict[str, list[tuple[int, list[int]]]] = {}
    for number, page_edges in enumerate(edges):
        for one, block in page_edges.items():
            seen.setdefault(one, []).append((number, [int(digits[-18:]) for digits in re.findall(r"\d+", block)]))
    often = {
        block
        for block, places in seen.items()
        if len(places) >= 3 and len(places) > len(pages) / 2 and _goes_on(places)
    }
    repeated = {block for block in often if len(block) <= _LONGEST_EDGE}
    kept = [
        [block for place, block in enumerate(page) if _EDGE <= place < len(page) - _EDGE or form(block) not in repeated]
        for page in pages
    ]
    kept = kept if any(kept) else pages  # short pages that differ in their numbers alone
    words = set(re.findall(r"\w+", " ".join(block for page in kept for block in page)))

    def joined(match: re.Match[str]) -> str:
        if match[2] != "\u00ad" and _JOINING.match(match.string, match.start(3)):
            return f"{match[1]}{match[2]} {match[3]}"
        is_one = match[2] == "\u00ad" or match[1] + match[3] in words
        return match[1] + ("" if is_one else match[2]) + match[3]

    return [_HYPHEN.sub(joined, "\n\n".join(page)) for page in kept]


if __name__ == "__main__":
    from likewise.corpus import converter  # whose classes are those of other packages, too

    converter.main()
