"""The format of MediaWiki's dumps, whose articles come through gensim."""

import re
from collections.abc import Iterator
from xml.etree.ElementTree import ParseError
from xml.parsers.expat import ErrorString

from likewise.corpus.articles import Article, Sections, clean_markup, heading_in
from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.files import format_suffix, numbered_lines
from likewise.corpus.formats import Format, Row, Source

MIN_ARTICLE_CHARACTERS = 200
"""Shorter pages are stubs and are skipped, as gensim's segment_wiki does."""

LISTS_ONLY = frozenset(
    {"see also", "references", "external links", "further reading", "notes", "bibliography", "sources"}
)
"""Sections that hold lists of works and links, never prose."""

_NAMESPACE = "http://www.mediawiki.org/xml/export-0.10/"  # gensim insists on one
_PAGE_ID = re.compile(r"<id>\s*(\d+)\s*</id>")


class Dump(Format):
    """Dumps of MediaWiki."""

    name = "wiki"
    suffixes = (".xml",)
    holds = "articles"

    def accepts(self, source: Source) -> bool:
        """Return whether a file is called XML, or begins as a dump does."""
        return format_suffix(source.path) in self.suffixes or _is_dump(source)

    def prepare(self, source: Source) -> None:
        """Check that a file is a dump.

        Raises:
            CorpusError: It is other XML.
        """
        if not _is_dump(source):
            raise CorpusError(
                f"{source.path}:1: this XML is not a MediaWiki dump (no <mediawiki> at the top): convert it to text"
            )

    def read(self, source: Source) -> Iterator[Row]:
        """Yield the articles, whose sections are pairs of a heading and its paragraphs without markup."""
        for line, id_, title, sections in _read_dump(source):
            yield line, {"id": id_, "title": title, "sections": sections}


def sections_of(heading: str, body: str) -> Sections:
    """Split a top-level section at its sub-headings; each line is a paragraph, cleaned of markup.

    In `body`, wiki lists and sub-headings are still marked by characters at the beginning of a line.
    """
    sections: Sections = [(heading, [])]
    for line in body.split("\n"):
        if (below := heading_in(line)) is not None:
            sections.append((clean_markup(below), []))
        elif sections[-1][0].lower() not in LISTS_ONLY and (text := clean_markup(line)):
            sections[-1][1].append(text)
    return [section for section in sections if section[1]]


def read_pages(source: Source) -> Iterator[tuple[int, str]]:
    """Yield (line number, XML) of each page of a dump; <page> and </page> must be on separate lines.

    The file is read by lines instead of an XML parser, which limits the memory to one page and preserves line numbers.
    """
    path = source.path
    page: list[str] | None = None
    began = number = 0
    seen = False
    for number, raw in numbered_lines(path, source.options, source.tick):
        tag = raw.strip() if len(raw) < 200 else b""
        if tag == b"<page>":
            page, began, seen = [f'<page xmlns="{_NAMESPACE}">'], number, True
        elif page is not None:
            page.append(raw.decode("utf-8", "replace"))
            if tag == b"</page>":
                yield began, "".join(page)
                page = None
    if page is not None:
        raise CorpusError(f"{path}:{number}: the dump ends within the page of line {began}: copy or download it again")
    if not seen:
        raise CorpusError(f"{path}:{number}: the dump has no <page> on a separate line: export it again")


def _read_dump(source: Source) -> Iterator[Article]:
    """Yield each article in order, through gensim's segment_wiki.

    Its page function is called in this process: its pool of workers hides which page failed, and fails where
    a program has no main module. Redirects, stubs and pages that are not articles are skipped.
    """
    path = source.path
    try:
        from gensim.scripts.segment_wiki import IGNORED_NAMESPACES, segment
    except ImportError:
        raise CorpusError(f'{path}: a MediaWiki dump needs gensim: pip install "likewise[wiki]"') from None
    ignored = tuple(f"{name}:" for name in IGNORED_NAMESPACES)
    for line, xml in read_pages(source):
        try:
            title, parts = segment(xml)
        except ParseError as error:
            below, _ = error.position
            raise CorpusError(
                f"{path}:{line + below - 1}: the page of line {line} is not XML ({ErrorString(error.code)}): copy or "
                f"download the dump again"
            ) from None
        except AttributeError:
            raise CorpusError(f"{path}:{line}: this page has no title, ns or text: export the dump again") from None
        if title.startswith(ignored) or not parts or parts[0][1].lstrip().lower().startswith("#redirect"):
            continue
        if sum(len(body.strip()) for _, body in parts) < MIN_ARTICLE_CHARACTERS:
            continue
        parts[0] = ("", parts[0][1])  # gensim calls the opening 'Introduction'
        page_id = _PAGE_ID.search(xml)
        sections = [part for heading, body in parts for part in sections_of(clean_markup(heading), body)]
        yield line, page_id.group(1) if page_id else str(line), title, sections


def _is_dump(source: Source) -> bool:
    begin = source.start
    return begin.startswith(b"<mediawiki") or (begin.startswith(b"<?xml") and b"<mediawiki" in begin)
