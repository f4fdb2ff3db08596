"""The converters of web pages and e-books to text."""

from __future__ import annotations

import io
import os
import re
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from likewise.corpus.encodings import AUTO, named_encoding, seen_encoding
from likewise.corpus.formats import Page
from likewise.corpus.sentence_splitter import gap
from likewise.documents.paged_format import PagedFormat

if TYPE_CHECKING:
    from bs4 import BeautifulSoup, Tag
    from markitdown import StreamInfo

_NO_TEXT = ("script", "style", "noscript", "template", "svg", "rt", "rp")  # of ruby, what is above the line
_AROUND = ("nav", "footer")
"""Text that repeats on each page of a site; it is text only where there is no other."""
_BLOCKS = tuple(
    "details summary fieldset legend address aside figure figcaption center hgroup menu option optgroup".split()
)
_APART = ("button", "label")
_CELLS = ("td", "th")
_LINES = 500  # characters of a table that a cell may show as lines
_INLINE = ("b", "strong", "i", "em", "code", "kbd", "samp", "del", "s", "sub")
_CHARSET = re.compile(rb"""(?:charset|<\?xml[^>]{0,99}encoding)\s{0,9}=\s{0,9}["']?\s{0,9}([\w.:-]+)""", re.IGNORECASE)
_ROMAN = tuple(
    zip((1000, 900, 500, 400, 100, 90, 50, 40, 10, 9, 5, 4, 1), "M CM D CD C XC L XL X IX V IV I".split(), strict=True)
)
_WORD = re.compile(r"\w")


class WebPage(PagedFormat):
    """Web pages, without text that repeats on each page of a site."""

    suffixes = (".html", ".htm", ".xhtml")

    def pages(self, path: Path) -> Iterator[Page]:
        """Yield the one page."""
        yield page_of_html(path.read_bytes())


class Book(PagedFormat):
    """E-books: a chapter a page."""

    suffixes = (".epub",)
    is_zipped = True
    unit = "chapter"

    def pages(self, path: Path) -> Iterator[Page]:
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
                try:
                    page = page_of_html(archive.read(os.path.normpath(Path(name).parent / chapter)))
                except KeyError:
                    page = Page(number, "", left_out=f"the book has no file {chapter!r} for this chapter")
                yield page._replace(place=number)


def stream_info(suffix: str) -> StreamInfo:
    """Return the description of a file that MarkItDown asks for, by the ending of its name."""
    from markitdown import StreamInfo

    return StreamInfo(extension=suffix, charset="utf-8")


def page_of_html(content: bytes | str, *, table_infer_header: bool = False) -> Page:
    """Return the text of HTML; the first row of a table is its header if it is named so, or if that is inferred."""
    from bs4 import BeautifulSoup

    if isinstance(content, bytes):
        named = _CHARSET.search(content[:4096])
        name = named[1].decode() if named else AUTO
        # A name that was read byte by byte is no UTF-16.
        content = decoded(content, "utf-8" if name.lower().startswith(("utf-16", "utf-32")) else name)
    end = content.rfind("-->") + 1  # a parser takes all that follows another mark for a comment
    soup = BeautifulSoup(content[:end] + content[end:].replace("<!--", ""), "lxml")
    for tag in soup(_NO_TEXT):
        tag.decompose()
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
            link.extract()  # a symbol that links to its own heading, or back from a note
            continue
        follower = link.next_sibling
        if follower is not None and getattr(follower, "name", "") == "a":  # as tags and menus have them
            link.insert_after(gap(link.get_text(), follower.get_text()))
        link.unwrap()
    for blank in soup.find_all(string=lambda text: bool(text) and text.isspace()):
        while (bold := blank.parent) and bold.name in _INLINE and len(bold.contents) == 1:
            bold.unwrap()  # markdownify would drop a bold blank
    _number_items(soup)
    _order_rows(soup)
    _part_tables(soup)
    _fill_spans(soup)
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    around = [tag.extract() for tag in soup(_AROUND)]
    text = _markdown(soup, table_infer_header)
    if not text and around:
        text = "\n\n".join(_markdown(tag, table_infer_header) for tag in around)
    return Page(0, text, title, "markdown")


def _number_items(soup: BeautifulSoup) -> None:
    """Write the number of each item into it where Markdown's would be another: letters, backwards, or its own value."""
    for items in soup("ol"):
        entries, kind = items("li", recursive=False), str(items.get("type", "1"))
        backwards = items.has_attr("reversed")
        if not entries or not (kind in tuple("aAiI") or backwards or any(entry.has_attr("value") for entry in entries)):
            continue
        number = _whole(items.get("start"), len(entries) if backwards else 1)
        for entry in entries:
            number = _whole(entry.get("value"), number)
            if words := next((text for text in entry.find_all(string=True) if text.strip()), None):
                words.insert_before(f"{_numeral(number, kind)}. ")
            number += -1 if backwards else 1
        items.name = "ul"


def _whole(text: object, default: int) -> int:
    """Return the integer that an attribute contains, or the default."""
    return int(match[0]) if (match := re.match(r"\s*-?\d{1,9}", str(text))) else default


def _numeral(number: int, kind: str) -> str:
    """Return a number as HTML's types of lists show it.

    >>> _numeral(28, "a"), _numeral(9, "I"), _numeral(0, "i")
    ('ab', 'IX', '0')
    """
    if kind in "aA" and number > 0:
        before, place = divmod(number - 1, 26)
        return f"{_numeral(before, kind) if before else ''}{chr(ord(kind) + place)}"
    if kind in "iI" and 0 < number < 4000:
        value, numeral = next(pair for pair in _ROMAN if pair[0] <= number)
        numeral += _numeral(number - value, kind) if number > value else ""
        return numeral if kind == "I" else numeral.lower()
    return str(number)


def _part_tables(soup: BeautifulSoup) -> None:
    """Leave no table within another: a layout becomes the blocks that it holds, and a table in a cell of data lines."""
    tables = soup("table")
    own: dict[int, list[Tag]] = {id(table): [] for table in tables}
    for tag in soup(("table", "tr", *_CELLS)):
        if (around := tag.find_parent("table")) is not None:
            own[id(around)].append(tag)
    for table in tables:
        inner = [tag for tag in own[id(table)] if tag.name == "table"]
        parts = [tag for tag in own[id(table)] if tag.name != "table"]
        cells = [tag for tag in parts if tag.name in _CELLS]
        is_named = any(tag.name == "th" for tag in cells)
        if not inner:
            is_layout = not is_named and not any(tag.find_previous_sibling("td") for tag in cells)
        else:
            is_layout = not is_named and 3 * sum(tag.table is not None for tag in cells) >= len(cells)
            is_layout = is_layout or any(len(other.get_text()) > _LINES for other in inner)
        if is_layout:
            for tag in (table, *parts):
                tag.name = "div"
            continue
        for other in inner:
            rows = (" ".join(tag.stripped_strings) for tag in own[id(other)] if tag.name == "tr")
            other.replace_with("; ".join(row for row in rows if row))


def _order_rows(soup: BeautifulSoup) -> None:
    """Leave nothing before the header of a table, and no groups of rows below it: each would have a header."""
    for caption in soup("caption"):
        if table := caption.find_parent("table"):
            table.insert_before(caption.extract())
        caption.name = "div"
    for cell in soup.select("thead td"):
        cell.name = "th"
    for group in soup(("col", "colgroup", "thead", "tbody", "tfoot")):
        group.unwrap()


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


def decoded(content: bytes, name: str) -> str:
    """Return the text of bytes in the encoding that they name, if they are in that, or that they look like."""
    with suppress(LookupError, UnicodeDecodeError):
        return content.decode(named_encoding(name, content)).removeprefix("\ufeff")
    return content.decode(seen_encoding(content) or "latin-1", "replace")


def _markdown(soup: Tag, infers_header: bool) -> str:
    from markitdown.converters import HtmlConverter

    content = io.BytesIO(str(soup).encode("utf-8", "replace"))
    how = {"escape_misc": True, "strong_em_symbol": "", "bullets": "-", "table_infer_header": infers_header}
    return str(HtmlConverter().convert(content, stream_info(".html"), **how).markdown)


def _called(name: str) -> re.Pattern[str]:
    """Return what matches the tags of a name, with any prefix or none."""
    return re.compile(rf"^(?:.*:)?{name}$")
