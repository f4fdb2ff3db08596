"""Articles of dumps and of articles files, and the removal of leftover markup of a wiki."""

import re
from collections.abc import Iterator
from typing import cast

from likewise.corpus.clean_text import without_invisible
from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.formats import Row, Source
from likewise.corpus.rows import read_rows

_STOP = re.compile(r"[.!?…。！？][\"'’”»)\]]*$")
_LIST_MARK = re.compile(r"^[*#:;]+\s*")
_CLEANING: list[tuple[re.Pattern[str], str]] = [
    (re.compile(r"'{2,5}"), ""),  # bold and italics
    (re.compile(r"\{\{[^{}]*\}\}|</?[a-zA-Z][^<>]*>|__[A-Z]+__"), " "),  # templates, tags, switches
    (re.compile(r"\[\[(?:[^\[\]|]*\|)?([^\[\]|]*)\]\]"), r"\1"),  # [[page|words]]
    (re.compile(r"\(\s*(?:[;,:]\s*)+"), "("),  # '(; born' where a pronunciation was
    (re.compile(r"\s+"), " "),
    (re.compile(r" ?\( ?\)| ?\[ ?\]"), ""),
    (re.compile(r" ([,.;:!?)])"), r"\1"),
    (re.compile(r"\( "), "("),
]

Sections = list[tuple[str, list[str]]]
"""(heading, paragraphs) in order; the heading of an article's opening is ""."""

Article = tuple[int, str, str, Sections]
"""Line where it begins, id, title and sections."""


def is_markup(line: str) -> bool:
    """Return whether a line is a wiki's heading or a row of a wiki table."""
    return line.startswith(("{|", "|}", "|-", "| ", "||", "! ", "!!")) or heading_in(line) is not None


def heading_in(line: str) -> str | None:
    """Return the words of a heading, None for a line that is none.

    >>> heading_in(" == A = B == "), heading_in("=="), heading_in("= A")
    ('A = B', '', None)
    """
    line = line.strip()
    return line.strip("=").strip() if len(line) > 1 and line[0] == line[-1] == "=" else None


def clean_markup(text: str) -> str:
    """Remove the remains of templates, links, tags and bullets in a line.

    >>> clean_markup("* '''Harrow''' () is a [[School|school]] , (; old) .")
    'Harrow is a school, (old).'
    """
    text = _LIST_MARK.sub("", text.strip())
    for pattern, replacement in _CLEANING:
        text = pattern.sub(replacement, text)
    return text.strip()


def is_sentence_like(text: str) -> bool:
    """Return whether a line ends like a sentence: captions, list entries and table rows do not.

    >>> [is_sentence_like(text) for text in ("It rained.", 'I said "No!"', "A map of Rome", "Parts:")]
    [True, True, False, False]
    """
    return _STOP.search(text) is not None and not is_markup(text) and " | " not in text


def read_articles(source: Source) -> Iterator[Article]:
    """Yield the articles of a dump or an articles file."""
    if source.format.holds == "articles":
        for line, row in cast(Iterator[Row], source.format.read(source)):
            yield line, row["id"], row["title"], row["sections"]
        return
    good, reason = False, ('not an article: each of its sections must be {"heading": text, "paragraphs": [text]}')
    for line, row in read_rows(source):
        sections: Sections = []
        try:
            for section in row["sections"]:
                paragraphs = [clean_markup(without_invisible(text)) for text in section["paragraphs"]]
                heading = clean_markup(without_invisible(section.get("heading") or ""))
                sections.append((heading, [text for text in paragraphs if text]))
        except (KeyError, TypeError, AttributeError):
            source.drop_row(line, reason)
            continue
        good = True
        yield line, str(row.get("id", line)), str(row.get("title", "")), sections
    if not good and source.report.notes:
        raise CorpusError(source.report.notes[0])
