"""The base class of formats of documents: their pages as blocks."""

import re
from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import ClassVar

from likewise.corpus.blocks import Block
from likewise.corpus.clean_text import without_invisible
from likewise.corpus.formats import Contents, Format, Page, Source
from likewise.corpus.passages import parted
from likewise.corpus.sentence_splitter import PARAGRAPH_LIMIT
from likewise.documents.markdown import linkless, markdown_blocks
from likewise.runs.whole_files import Values

MARKS = re.compile(r"([\\`*_{}\[\]<>#+\-.!|~=()&])")
"""A character that may be a mark of Markdown."""


class DocumentFormat(Format):
    """A format whose `read` yields pages."""

    holds: ClassVar[Contents] = "pages"
    is_text: ClassVar[bool] = False

    def read(self, source: Source) -> Iterator[Page]:
        """Yield the pages of a file."""
        raise NotImplementedError

    def blocks(self, source: Source) -> Iterator[tuple[Block, Values]]:
        """Yield the blocks with the number of a page instead of that of a line, each with the fields of its page."""
        for _, group in groupby(enumerate(_with_text(source, self.read(source))), _text_of):
            _, opening = next(group)
            title = " ".join(without_invisible(opening.title).split())
            pages = (page for _, page in group)  # noqa: B031 (once for each group)
            if opening.cells:
                yield from ((block, {}) for block in _table(opening, pages, title))
                continue
            lines = ((page.place, line) for page in chain([opening], pages) for line in _lines_of(page))
            is_written = opening.form == "written"
            for block in markdown_blocks(lines, title=title, place=opening.place, escaped=not is_written):
                yield linkless(block) if is_written else block, opening.fields

    def fields(self, source: Source) -> Iterator[Values]:
        """Yield the fields of each page."""
        yield from (page.fields for page in self.read(source) if page.form != "written")


def _text_of(numbered: tuple[int, Page]) -> tuple[object, ...]:
    """Return what is alike for the pages of one text."""
    number, page = numbered
    return page.title, page.form, page.goes_on, bool(page.cells) or page.goes_on or number


def _lines_of(page: Page) -> list[str]:
    lines = without_invisible(page.text).split("\n")
    if page.form == "plain":
        lines = [line if line.startswith("|") else MARKS.sub(r"\\\1", line.strip()) for line in lines]
    return [*lines, ""]


def _with_text(source: Source, pages: Iterable[Page]) -> Iterator[Page]:
    """Yield the pages of a document; unreadable parts are reported."""
    for page in pages:
        if page.left_out:
            source.report.left_out(source.path, page.place, page.left_out)
        if page.text.strip() or (page.title.strip() and not page.left_out):
            yield page


def _table(opening: Page, rows: Iterable[Page], sheet: str) -> Iterator[Block]:
    """Yield the rows of a sheet as tables, each below the header."""
    headings = (sheet,) if sheet else ()
    lines = ((page.place, without_invisible(page.text)) for page in chain([opening], rows))
    header = [next(lines), (opening.place, "|" + " --- |" * len(opening.cells))]
    tables = (
        Block("table", header + part, headings) for part in parted(lines, lambda line: len(line[1]), PARAGRAPH_LIMIT)
    )
    yield next(tables, Block("prose", header[:1], headings))
    yield from tables
