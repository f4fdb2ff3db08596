"""Paragraphs of any file, with their sentences and the headings above them."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import chain, groupby
from operator import itemgetter
from typing import Any, Literal

from likewise.corpus.decoding import READERS, Source, field_text, text_lines
from likewise.corpus.files import HEAD, read_head
from likewise.corpus.splitting import Placed, is_prose, is_wrapped, paragraphs_of, sentences_in_lines, sentences_of
from likewise.corpus.wiki import is_markup, is_sentence_like, read_articles

Layout = Literal["line", "prose", "wrapped"]
_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*$")
SAMPLE_LINES = 500
"""Lines of a file that decide how it is split."""


@dataclass(frozen=True, slots=True)
class Paragraph:
    """A paragraph of a file; where each line is a sentence, a line, or a piece of a very long one.

    Attributes:
        sentences: in order; an empty line or field has one that is empty.
        title: the title and the heading above it, "" without one; that of a row is among its fields.
        row: the fields of its row.
    """

    sentences: list[Placed]
    title: str = ""
    row: Mapping[str, Any] | None = None


def read_paragraphs(
    source: Source, *, headings: bool = True, split_lines: bool = False, join_rows: bool = False
) -> Iterator[Paragraph]:
    """Yield the paragraphs of a file in order, without what is no sentence in a wiki, which the report counts.

    Args:
        headings: take the headings of Markdown for titles; otherwise it is read as any text.
        split_lines: divide a line that holds several sentences also where lines are sentences.
        join_rows: give the paragraphs of a row as one.
    """
    if headings and source.has_headings:
        for title, lines in groupby(_below_headings(source), key=itemgetter(0)):
            for sentences in sentences_in_lines(line for _, line in lines):
                yield Paragraph(sentences, title)
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


def _below_headings(source: Source) -> Iterator[tuple[str, Placed]]:
    """Yield the lines of a Markdown file after the heading above each; a heading itself is an empty line."""
    title = ""
    for number, text in text_lines(source):
        heading = _HEADING.match(text.strip())
        title = heading.group(1) if heading else title
        yield title, (number, "" if heading else " ".join(text.split()))
