"""The base class of formats of documents: their pages as blocks."""

from collections.abc import Iterable, Iterator
from itertools import chain, groupby
from typing import ClassVar

from likewise.corpus.blocks import Block, BlockKind
from likewise.corpus.clean_text import without_invisible
from likewise.corpus.formats import Contents, Format, Page, Source
from likewise.corpus.sentence_splitter import PARAGRAPH_LIMIT, Placed
from likewise.documents.markdown import linkless, markdown_blocks, or_title
from likewise.runs.whole_files import Values


class DocumentFormat(Format):
    """A format whose `read` yields pages."""

    holds: ClassVar[Contents] = "pages"
    is_text: ClassVar[bool] = False

    def read(self, source: Source) -> Iterator[Page]:
        """Yield the pages of a file."""
        raise NotImplementedError

    def blocks(self, source: Source) -> Iterator[tuple[Block, Values]]:
        """Yield the blocks with the number of a page instead of that of a line, each with the fields of its page."""
        pages = _with_text(source, self.read(source))
        for (title, _, _), group in groupby(pages, lambda page: (page.title, bool(page.cells), page.goes_on)):
            title = " ".join(without_invisible(title).split())
            opening = next(group)
            whole = chain([opening], group)  # noqa: B031 (once for each group)
            if opening.goes_on:
                yield from _one_text(whole, title, opening)
                continue
            if opening.cells:
                yield from ((block, {}) for block in _table(whole, title))
                continue
            for page in whole:
                placed = [(page.place, line) for line in without_invisible(page.text).split("\n")]
                if page.form == "markdown":
                    blocks = markdown_blocks(placed, titles=[title], escaped=True)
                else:
                    blocks = _plain(placed, title)
                yield from ((block, page.fields) for block in or_title(blocks, page.place, title))

    def fields(self, source: Source) -> Iterator[Values]:
        """Yield the fields of each page."""
        yield from (page.fields for page in self.read(source) if page.form != "written")


def _one_text(pages: Iterable[Page], title: str, opening: Page) -> Iterator[tuple[Block, Values]]:
    """Yield the blocks of pages of Markdown below each other's headings."""
    is_escaped = opening.form == "markdown"
    lines = ((page.place, line) for page in pages for line in [*without_invisible(page.text).split("\n"), ""])
    for block in markdown_blocks(lines, titles=[title], escaped=is_escaped):
        yield block if is_escaped else linkless(block), opening.fields


def _with_text(source: Source, pages: Iterable[Page]) -> Iterator[Page]:
    """Yield the pages of a document; what could not be read of one is told."""
    for page in pages:
        if page.left_out:
            source.report.left_out(source.path, page.place, page.left_out)
        if page.text.strip() or (page.title.strip() and not page.left_out):
            yield page


def _plain(lines: Iterable[Placed], title: str) -> Iterator[Block]:
    """Yield the paragraphs of lines between blank ones, and their tables, whose rows begin with a bar."""
    headings = (title,) if title else ()

    def kind_of(placed: Placed) -> BlockKind | None:
        return None if not placed[1].strip() else "table" if placed[1].startswith("|") else "prose"

    for kind, group in groupby(lines, kind_of):
        if kind is not None:
            block_lines = list(group)
            yield Block("prose" if len(block_lines) == 1 else kind, block_lines, headings)


def _table(rows: Iterable[Page], sheet: str) -> Iterator[Block]:
    """Yield the rows of a sheet as tables, each below the header."""
    headings = (sheet,) if sheet else ()
    header: list[Placed] = []
    table_rows: list[Placed] = []
    size = 0
    for page in rows:
        line = without_invisible(page.text)
        if not header:
            header = [(page.place, line), (page.place, "|" + " --- |" * len(page.cells))]
            continue
        table_rows.append((page.place, line))
        size += len(line)
        if size > PARAGRAPH_LIMIT:
            yield Block("table", [*header, *table_rows], headings)
            table_rows, size = [], 0
    if table_rows:
        yield Block("table", [*header, *table_rows], headings)
    elif header:
        yield Block("prose", header[:1], headings)
