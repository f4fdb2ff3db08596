"""The blocks of Markdown, line by line: prose, code and tables, each with the headings above it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Literal

from likewise.corpus.sentence_splitter import PARAGRAPH_LIMIT, Placed

BlockKind = Literal["prose", "code", "table"]

_HEADING = re.compile(r" {0,3}(#{1,6})(?:\s|$)")
_UNDERLINE = re.compile(r" {0,3}(?:(=+)|-+)\s*$")
_FENCE = re.compile(r"[\s>]*(`{3,}|~{3,})([^`]*)$")
_DELIMITER = re.compile(r"\s*\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?\s*$")
_COMMENT = re.compile(r"\s*<!--.*-->\s*$")
_INDENTED = re.compile(r"(?: {4}|\t)\s*\S")
_LINK = re.compile(r"!?\[([^\[\]]{0,500})\](?:\([^()\s]{0,2000}(?:\s\"[^\"]{0,500}\")?\)|\[[^\[\]]{0,500}\])")
_ATTRIBUTES = re.compile(r"\s*\{[#.:][^}]*\}\s*$")
_FRONT_LINES = 200
_LONGEST_HEADING = 300  # characters; a longer line is none
_TITLE = re.compile(r"title:\s*(.+?)\s*$")

ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,9}[.)])\s+\S")
"""The beginning of an entry of a list."""


@dataclass(frozen=True)
class Block:
    """A part of a Markdown text.

    Attributes:
        kind: what it is.
        lines: as they stand, each with its number.
        headings: above it, the outermost first.
    """

    kind: BlockKind
    lines: list[Placed]
    headings: tuple[str, ...] = ()


def markdown_blocks(lines: Iterable[Placed]) -> Iterator[Block]:
    """Yield the blocks of Markdown in order.

    Fenced and indented code and tables are one block each, a paragraph or a list another; a block past
    `PARAGRAPH_LIMIT` characters is given in several. The title in a file's front matter is the outermost heading.

    >>> text = ["# Pumps", "Open the valve.", "```sh", "# not a heading", "```"]
    >>> for block in markdown_blocks(enumerate(text, 1)):
    ...     print(block)
    Block(kind='prose', lines=[(2, 'Open the valve.')], headings=('Pumps',))
    Block(kind='code', lines=[(3, '```sh'), (4, '# not a heading'), (5, '```')], headings=('Pumps',))
    """
    return _Blocks().of((number, line.rstrip()) for number, line in lines)


class _Blocks:
    """The state between two lines: what is open, and the headings above."""

    def __init__(self) -> None:
        self.headings: list[tuple[int, str]] = []
        self.kind: BlockKind = "prose"
        self.held: list[Placed] = []
        self.size = 0
        self.fence = ""  # the signs that opened it
        self.in_list = False
        self.after_blank = True

    def of(self, lines: Iterator[Placed]) -> Iterator[Block]:
        for number, line in self._front(lines):
            yield from self._next(number, line)
            self.after_blank = not line.strip()
        yield from self._done()

    def _front(self, lines: Iterator[Placed]) -> Iterator[Placed]:
        """Yield the lines after the front matter, whose title becomes a heading."""
        held: list[Placed] = []
        for number, line in lines:
            held.append((number, line))
            if len(held) == 1 and line != "---":
                break
            if len(held) > 1 and line in ("---", "..."):
                found = next((found for _, one in held if (found := _TITLE.match(one))), None)
                if found:
                    self.headings = [(0, plain(found[1].strip("\"'")))]
                held = []
                break
            if len(held) > _FRONT_LINES:
                break
        yield from chain(held, lines)

    def _next(self, number: int, line: str) -> Iterator[Block]:
        if self.fence:
            self._hold(number, line)
            close = line.strip(" \t>")
            if len(close) >= len(self.fence) and set(close) == {self.fence[0]}:
                self.fence = ""
                yield from self._done()
            elif self.size > PARAGRAPH_LIMIT:
                yield from self._done("code")
            return
        if (fence := _FENCE.match(line)) and not (fence[1][0] == "`" and "`" in fence[2]):
            yield from self._done("code")
            self.fence = fence[1]
            self._hold(number, line)
        elif len(line) <= _LONGEST_HEADING and (heading := _HEADING.match(line)):
            yield from self._done()
            text = line[heading.end() :].strip()
            self._head(len(heading[1]), text.rstrip("#") if text.endswith((" #", "##")) or text == "#" else text)
        elif not line.strip() or _COMMENT.match(line):
            if self.kind != "code" or not self.held:  # a blank line does not end indented code
                yield from self._done()
            else:
                self._hold(number, "")
        elif self.kind == "code" and self.held and not _INDENTED.match(line):
            yield from self._done()
            yield from self._next(number, line)
        elif self.kind == "prose" and not self.held and self.after_blank and not self.in_list and _INDENTED.match(line):
            self.kind = "code"
            self._hold(number, line)
        elif self.kind == "prose" and self.held and is_delimiter(line) and "|" in self.held[-1][1]:
            header = self.held.pop()
            yield from self._done("table")
            self._hold(*header)
            self._hold(number, line)
        elif self.kind == "prose" and len(self.held) == 1 and not self.in_list and (under := _UNDERLINE.match(line)):
            text = self.held.pop()[1]
            yield from self._done()
            self._head(1 if under[1] else 2, text)
        else:
            if self.kind == "prose":
                self.in_list = bool(ITEM.match(line)) or (self.in_list and (line[0].isspace() or bool(self.held)))
            self._hold(number, line)
            if self.size > PARAGRAPH_LIMIT:
                yield from self._done(self.kind)

    def _hold(self, number: int, line: str) -> None:
        self.held.append((number, line))
        self.size += len(line) + 1

    def _head(self, level: int, text: str) -> None:
        self.headings = [one for one in self.headings if one[0] < level]
        text = text[:_LONGEST_HEADING]
        text = plain(text)
        if text and text.lower() not in [one.lower() for _, one in self.headings]:
            self.headings.append((level, text))
        self.in_list = False

    def _done(self, following: BlockKind = "prose") -> Iterator[Block]:
        """Yield what is held, if it is anything, and begin a block of another kind."""
        held = self.held
        while held and not held[-1][1].strip():
            held.pop()
        if held:
            yield Block(self.kind, held, tuple(text for _, text in self.headings))
        self.kind, self.held, self.size = following, [], 0


def is_delimiter(line: str) -> bool:
    """Return whether a line is the one below a table's header.

    >>> is_delimiter("| --- | ---: |"), is_delimiter("| a - b |")
    (True, False)
    """
    return "|" in line and "-" in line and _DELIMITER.match(line) is not None


def plain(text: str) -> str:
    """Return a line of Markdown without the marks of links, code and emphasis.

    >>> plain("Run `make` on **[two machines](many.md)** {#many}")
    'Run make on two machines'
    """
    text = _ATTRIBUTES.sub("", without_links(text)).replace("`", "")
    return " ".join(re.sub(r"\*\*?(.+?)\*\*?", r"\1", text).split())


def without_links(text: str) -> str:
    """Return Markdown with the words of a link, or of a picture, in its place.

    >>> without_links('See [the *list*](a.md "A list") and ![](b.png).')
    'See the *list* and .'
    """
    return _LINK.sub(r"\1", text)
