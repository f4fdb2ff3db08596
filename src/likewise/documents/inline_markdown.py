"""The words of a line of Markdown, by the inline tokens of markdown-it-py."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Literal

from likewise.corpus.sentence_splitter import Placed

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_inline import StateInline
    from markdown_it.token import Token

_How = Literal["plain", "written", "escaped"]
"""What is written of a line: its words alone, its marks too, or its marks without the backslashes of a program."""
_PLACE = re.compile(r"[/.#:]")
"""A character that occurs in the target of a link, and not in the argument of a function."""
_MARKS: dict[_How, str] = {"plain": "*_`\\", "written": "", "escaped": "\\"}
"""Number of characters that are examined, without the characters of links."""
_LABEL = 500
"""Number of characters of the label of a link."""
_ATTRIBUTES = re.compile(r"(?<!\s)\s{0,9}\{[#.:][^{}]{0,300}\}$")


def plain(text: str) -> str:
    """Return a line of Markdown without the marks of links, code and emphasis, and without escapes.

    >>> plain("Run `make` on **[two machines](many.md)** {#many}")
    'Run make on two machines'
    """
    return " ".join(_written(_ATTRIBUTES.sub("", text.rstrip()), "plain").split())


def without_links(text: str) -> str:
    """Return Markdown in which links and pictures are replaced by their texts.

    Code is not changed, nor are brackets after a word, such as an index or a call.

    >>> without_links('See [the *list*](a.md "A list") and ![](b.png).')
    'See the *list* and .'
    >>> without_links("`a[i](j)`, m[i][j] and f[x](y)")
    '`a[i](j)`, m[i][j] and f[x](y)'
    """
    return _written(text, "written")


def by_lines(lines: Sequence[Placed], change: Callable[[str], str]) -> list[Placed]:
    """Return lines with their text changed as a whole, or one by one if that would join two of them."""
    texts = change("\n".join(line for _, line in lines)).split("\n")
    if len(texts) != len(lines):
        texts = [change(line) for _, line in lines]
    return [(number, text) for (number, _), text in zip(lines, texts, strict=True)]


def unescaped(text: str) -> str:
    """Return Markdown that a program has written, without links and without its backslashes."""
    return _written(text, "escaped")


def _written(text: str, how: _How) -> str:
    """Return the words of inline Markdown without links, with the marks that stay in a way of writing."""
    if "](" in text or "][" in text or any(mark in text for mark in _MARKS[how]):
        return _said(_inline_parser().inline.parse(text, _inline_parser(), {}, []), how)
    return text


def _said(tokens: Sequence[Token], how: _How) -> str:
    parts = []
    for token in tokens:
        if token.type == "image":
            parts.append(_said(token.children or [], how))
        elif token.type == "code_inline":
            blank = " " * (token.content[:1] == "`" or token.content[-1:] == "`")
            code = f"{token.markup}{blank}{token.content}{blank}{token.markup}"
            parts.append(token.content if how == "plain" else code)
        elif token.type == "hardbreak":
            parts.append("\\\n" if how == "written" else "\n")
        elif token.type == "text_special":
            parts.append(token.markup if how == "written" else token.content)
        elif token.type == "text":
            parts.append(token.content)
        elif how != "plain":  # emphasis
            parts.append(token.markup)
    return "".join(parts)


@cache
def _inline_parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    class AnyTarget(MarkdownIt):
        def validateLink(self, url: str) -> bool:  # noqa: N802
            return True  # also the path of a file

    parser = AnyTarget("zero", {"maxNesting": 20}).enable(["escape", "backticks", "emphasis", "link", "image"])
    parser.inline.ruler.before("link", "index", _index)
    parser.inline.ruler.before("link", "reference", _reference)
    return parser


def _index(state: StateInline, silent: bool) -> bool:
    """Take a bracket behind a word, which neither the target of a link follows, for that of an index or a call."""
    before = state.src[state.pos - 1 : state.pos] if state.pos else ""
    if state.src[state.pos] != "[" or not (before.isalnum() or before in tuple("_)]")):
        return False
    if _leads(state.src, state.src.find("]", state.pos)):
        return False
    if not silent:
        state.pending += "["
    state.pos += 1
    return True


def _reference(state: StateInline, silent: bool) -> bool:
    """Take [words][label] for a link, wherever its label leads."""
    begin = state.pos + state.src.startswith("!", state.pos)
    if not state.src.startswith("[", begin):
        return False
    end = state.md.helpers.parseLinkLabel(state, begin, True)
    close = state.src.find("]", end + 2, end + _LABEL) if end > 0 and state.src.startswith("][", end) else -1
    if close < 0 or "[" in state.src[end + 2 : close] or _leads(state.src, close):
        return False
    if not silent:
        whole, state.pos, state.posMax = state.posMax, begin + 1, end
        state.push("link_open", "a", 1)
        state.md.inline.tokenize(state)
        state.push("link_close", "a", -1)
        state.posMax = whole
    state.pos = close + 1
    return True


def _leads(text: str, bracket: int) -> bool:
    """Return whether the target of a link follows a closing bracket."""
    return text.startswith("](", bracket) and _PLACE.search(text, bracket, text.find(")", bracket) + 1) is not None
