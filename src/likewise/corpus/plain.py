"""Sentences of plain text: one sentence per line, or paragraphs of prose."""

import re
from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter
from pathlib import Path

from likewise.corpus.decoding import text_lines
from likewise.corpus.files import HEAD, Tick, read_head
from likewise.corpus.options import CorpusOptions
from likewise.corpus.report import CorpusReport
from likewise.corpus.splitting import Paragraph, is_prose, is_wrapped
from likewise.corpus.wiki import is_markup

_HEADING = re.compile(r"#{1,6}\s+(.+?)\s*#*$")
SAMPLE_LINES = 500
"""Lines of a file that decide how it is split."""

Placed = tuple[int, str]
"""A sentence after the number of the line where it begins."""


def text_layout(path: Path, options: CorpusOptions) -> tuple[bool, bool]:
    """Return (is it prose, are its lines wrapped) of a file, from its first lines and `options.split`."""
    head = read_head(path, options)
    lines = [" ".join(line.split()) for line in head.decode(options.codec, "replace").split("\n")]
    if len(head) == HEAD and len(lines) > 1:
        lines.pop()  # it is cut
    lines = lines[:SAMPLE_LINES]
    if options.split == "prose":
        return True, is_wrapped(lines, known_prose=True)
    prose = options.split == "auto" and is_prose(lines)
    return prose, prose and is_wrapped(lines)


def text_sentences(
    path: Path, options: CorpusOptions, report: CorpusReport, tick: Tick | None = None
) -> Iterator[Placed]:
    """Yield (line, sentence) of a file; with one sentence per line, blank lines too. The report counts losses."""
    prose, wrapped = text_layout(path, options)
    report.files[str(path)] = "prose" if prose else "line"
    lines = text_lines(path, options, report, tick)
    if prose:
        for sentences in _paragraphs(path, lines, wrapped, report):
            yield from sentences
        return
    for number, pieces in groupby(lines, key=itemgetter(0)):
        held = [text for _, text in islice(pieces, 2)]
        if len(held) == 1:
            yield number, held[0]
        else:  # longer than what is held of a line at once
            report.read += 1
            report.drop("too long", str(path), number)


def text_paragraphs(path: Path, options: CorpusOptions, report: CorpusReport) -> Iterator[list[Placed]]:
    """Yield the paragraphs of a file as lists of (line, sentence); blank lines end one where a line is a sentence."""
    prose, wrapped = text_layout(path, options)
    lines = text_lines(path, options, report)
    if prose:
        yield from _paragraphs(path, lines, wrapped, report)
        return
    stripped = ((number, " ".join(text.split())) for number, text in lines)
    for filled, block in groupby(stripped, key=lambda line: bool(line[1])):
        if filled:
            yield list(block)


def markdown_paragraphs(path: Path, options: CorpusOptions) -> Iterator[tuple[str, list[Placed]]]:
    """Yield each paragraph of a Markdown file as (line, sentence)s, after the heading above it."""
    title, block = "", Paragraph()
    for number, text in text_lines(path, options, CorpusReport()):
        heading = _HEADING.match(text.strip())
        if text.strip() and not heading:
            if sentences := block.add(number, " ".join(text.split())):
                yield title, sentences
            continue
        if sentences := block.end():
            yield title, sentences
        title = heading.group(1) if heading else title
    if sentences := block.end():
        yield title, sentences


def _paragraphs(
    path: Path, lines: Iterator[tuple[int, str]], wrapped: bool, report: CorpusReport
) -> Iterator[list[Placed]]:
    """Yield each paragraph's sentences; a paragraph past the limit is given in several lists."""
    paragraph = Paragraph()
    last = 0
    for number, text in lines:
        text = " ".join(text.split())
        if is_markup(text):
            report.read += 1
            report.drop("markup", str(path), number)
            text = ""
        if (not text or (not wrapped and number != last)) and (sentences := paragraph.end()):
            yield sentences
        if text and (sentences := paragraph.add(number, text)):
            yield sentences
        last = number
    if sentences := paragraph.end():
        yield sentences
