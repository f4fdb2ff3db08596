"""Org and AsciiDoc, line by line as Markdown, in which each sign that is no mark there is escaped."""

import re
from collections.abc import Callable, Iterable, Iterator

from likewise.corpus.sentence_splitter import Placed

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


def _text(line: str) -> str:
    """Return a line of text with its signs escaped; the mark of an entry stays."""
    begin = line.lstrip()
    indent = line[: min(len(line) - len(begin), 3)]
    if begin.startswith(("- ", "+ ")) or _NUMBERED.match(begin):
        mark, _, rest = begin.partition(" ")
        return f"{line[: len(line) - len(begin)]}{mark} {_SIGNS.sub(_escaped, rest)}"
    if begin.startswith(("-", "+")):
        return f"{indent}\\{_SIGNS.sub(_escaped, begin)}"
    return indent + _SIGNS.sub(_escaped, begin)


def _escaped(sign: re.Match[str]) -> str:
    return f"\\{sign[0]}"


def org_lines(lines: Iterable[Placed]) -> Iterator[Placed]:
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
            yield number, f"#{'#' * min(5, len(heading[1]))} {_SIGNS.sub(_escaped, line[heading.end() :])}"
        elif title := _ORG_TITLE.match(line):
            yield number, f"# {_SIGNS.sub(_escaped, line[title.end() :].strip())}"
        elif begin.startswith("|"):
            yield number, re.sub(r"\+", "|", begin) if _RULE.match(begin) else begin
        else:
            yield number, _text(line)


def adoc_lines(lines: Iterable[Placed]) -> Iterator[Placed]:
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
            yield number, f"{'#' * len(heading[1])} {_SIGNS.sub(_escaped, line[heading.end() :])}"
        elif line.startswith("|==="):
            yield number, ""
        elif line.startswith("//") and not line.startswith("///"):
            yield number, ""  # a comment
        elif item := _ADOC_ITEM.match(line):
            yield number, f"{'  ' * (len(item[1]) - 1)}- {_SIGNS.sub(_escaped, line[item.end() :])}"
        else:
            yield number, _text(line)


MARKED: dict[str, Callable[[Iterable[Placed]], Iterator[Placed]]] = {
    ".org": org_lines,
    ".adoc": adoc_lines,
    ".asciidoc": adoc_lines,
}
"""Endings of the files that are read in this way."""
