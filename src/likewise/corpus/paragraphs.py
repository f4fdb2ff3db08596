"""Paragraphs of any file, with their sentences and the headings above them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any, Literal

from likewise.corpus.files import HEAD, read_head
from likewise.corpus.foreign import pages_of
from likewise.corpus.lines_and_rows import READERS, Source, field_text, text_lines, without_invisible
from likewise.corpus.markdown import ITEM, Block, BlockKind, markdown_blocks, without_links
from likewise.corpus.sentence_splitter import (
    Placed,
    is_prose,
    is_wrapped,
    paragraphs_of,
    sentences_in_lines,
    sentences_of,
)
from likewise.corpus.wiki import is_markup, is_sentence_like, read_articles

Layout = Literal["line", "prose", "wrapped"]
_QUOTED = re.compile(r"(?:\s*>)+\s?")
SAMPLE_LINES = 500
"""Lines of a file that decide how it is split."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a file; where each line is a sentence, a line, or a piece of a very long one.

    Attributes:
        sentences: in order; an empty line or field has one that is empty. The lines of code or of a table, as they
            stand.
        title: the title and the heading above it, "" without one; that of a row is among its fields.
        row: the fields of its row.
        headings: those above it in Markdown or a document, the outermost first; `title` is the last of them.
        kind: what it is.
    """

    sentences: list[Placed]
    title: str = ""
    row: Mapping[str, Any] | None = None
    headings: tuple[str, ...] = ()
    kind: BlockKind = "prose"


def read_paragraphs(
    source: Source, *, blocks: bool = False, split_lines: bool = False, join_rows: bool = False
) -> Iterator[Paragraph]:
    """Yield the paragraphs of a file in order, without what is no sentence in a wiki, which the report counts.

    Args:
        blocks: give the code and the tables of Markdown, too, which otherwise the report counts.
        split_lines: divide a line that holds several sentences also where lines are sentences.
        join_rows: give the paragraphs of a row as one.
    """
    if source.is_markdown or source.kind == "document":
        for block in _blocks(source):
            title = block.headings[-1] if block.headings else ""
            if block.kind == "prose":
                yield Paragraph(_sentences(block), title, headings=block.headings)
            elif blocks:
                yield Paragraph(block.lines, title, headings=block.headings, kind=block.kind)
            else:
                source.drop("markup", block.lines[0][0], len(block.lines))
    elif source.kind == "text":
        layout = text_layout(source)
        if layout != "line":
            yield from map(Paragraph, prose_paragraphs(source, layout))
            return
        for line, text in text_lines(source):
            text = " ".join(text.split())
            yield Paragraph([(line, one) for one in sentences_of(text)] if split_lines else [(line, text)])
    elif source.kind in READERS:
        for line, row in READERS[source.kind](source):
            texts = paragraphs_of(field_text(source.path, line, row, source.options.field or "")) or [""]
            parts = [[(line, one) for one in sentences_of(text) or [""]] for text in texts]
            for sentences in [list(chain(*parts))] if join_rows else parts:
                yield Paragraph(sentences, row=row)
    else:
        for line, _, title, sections in read_articles(source):
            for heading, texts in sections:
                above = ": ".join(filter(None, (title, heading)))
                for text in texts:
                    found = [(line, one) for one in sentences_of(text)]
                    kept = [(line, one) for _, one in found if is_sentence_like(one)]
                    if others := len(found) - len(kept):
                        source.drop("markup", line, others)
                    yield Paragraph(kept, above)


def text_layout(source: Source) -> Layout:
    """Return how a file of text is written, from its first lines and `options.split`."""
    options = source.options
    head = read_head(source.path, options)
    lines = [" ".join(line.split()) for line in head.decode(options.codec, "replace").split("\n")]
    if len(head) == HEAD and len(lines) > 1:
        lines.pop()  # it is cut
    lines = lines[:SAMPLE_LINES]
    known = options.split == "prose"
    if options.split == "line" or not (known or is_prose(lines)):
        return "line"
    return "wrapped" if is_wrapped(lines, known_prose=known) else "prose"


def prose_paragraphs(source: Source, layout: Layout) -> Iterator[list[Placed]]:
    """Yield the sentences of each paragraph of a text; a paragraph past the limit is given in several lists."""

    def with_ends() -> Iterator[Placed]:
        last = 0
        for number, text in text_lines(source):
            text = " ".join(text.split())
            if is_markup(text):
                source.drop("markup", number)
                text = ""
            if layout == "prose" and number != last:
                yield number, ""
            yield number, text
            last = number

    return sentences_in_lines(with_ends())


def _blocks(source: Source) -> Iterator[Block]:
    """Yield the blocks of a Markdown file, or of a document, with the number of a page in place of a line's."""
    if source.is_markdown:
        yield from markdown_blocks(text_lines(source))
    elif source.document == ".pdf":  # it has no headings, and a line that begins with # is none
        for number, text in pages_of(source.path, ".pdf", source.options):
            for paragraph in without_invisible(text).split("\n\n"):
                lines = [(number, line) for line in paragraph.split("\n")]
                kind: BlockKind = "table" if all(line.startswith("|") for _, line in lines) else "prose"
                yield Block(kind, lines)
    else:
        pages = pages_of(source.path, source.document, source.options)
        yield from markdown_blocks(  # a page's end is a block's
            (number, line) for number, text in pages for line in [*without_invisible(text).split("\n"), ""]
        )


def _sentences(block: Block) -> list[Placed]:
    """Return the sentences of prose; an entry of a list begins a new one."""
    lines = ((number, " ".join(_QUOTED.sub("", without_links(line), count=1).split())) for number, line in block.lines)
    divided = chain.from_iterable(
        [(number, ""), (number, line)] if ITEM.match(line) else [(number, line)] for number, line in lines
    )
    found = chain.from_iterable(sentences_in_lines(divided))
    return [(number, without_links(text)) for number, text in found]  # of a link over two lines
