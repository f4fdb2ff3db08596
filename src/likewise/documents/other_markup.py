"""Org, AsciiDoc and reStructuredText, converted line by line to Markdown with ordinary characters escaped."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import chain, pairwise

from likewise.corpus.formats import Line
from likewise.documents.marked_text import MarkedText

_SIGNS = re.compile(r"[\\`*_\[\]<>#|~=]")
_NUMBERED = re.compile(r"\d{1,9}[.)] ")
_RULE = re.compile(r"\|[-+|:]+$")
_ORG_HEADING = re.compile(r"(\*{1,8}) (\S.*)")
_ORG_BEGIN = re.compile(r"^\s*#\+begin_(src|example|export)", re.IGNORECASE)
_ORG_END = re.compile(r"\s*#\+end_(src|example|export)", re.IGNORECASE)
_ORG_TITLE = re.compile(r"#\+title:(.*)", re.IGNORECASE)
_ORG_ROW = re.compile(r"^\s*(\|.*)")
_ADOC_HEADING = re.compile(r"(={1,6}) (\S.*)")
_ADOC_FENCE = re.compile(r"^(-{4,}|\.{4,}|`{3,})$")
_ADOC_ITEM = re.compile(r"([*.-]{1,5}) (\S.*)")
_ADOC_SKIPPED = re.compile(r"\|===|//(?!/)")  # the rules of a table, and comments
_FENCE = "`````"
_RST_LINE = re.compile(r"([!-/:-@[-`{-~])\1+$")
"""The lines below a heading, and above some."""
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


def _text(line: str) -> str:
    """Return a line of text with its characters escaped; the mark of an entry stays."""
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


def _lines_of(
    lines: Iterable[Line],
    begin: re.Pattern[str],
    is_end: Callable[[str, str], bool],
    marks: Mapping[re.Pattern[str], Callable[[re.Match[str]], str]],
) -> Iterator[Line]:
    """Yield lines as Markdown.

    Args:
        lines: Lines of another markup.
        begin: Pattern of the line above code.
        is_end: Function that returns whether a line, given with the line above the code, is the one below it.
        marks: Functions that write a line with a mark, by the patterns of these lines.
    """
    opened = ""
    for number, line in ((number, line.rstrip()) for number, line in lines):
        if opened:
            opened, text = ("", _FENCE) if is_end(line, opened) else (opened, line)
        elif begin.match(line):
            opened, text = line, _FENCE
        else:
            text = next((write(mark) for pattern, write in marks.items() if (mark := pattern.match(line))), _text(line))
        yield number, text


def org_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines of an Org file as Markdown.

    >>> [line for _, line in org_lines([(1, "* Pumps"), (2, "Stop if > 5 bar."), (3, "#+BEGIN_SRC sh"), (4, "make")])]
    ['## Pumps', 'Stop if \\\\> 5 bar.', '`````', 'make']
    """
    marks = {
        _ORG_HEADING: lambda mark: f"#{'#' * min(5, len(mark[1]))} {_escaped(mark[2])}",
        _ORG_TITLE: lambda title: f"# {_escaped(title[1].strip())}",
        _ORG_ROW: lambda row: row[1].replace("+", "|") if _RULE.match(row[1]) else row[1],
    }
    return _lines_of(lines, _ORG_BEGIN, lambda line, _: _ORG_END.match(line) is not None, marks)


class Org(MarkedText):
    """Org files of Emacs."""

    suffixes = (".org",)
    marked = staticmethod(org_lines)


def adoc_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines of an AsciiDoc file as Markdown.

    >>> [line for _, line in adoc_lines([(1, "== Pumps"), (2, "* Open it."), (3, "----"), (4, "make"), (5, "----")])]
    ['## Pumps', '- Open it.', '`````', 'make', '`````']
    """
    marks = {
        _ADOC_HEADING: lambda mark: f"{'#' * len(mark[1])} {_escaped(mark[2])}",
        _ADOC_SKIPPED: lambda _: "",
        _ADOC_ITEM: lambda item: f"{'  ' * (len(item[1]) - 1)}- {_escaped(item[2])}",
    }
    return _lines_of(lines, _ADOC_FENCE, str.__eq__, marks)


class AsciiDoc(MarkedText):
    """AsciiDoc files."""

    suffixes = (".adoc", ".asciidoc")
    marked = staticmethod(adoc_lines)


def rst_lines(lines: Iterable[Line]) -> Iterator[Line]:
    """Yield the lines of a reStructuredText file as Markdown.

    Comments, the targets of links and the options of directives are skipped.

    >>> [line for _, line in rst_lines([(1, "Pumps"), (2, "====="), (3, ".. note:: See :ref:`valves <v>`.")])]
    ['# Pumps', 'See valves.']
    """
    reader = _Rst()
    bare = ((number, line.expandtabs(8).rstrip()) for number, line in lines)
    for (number, line), (_, below) in pairwise(chain(bare, [(0, "")])):
        for text in reader.lines_of(line, below):
            yield number, text


class ReStructuredText(MarkedText):
    """Files of reStructuredText."""

    suffixes = (".rst",)
    marked = staticmethod(rst_lines)


class _Rst:
    """Where a reader of reStructuredText is: in a table, code, a comment, or below a heading."""

    def __init__(self) -> None:
        self._levels: dict[str, int] = {}
        self._columns: list[slice] | None = None  # of a table; none of one with borders
        self._code = self._comment = -1  # the indentation that their lines exceed
        self._is_open = self._has_header = self._is_below_heading = self._has_options = False
        self._above = ""  # the character of a line above a heading

    def lines_of(self, line: str, below: str) -> list[str]:
        """Return the lines of Markdown for a line, which are none below a heading and two around code."""
        if self._is_below_heading:
            self._is_below_heading = False
            return []
        text = line.lstrip()
        indent = len(line) - len(text)
        for step in (self._option, self._in_comment, self._in_code):
            if (inside := step(line, indent)) is not None:
                return inside
        ended = [_FENCE] if self._code >= 0 and self._is_open else []
        self._code, self._is_open = -1, False
        table = self._in_table(line, below)
        return ended + (table if table is not None else self._outside(text, indent, below))

    def _option(self, line: str, indent: int) -> list[str] | None:
        self._has_options = self._has_options and _RST_OPTION.match(line) is not None
        if not self._has_options:
            return None
        name, _, value = line.lstrip()[1:].partition(":")
        return [_text(_words(value)) if name == "alt" else ""]

    def _in_comment(self, line: str, indent: int) -> list[str] | None:
        if self._comment >= 0 and (not line or indent > self._comment):
            return [""]
        self._comment = -1
        return None

    def _in_code(self, line: str, indent: int) -> list[str] | None:
        if self._code < 0 or (line and indent <= self._code):
            return None
        opens = bool(line) and not self._is_open
        self._is_open = self._is_open or opens
        return [_FENCE, line] if opens else [line]

    def _in_table(self, line: str, below: str) -> list[str] | None:
        """Return the row of a table, nothing for a rule within it, and None for a line outside of tables."""
        text = line.lstrip()
        if _RST_RULE.match(text) and (self._columns is not None or below):
            if self._columns is None:
                starts = [part.start() for part in re.finditer("=+", line)] if text[0] == "=" else []
                self._columns = [slice(start, end) for start, end in pairwise(starts and [0, *starts[1:], None])]
                self._has_header = False
                return [""]
            if self._columns and not below:
                self._columns = None
                return [""]
            return []
        if self._columns is None:
            return None
        if not self._columns and not text.startswith("|"):
            self._columns = None
            return None
        cells = [line[column] for column in self._columns] or text[1:].removesuffix("|").split("|")
        row = [f"| {' | '.join(_escaped(_words(cell.strip())) for cell in cells)} |"] if text else []
        if row and not self._has_header:
            self._has_header = True
            row.append("|" + " --- |" * len(cells))
        return row

    def _outside(self, text: str, indent: int, below: str) -> list[str]:
        """Return the lines for a heading, a directive or a paragraph."""
        if _is_underline(text):  # above a heading, or between paragraphs
            self._above = text[0] if below else ""
            return [""]
        above, self._above = self._above, ""
        if text and _is_underline(below) and len(below) >= min(4, len(text)) and (above or not indent):
            level = self._levels.setdefault(below[0] + above, len(self._levels))
            self._is_below_heading = True
            return [f"{'#' * min(6, level + 1)} {_escaped(_words(text))}"]
        if directive := _RST_DIRECTIVE.match(text):
            return [self._directive(directive[1], text[directive.end() :], indent)]
        if note := _RST_NOTE.match(text):
            return [_text(_words(text[note.end() :]))]
        if text == ".." or text.startswith(".. "):
            # What is indented below an empty comment, or the target of a link, is text.
            is_bare = text.startswith(".. _") or (text == ".." and not below)
            self._comment = -1 if is_bare else indent
            return [""]
        if text.endswith("::"):
            self._code = indent
            text = text[:-2].rstrip() if text.endswith(" ::") or text == "::" else text[:-1]
        for mark, other in (("#. ", "1. "), ("* ", "- "), ("| ", "")):
            text = other + text[len(mark) :] if text.startswith(mark) else text
        return [_text(" " * min(3, indent) + _words(text))]

    def _directive(self, name: str, argument: str, indent: int) -> str:
        self._has_options = True
        if name.startswith(("version", "deprecated")):
            argument = f"{name}: {argument}"
        if name in _RST_CODE:
            self._code = indent
            argument = argument if name == "math" else ""
        return "" if name in _RST_PATHS else _text(_words(argument))


def _is_underline(line: str) -> bool:
    return _RST_LINE.match(line) is not None and line not in ("::", "..")


def _words(text: str) -> str:
    """Return the words of a line without the marks of roles, links and bold ones; code in single backquotes."""
    parts = _RST_LITERAL.split(text)
    for place in range(0, len(parts), 2):
        words = _RST_ROLE.sub(lambda role: role[1] or role[2] or "", parts[place])
        words = _RST_STRONG.sub(r"\2", words)
        parts[place] = _RST_PROTECTED.sub(lambda char: "" if char[1].isspace() else char[1], words)
    return "".join(f"`{part}`" if place % 2 else part for place, part in enumerate(parts))
