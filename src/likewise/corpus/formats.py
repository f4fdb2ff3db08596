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
    """A part of a document with a location, such as a page or a slide.

    Attributes:
        place: Number of the page, slide, cell or chapter, from 1; 0 for a document without such parts.
        text: Text of the page.
        title: Heading above the whole page.
        form: "markdown", with a backslash before each ordinary special character; "written", Markdown as
            its author wrote it; or "plain", paragraphs between blank lines.
        fields: Metadata of the document, such as the sender of a mail.
        cells: Cells of a row of a sheet.
        left_out: Reason why a part of the page is not read; "" if the whole page is read.
        goes_on: Whether the headings of the previous page still apply, as in a PDF or a notebook.
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
    """A file format. Subclasses are registered by an entry point of the group `likewise.formats`.

    Attributes:
        name: Name of the format in messages; by default, the name of the class.
        suffixes: Suffixes of the files in lower case, with their dots.
        holds: Kind of the items that `read` yields: lines ("text", "markdown"), rows ("rows", "articles") or pages
            ("pages").
        unit: Name of the unit that locates text in a file, such as "page"; "" for lines.
        in_folders: Whether files of this format are read if only their folder is given.
        is_text: Whether a file with null bytes or control characters is refused.
        has_rows: Whether pages with cells are read as rows if a field is given; the first page of each title is the
            header.

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
        """Return whether a file is in this format, by default according to its suffix (before one such as .gz)."""
        return format_suffix(source.path) in self.suffixes

    def lacks(self) -> str:
        """Return the command that installs what the format needs, "" if nothing is missing."""
        return ""

    def prepare(self, source: "Source") -> None:
        """Prepare the first read, for example by a cached conversion.

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
        """Yield the blocks of a marked text or a document, each with the fields of its document.

        Only the formats of `likewise.documents` have blocks.
        """
        raise NotImplementedError

    def fields(self, source: "Source") -> Iterator[Values]:
        """Yield the fields of a file, such as the front matter of Markdown, or the sender of each mail."""
        return iter(())


@dataclass(frozen=True)
class Source:
    """One file of a corpus, and how it is read.

    Attributes:
        path: Path to the file.
        options: Options of the corpus.
        format: Format of the file.
        contents: Kind of the content if it differs from the format's: the rows of a sheet, or a JSONL file of articles.
        report: Report that counts and names what is skipped while the file is read.
        tick: Function that receives the number of bytes read so far.
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
        """The kind of the file in reports."""
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
