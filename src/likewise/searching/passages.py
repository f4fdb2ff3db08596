"""Splitting of files into passages: a few sentences of one paragraph, with the file and the line where they begin."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.given import ID
from likewise.corpus.lines_and_rows import without_invisible
from likewise.corpus.markdown import ITEM, is_delimiter
from likewise.corpus.paragraphs import read_paragraphs
from likewise.corpus.sentence_splitter import Placed
from likewise.corpus.sources import files_in, find_files, nothing_in, open_source, prose_of
from likewise.searching.fields import Kind, kept_values

_SIGN = re.compile(r"\w")


def passage_text(title: str, text: str) -> str:
    """Return the text that a model reads of a passage: the title, if there is one, and the text."""
    return f"{title}: {text}" if title else text


@dataclass(frozen=True)
class IndexedPassage:
    """A passage, and where it stands.

    Attributes:
        text: its sentences.
        line: where it begins, from 1; in a Parquet file the row, in a PDF the page, in a .pptx file the slide, in a
            notebook the cell; 0 in a web page or a Word file.
        title: the headings above it, or the title of its article.
        metadata: the values of the metadata fields, in their order; None if a row has none.
        id: that of its row; None if it has none.
        prose: whether it is sentences, and not code or a table.
    """

    text: str
    line: int
    title: str = ""
    metadata: tuple[Any, ...] = ()
    prose: bool = True
    id: str | int | None = None

    @property
    def encoded(self) -> str:
        """The text that the model reads: the title and the passage."""
        return passage_text(self.title, self.text)


@dataclass(frozen=True)
class Splitting:
    """The rules by which files become passages.

    Attributes:
        words: of a passage at most.
        options: how the files are read.
        metadata: the fields of rows that are kept with their passages, each with the kind of its values.
    """

    words: int
    options: CorpusOptions
    metadata: Mapping[str, Kind] = field(default_factory=dict)

    def read(self, path: Path) -> Iterator[IndexedPassage]:
        """Yield the passages of a file, in order.

        Raises:
            CorpusError: it cannot be read; the message names the line and the cure.
        """
        options = self.options
        source = open_source(path, options)
        for paragraph in read_paragraphs(source, blocks=True, join_rows=True):
            title, row = " > ".join(paragraph.headings) or paragraph.title, paragraph.row or {}
            if paragraph.row is not None and options.field != "title" and isinstance(found := row.get("title"), str):
                title = without_invisible(found).strip()
            place = f"{path}:{paragraph.sentences[0][0]}" if paragraph.sentences else str(path)
            metadata = kept_values(row, self.metadata, place, source.kind == "csv") if self.metadata else ()
            own = next((row[key] for key in (ID, "id") if row.get(key) not in (None, "")), None)
            name = own if own is None or isinstance(own, int) else without_invisible(str(own))
            prose = paragraph.kind == "prose"
            packed = self._passages if prose else self._lines
            for line, text in packed(paragraph.sentences):
                if _SIGN.search(text):
                    yield IndexedPassage(text, line, title, metadata, prose, name)

    def _passages(self, placed: Sequence[Placed]) -> Iterator[Placed]:
        """Join consecutive sentences to passages; a sentence that is longer than a passage is cut.

        An entry of a list begins a line.
        """
        held: list[str] = []
        begin = 0
        for line, sentence in placed:
            words = sentence.split()
            if held and ITEM.match(sentence):
                words[0] = f"\n{words[0]}"
            while words:
                if held and len(held) + len(words) > self.words:
                    yield begin, _joined(held)
                    held = []
                begin = begin if held else line
                held, words = held + words[: self.words], words[self.words :]
        yield begin, _joined(held)

    def _lines(self, placed: Sequence[Placed]) -> Iterator[Placed]:
        """Join the lines of code or of a table, as they stand, to passages.

        Each passage of a divided table begins with its header.
        """
        header = [text for _, text in placed[:2]] if len(placed) > 2 and is_delimiter(placed[1][1]) else []
        held: list[str] = []
        begin = size = 0
        for line, text in placed:
            words = len(text.split())
            if held and size + words > self.words and len(held) > len(header):
                yield begin, "\n".join(held)
                held, size, begin = list(header), sum(len(one.split()) for one in header), line
            begin = begin or line
            if words > self.words:  # one that is no code or table
                for _, part in self._passages([(line, text)]):
                    yield line, part
                continue
            held.append(text)
            size += words
        if len(held) > len(header):
            yield begin, "\n".join(held)


def _joined(words: Sequence[str]) -> str:
    return " ".join(words).replace(" \n", "\n").strip()


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
