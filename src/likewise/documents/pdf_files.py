"""The converter of PDF files to text, which also reads what was typed into their forms."""

from __future__ import annotations

import ctypes
import io
import math
import re
import unicodedata
from collections.abc import Iterator
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.corpus.formats import Page, Source
from likewise.documents.page_edges import without_edges
from likewise.documents.paged_format import PagedFormat
from likewise.documents.web_pages import stream_info

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_BEGIN = b"%PDF-"
_FIELDS = (4, 5, 6)  # of PDF forms: choices, lists and texts, as PDFium numbers them
_NO_LETTERS = "this page has no text, only pictures or glyphs without letters: docling can turn a scan into text"
_EACH = 7  # letters of a page of which one is looked at
_UPRIGHT = 0.1
"""From this share of upright letters on, a page of a PDF is read by PDFium, which sees no tables."""
_GLYPH = re.compile(r"\(cid:\d+\)")
_LIGATURES = re.compile("[\ufb00-\ufb06]")


class Pdf(PagedFormat):
    """PDF files, without the lines that stand above or below the text of most pages."""

    suffixes = (".pdf",)
    unit = "page"
    no_text = (
        "there is no text in this PDF, only pictures, such as those of a scan: turn them into text, for example with "
        "docling, and give that text"
    )

    def accepts(self, source: Source) -> bool:
        """Return whether a file is called so, or begins as a PDF does."""
        if super().accepts(source):
            return True
        with suppress(OSError), source.path.open("rb") as file:
            return file.read(len(_BEGIN)) == _BEGIN
        return False

    def pages(self, path: Path) -> Iterator[Page]:
        """Yield the pages."""
        import pypdfium2

        with path.open("rb") as file:
            whole = pypdfium2.PdfDocument(file)
            whole.init_forms()
            pages: list[list[str]] = []
            left_out: dict[int, str] = {}
            for number in range(len(whole)):
                with closing(whole[number]) as page:
                    text = _turned(page) or _laid_out(whole, number)
                    has_letters = _has_letters(text)
                    pages.append([*(blocks_of(text) if has_letters else []), *_typed(page)])
                    if not pages[-1] and (not has_letters or _is_picture(page)):
                        left_out[number + 1] = _NO_LETTERS
            whole.close()
        for number, text in enumerate(without_edges(pages), 1):
            yield Page(number, text, left_out=left_out.get(number, ""))


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
    return str(PdfConverter().convert(content, stream_info(".pdf")).markdown)


def _is_picture(page: PdfPage) -> bool:
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


def blocks_of(text: str) -> list[str]:
    r"""Return the blocks of a page: what blank lines divide.

    >>> blocks_of("The \ufb01rst.\n\n\nThe second\nline.\f")
    ['The first.', 'The second\nline.']
    """
    text = _LIGATURES.sub(lambda match: unicodedata.normalize("NFKC", match[0]), text.replace("\f", ""))
    return [block.strip("\n") for block in re.split(r"\n\s*\n", text) if block.strip()]
