"""The format of PDF files: their headings, paragraphs, tables and filled forms."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence, Set
from contextlib import closing
from itertools import chain, groupby
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.corpus.formats import Page, Source
from likewise.corpus.sentence_splitter import JOINING
from likewise.documents.document_format import MARKS
from likewise.documents.page_edges import edges_of
from likewise.documents.paged_format import PagedFormat

if TYPE_CHECKING:
    from liteparse.types import AnnotationRect, LayoutBlock, ParsedPage, TextItem
    from pypdfium2 import PdfPage

_FIELDS = ("text", "combobox", "listbox")
_NO_LETTERS = "this page has no text, only pictures or glyphs without letters: docling can convert a scan to text"
_MISSED = 0.9
"""Share of the letters of a page below which its blocks miss text, such as vertical text."""
_EACH = 7
"""One of so many glyphs of a page is examined."""
_HYPHENATED = 10, 0.05
"""Number and share of lines with a hyphen at their ends from which on a program has divided the words of a text."""
_LEADING = 4.0
"""Points by which the lines of a page differ at least in height."""
_OUTER = 2
"""Number of blocks at the top and at the bottom of a page that may hold its header and footer."""
_SOFT = "\u00ad"
_LIGATURES = re.compile("[\ufb00-\ufb06]")
_EMPHASIS = re.compile(r"\\(.)|\*+")
_DIVIDED = re.compile("(?<!\\w)(\\w+)([-\u2010\u00ad])$")
_APART = re.compile("(?<!\\w)(\\w+)[-\u2010] (\\w+)")
_NUMBER = re.compile(r"\d")
_GAP = re.compile(r"\s{2,}")
_JOINING = re.compile(rf"{JOINING}(?=\s)")


class Pdf(PagedFormat):
    """PDF files, without running heads and footers."""

    suffixes = (".pdf",)
    unit = "page"
    no_text = "this PDF contains no text, only pictures, as in a scan: convert it to text, for example with docling"

    def accepts(self, source: Source) -> bool:
        """Return whether a file is called so, or begins as a PDF does."""
        return super().accepts(source) or source.head.startswith(b"%PDF-")

    def pages(self, path: Path) -> Iterator[Page]:
        """Yield the pages."""
        import pypdfium2
        from liteparse import LiteParse

        parser = LiteParse(
            ocr_enabled=False,  # it would want to download models
            output_format="markdown",
            image_mode="off",
            extract_links=False,
            keep_headers_footers=True,  # it would also remove a line of text that two pages share
            extract_blocks=True,
            extract_text_metadata=True,  # the codes of glyphs
            extract_form_fields=True,
            extract_annotations=True,
            extract_content_bounds=True,
            quiet=True,
            num_workers=1,
        )
        content = path.read_bytes()
        parsed = parser.parse(content).pages
        lines = [_lines(page) for page in parsed]
        hyphens = Hyphens(_with_soft_hyphens(item for page in parsed for item in page.text_items))
        edges = edges_of([[" ".join(line) for line in page] for page in lines])
        header = ""
        with closing(pypdfium2.PdfDocument(content)) as whole:
            for laid_out, its_lines, places in zip(parsed, lines, edges, strict=True):
                with closing(whole[laid_out.page_num - 1]) as page:
                    without = {part for place in places for part in its_lines[place]}
                    blocks = list(_blocks(laid_out, hyphens, without)) if _has_letters(page) else []
                    header = _with_header(blocks, header)
                    blocks += [text for text in _typed(laid_out) if text not in " ".join(blocks)]
                is_lost = not blocks and not places and laid_out.content_bounds is not None
                text, left_out = "\n\n".join(blocks), _NO_LETTERS if is_lost else ""
                yield Page(laid_out.page_num, text, form="markdown", left_out=left_out, goes_on=True)


class Hyphens:
    """The words that hyphens divide at the ends of lines, which liteparse joins whatever they are, or leaves apart.

    The hyphen stays unless it is a soft one, the joined word is elsewhere in the text, or a program has divided the
    words of the text; then it stays in words that are elsewhere written with it.

    >>> hyphens = Hyphens(["Turn the valve-", "wheel by the val-", "ve, pro-", "and contra. Oil the valve."])
    >>> hyphens.restored("Turn the valvewheel by the valve, proand contra. Oil the valve.")
    'Turn the valve-wheel by the valve, pro- and contra. Oil the valve.'
    """

    def __init__(self, lines: Iterable[str]) -> None:
        every = [line.strip() for line in lines]
        self._begins = {begin[0] for line in every if (begin := re.match(r"\w+", line))}
        ends = [end for line in every if (end := _DIVIDED.search(line))]
        self._ends, self._soft = {end[1] for end in ends}, {end[1] for end in ends if end[2] == _SOFT}
        text = " ".join(every)
        self._words, self._compounds = set(re.findall(r"\w+", text)), set(re.findall(r"(?=\b(\w+-\w+))", text))
        self._is_hyphenated = len(ends) >= _HYPHENATED[0] and len(ends) > _HYPHENATED[1] * len(every)

    def restored(self, text: str) -> str:
        """Return a text with the hyphens that belong to its words, and without others."""
        if not self._ends:
            return text
        return re.sub(r"\w+", self._word, _APART.sub(self._together, text))

    def _word(self, match: re.Match[str]) -> str:
        word = match[0]
        for cut in range(1, len(word)) if word not in self._words else ():
            if word[:cut] in self._ends and word[cut:] in self._begins:
                return self._joined(word[:cut], word[cut:], match.string[match.end() : match.end() + 1])
        return word

    def _together(self, match: re.Match[str]) -> str:
        """Return two halves of a word that liteparse leaves apart."""
        is_one = match[1] in self._ends and match[2] in self._begins
        return self._joined(match[1], match[2], match.string[match.end() : match.end() + 1]) if is_one else match[0]

    def _joined(self, first: str, second: str, follower: str) -> str:
        if first in self._soft:
            return first + second
        if _JOINING.match(second + follower):
            return f"{first}- {second}"
        is_compound = f"{first}-{second}" in self._compounds or not self._is_hyphenated
        return f"{first}-{second}" if is_compound and first + second not in self._words else first + second


def _with_soft_hyphens(items: Iterable[TextItem]) -> Iterator[str]:
    """Yield the texts of items, with a soft hyphen at the end where liteparse writes another one.

    Its glyph has the code of a soft hyphen, or another one than the hyphens within the lines of its font.
    """
    items = list(items)
    inside: dict[str | None, set[int]] = {}
    for item in items:
        if "-" in item.text[:-1]:
            is_aligned = len(item.text) == len(item.char_codes)
            pairs = zip(item.text if is_aligned else "-" * len(item.char_codes), item.char_codes, strict=True)
            inside.setdefault(item.font_name, set()).update(code for char, code in pairs if char == "-")
    for item in items:
        is_divided, own = item.text.endswith("-") and len(item.char_codes) > 1, inside.get(item.font_name, set())
        is_soft = is_divided and item.char_codes[-2:] == list(map(ord, item.text[-2:-1] + _SOFT))
        is_soft = is_soft or (is_divided and bool(own) and item.char_codes[-1] not in own)
        yield item.text[:-1] + _SOFT if is_soft else item.text


def _lines(page: ParsedPage) -> list[list[str]]:
    """Return the lines of a page from top to bottom, each as its parts from left to right."""
    items = sorted((round(item.y / _LEADING), item.x, item.text) for item in page.text_items if item.text.strip())
    return [[text for _, _, text in line] for _, line in groupby(items, lambda item: item[0])]


def _blocks(page: ParsedPage, hyphens: Hyphens, without: Set[str]) -> Iterator[str]:
    """Yield the blocks of a page as Markdown; if they do not hold its words, its paragraphs.

    Args:
        page: The page as liteparse reads it.
        hyphens: The divided words of the whole file.
        without: The parts of the header and footer.
    """
    blocks = [block for block in page.blocks or [] if (block.text or block.lines or block.rows or block.header)]
    letters = sum(len("".join(_all_text(block).split())) for block in blocks)
    if letters < _MISSED * len("".join(page.text.split())):
        parts = (" ".join(part.split()) for part in re.split(r"\n\s*\n", page.text))
        yield from (_escaped(hyphens.restored(part)) for part in parts if part)
        return
    tables = [block for block in blocks if block.kind == "table" and block.bbox]
    for table in tables:
        _fill(table, page.text_items)
    blocks = [block for block in blocks if not any(_repeats(block, table) for table in tables)]
    for place, block in enumerate(blocks):
        is_outer = not _OUTER <= place < len(blocks) - _OUTER
        if text := _markdown(block, hyphens, without if is_outer else ()):
            yield text


def _fill(table: LayoutBlock, items: Sequence[TextItem]) -> None:
    """Put into the empty cells of a table what stands there, which liteparse may take for a column of text."""
    for cell in chain.from_iterable([table.header or [], *(table.rows or [])]):
        if cell.bbox and not cell.text.strip():
            cell.text = " ".join(item.text for item in items if _is_inside(item, cell.bbox))


def _repeats(block: LayoutBlock, table: LayoutBlock) -> bool:
    """Return whether a block is a column of a table, all of whose words are in the cells."""
    if block.kind == "table" or not (block.bbox and table.bbox and _is_inside(block.bbox, table.bbox)):
        return False
    return not Counter(_all_text(block).split()) - Counter(_all_text(table).split())


def _is_inside(inner: TextItem | AnnotationRect, outer: AnnotationRect) -> bool:
    """Return whether the middle of a region is in another one."""
    across, down = inner.x + inner.width / 2 - outer.x, inner.y + inner.height / 2 - outer.y
    return 0 <= across < outer.width and 0 <= down < outer.height


def _all_text(block: LayoutBlock) -> str:
    cells = [cell.text for row in [block.header or [], *(block.rows or [])] for cell in row]
    return " ".join([block.text or "", *(block.lines or []), *cells])


def _markdown(block: LayoutBlock, hyphens: Hyphens, without: Collection[str]) -> str:
    """Return a block as Markdown with a backslash before each character that is no mark."""
    if block.kind == "table":
        return _table([[cell.text for cell in row] for row in [block.header or [], *(block.rows or [])]])
    if block.kind in ("code", "grid_fallback"):
        lines = [line for line in block.lines or [] if line.strip()]
        cells = [_GAP.split(line.strip()) for line in lines]
        if block.kind == "grid_fallback" and 2 * sum(len(row) > 1 for row in cells) > len(cells):
            return _table(cells)
        if block.kind == "code" and lines:
            return "\n".join(("`````", *lines, "`````"))
        return "\n\n".join(_escaped(line.strip()) for line in lines)
    text = _EMPHASIS.sub(lambda mark: mark[1] or "", block.text or "")
    for part in without:
        text = text.strip().removeprefix(part).removesuffix(part)
    text = _escaped(hyphens.restored(" ".join(text.split())))
    if text and block.kind == "heading":
        return f"{'#' * min(6, block.level or 1)} {text}"
    if text and block.kind == "list_item":
        mark = re.sub(r"[^\w.)]", "", block.marker or "")
        is_number = re.fullmatch(r"\d{1,9}[.)]", mark)
        return f"{'  ' * (block.level or 0)}{mark if is_number else f'- {_escaped(mark)}'.strip()} {text}"
    return text


def _table(rows: Sequence[Sequence[str]]) -> str:
    """Return rows as a table of Markdown, of which the first is the header."""
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    width = max(map(len, rows), default=0)
    lines = [
        f"| {' | '.join(_escaped(' '.join(cell.split())) for cell in [*row, *[''] * (width - len(row))])} |"
        for row in rows
    ]
    return "\n".join([*lines[:1], "|" + " --- |" * width, *lines[1:]]) if lines else ""


def _with_header(blocks: list[str], header: str) -> str:
    """Put the header of a table that ends the page before above its further rows, and return that of the last table.

    Args:
        blocks: Blocks of a page; the first one is a further part of the table if it has as many columns, and numbers
            in its first row.
        header: Header of the last table of the page before, "" if it ends otherwise.
    """
    if header and blocks and blocks[0].startswith("| "):
        first, rule, *rows = blocks[0].split("\n")
        if first != header and first.count(" | ") == header.count(" | ") and _NUMBER.search(first):
            blocks[0] = "\n".join([header, rule, first, *rows])
    return blocks[-1].partition("\n")[0] if blocks and blocks[-1].startswith("| ") else ""


def _escaped(text: str) -> str:
    text = _LIGATURES.sub(lambda ligature: unicodedata.normalize("NFKC", ligature[0]), text)
    return MARKS.sub(r"\\\1", text)


def _has_letters(page: PdfPage) -> bool:
    """Return whether the fonts of a page name the letters of most of its glyphs."""
    from pypdfium2 import raw

    text = page.get_textpage()
    places = range(0, text.count_chars(), _EACH)
    return 2 * sum(raw.FPDFText_HasUnicodeMapError(text.raw, place) == 1 for place in places) <= len(places)


def _typed(page: ParsedPage) -> Iterator[str]:
    """Yield what was typed into the fields of a page, and the notes that show on it."""
    fields = (", ".join(one.selected_options) or one.value for one in page.form_fields or [] if one.type in _FIELDS)
    notes = (note.contents for note in page.annotations or [] if note.subtype == "freetext")
    for text in chain(fields, notes):
        if text := " ".join((text or "").split()):
            yield _escaped(text)
