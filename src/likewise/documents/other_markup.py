"""Org, AsciiDoc and reStructuredText, line by line as Markdown in which each sign that is no mark there is escaped."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import chain, pairwise

from likewise.corpus.formats import Line, Source
from likewise.corpus.markdown import front_matter
from likewise.corpus.text_lines import MarkedText, text_lines

_SIGNS = re.compile(r"[\\`*_\[\]<>#|~=]")
_NUMBERED = re.compile(r"\d{1,9}[.)] ")
_RULE = re.compile(r"\|[-+|:]+$")
_ORG_HEADING = re.compile(r"(\*{1,8}) (?=\S)")
_ORG_BEGIN = re.compile(r"#\+begin_(src|example|export)", re.IGNORECASE)
_ORG_END = re.compile(r"#\+end_(src|example|export)", re.IGNORECASE)
_ORG_TITLE = re.compile(r"#\+title:", re.IGNORECASE)
_ADOC_HEADING = re.compile(r"(={1,6}) (?=\S)")
_ADOC_FENCE = re.compile(r"(-{4,}|\.{4,}|`{3,})$")
_ADOC_ITEM = re.compile(r"([*.-]{1,5}) (?=\S)")
_FENCE = "`````"
_RST_LINE = re.compile(r"([!-/:-@[-`{-~])\1+$")
"""What stands below a heading, and above some."""
_RST_RULE = re.compile(r"\+[-=][-=+]*\+$|=+ [ =]*=$")
"""A line of a table with borders, or of one with columns."""
_RST_DIRECTIVE = re.compile(r"\.\. +(?:\|[^|]{1,100}\| +)?([\w:+.-]{1,60}):: *")
_RST_NOTE = re.compile(r"\.\. +\[[^\]]{1,60}\] +")
_RST_OPTION = re.compile(r" +:[\w-]{1,60}:(?: |$)")
_RST_CODE = frozenset("code code-block sourcecode parsed-literal prompt doctest testcode testoutput math raw".split())
_RST_PATHS = frozenset("image figure include literalinclude highlight index currentmodule contents only".split())
"""Directives whose argument is no text."""
_RST_LITERAL = re.compile(r"``(.{1,1000}?)``")
_RST_ROLE = re.compile(r"(?<!\\)(?::[\w:+.-]{1,60}:)?`[~!]?([^`<]{0,300}?)\s{0,9}(?:<([^`<>]{0,500})>)?(?<!\\)`_{0,2}")
_RST_STRONG = re.compile(r"(?<![\w*\\])(\*{1,2})(?=[^\s*])([^*]{1,300})(?<=[^\s*\\])\1(?![\w*])")
_RST_PROTECTED = re.compile(r"\\([\W_])")


class _OtherMarkup(MarkedText):
    """A format whose lines become Markdown."""

    escaped = True

    def read(self, source: Source) -> Iterator[Line]:
        """Yield the lines as Markdown; front matter stays as it is."""
        lines, seen = text_lines(source), list[Line]()

        def first_lines() -> Iterator[Line]:
            for line in lines:
                seen.append(line)
                yield line

        fields, first = front_matter(first_lines())
        if fields:
            yield from seen
        yield from self.marked(chain(first, lines))

    def marked(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield lines as Markdown."""
        raise NotImplementedError


class Org(_OtherMarkup):
    """Org files of Emacs."""

    suffixes = (".org",)

    def marked(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield lines as Markdown."""
        return org_lines(lines)


class AsciiDoc(_OtherMarkup):
    """AsciiDoc files."""

    suffixes = (".adoc", ".asciidoc")

    def marked(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield lines as Markdown."""
        return adoc_lines(lines)


class ReStructuredText(_OtherMarkup):
    """Files of reStructuredText."""

    suffixes = (".rst",)

    def marked(self, lines: Iterable[Line]) -> Iterator[Line]:
        """Yield lines as Markdown."""
        return rst_lines(lines)


def _text(line: str) -> str:
    """Return a line of text with its signs escaped; the mark of an entry stays."""
    begin = line.lstrip()
    indent = line[: min(len(line) - len(begin), 3)]
    if begin.startswith(("- ", "+ ")) or _NUMBERED.match(begin):
        mark, _, rest = begin.partition(" ")
        return f"{line[: len(line) - len(begin)]}{mark} {_escaped(rest)}"
    if begin.startswith(("-", "+")):
        return f"{indent}\\{_escaped(begin)}"
    return indent + _escaped(begin)


def _escaped(text: str) -> str:
    return _SIGNS.sub(r"\\\g<0>", text)


def org_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines of an Org file as Markdown.

    >>> [line for _, line in org_lines([(1, "* Pumps"), (2, "Stop if > 5 bar."), (3, "#+BEGIN_SRC sh"), (4, "make")])]
    ['## Pumps', 'Stop if \\\\> 5 bar.', '`````', 'make']
    """
    code = False
    for number, line in lines:
        line = line.rstrip()
        begin = line.lstrip()
        if code:
            code = _ORG_END.match(begin) is None
            yield number, line if code else _FENCE
        elif _ORG_BEGIN.match(begin):
            code = True
            yield number, _FENCE
        elif heading := _ORG_HEADING.match(line):
            yield number, f"#{'#' * min(5, len(heading[1]))} {_escaped(line[heading.end() :])}"
        elif title := _ORG_TITLE.match(line):
            yield number, f"# {_escaped(line[title.end() :].strip())}"
        elif begin.startswith("|"):
            yield number, re.sub(r"\+", "|", begin) if _RULE.match(begin) else begin
        else:
            yield number, _text(line)


def adoc_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines of an AsciiDoc file as Markdown.

    >>> [line for _, line in adoc_lines([(1, "== Pumps"), (2, "* Open it."), (3, "----"), (4, "make"), (5, "----")])]
    ['## Pumps', '- Open it.', '`````', 'make', '`````']
    """
    fence = ""
    for number, line in lines:
        line = line.rstrip()
        if fence:
            is_end = line == fence
            yield number, _FENCE if is_end else line
            fence = "" if is_end else fence
        elif _ADOC_FENCE.match(line):
            fence = line
            yield number, _FENCE
        elif heading := _ADOC_HEADING.match(line):
            yield number, f"{'#' * len(heading[1])} {_escaped(line[heading.end() :])}"
        elif line.startswith("|==="):
            yield number, ""
        elif line.startswith("//") and not line.startswith("///"):
            yield number, ""  # a comment
        elif item := _ADOC_ITEM.match(line):
            yield number, f"{'  ' * (len(item[1]) - 1)}- {_escaped(line[item.end() :])}"
        else:
            yield number, _text(line)


def rst_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines of a reStructuredText file as Markdown.

    Comments, the targets of links and the options of directives are left out.

    >>> [line for _, line in rst_lines([(1, "Pumps"), (2, "====="), (3, ".. note:: See :ref:`valves <v>`.")])]
    ['# Pumps', 'See valves.']
    """
    levels: dict[str, int] = {}
    columns: list[slice] | None = None  # of a table; none of one with borders
    code = comment = -1  # the indentation that their lines exceed
    is_open = is_row = is_below_heading = has_options = False
    above = ""
    bare = ((number, line.expandtabs(8).rstrip()) for number, line in lines)
    for (number, line), (_, below) in pairwise(chain(bare, [(0, "")])):
        text = line.lstrip()
        indent = len(line) - len(text)
        if is_below_heading:
            is_below_heading = False
            continue
        if has_options := has_options and _RST_OPTION.match(line) is not None:
            name, _, value = text[1:].partition(":")
            yield number, _text(_words(value)) if name == "alt" else ""
            continue
        if comment >= 0:
            if not text or indent > comment:
                yield number, ""
                continue
            comment = -1
        if code >= 0:
            if not text or indent > code:
                if text and not is_open:
                    is_open = True
                    yield number, _FENCE
                yield number, line
                continue
            if is_open:
                yield number, _FENCE
            code, is_open = -1, False
        if _RST_RULE.match(text) and (columns is not None or below):
            if columns is None:
                starts = [part.start() for part in re.finditer("=+", line)] if text[0] == "=" else []
                columns = [slice(start, end) for start, end in pairwise(starts and [0, *starts[1:], None])]
                is_row = False
                yield number, ""
            elif columns and not below:
                columns = None
                yield number, ""
            continue
        if columns is not None:
            cells = [line[column] for column in columns] or text[1:].removesuffix("|").split("|")
            if columns or text.startswith("|"):
                if text:
                    yield number, f"| {' | '.join(_escaped(_words(cell.strip())) for cell in cells)} |"
                    if not is_row:
                        is_row = True
                        yield number, "|" + " --- |" * len(cells)
                continue
            columns = None
        if _RST_LINE.match(text) and text not in ("::", ".."):  # above a heading, or between paragraphs
            above = text[0] if below else ""
            yield number, ""
            continue
        is_over = _RST_LINE.match(below) and below not in ("::", "..") and len(below) >= min(4, len(text))
        if text and is_over and (above or not indent):
            level = levels.setdefault(below[0] + above, len(levels))
            yield number, f"{'#' * min(6, level + 1)} {_escaped(_words(text))}"
            is_below_heading, above = True, ""
            continue
        above = ""
        if directive := _RST_DIRECTIVE.match(text):
            has_options, rest = True, text[directive.end() :]
            if directive[1].startswith(("version", "deprecated")):
                rest = f"{directive[1]}: {rest}"
            if directive[1] in _RST_CODE:
                code = indent
                rest = rest if directive[1] == "math" else ""
            yield number, "" if directive[1] in _RST_PATHS else _text(_words(rest))
        elif note := _RST_NOTE.match(text):
            yield number, _text(_words(text[note.end() :]))
        elif text == ".." or text.startswith(".. "):
            # What is indented below an empty comment, or the target of a link, is text.
            is_bare = text.startswith(".. _") or (text == ".." and not below)
            comment = -1 if is_bare else indent
            yield number, ""
        else:
            if text.endswith("::"):
                code = indent
                text = text[:-2].rstrip() if text.endswith(" ::") or text == "::" else text[:-1]
            for mark, other in (("#. ", "1. "), ("* ", "- "), ("| ", "")):
                text = other + text[len(mark) :] if text.startswith(mark) else text
            yield number, _text(" " * min(3, indent) + _words(text))


def _words(text: str) -> str:
    """Return the words of a line without the marks of roles, links and bold ones; code in single signs."""
    parts = _RST_LITERAL.split(text)
    for place in range(0, len(parts), 2):
        words = _RST_ROLE.sub(lambda role: role[1] or role[2] or "", parts[place])
        words = _RST_STRONG.sub(r"\2", words)
        parts[place] = _RST_PROTECTED.sub(lambda sign: "" if sign[1].isspace() else sign[1], words)
    return "".join(f"`{part}`" if place % 2 else part for place, part in enumerate(parts))
