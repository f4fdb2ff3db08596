"""Formats of documents whose pages are read in a guarded process, and cached by the content of the file."""

import json
import sys
import zipfile
from collections.abc import Iterator
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.files import check_expansion
from likewise.corpus.formats import Page, Source
from likewise.documents.document_format import DocumentFormat
from likewise.documents.guard import GUARD
from likewise.errors import limit_of, unread
from likewise.runs.cache import cached
from likewise.runs.whole_files import Record, checksum

INSTALL = "pip install 'likewise[files]'"
_PACKAGES = ("markitdown", "liteparse", "pypdfium2", "openpyxl", "lxml")
_PAGES = "pages.jsonl"
_FORMAT = 15  # raise it when the same file gives another text


class PagedFormat(DocumentFormat):
    """A document format whose `pages` run in a separate process, with limits on memory and time.

    Attributes:
        is_zipped: Whether the files are zip archives, whose expansion is limited.
        no_text: Error message for a file without text.
    """

    is_zipped: ClassVar[bool] = False
    no_text: ClassVar[str] = "there is no text in this file"

    @property
    def is_own(self) -> bool:
        """Whether it is a format of this library, which requires the extra `files`."""
        return type(self).__module__.startswith("likewise.")

    def pages(self, path: Path) -> Iterator[Page]:
        """Yield the pages of a file.

        Raises:
            CorpusError: The file is malformed; the message names neither the file nor its format.
        """
        raise NotImplementedError

    def lacks(self) -> str:
        """Return the command that installs the extra, "" if it is installed."""
        return INSTALL if self.is_own and not all(find_spec(name) for name in _PACKAGES) else ""

    def prepare(self, source: Source) -> None:
        """Read the pages into the cache, unless they are cached."""
        self._cached(source.path, source.options)

    def read(self, source: Source) -> Iterator[Page]:
        """Yield the pages from the cache."""
        with self._cached(source.path, source.options).open(encoding="utf-8") as lines:
            for line in lines:
                yield Page(**json.loads(line))

    def _cached(self, path: Path, options: CorpusOptions) -> Path:
        """Return a file of the cache with a page a line; it is made if it is not there."""
        if cure := self.lacks():
            raise CorpusError(f"{path}: to read {path.suffix.lower()} files, markitdown is needed: {cure}")
        try:
            content = checksum(path)
        except OSError as error:
            raise CorpusError(unread(path, error, "check the path")) from None

        def make(folder: Path) -> None:
            if self.is_zipped:
                _check_zip(path, options)
            if error := GUARD.read(path, type(self), folder / _PAGES):
                raise CorpusError(f"{path}: it cannot be read as {self.suffixes[0]} ({error}): save it again")
            with (folder / _PAGES).open(encoding="utf-8") as lines:
                if not any(_has_text(json.loads(line)) for line in lines):
                    raise CorpusError(f"{path}: {self.no_text}")

        return cached("documents", [content, type(self).__name__, _FORMAT, self._version()], make) / _PAGES

    def _version(self) -> str:
        """Return what changes when the same file may be read as another text."""
        if not self.is_own:
            return checksum(Path(str(sys.modules[type(self).__module__].__file__)))
        return " ".join(version(name) for name in ("markitdown", "liteparse", "lxml"))


def _has_text(page: Record) -> bool:
    return bool(page["text"].strip() or page["title"].strip())


def _check_zip(path: Path, options: CorpusOptions) -> None:
    """Refuse what is no zip archive, and one that would expand without measure."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError) as error:
        if limit := limit_of(error):
            raise CorpusError(f"{path} cannot be read: {limit}") from None
        raise CorpusError(
            f"{path}: this is not a complete {path.suffix} file: it is damaged, or has another format: save it again"
        ) from None
    check_expansion(path, size, options)
