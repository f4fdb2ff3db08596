"""Decoding of lines to text, the layout of plain text, and the formats of lines: plain text and Markdown."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Literal

from likewise.corpus.clean_text import without_invisible
from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.encodings import AUTO, LineDecoder
from likewise.corpus.files import HEAD, LINE_LIMIT, numbered_lines, read_head
from likewise.corpus.formats import Format, Line, Source
from likewise.corpus.sentence_splitter import is_prose, is_wrapped

Layout = Literal["line", "prose", "wrapped"]
SAMPLE_LINES = 500
"""Number of lines of a file that decide how it is split."""
_FIRST_CHECK = 1000
"""Number of lines after which the share of undecodable ones is first looked at."""


class PlainText(Format):
    """Plain text, and whatever no other format accepts."""

    name = "text"
    suffixes = (".txt", ".text")
    holds = "text"

    def accepts(self, source: Source) -> bool:
        """Return that it is text: it is the last of the formats."""
        return True

    def read(self, source: Source) -> Iterator[Line]:
        """Yield the lines."""
        return text_lines(source)


def text_lines(source: Source) -> Iterator[Line]:
    """Yield (line number, text) of each line, including blank ones; a very long line is split into pieces.

    Undecodable lines are counted in the report and left out; if they are half or more, the file is rejected.
    """
    begun = ""  # the first part of a word that a soft hyphen divides at the end of a line
    for number, text in decoded_lines(source, LINE_LIMIT):
        text = f"{begun}{text.lstrip()}" if begun else text
        begun = ""
        if text.rstrip().endswith("\u00ad"):
            text, _, begun = text.rstrip().rpartition(" ")
            if not text.strip():  # no blank line, which would end a paragraph
                continue
        yield number, without_invisible(text)
    if begun:
        yield number, without_invisible(begun)


def decoded_lines(source: Source, limit: int) -> Iterator[Line]:
    """Yield (line number, text) of each line with its line end; a line longer than `limit` bytes is divided.

    Undecodable lines are counted in the report and left out; if they are half or more, the file is rejected.
    """
    options, path = source.options, source.path
    good = bad = first_bad = 0
    check_at = _FIRST_CHECK  # a big file is refused early

    def check() -> None:
        if bad and bad >= good:
            others = "latin-1" if options.encoding.lower().replace("-", "") in ("utf8", "ascii") else "utf-8"
            what = f"{bad} of {good + bad} lines are not {options.encoding}: omit --encoding, or give the right one"
            if options.encoding == AUTO:
                what = f"{bad} of {good + bad} lines have no encoding that can be detected: give it"
                others = "cp850"
            raise CorpusError(f"{path}:{first_bad}: unreadable encoding: {what}, for example --encoding {others}")

    decode = LineDecoder(options.encoding)
    odd: list[int] = []

    def opened(encoding: str) -> None:
        if options.encoding == AUTO and encoding != "utf-8":
            source.report.note(f"{path}: read as {encoding}, since it is not UTF-8")

    for number, raw in numbered_lines(path, options, source.tick, limit, opened):
        text = None
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError:
            with suppress(UnicodeDecodeError):
                text = decode(raw)
                odd.append(number)
        if text is None:
            bad += 1
            first_bad = first_bad or number
            source.drop("undecodable", number)
        else:
            good += not text.isspace()
            yield number, text
        if good + bad == check_at:
            check_at *= 10
            check()
    check()
    if odd:
        source.report.note(f"{path}:{odd[0]}: {len(odd)} of its lines are not UTF-8, and are read as {decode.encoding}")
    if bad:
        known = decode.encoding or options.encoding
        source.report.note(
            f"{path}:{first_bad}: {bad} of its lines are skipped, because they are not {known}: give --encoding"
        )


def text_layout(source: Source) -> Layout:
    """Return how a file of text is written, from its first lines and `options.split`."""
    options = source.options
    head = read_head(source.path, options)
    lines = [" ".join(line.split()) for line in head.decode("utf-8", "replace").split("\n")]
    if len(head) == HEAD and len(lines) > 1:
        lines.pop()  # it is cut
    lines = lines[:SAMPLE_LINES]
    known = options.split == "prose"
    if options.split == "line" or not (known or is_prose(lines)):
        return "line"
    return "wrapped" if is_wrapped(lines, known_prose=known) else "prose"
