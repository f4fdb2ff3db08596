"""The format of Markdown, and the base class of formats that become Markdown line by line."""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import ClassVar

from likewise.corpus.blocks import Block
from likewise.corpus.formats import Contents, Format, Line, Source
from likewise.corpus.json_rows import JsonLines
from likewise.corpus.parquet_rows import Parquet
from likewise.corpus.text_lines import text_lines
from likewise.documents.front_matter import front_matter
from likewise.documents.markdown import linkless, markdown_blocks
from likewise.documents.wiki_dumps import Dump
from likewise.runs.whole_files import Values

_LONG_FIELD = 60  # characters
_KNOWN_BY_CONTENT = (Parquet(), Dump(), JsonLines())


class MarkedText(Format):
    """Text with markup of headings, lists and code: Markdown, and formats that are converted to it line by line."""

    name: ClassVar[str] = "Markdown"
    suffixes: ClassVar[tuple[str, ...]] = (".md", ".markdown")
    holds: ClassVar[Contents] = "markdown"

    @staticmethod
    def marked(lines: Iterable[Line]) -> Iterator[Line]:
        """Convert lines to Markdown with a backslash before each character that is not markup; Markdown stays."""
        yield from lines

    def accepts(self, source: Source) -> bool:
        """Return whether a file has the suffix of the format, and its lines may be converted."""
        return source.options.split != "line" and super().accepts(source)

    def read(self, source: Source) -> Iterator[Line]:
        """Yield the lines."""
        return text_lines(source)

    def blocks(self, source: Source) -> Iterator[tuple[Block, Values]]:
        """Yield the blocks, each with the front matter."""
        lines = self.read(source)
        fields, first = front_matter(lines)
        title = str(fields.get("title") or "")
        for value in (", ".join(map(str, one)) if isinstance(one, list) else one for one in fields.values()):
            if isinstance(value, str) and value != title and len(value) > _LONG_FIELD:  # an abstract is text, too
                yield Block("prose", [(1, " ".join(value.split()))], (title,) if title else ()), fields
        is_converted = self.marked is not MarkedText.marked
        blocks = markdown_blocks(self.marked(chain(first, lines)), title=title, escaped=is_converted)
        yield from ((block if is_converted else linkless(block), fields) for block in blocks)

    def fields(self, source: Source) -> Iterator[Values]:
        """Yield the front matter."""
        yield front_matter(text_lines(source))[0]


class Markdown(MarkedText):
    """Markdown, unless the content is that of a format of rows or of articles."""

    def accepts(self, source: Source) -> bool:
        """Return whether a file is called so, and does not begin as rows or a dump do."""
        return super().accepts(source) and not any(format.accepts(source) for format in _KNOWN_BY_CONTENT)
