"""The blocks of Markdown, by markdown-it-py: prose, code and tables, each with the headings above it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from likewise.corpus.blocks import Block, BlockKind
from likewise.corpus.passages import parted
from likewise.corpus.sentence_splitter import PARAGRAPH_LIMIT, Placed
from likewise.documents.inline_markdown import by_lines, plain, unescaped, without_links

_PIECE = 1 << 16
"""Characters that are parsed at a time."""
_LONGEST_LINE = 1 << 12
"""Characters of a line beyond which it is prose, whatever it begins with."""
_LONGEST_HEADING = 300
_EMBEDDED = re.compile(
    r"(?:^ {0,3}\[[^\[\]]{1,500}\]: {0,9}<?)?data:[\w.+-]{1,100}/[\w.+-]{1,100}(?:;[\w=.+-]{1,100}){0,9};base64,"
    r"[A-Za-z0-9+/=%]*>?"
)
"""A picture that is written into the text itself."""
_CODE_OR_COMMENT = re.compile(r"(`[^`\n]*`)|<!--.*?(?:-->|\Z)", re.DOTALL)
_TAGS = re.compile(r"</?[A-Za-z][^<>]*>")


def markdown_blocks(
    lines: Iterable[Placed], *, title: str = "", place: int = 1, escaped: bool = False
) -> Iterator[Block]:
    """Yield the blocks of Markdown in order.

    Code and tables are one block each, a paragraph or a list another; a block past `PARAGRAPH_LIMIT` characters is
    given in several. Comments, and pictures that are written into the text as base64, are skipped.

    Args:
        title: Heading above the whole text.
        place: Place of the title, which is a block if there is no text below it.
        escaped: Whether a program wrote the text with a backslash before each special character of Markdown; these are
            removed.

    >>> text = ["# Pumps", "Open if > 5 bar.", "```sh", "# not a heading", "```"]
    >>> for block in markdown_blocks(enumerate(text, 1)):
    ...     print(block)
    Block(kind='prose', lines=[(2, 'Open if > 5 bar.')], headings=('Pumps',))
    Block(kind='code', lines=[(3, '```sh'), (4, '# not a heading'), (5, '```')], headings=('Pumps',))
    """
    outline = _Outline(title, place)
    buffer: list[Placed] = []
    size = 0
    opened: list[Placed] = []  # the lines that opened the code or the table which goes on in the next piece
    for placed in lines:
        line = _EMBEDDED.sub("", placed[1]).rstrip() if "base64," in placed[1] else placed[1].rstrip()
        buffer.append((placed[0], line))
        size += len(line) + 1
        if size >= _PIECE:
            blocks, buffer, opened = _parsed(buffer, opened, escaped, whole=False)
            size = sum(len(line) + 1 for _, line in buffer)
            yield from outline.of(blocks)
    blocks, _, _ = _parsed(buffer, opened, escaped, whole=True)
    yield from outline.of(blocks)
    yield from outline.end()


@dataclass
class _Heading:
    level: int
    lines: list[Placed]


class _Outline:
    """The headings above the present line; headings without text below are returned as blocks."""

    def __init__(self, title: str, place: int) -> None:
        self._above = [(0, title)] if title else []
        # Level, line and text of headings that are still without text.
        self._alone = [(0, place, title)] if title else []

    def of(self, blocks: Iterable[Block | _Heading]) -> Iterator[Block]:
        for block in blocks:
            if isinstance(block, _Heading):
                yield from self._heading(block)
            elif block.kind == "prose" and not any(line.strip() for _, line in block.lines):
                continue
            else:
                if self._alone and any(map(_has_words, block.lines)):
                    self._alone = []
                yield Block(block.kind, block.lines, tuple(text for _, text in self._above))

    def _heading(self, heading: _Heading) -> Iterator[Block]:
        text = plain(" ".join(line for _, line in heading.lines))
        yield from self.end(heading.level)
        self._above = [heading_above for heading_above in self._above if heading_above[0] < heading.level]
        if text and text.lower() not in [heading_above.lower() for _, heading_above in self._above]:
            self._above.append((heading.level, text[:_LONGEST_HEADING]))
            self._alone.append((heading.level, heading.lines[0][0], text))

    def end(self, level: int = 0) -> Iterator[Block]:
        """Yield the headings that end, at a heading of a level, without anything below them."""
        while self._alone and self._alone[-1][0] >= level:
            above, number, text = self._alone[-1]
            yield Block("heading", [(number, text)], tuple(title for depth, title in self._above if depth < above))
            self._alone = []  # those above it have this one below them


def _has_words(placed: Placed) -> bool:
    """Return whether a line has more than rules, tags and bare pictures."""
    return bool(_TAGS.sub("", without_links(placed[1])).strip(" \t-*_=#|:.`~>+"))


@cache
def _parser() -> Any:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"maxNesting": 40}).enable("table")
    parser.core.ruler.enableOnly(["normalize", "block"])  # what is within a line stays as it is written
    return parser.disable("reference")  # which would be taken out


def _parsed(
    pending: list[Placed], opened: list[Placed], escaped: bool, *, whole: bool
) -> tuple[list[Block | _Heading], list[Placed], list[Placed]]:
    """Return the blocks of lines, an unfinished last block's lines, and its opening lines if it is long."""
    first, lines = len(opened), opened + pending
    # A line that is longer than any mark's is taken for prose, since a parser may read each of its characters often.
    source = "\n".join("x" if len(line) > _LONGEST_LINE else line for _, line in lines)
    tokens = _parser().parse(source)
    tops = [place for place, token in enumerate(tokens) if token.level == 0 and token.nesting >= 0 and token.map]
    cut, goes_on = len(lines), []
    if not whole and tops:
        last = tokens[tops[-1]]
        if last.map[0] > first:
            cut, tokens = last.map[0], tokens[: tops[-1]]
        elif last.type == "fence" and not _closes(last, lines):
            goes_on = lines[last.map[0] : last.map[0] + 1]
        elif last.type == "table_open" and last.map[1] == len(lines):
            goes_on = lines[last.map[0] : last.map[0] + 2]
    return _Builder(lines, first, escaped).of(tokens, cut), lines[cut:], goes_on


def _closes(fence: Any, lines: list[Placed]) -> bool:
    last = lines[fence.map[1] - 1][1].strip(" \t>")
    return fence.map[1] - fence.map[0] > 1 and len(last) >= len(fence.markup) and set(last) == {fence.markup[0]}


class _Builder:
    """The blocks of tokens; lines that no token holds are prose."""

    def __init__(self, lines: list[Placed], first: int, escaped: bool) -> None:
        self._lines = lines
        self._done = self._first = first  # lines before it are not of the text
        self._escaped = escaped
        self._blocks: list[Block | _Heading] = []
        self._pending: list[Placed] = []
        self._item = -1  # the line of the last entry of a list

    def of(self, tokens: list[Any], end: int) -> list[Block | _Heading]:
        marks: list[str] = []  # of entries of lists whose text has not come
        for token, after in zip(tokens, [*tokens[1:], None], strict=False):
            kind = token.type
            if kind == "list_item_open":
                outer = marks if token.map[0] == self._item else []  # "- - two at once"; others have no text
                marks = [*outer, f"{token.info}{token.markup} "]
                self._item = token.map[0]
            elif kind == "paragraph_open":
                if token.map[0] > self._done:  # after a blank line
                    self._flush()
                self._skip_to(token.map[0])
                self._pending += self._inline(after, token.map, marks)
                marks, self._done = [], token.map[1]
            elif kind in ("heading_open", "fence", "code_block", "table_open", "html_block", "hr"):
                self._flush()
                self._skip_to(token.map[0])
                self._block(token, after)
                marks, self._done = [], token.map[1]
        self._skip_to(end)
        self._flush()
        return self._blocks

    def _block(self, token: Any, after: Any) -> None:
        begin, end = token.map
        lines = self._lines[max(begin, self._first) : end]
        if token.type == "heading_open":
            self._blocks.append(_Heading(int(token.tag[1]), self._inline(after, token.map, None)))
        elif token.type in ("html_block", "hr"):
            self._pending = without_comments(lines) if token.type == "html_block" else lines
            self._flush()
        else:
            while lines and not lines[-1][1].strip():
                lines.pop()
            is_table = token.type == "table_open"
            self._limited(
                "table" if is_table else "code", by_lines(lines, unescaped) if is_table and self._escaped else lines
            )

    def _skip_to(self, line: int) -> None:
        """Take the lines before one for prose that no token has: entries without text, and what is nested too deep."""
        rest = [placed for placed in self._lines[self._done : line] if placed[1].strip(" \t>")]
        self._pending += by_lines(rest, unescaped) if self._escaped else rest
        self._done = max(self._done, line)

    def _inline(self, inline: Any, lines: Sequence[int], marks: list[str] | None) -> list[Placed]:
        """Return the lines of a paragraph without what encloses them, with the marks of the entry that it begins.

        The lines of a heading, which has no marks, stay as they are written.
        """
        texts = inline.content.split("\n")
        placed = self._lines[lines[0] : lines[0] + len(texts)]
        inside = [
            (number, full if len(full) > _LONGEST_LINE else text)
            for (number, full), text in zip(placed, texts, strict=False)
        ]
        if self._escaped and marks is not None:
            inside = by_lines(inside, unescaped)
        if marks and inside:
            inside[0] = (inside[0][0], "".join(marks) + inside[0][1])
        return inside

    def _flush(self) -> None:
        if not self._escaped and any("<!--" in line for _, line in self._pending):
            text = "\n".join(line for _, line in self._pending)
            if text.rfind("<!--") < text.rfind("-->"):  # one that does not end is text
                self._pending = without_comments(self._pending)
        if any(line.strip() for _, line in self._pending):
            self._limited("prose", self._pending)
        self._pending = []

    def _limited(self, kind: BlockKind, lines: list[Placed]) -> None:
        parts = parted(lines, lambda line: len(line[1]) + 1, PARAGRAPH_LIMIT)
        self._blocks += [Block(kind, part) for part in parts]


def without_comments(lines: Sequence[Placed]) -> list[Placed]:
    """Return lines without the comments of HTML, which may go over several of them.

    >>> without_comments([(1, "a <!-- b"), (2, "c --> d")])
    [(1, 'a '), (2, ' d')]
    """
    text = _CODE_OR_COMMENT.sub(
        lambda part: part[1] or "\n" * part[0].count("\n"), "\n".join(line for _, line in lines)
    )
    return [(number, line) for (number, _), line in zip(lines, text.split("\n"), strict=True) if line]


def linkless(block: Block) -> Block:
    """Return a block of Markdown that someone has written with the words of links in their place."""
    if block.kind != "prose" or not any("](" in line or "][" in line for _, line in block.lines):
        return block
    return Block("prose", by_lines(block.lines, without_links), block.headings)
