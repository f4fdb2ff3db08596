"""A format of files: which files it accepts, and how it reads their lines, rows or pages."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from likewise.corpus.blocks import Block
from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.counts import CorpusReport, Reason
from likewise.corpus.files import Tick, format_suffix, read_head
from likewise.runs.whole_files import Record, Values

Contents = Literal["text", "markdown", "rows", "articles", "pages"]
"""Contents of a file: lines of plain text or Markdown, rows with a text field, articles with sections, or pages."""

Line = tuple[int, str]
"""The number of a line, from 1, and its text."""

Row = tuple[int, Record]
"""The number of the line where a row begins, from 1 (the row in Parquet and .xlsx), and its values by field."""


class Page(NamedTuple):
    """A part of a document that has a place of its own.

    Attributes:
        place: Number of the page, slide, cell or chapter, from 1; 0 for a document without such parts.
        text: Text of the page.
        title: Heading above all of it.
        form: "markdown", with a backslash before each ordinary special character; "written", Markdown as
            its author wrote it; or "plain", paragraphs between blank lines.
        fields: Values that the document gives about itself, such as the sender of a mail.
        cells: Cells of a row of a sheet.
        left_out: Reason why something on it is not read, "" if all is.
        goes_on: Whether the headings of the page before still hold, as in a PDF or a notebook.
    """

    place: int
    text: str
    title: str = ""
    form: Literal["markdown", "plain", "written"] = "plain"
    fields: Mapping[str, object] = {}
    cells: Sequence[object] = ()
    left_out: str = ""
    goes_on: bool = False


class Format:
    """A format of files. A new one is a subclass, registered by an entry point of the group `likewise.formats`.

    Attributes:
        name: Name of the format in messages; by default, the name of the class.
        suffixes: Endings of its files in lower case, each with its dot.
        holds: What `read` yields: "text" and "markdown" are lines, "rows" and "articles" rows, "pages" pages.
        unit: Word for a place in a file, such as "page"; "" if a place is a line.
        in_folders: Whether its files are read when their folder is named.
        is_text: Whether a file with zero bytes or control characters is refused.
        has_rows: Whether pages with cells are read as rows if a field is named: the first of each title is the header.

    >>> class Logs(Format):
    ...     suffixes = (".log",)
    ...     holds = "rows"
    ...
    ...     def read(self, source):
    ...         for number, line in enumerate(source.path.read_text().splitlines(), 1):
    ...             level, _, text = line.partition(" ")
    ...             yield number, {"level": level, "text": text}
    >>> Logs().accepts(Source(Path("machine.log")))
    True
    """

    name: ClassVar[str] = ""
    suffixes: ClassVar[tuple[str, ...]] = ()
    holds: ClassVar[Contents] = "pages"
    unit: ClassVar[str] = ""
    in_folders: ClassVar[bool] = True
    is_text: ClassVar[bool] = True
    has_rows: ClassVar[bool] = False

    def __init_subclass__(cls) -> None:
        """Name a format after its class if it has no name."""
        super().__init_subclass__()
        cls.name = cls.__dict__.get("name", cls.__name__)

    def accepts(self, source: "Source") -> bool:
        """Return whether a file is in this format, by default from its suffix without the suffix of a compression."""
        return format_suffix(source.path) in self.suffixes

    def lacks(self) -> str:
        """Return the command that installs what the format needs, "" if nothing is missing."""
        return ""

    def prepare(self, source: "Source") -> None:
        """Do what takes time before the first read, such as a conversion that is cached.

        Raises:
            CorpusError: The file cannot be read; the message names the cure.
        """

    def read(self, source: "Source") -> Iterator[Line] | Iterator[Row] | Iterator[Page]:
        """Yield the lines, rows or pages of a file.

        Raises:
            CorpusError: The file cannot be read; the message names the cure.
        """
        raise NotImplementedError

    def blocks(self, source: "Source") -> Iterator[tuple[Block, Values]]:
        """Yield the blocks of a marked text or a document, each with what its document says about itself.

        The formats of `likewise.documents` have them; text, rows and articles do without.
        """
        raise NotImplementedError

    def fields(self, source: "Source") -> Iterator[Values]:
        """Yield what a file says about itself, such as the front matter of Markdown, or the sender of each mail."""
        return iter(())


@dataclass(frozen=True)
class Source:
    """One file of a corpus, and how it is read.

    Attributes:
        path: Path to the file.
        options: Options of the corpus.
        format: Format of the file.
        contents: What it holds, if that differs from what its format does: the rows of a sheet, or a JSONL file of
            articles.
        report: Report that counts and names what is skipped while the file is read.
        tick: Function that is called with the number of bytes read so far.
        strict: Whether a row that cannot be read is an error; otherwise the report names it.
    """

    path: Path
    options: CorpusOptions = CorpusOptions()
    format: Format = Format()
    contents: Contents | None = None
    report: CorpusReport = field(default_factory=CorpusReport, compare=False)
    tick: Tick | None = field(default=None, compare=False)
    strict: bool = False

    @property
    def holds(self) -> Contents:
        """What the file contains."""
        return self.contents or self.format.holds

    @property
    def kind(self) -> str:
        """Word for the file in reports."""
        if self.holds in ("pages", "markdown") or self.contents == "articles":
            return "document" if self.holds == "pages" else self.holds
        return self.format.name.lower()

    @property
    def size(self) -> int:
        """Number of bytes on disk."""
        return self.path.stat().st_size

    @cached_property
    def head(self) -> bytes:
        """The first decompressed bytes."""
        return read_head(self.path, self.options)

    @cached_property
    def start(self) -> bytes:
        """The first bytes behind a byte order mark and white space."""
        return self.head.removeprefix(b"\xef\xbb\xbf").lstrip()

    def drop(self, reason: Reason, line: int, count: int = 1) -> None:
        """Count sentences that begin at a line and are skipped."""
        self.report.drop(reason, self.path, line, count)

    def drop_row(self, line: int, reason: str) -> None:
        """Count a row that cannot be read, and keep the reason.

        Raises:
            CorpusError: The source is strict.
        """
        if self.strict:
            raise CorpusError(f"{self.path}:{line}: {reason}")
        self.drop("bad row", line)
        self.report.tell(self.path, line, reason)
