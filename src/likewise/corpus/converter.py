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
import os
import re
import signal
import sys
import unicodedata
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Literal, NamedTuple

from likewise.errors import LikewiseError

MEMORY = 2 << 30
"""Bytes that one file may take beyond what the libraries do."""
TEXT = 256 << 20
"""The most bytes of text that one file may have."""

_NO_TEXT = ("script", "style", "noscript", "template", "svg")
_AROUND = ("nav", "footer")
"""What stands on each page of a site; it is text only where there is no other."""

_SLIDE = re.compile(r"^<!-- Slide number: (\d+) -->$", re.MULTILINE)
_LIGATURES = re.compile("[\ufb00-\ufb06]")
_HYPHEN = re.compile("(?<!\\w)(\\w+)([-\u2010\u00ad])\n(\\w+)")
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
    """

    place: int
    text: str
    title: str = ""
    form: Literal["markdown", "plain"] = "plain"
    fields: Mapping[str, object] = {}
    cells: Sequence[object] = ()


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

        with path.open("rb") as file:
            yield _of_html(mammoth.convert_to_html(pre_process_docx(file)).value)


class Slides(Converter):
    """Slides of PowerPoint."""

    suffixes = (".pptx",)
    unit = "slide"

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the slides, each with its own title."""
        from markitdown.converters import PptxConverter

        with path.open("rb") as file:
            parts = _SLIDE.split(PptxConverter().convert(file, _info(".pptx")).markdown)
        for number, text in zip(parts[1::2], parts[2::2], strict=True):
            lines = text.strip().split("\n")
            title = next((line for line in lines if line.startswith("# ")), "")
            # Each line of a box is a paragraph.
            rest = re.sub(r"\n(?!\|)", "\n\n", "\n".join(line for line in lines if line is not title))
            yield Page(int(number), rest.replace("### Notes:", "Notes:"), title[2:].strip())


class Pdf(Converter):
    """PDF files, without the lines that stand above or below the text of most pages."""

    suffixes = (".pdf",)
    unit = "page"

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the pages."""
        import pypdfium2
        from markitdown.converters import PdfConverter

        with path.open("rb") as file:
            whole = pypdfium2.PdfDocument(file)
            pages: list[list[str]] = []
            for number in range(count := len(whole)):
                page = io.BytesIO()
                single = pypdfium2.PdfDocument.new()
                single.import_pages(whole, [number])
                single.save(page)
                single.close()
                page.seek(0)
                pages.append(blocks_of(PdfConverter().convert(page, _info(".pdf")).markdown))
                yield count
            whole.close()
        for number, text in enumerate(without_edges(pages), 1):
            yield Page(number, text)


class Sheets(Converter):
    """Sheets of Excel: a row a page; the first row with cells is the header."""

    suffixes = (".xlsx", ".xlsm")
    unit = "row"

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the rows."""
        import openpyxl

        book = openpyxl.load_workbook(path, read_only=True, data_only=True)
        for sheet in book.worksheets:
            sheet.reset_dimensions()  # a file may say that it ends where it does not
            for number, row in enumerate(sheet.iter_rows(values_only=True), 1):
                cells = row[: max((place for place, cell in enumerate(row, 1) if cell is not None), default=0)]
                shown = ["" if cell is None else " ".join(str(cell).split()) for cell in cells]
                if any(shown):
                    yield Page(number, f"| {' | '.join(shown)} |", sheet.title, cells=list(cells))


class Book(Converter):
    """E-books: a chapter a page."""

    suffixes = (".epub",)
    unit = "chapter"

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the chapters in the order in which they are read."""
        from urllib.parse import unquote

        from bs4 import BeautifulSoup

        with zipfile.ZipFile(path) as archive:
            container: Any = BeautifulSoup(archive.read("META-INF/container.xml"), "html.parser")
            name = container.find("rootfile")["full-path"]
            package: Any = BeautifulSoup(archive.read(name), "html.parser")
            items = {item.get("id"): item.get("href") for item in package.find_all("item")}
            chapters = [
                items[reference.get("idref")]
                for reference in package.find_all("itemref")
                if reference.get("idref") in items
            ]
            chapters = list(dict.fromkeys(chapters))  # a spine may name one a million times
            for number, chapter in enumerate(chapters, 1):
                yield len(chapters)
                page = _of_html(archive.read(os.path.normpath(Path(name).parent / unquote(chapter))))
                yield page._replace(place=number)


class OpenDocument(Converter):
    """Texts of LibreOffice."""

    suffixes = (".odt",)

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the one page."""
        from xml.etree.ElementTree import fromstring

        with zipfile.ZipFile(path) as archive:
            body = next(
                element for element in fromstring(archive.read("content.xml")).iter() if element.tag.endswith("}body")
            )
        yield Page(0, "\n\n".join(_of_open_document(body)), form="markdown")


class Mail(Converter):
    """Mails: the subject is the title."""

    suffixes = (".eml",)

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the one mail."""
        from email import policy
        from email.parser import BytesParser

        with path.open("rb") as file:
            yield _of_mail(BytesParser(policy=policy.default).parse(file), 0)


class Mailbox(Converter):
    """Boxes of mails: a mail a page."""

    suffixes = (".mbox",)
    unit = "mail"

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the mails."""
        import mailbox
        from email import message_from_bytes, policy

        box = mailbox.mbox(path, create=False)
        for number, key in enumerate(keys := box.keys(), 1):
            yield len(keys)
            yield _of_mail(message_from_bytes(box.get_bytes(key), policy=policy.default), number)


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


def _info(suffix: str) -> Any:
    from markitdown import StreamInfo

    return StreamInfo(extension=suffix, charset="utf-8")


def _of_html(content: bytes | str) -> Page:
    """Return the text of HTML."""
    from bs4 import BeautifulSoup

    from likewise.corpus.encodings import AUTO, named_encoding

    named = None
    if isinstance(content, bytes) and b"charset" not in content[:2048].lower():
        named = named_encoding(AUTO, content[: 1 << 16], len(content) < 1 << 16) or None
    soup = BeautifulSoup(_without_open_comments(content), "html.parser", from_encoding=named)
    for tag in soup(_NO_TEXT):
        tag.decompose()
    for tag in soup(("u", "sup")):
        if tag.name == "sup":
            tag.insert_before("^")
        tag.unwrap()
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    around = [tag.extract() for tag in soup(_AROUND)]
    text = _markdown(soup)
    if not text and around:
        text = "\n\n".join(map(_markdown, around))
    return Page(0, text, title, "markdown")


def _without_open_comments(content: bytes | str) -> bytes | str:
    """Return HTML without the marks of comments that never end: Python's parser looks for the end of each anew."""
    if isinstance(content, bytes):
        end = content.rfind(b"-->") + 1
        return content[:end] + content[end:].replace(b"<!--", b"")
    end = content.rfind("-->") + 1
    return content[:end] + content[end:].replace("<!--", "")


def _markdown(soup: Any) -> str:
    from markitdown.converters import HtmlConverter

    content = io.BytesIO(str(soup).encode("utf-8", "replace"))
    how = {"escape_misc": True, "strong_em_symbol": ""}
    return str(HtmlConverter().convert(content, _info(".html"), **how).markdown)


def _of_mail(message: Any, number: int) -> Page:
    """Return a mail, with the texts and mails that are attached to it, and the names of all that is."""
    body = message.get_body(preferencelist=("plain", "html"))
    if body is not None and not _decoded(body).strip():  # a plain part that is empty
        body = message.get_body(preferencelist=("html",)) or body
    fields = {name: str(message[name]) for name in ("from", "to", "date") if message[name]}
    if sent := getattr(message["date"], "datetime", None):
        fields["date"] = sent.isoformat()  # so that mails can be filtered by it
    is_html = body is not None and body.get_content_type() == "text/html"
    texts = [] if body is None else [_of_part(body, is_html)]
    named = []
    for part in message.iter_attachments():
        if name := part.get_filename():
            named.append(re.sub(_MARKS, r"\\\1", name) if is_html else name)
        texts += [text] if (text := _of_part(part, is_html)) else []
    texts += [f"Attached: {', '.join(named)}"] if named else []
    title = str(message["subject"] or "")
    return Page(number, "\n\n".join(texts), title, "markdown" if is_html else "plain", fields)


def _decoded(part: Any) -> str:
    """Return the text of a part of a mail, in the encoding that it names, or that it is in."""
    from likewise.corpus.encodings import AUTO, named_encoding

    content = part.get_payload(decode=True) or b""
    for name in (part.get_content_charset("utf-8"), "utf-8"):
        with suppress(LookupError, UnicodeDecodeError):
            return str(content.decode(name))
    return str(content.decode(named_encoding(AUTO, content[: 1 << 16], len(content) < 1 << 16) or "latin-1", "replace"))


def _of_part(part: Any, is_markdown: bool) -> str:
    """Return the text of a part of a mail, or of the mail that it is; "" of any other part."""
    if part.get_content_type() == "message/rfc822":
        page = _of_mail(part.get_content(), 0)
        text, form = f"{page.title}\n\n{page.text}", page.form
    elif part.get_content_maintype() != "text":
        return ""
    elif part.get_content_type() == "text/html":
        text, form = _of_html(_decoded(part)).text, "markdown"
    else:
        text, form = _decoded(part).replace("\r\n", "\n"), "plain"
    return re.sub(_MARKS, r"\\\1", text) if is_markdown and form == "plain" else text


def _of_open_document(element: Any, depth: int = 0) -> Iterator[str]:
    """Yield the blocks of an element of an OpenDocument text as Markdown."""
    for child in element:
        name = child.tag.rpartition("}")[2]
        if name in ("h", "p"):
            level = next((value for key, value in child.attrib.items() if key.endswith("}outline-level")), "1")
            text = re.sub(_MARKS, r"\\\1", _inline(child)).strip()
            if text:
                yield f"{'#' * min(6, int(level))} {text}" if name == "h" else text
        elif name == "list":
            for item in child:
                yield from ("- " + block.replace("\n", "\n  ") for block in _of_open_document(item, depth + 1))
        elif name == "table":
            rows = [
                "| " + " | ".join(" ".join(_of_open_document(cell)) for cell in row if "cell" in cell.tag) + " |"
                for row in child.iter()
                if row.tag.endswith("}table-row")
            ]
            rule = ["|" + " --- |" * (rows[0].count(" | ") + 1)] if rows else []
            yield "\n".join([*rows[:1], *rule, *rows[1:]])
        elif not name.endswith("changes"):
            yield from _of_open_document(child, depth)


def _inline(element: Any) -> str:
    parts = [element.text or ""]
    for child in element:
        name = child.tag.rpartition("}")[2]
        if name in ("s", "tab", "line-break"):
            parts.append(" ")
        elif name == "note":
            parts.append(f" ({' '.join(''.join(child.itertext()).split())})")
        elif name != "annotation":
            parts.append(_inline(child))
        parts.append(child.tail or "")
    return "".join(parts)


def main() -> None:
    """Convert the files that standard input names, until it ends."""
    _end_with(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer

    def answer(**content: Any) -> None:
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


def without_edges(pages: list[list[str]]) -> list[str]:
    r"""Return the text of pages of blocks without headers and footers, and with divided words joined.

    A header or footer is a short block among the first or last two of a page that is, but for its numbers, on more than
    half of the pages, and on three at least. A word that a hyphen divides at a line's end is joined if it is elsewhere
    joined in the text, or if the hyphen is a soft one.

    >>> texts = ["Open the valve.", "Turn the valve-\nwheel.", "Then close the val-\nve."]
    >>> without_edges([["Manual", text, f"{i}/3"] for i, text in enumerate(texts)])
    ['Open the valve.', 'Turn the valve-wheel.', 'Then close the valve.']
    """

    def form(block: str) -> str:
        return re.sub(r"\d+", "0", " ".join(block.split()))

    edges = [{form(block) for block in [*page[:_EDGE], *page[-_EDGE:]]} for page in pages]
    seen = Counter(block for page in edges for block in page)
    often = {block for block, count in seen.items() if count >= 3 and count > len(pages) / 2}
    repeated = {block for block in often if len(block) <= _LONGEST_EDGE}
    kept = [
        [block for place, block in enumerate(page) if _EDGE <= place < len(page) - _EDGE or form(block) not in repeated]
        for page in pages
    ]
    kept = kept if any(kept) else pages  # short pages that differ in their numbers alone
    words = set(re.findall(r"\w+", " ".join(block for page in kept for block in page)))

    def joined(match: re.Match[str]) -> str:
        is_one = match[2] == "\u00ad" or match[1] + match[3] in words
        return match[1] + ("" if is_one else match[2]) + match[3]

    return [_HYPHEN.sub(joined, "\n\n".join(page)) for page in kept]


if __name__ == "__main__":
    from likewise.corpus import converter  # whose classes are those of other packages, too

    converter.main()
