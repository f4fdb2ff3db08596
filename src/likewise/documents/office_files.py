"""The converters of Word, PowerPoint, Excel and LibreOffice files to text."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from copy import copy
from datetime import datetime, time
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree.ElementTree import fromstring

from likewise.corpus.formats import Page
from likewise.documents.paged_format import PagedFormat
from likewise.documents.web_pages import page_of_html, stream_info

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag

_SLIDE = re.compile(r"^<!-- Slide number: (\d+) -->$", re.MULTILINE)
_BEHIND_ROW = re.compile(r"^(\| .* \|)(?=[^\s|])", re.MULTILINE)  # what follows a chart, by MarkItDown
_NO_RESULT = re.compile(
    rb"""<c(?![^<>]*\st="str")[^<>]*\sr="[A-Z]+(\d+)"[^<>]*>\s*<f(?:[^<>]*/>|[^<>]*>[^<]*</f>)\s*(?:<v\s*/>|<v></v>)?\s*</c>"""
)
"""A formula of Excel that a program has written without its value, with the number of its row."""
_NO_VALUE = "a formula in this row has no value: open the file in Excel or LibreOffice, and save it"
_NO_INNER = "an embedded file is not read: open it in Word, and save it"
_PERCENT = re.compile(r"""(?:"[^"]*"|\\.|[^"%\\])*%""")
"""A format of Excel that shows a number times 100; a quoted character is shown as it is."""
_SIGN_OF_FORM = re.compile(r"""\\.|"[^"]*"|.""")
_AROUND_RUNS = "fldSimple dir bdo ruby rubyBase AlternateContent Choice Fallback oMathPara m".split()
"""Elements around the runs of a Word file or of a slide, such as fields and directions, whose content is read."""
_NO_RUNS = "rubyPr", "rt", "altChunk"
"""Elements that are skipped: what stands above the line in ruby, and an embedded file."""
_SKIPPED = re.compile(r"^(?:svg:.*|.*:(?:tracked-changes|annotation|ruby-text))$")
"""Elements of OpenDocument without text that is shown."""
_CELLS = ("table-cell", "covered-table-cell")
_HTML = {
    **{"p": "p", "list": "ul", "list-item": "li", "text-box": "div", "table": "table", "table-row": "tr"},
    **dict.fromkeys(_CELLS, "td"),
}
"""Elements of OpenDocument as elements of HTML; of others, the content alone is read."""


class Word(PagedFormat):
    """Word files."""

    suffixes = (".docx",)
    is_zipped = True

    def pages(self, path: Path) -> Iterator[Page]:
        """Yield the one page."""
        import mammoth

        page = page_of_html(mammoth.convert_to_html(_readable(path)).value)
        with zipfile.ZipFile(path) as parts:
            has_inner = any(b"<w:altChunk" in parts.read(name) for name in parts.namelist() if name.endswith(".xml"))
        yield page._replace(left_out=_NO_INNER) if has_inner else page


class Slides(PagedFormat):
    """Slides of PowerPoint."""

    suffixes = (".pptx",)
    is_zipped = True
    unit = "slide"

    def pages(self, path: Path) -> Iterator[Page]:
        """Yield the slides, each with its own title."""
        from markitdown.converters import PptxConverter

        diagrams = _diagrams(path)
        text = PptxConverter().convert(_readable(path), stream_info(".pptx")).markdown
        parts = _SLIDE.split(_BEHIND_ROW.sub(r"\1\n", text))
        for number, text in zip(parts[1::2], parts[2::2], strict=True):
            lines = text.strip().split("\n")
            title = next((line for line in lines if line.startswith("# ")), "")
            # Each line of a box is a paragraph.
            rest = re.sub(r"\n(?!\|)", "\n\n", "\n".join(line for line in lines if line is not title))
            rest = "\n\n".join([rest.replace("### Notes:", "Notes:"), *diagrams.get(int(number), ())])
            yield Page(int(number), rest, title[2:].strip())


class Sheets(PagedFormat):
    """Sheets of Excel: a row a page, of which the first with cells is the header."""

    name = "xlsx"
    suffixes = (".xlsx", ".xlsm")
    is_zipped = True
    has_rows = True
    unit = "row"

    def pages(self, path: Path) -> Iterator[Page]:
        """Yield the rows."""
        import openpyxl

        for sheet in openpyxl.load_workbook(path, read_only=True, data_only=True).worksheets:
            sheet.reset_dimensions()  # a file may say that it ends where it does not
            with sheet._get_source() as content:
                lost = {int(number) for number in _NO_RESULT.findall(content.read())}
            for number, row in enumerate(sheet.iter_rows(), 1):
                width = max((place for place, cell in enumerate(row, 1) if cell.value is not None), default=0)
                cells = [_value(cell) for cell in row[:width]]
                texts = [_displayed(value, cell) for value, cell in zip(cells, row, strict=False)]
                if any(texts) or number in lost:
                    text = f"| {' | '.join(texts)} |" if any(texts) else ""
                    yield Page(number, text, sheet.title, cells=cells, left_out=_NO_VALUE if number in lost else "")


def _value(cell: Any) -> Any:
    """Return the content of an Excel cell: a date without a hidden time, a code with its zeros and separators."""
    value = cell.value
    if isinstance(value, str) and "_x" in value:
        from openpyxl.utils.escape import unescape

        return unescape(value)
    if isinstance(value, datetime) and value.time() == time() and "h" not in cell.number_format.lower():
        return value.date()
    if type(value) is float:
        value = int(value) if value.is_integer() else float(f"{value:.15g}")  # Excel has 15 digits
    return _code(value, cell.number_format or "") if type(value) is int and value >= 0 else value


def _code(number: int, form: str) -> int | str:
    """Return a number with the zeros and separators of a format that has a place for each digit, such as 00000."""
    chars = _SIGN_OF_FORM.findall(form.split(";")[0])
    places = chars.count("0")
    if places < 2 or any(len(char) == 1 and char not in "0-/() " for char in chars):
        return number
    digits = str(number).zfill(places)
    first = len(digits) - places + 1
    each = iter([digits[:first], *digits[first:]])
    return "".join(next(each) if char == "0" else char.strip('\\"') for char in chars)


def _displayed(value: object, cell: Any) -> str:
    """Return the text of a cell with a value; 0.475 as 47.5% where the sheet does so."""
    if type(value) in (float, int) and _PERCENT.match(cell.number_format or ""):
        return f"{100 * value:.12g}%"  # type: ignore[operator]
    return "" if value is None else " ".join(str(value).split())


def _readable(path: Path) -> io.BytesIO:
    """Return a Word or PowerPoint file of which mammoth and MarkItDown pass over less."""
    made = io.BytesIO()
    with zipfile.ZipFile(path) as before, zipfile.ZipFile(made, "w") as after:
        for part in before.infolist():
            content = before.read(part)
            is_text = re.fullmatch(r"(?:word/|ppt/slides/)[^/]*\.xml", part.filename)
            after.writestr(part, _readable_part(content) if is_text else content)
    made.seek(0)
    return made


def _readable_part(content: bytes) -> bytes:
    """Return a part whose runs stand alone.

    Of two forms for older and newer programs, the one with more letters stays. The text of a box replaces its drawing,
    each break becomes a line break, and an equation LaTeX, or its letters if MarkItDown cannot write all of them.
    """
    from lxml import etree

    parser = etree.XMLParser(huge_tree=True, resolve_entities=False, recover=True)  # from prefixes without a namespace
    root: Any = etree.fromstring(content, parser)
    if parser.error_log.filter_from_fatals():
        raise ValueError(parser.error_log[0].message)
    for both in root.iter("{*}AlternateContent"):
        best = max(both, key=lambda form: len("".join(form.itertext())), default=None)
        both[:] = [] if best is None else [best]
    for drawing in root.iter("{*}drawing"):
        if boxes := list(drawing.iter("{*}txbxContent")):
            drawing.tag, drawing[:] = drawing.tag.replace("drawing", "pict"), boxes
    for equation in list(root.iter("{*}oMath")):
        space = next(equation.iterancestors("{*}p")).tag.removesuffix("p")
        run = etree.Element(f"{space}r")
        text = etree.SubElement(run, f"{space}t")
        text.text = f" {_latex(equation) or ' '.join(equation.itertext())} "
        text.set("{http://www.w3.org/XML/1998/namespace}space", "preserve")
        equation.getparent().replace(equation, run)
    for mark in root.iter("{*}br", "{*}cr", "{*}ptab"):
        mark.tag = mark.tag.replace("}cr", "}br").replace("ptab", "tab")
        mark.attrib.clear()
    etree.strip_elements(root, *(f"{{*}}{name}" for name in _NO_RUNS), with_tail=False)
    etree.strip_tags(root, *(f"{{*}}{name}" for name in _AROUND_RUNS))
    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8", standalone=True))


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
                points = fromstring(relation.target_part.blob).iterfind(".//{*}pt")
                texts.setdefault(number, []).extend("".join(point.itertext()).strip() for point in points)
    return texts


def _latex(equation: Any) -> str:
    """Return an equation as MarkItDown writes it; "" if that has not all of its letters."""
    from markitdown.converter_utils.docx.math.omml import OMML_NS, oMath2Latex

    words = [word for text in equation.iter(f"{OMML_NS}t") for word in re.findall(r"[A-Za-z0-9]+", text.text or "")]
    with suppress(Exception):  # it raises of every kind
        written = str(oMath2Latex(equation).latex)
        return written if all(word in written for word in words) else ""
    return ""


class OpenDocument(PagedFormat):
    """Texts of LibreOffice."""

    suffixes = (".odt",)
    is_zipped = True

    def pages(self, path: Path) -> Iterator[Page]:
        """Yield the one page."""
        from bs4 import BeautifulSoup

        with zipfile.ZipFile(path) as archive:
            content = archive.read("content.xml")
        fromstring(content)  # an error if it is damaged, which the next parser passes over
        soup = BeautifulSoup(content, "xml")
        for tag in soup(_SKIPPED):
            tag.decompose()
        for tag in soup(True):
            tag.attrs = {key.rpartition(":")[2]: value for key, value in tag.attrs.items()}
            tag.prefix, tag.name = None, tag.name.rpartition(":")[2]
        _to_html(soup)
        yield page_of_html(str(soup.body), table_infer_header=True)


def _is_raised(part: Tag) -> bool:
    """Return whether an element sets its text as a superscript."""
    return str(part.get("text-position", "")).startswith("super")


def _to_html(soup: BeautifulSoup) -> None:
    """Change the elements of an OpenDocument text to HTML; notes stand in brackets, and boxes below their paragraph."""
    raised = {part.parent.get("name") for part in soup(_is_raised) if part.parent}
    for blank in soup(("s", "tab", "line-break", "frame")):
        blank.insert_before(" ")
    for note in soup("note"):
        note.replace_with(f" ({' '.join(' '.join(part.get_text().split()) for part in note('p'))})")
    for box in reversed(soup("text-box")):
        if paragraph := box.find_parent(("p", "h")):
            paragraph.insert_after(box.extract())
    for cell in soup(_CELLS):
        many = int(str(cell.get("number-columns-repeated", "1"))) if cell.find_next_sibling(_CELLS) else 1
        for _ in range(1, min(many, 100)):
            cell.insert_after(copy(cell))
    for tag in soup.body(True) if soup.body else ():
        if tag.name == "span" and tag.get("style-name") in raised and tag.get_text()[:1].isdigit():
            tag.name = "sup"  # 10^6 would be 106
        elif tag.name == "h":
            level = str(tag.get("outline-level", "1"))
            tag.name = f"h{min(6, int(level))}"
        elif tag.name in _HTML:
            tag.name = _HTML[tag.name]
        else:
            tag.unwrap()
        tag.attrs = {}
