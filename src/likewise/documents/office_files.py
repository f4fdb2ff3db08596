"""The converters of Word, PowerPoint, Excel and LibreOffice files to text."""

from __future__ import annotations

import io
import re
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import datetime, time
from itertools import chain, repeat, zip_longest
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import Element, fromstring

from likewise.corpus.formats import Page
from likewise.documents.paged_format import MARKS, PagedFormat
from likewise.documents.web_pages import page_of_html, stream_info

_SLIDE = re.compile(r"^<!-- Slide number: (\d+) -->$", re.MULTILINE)
_BEHIND_ROW = re.compile(r"^(\| .* \|)(?=[^\s|])", re.MULTILINE)  # what follows a chart, by MarkItDown
_FORMULA = re.compile(rb"<f[ >/]")
_NO_VALUE = "a formula in this row has no value: open the file in Excel or LibreOffice, and save it"
_NO_INNER = "an embedded file is not read: open it in Word, and save it"
_PERCENT = re.compile(r"""(?:"[^"]*"|\\.|[^"%\\])*%""")
"""A format of Excel that shows a number times 100; a quoted character is shown as it is."""
_SIGN_OF_FORM = re.compile(r"""\\.|"[^"]*"|.""")
_AROUND_RUNS = re.compile(
    rb"</?w:(?:fldSimple|dir|bdo|ruby|rubyBase)(?:\s[^>]*)?/?>|<w:rubyPr>.*?</w:rubyPr>|<w:rt>.*?</w:rt>", re.DOTALL
)
"""Fields, ruby and directions around the runs of a Word file; of ruby, what is above the line is skipped."""
_BREAK = re.compile(rb"<w:(?:br|cr)(?:\s[^>]*)?/>")
_TAB = re.compile(rb"<w:ptab(?:\s[^>]*)?/>")
_ALTERNATIVE = re.compile(rb"<mc:AlternateContent(?:\s[^>]*)?>.*?</mc:AlternateContent>", re.DOTALL)
_DRAWING = re.compile(rb"<w:drawing(?:\s[^>]*)?>.*?</w:drawing>", re.DOTALL)
_BOX = re.compile(rb"<w:txbxContent(?:\s[^>]*)?>.*?</w:txbxContent>", re.DOTALL)
_EQUATION = re.compile(rb"<m:oMath(?:\s[^>]*)?>.*?</m:oMath>", re.DOTALL)
_MATH_TEXT = re.compile(rb"<m:t(?:\s[^>]*)?>([^<]*)</m:t>")


class Word(PagedFormat):
    """Word files."""

    suffixes = (".docx",)
    is_zipped = True

    def pages(self, path: Path) -> Iterator[Page]:
        """Yield the one page."""
        import mammoth
        from markitdown.converter_utils.docx.pre_process import pre_process_docx

        page = page_of_html(mammoth.convert_to_html(pre_process_docx(_rewritten(path, _readable))).value)
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
        text = PptxConverter().convert(_rewritten(path, _readable_slide), stream_info(".pptx")).markdown
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
                width = max((place for place, cell in enumerate(row, 1) if cell is not None), default=0)
                cells = [_value(cell) for cell in placed[:width]]
                cell_texts = [_displayed(value, cell) for value, cell in zip(cells, placed, strict=False)]
                if any(cell_texts) or lost:
                    text = f"| {' | '.join(cell_texts)} |" if any(cell_texts) else ""
                    yield Page(number, text, sheet.title, cells=cells, left_out=_NO_VALUE if lost else "")


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

    An alternative form for newer programs, such as a text with an equation, replaces both, and
    an equation becomes LaTeX.
    """
    if not name.startswith("ppt/slides/slide"):
        return content
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
        sheets = [name for name in archive.namelist() if re.fullmatch(r"xl/worksheets/.*\.xml", name)]
        return any(_FORMULA.search(archive.read(name)) for name in sheets)


def _readable(name: str, content: bytes) -> bytes:
    """Return a part of a Word file of which mammoth and MarkItDown pass over less.

    Elements around its runs are removed, each break becomes a line break, the text of a box replaces its
    drawing, and an equation that MarkItDown cannot write becomes its letters.
    """
    if not name.endswith(".xml"):
        return content
    content = _AROUND_RUNS.sub(b"", content)
    content = _BREAK.sub(b"<w:br/>", _TAB.sub(b"<w:tab/>", content))
    content = _DRAWING.sub(_boxed, _ALTERNATIVE.sub(_boxed, content))
    return _EQUATION.sub(_letters_or_equation, content)


def _boxed(drawing: re.Match[bytes]) -> bytes:
    """Return the text of a box instead of its drawing, unless another form of it is read."""
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


class OpenDocument(PagedFormat):
    """Texts of LibreOffice."""

    suffixes = (".odt",)
    is_zipped = True

    def pages(self, path: Path) -> Iterator[Page]:
        """Yield the one page."""
        with zipfile.ZipFile(path) as archive:
            content = fromstring(archive.read("content.xml"))
        _raise(content)
        body = next(element for element in content.iter() if element.tag.endswith("}body"))
        yield Page(0, "\n\n".join(_of_open_document(body)), form="markdown")


def _of_open_document(element: Element, depth: int = 0) -> Iterator[str]:
    for child in element:
        name = child.tag.rpartition("}")[2]
        if name in ("h", "p"):
            level = next((value for key, value in child.attrib.items() if key.endswith("}outline-level")), "1")
            text = re.sub(MARKS, r"\\\1", _inline(child)).strip()
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
    """Put a caret before each superscript number of an OpenDocument text: 10^6 would be 106."""
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
    """Yield the outermost elements of a name within another element."""
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
