"""Splitting of files into passages: a few sentences of one paragraph, with the file and the line where they begin."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from likewise.corpus.decoding import without_invisible
from likewise.corpus.options import CorpusError, CorpusOptions
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.sources import files_in, find_files, nothing_in, open_source, prose_of
from likewise.corpus.splitting import Placed

_SIGN = re.compile(r"\w")


@dataclass(frozen=True)
class IndexedPassage:
    """A passage, and where it stands.

    Attributes:
        text: its sentences.
        line: where it begins, from 1; in a Parquet file the row.
        title: the heading above it, or the title of its article.
        metadata: the values of the metadata fields, in their order; "" where there is none.
    """

    text: str
    line: int
    title: str = ""
    metadata: tuple[str, ...] = ()

    @property
    def encoded(self) -> str:
        """The text that the model reads: the title and the passage."""
        return f"{self.title}: {self.text}" if self.title else self.text


@dataclass(frozen=True)
class Splitting:
    """The rules by which files become passages.

    Attributes:
        words: of a passage at most.
        options: how the files are read.
        metadata: the fields of rows that are kept with their passages.
    """

    words: int
    options: CorpusOptions
    metadata: tuple[str, ...] = ()

    def read(self, path: Path) -> Iterator[IndexedPassage]:
        """Yield the passages of a file, in order.

        Raises:
            CorpusError: it cannot be read; the message names the line and the cure.
        """
        options = self.options
        for paragraph in read_paragraphs(open_source(path, options), join_rows=True):
            title, row = paragraph.title, paragraph.row or {}
            if paragraph.row is not None and options.field != "title" and isinstance(found := row.get("title"), str):
                title = without_invisible(found).strip()
            values = (row.get(name) for name in self.metadata)
            metadata = tuple("" if value is None else without_invisible(str(value)) for value in values)
            for line, text in self._passages(paragraph.sentences):
                if _SIGN.search(text):
                    yield IndexedPassage(text, line, title, metadata)

    def _passages(self, placed: Sequence[Placed]) -> Iterator[Placed]:
        """Join consecutive sentences to passages; a sentence that is longer than a passage is cut."""
        held: list[str] = []
        begin = 0
        for line, sentence in placed:
            words = sentence.split()
            while words:
                if held and len(held) + len(words) > self.words:
                    yield begin, " ".join(held)
                    held = []
                begin = begin if held else line
                held, words = held + words[: self.words], words[self.words :]
        yield begin, " ".join(held)


def files_of(texts: Sequence[str | os.PathLike[str]], leave_out: Path) -> tuple[list[Path], list[Path], str]:
    """Return the files that were named, the files of the folders that were named, and a line on those left out.

    Args:
        texts: files, folders, globs, or `bundled:wiki-sample`.
        leave_out: a folder that is not looked into: the index itself. Hidden files and folders are left out, too, and
            files that are not prose (see `prose_of`).

    Raises:
        CorpusError: there is no such file, or there is no file at all.
    """
    named = [text for text in texts if not Path(text).is_dir()]
    walked = [path for text in texts if Path(text).is_dir() for path in files_in(Path(text), leave_out)]
    files = find_files(named) if named or not texts else []
    prose, others = prose_of(walked)
    if not files and not prose:
        raise CorpusError(nothing_in(texts[0], others))
    return files, prose, others
