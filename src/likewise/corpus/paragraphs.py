"""Paragraphs of any file, with their sentences and the headings above them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain, groupby
from typing import cast

from likewise.corpus.clean_text import without_invisible
from likewise.corpus.formats import Page, Source
from likewise.corpus.markdown import ITEM, Block, BlockKind, front_matter, markdown_blocks, without_links
from likewise.corpus.rows import read_rows, texts_of_rows
from likewise.corpus.sentence_splitter import (
    PARAGRAPH_LIMIT,
    Placed,
    paragraphs_of,
    sentences_in_lines,
    sentences_of,
)
from likewise.corpus.text_lines import Layout, MarkedText, text_layout, text_lines
from likewise.corpus.wiki import is_sentence_like, read_articles
from likewise.runs.whole_files import Values

_LONG_FIELD = 60  # characters


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a file; where each line is a sentence, a line, or a piece of a very long one.

    Attributes:
        sentences: Sentences in order, with an empty sentence for an empty line or field; or the unchanged lines of code
            or of a table.
        title: Title and heading above it, "" without one; the title of a row is among its fields.
        row: Fields of its row.
        headings: Headings above it in Markdown or a document, the outermost first; `title` is the last of them.
        kind: Kind of the block.
        fields: Metadata of its document: the front matter of Markdown, or the sender and date of a mail.
    """

    sentences: list[Placed]
    title: str = ""
    row: Values | None = None
    headings: tuple[str, ...] = ()
    kind: BlockKind = "prose"
    fields: Values = field(default_factory=dict)


def read_paragraphs(
    source: Source, *, blocks: bool = False, split_lines: bool = False, join_rows: bool = False
) -> Iterator[Paragraph]:
    """Yield the paragraphs of a file in order, without what is no sentence in a wiki, which the report counts.

    Args:
        blocks: Whether to return other blocks of Markdown and documents, too: code, tables, and headings without text
            below. Otherwise the report counts them.
        split_lines: Whether to split a line with several sentences even if lines are sentences.
        join_rows: Whether to join the paragraphs of a row.
    """
    if source.holds in ("markdown", "pages"):
        for block, fields in _blocks(source):
            title = block.headings[-1] if block.headings else ""
            if block.kind == "prose":
                yield Paragraph(_sentences(block), title, headings=block.headings, fields=fields)
            elif blocks:
                yield Paragraph(block.lines, title, headings=block.headings, kind=block.kind, fields=fields)
            else:
                source.drop("markup", block.lines[0][0], len(block.lines))
    elif source.holds == "text":
        layout = text_layout(source)
        if layout != "line":
            yield from map(Paragraph, _prose(source, layout))
            return
        for line, text in text_lines(source):
            text = " ".join(text.split())
            yield Paragraph([(line, sentence) for sentence in sentences_of(text)] if split_lines else [(line, text)])
    elif source.holds == "rows":
        for line, row, text in texts_of_rows(source):
            texts = paragraphs_of(text) or [""]
            parts = [[(line, sentence) for sentence in sentences_of(text) or [""]] for text in texts]
            for sentences in [list(chain(*parts))] if join_rows else parts:
                yield Paragraph(sentences, row=row)
    else:
        for line, _, title, sections in read_articles(source):
            for heading, texts in sections:
                above = ": ".join(filter(None, (title, heading)))
                for text in texts:
                    placed = [(line, sentence) for sentence in sentences_of(text)]
                    kept = [(line, sentence) for _, sentence in placed if is_sentence_like(sentence)]
                    if others := len(placed) - len(kept):
                        source.drop("markup", line, others)
                    yield Paragraph(kept, above)


def read_fields(source: Source) -> Iterator[Values]:
    """Yield the fields of each row of a file, or of a document: its front matter, or of each mail."""
    if source.holds == "rows":
        yield from (row for _, row in read_rows(source))
    elif source.holds == "markdown":
        yield front_matter(text_lines(source))[0]
    elif source.holds == "pages":
        yield from (page.fields for page in _pages(source) if page.form != "written")


def _prose(source: Source, layout: Layout) -> Iterator[list[Placed]]:
    """Yield the sentences of each paragraph of a text; a paragraph past the limit is given in several lists."""

    def with_ends() -> Iterator[Placed]:
        last = 0
        for number, text in text_lines(source):
            if layout == "prose" and number != last:
                yield number, ""
            yield number, " ".join(text.split())
            last = number

    return sentences_in_lines(with_ends())


def _blocks(source: Source) -> Iterator[tuple[Block, Values]]:
    """Yield the blocks of a marked text, or of a document with page numbers instead of line numbers.

    Each comes with what its document says of itself.
    """
    if source.holds == "markdown":
        lines = cast(Iterator[Placed], source.format.read(source))
        fields, first = front_matter(lines)
        title = str(fields.get("title") or "")
        escaped = isinstance(source.format, MarkedText) and source.format.escaped
        for value in (", ".join(map(str, one)) if isinstance(one, list) else one for one in fields.values()):
            if isinstance(value, str) and value != title and len(value) > _LONG_FIELD:  # an abstract is text, too
                yield Block("prose", [(1, " ".join(value.split()))], (title,) if title else ()), fields
        blocks = markdown_blocks(chain(first, lines), titles=[title], escaped=escaped)
        yield from ((block if escaped else _without_links(block), fields) for block in _or_title(blocks, 1, title))
        return
    pages = _with_text(source, _pages(source))
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
            yield from ((block, page.fields) for block in _or_title(blocks, page.place, title))


def _one_text(pages: Iterable[Page], title: str, opening: Page) -> Iterator[tuple[Block, Values]]:
    """Yield the blocks of pages of Markdown below each other's headings."""
    is_escaped = opening.form == "markdown"
    lines = ((page.place, line) for page in pages for line in [*without_invisible(page.text).split("\n"), ""])
    for block in markdown_blocks(lines, titles=[title], escaped=is_escaped):
        yield block if is_escaped else _without_links(block), opening.fields


def _pages(source: Source) -> Iterator[Page]:
    return cast(Iterator[Page], source.format.read(source))


def _or_title(blocks: Iterator[Block], place: int, title: str) -> Iterator[Block]:
    """Yield blocks, or the title where there are none below it."""
    first = next(blocks, None)
    if first is not None:
        yield first
        yield from blocks
    elif title:
        yield Block("heading", [(place, title)])


def _with_text(source: Source, pages: Iterable[Page]) -> Iterator[Page]:
    """Yield the pages of a document; unreadable parts are reported."""
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
            held = list(group)
            yield Block("prose" if len(held) == 1 else kind, held, headings)


def _table(rows: Iterable[Page], sheet: str) -> Iterator[Block]:
    """Yield the rows of a sheet as tables, each below the header."""
    headings = (sheet,) if sheet else ()
    header: list[Placed] = []
    held: list[Placed] = []
    size = 0
    for page in rows:
        line = without_invisible(page.text)
        if not header:
            header = [(page.place, line), (page.place, "|" + " --- |" * len(page.cells))]
            continue
        held.append((page.place, line))
        size += len(line)
        if size > PARAGRAPH_LIMIT:
            yield Block("table", [*header, *held], headings)
            held, size = [], 0
    if held:
        yield Block("table", [*header, *held], headings)
    elif header:
        yield Block("prose", header[:1], headings)


def _without_links(block: Block) -> Block:
    """Return a block of Markdown that someone has written with the words of links in their place."""
    if block.kind != "prose" or not any("](" in line or "][" in line for _, line in block.lines):
        return block
    return Block("prose", [(number, without_links(line)) for number, line in block.lines], block.headings)


def _sentences(block: Block) -> list[Placed]:
    """Return the sentences of prose; an entry of a list begins a new one."""
    lines = ((number, " ".join(line.split())) for number, line in block.lines)
    divided = chain.from_iterable(
        [(number, ""), (number, line)] if ITEM.match(line) else [(number, line)] for number, line in lines
    )
    return list(chain.from_iterable(sentences_in_lines(divided)))
