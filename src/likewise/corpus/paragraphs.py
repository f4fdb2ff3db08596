"""Paragraphs of any file, with their sentences and the headings above them."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

from likewise.corpus.articles import is_sentence_like, read_articles
from likewise.corpus.blocks import ITEM, Block, BlockKind
from likewise.corpus.formats import Source
from likewise.corpus.rows import texts_of_rows
from likewise.corpus.sentence_splitter import Placed, paragraphs_of, sentences_in_lines, sentences_of
from likewise.corpus.text_lines import Layout, text_layout, text_lines
from likewise.runs.whole_files import Values


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
    """Yield the paragraphs of a file in order, without other text of a wiki, which the report counts.

    Args:
        blocks: Whether to return other blocks of Markdown and documents, too: code, tables, and headings without text
            below. Otherwise the report counts them.
        split_lines: Whether to split a line with several sentences even if lines are sentences.
        join_rows: Whether to join the paragraphs of a row.
    """
    if source.holds in ("markdown", "pages"):
        for block, fields in source.format.blocks(source):
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
                    complete = [(line, sentence) for _, sentence in placed if is_sentence_like(sentence)]
                    if others := len(placed) - len(complete):
                        source.drop("markup", line, others)
                    yield Paragraph(complete, above)


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


def _sentences(block: Block) -> list[Placed]:
    """Return the sentences of prose; an entry of a list begins a new one."""
    lines = ((number, " ".join(line.split())) for number, line in block.lines)
    divided = chain.from_iterable(
        [(number, ""), (number, line)] if ITEM.match(line) else [(number, line)] for number, line in lines
    )
    return list(chain.from_iterable(sentences_in_lines(divided)))
