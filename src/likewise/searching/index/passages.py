"""Splitting of files into passages: a few sentences of one paragraph, with the file and the line where they begin."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from likewise.corpus.blocks import ITEM
from likewise.corpus.clean_text import digest_of, in_plain_letters, without_invisible, without_surrogates
from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.counts import CorpusReport
from likewise.corpus.inputs import ID
from likewise.corpus.paragraphs import Paragraph, read_paragraphs
from likewise.corpus.sentence_splitter import Placed, gap
from likewise.corpus.sources import open_source
from likewise.corpus.words import DividedText, word_count
from likewise.searching.index.fields import Kind, decimal_of, stored_values

if TYPE_CHECKING:
    from tokenizers import Encoding, Tokenizer

_SIGN = re.compile(r"\w")
_SYMBOL = re.compile("[\u00a2-\u00b6\u2100-\u27bf\u2900-\u2bff\U0001f000-\U0001faff]")
_BAR = re.compile(r"(?<!\\)\|")
"""The bar between two cells of a row."""
_SLICE = 1 << 14
"""Number of characters of a sentence that are read together; a word of a million characters takes long."""
_LONG_WORD = 30
_SPARE = 2  # tokens: a part of a word may be another token where it is cut


def _size(text: str) -> int:
    """Return the number of words of a text, of which one of more than 30 letters counts as several."""
    return max(word_count(text), len(text) // _LONG_WORD)


def passage_text(title: str, text: str) -> str:
    """Return the text that a model reads of a passage: the title, if there is one, and the text."""
    return in_plain_letters(f"{title}: {text}" if title else text)


def has_text(text: str) -> bool:
    """Return whether there is anything to search for: a letter, a digit, or a symbol such as an emoji.

    >>> has_text("👍"), has_text("---")
    (True, False)
    """
    return _SIGN.search(text) is not None or _SYMBOL.search(text) is not None


@dataclass(frozen=True)
class IndexedPassage:
    """A passage and its location.

    Attributes:
        text: Sentences of the passage.
        line: Line where it begins, from 1: the row in a Parquet or .xlsx file, the page in a PDF, the slide in a .pptx
            file, the cell in a notebook, the chapter in an e-book, the mail in a mailbox; 0 in a web page or a Word
            file.
        title: Headings above it, or the title of its article.
        metadata: Values of the metadata fields, in their order; None if a row has none.
        prose: Whether it consists of sentences instead of code or a table.
        id: Id of its row; None if it has none.
        read_title: Part of the title that the model reads; None for the whole title.
        source: Name of its source: a file, or a row or text with its values.
        file: Path to its file; "" without a file.
        is_last: Whether it is the last passage of its source.
    """

    text: str
    line: int
    title: str = ""
    metadata: tuple[object, ...] = ()
    prose: bool = True
    id: str | int | None = None
    read_title: str | None = None
    source: str = ""
    file: str = ""
    is_last: bool = False

    @property
    def encoded(self) -> str:
        """The text that the model reads: the title and the passage."""
        return passage_text(self.title if self.read_title is None else self.read_title, self.text)

    @cached_property
    def key(self) -> str:
        """The name of the text that the model reads, by which its vector is looked up."""
        return digest_of(self.encoded).hex()


class EncodedPassage(NamedTuple):
    """A passage with its vector (D,), and its tokens in their stored form, b"" if they are not stored."""

    passage: IndexedPassage
    vector: np.ndarray
    tokens: bytes


class TokenLimit:
    """The room of a text that a model reads, in its own tokens.

    Args:
        longest: Maximum number of tokens that it reads.
        tokenizer: Function that returns the tokenizer without a limit, or None, with which no text is too long; it is
            called when a text may be.
        prompt: Text before each text.
    """

    def __init__(self, longest: int, tokenizer: Callable[[], Any], prompt: str = "") -> None:
        self._longest, self._open, self._prompt = longest, tokenizer, prompt

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return self._open()

    @cached_property
    def room(self) -> int:
        """The tokens that a title and its text may have together."""
        special = int(self._tokenizer.num_special_tokens_to_add(False))
        return max(8, self._longest - special - self.counts([self._prompt])[0] - _SPARE)

    def shortened(self, title: str) -> str:
        """Return the part of a title that is read, which has at most half of all tokens."""
        if not self.may_be_long([title]) or self.counts([f"{title}:"])[0] <= self.room // 2:
            return title
        return next(self.pieces(title, self.room // 2 - _SPARE)).strip()

    def may_be_long(self, texts: Sequence[str]) -> bool:
        """Return whether texts may have more tokens than there is room, since each has a byte or more."""
        size = sum(len(text.encode("utf-8", "replace")) + 1 for text in texts)
        return size > self._longest // 2 and self._tokenizer is not None

    def counts(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text after another text."""
        return [len(one.ids) for one in self._encoded([f" {text}" for text in texts])]

    def pieces(self, text: str, room: int) -> Iterator[str]:
        """Yield a text in pieces with a maximum number of tokens, divided at a space if there is one."""
        (encoding,) = self._encoded([text])
        begins = [begin for begin, _ in encoding.offsets]
        start, token = 0, 0
        while len(begins) - token > room:
            end = begins[token + room]
            blank = text.rfind(" ", start + (end - start) // 2, end)
            end = blank + 1 if blank >= 0 else max(end, start + 1)
            yield text[start:end]
            start = end
            while token < len(begins) and begins[token] < start:
                token += 1
        yield text[start:]

    def _encoded(self, texts: list[str]) -> list[Encoding]:
        return self._tokenizer.encode_batch([without_surrogates(text) for text in texts], add_special_tokens=False)


@dataclass(frozen=True)
class Splitting:
    """The rules by which files become passages.

    Attributes:
        words: Maximum number of words in a passage.
        options: Options of reading.
        metadata: Fields of rows that are stored with their passages, each with the kind of its values.
        limit: Maximum number of tokens in a passage; None for no limit.
        strict: Whether a value of another kind than its field is an error, instead of a note in the report.
    """

    words: int
    options: CorpusOptions
    metadata: Mapping[str, Kind] = field(default_factory=dict)
    limit: TokenLimit | None = None
    strict: bool = False

    def read(self, path: Path, report: CorpusReport | None = None) -> Iterator[IndexedPassage]:
        """Yield the passages of a file, in order; a row without text gives one that is empty.

        Args:
            report: Report of unreadable input, which is skipped.

        Raises:
            CorpusError: If nothing of it can be read; the message names the line and the cure.
        """
        report = report if report is not None else CorpusReport()
        source = open_source(path, self.options, report=report)
        decimal = decimal_of(source) if self.metadata else None
        for paragraph in read_paragraphs(source, blocks=True, join_rows=True):
            title, name = self._title(paragraph), _name(paragraph)
            line = paragraph.sentences[0][0] if paragraph.sentences else 0
            fields = paragraph.fields if paragraph.row is None else paragraph.row
            metadata, misfits = stored_values(fields, self.metadata, decimal)
            for misfit in misfits:
                if self.strict:
                    raise CorpusError(f"row {line}: {misfit}")
                report.left_out(path, line, f"skipped: {misfit}")
            packed = self._passages if paragraph.kind in ("prose", "heading") else self._lines
            prose, some = paragraph.kind == "prose", False
            above = self.limit.shortened(title) if self.limit else title
            for line, text in packed(paragraph.sentences, above):
                if has_text(text):
                    some = True
                    yield IndexedPassage(text, line, title, metadata, prose, name, above)
            if not some and title and paragraph.row is not None:
                some = True
                yield IndexedPassage(title, line, "", metadata, False, name)
            if not some and paragraph.row is not None:
                report.tell(path, line, "this row has no text")
                yield IndexedPassage("", line, "", metadata, False, name)

    def _title(self, paragraph: Paragraph) -> str:
        row = paragraph.row or {}
        if self.options.field != "title" and isinstance(row.get("title"), str | int | float):
            return " ".join(without_invisible(str(row["title"])).split())
        return " > ".join(paragraph.headings) or paragraph.title

    def _passages(self, placed: Sequence[Placed], title: str) -> Iterator[Placed]:
        """Join consecutive sentences to passages; a sentence that is longer than a passage is cut.

        An entry of a list begins a line.
        """
        buffer, begin, words, tokens = "", 0, 0, 0
        room = self._room([text for _, text in placed], title)
        for line, sentence, size, length in self._sized(placed, room):
            if buffer and (words + size > self.words or tokens + length > room):
                yield begin, buffer
                buffer, words, tokens = "", 0, 0
            begin = begin if buffer else line
            buffer += ("\n" if ITEM.match(sentence) else gap(buffer, sentence)) + sentence if buffer else sentence
            words, tokens = words + size, tokens + length
        yield begin, buffer

    def _room(self, texts: Sequence[str], title: str) -> int:
        """Return the tokens that a passage may have below a title; 0 if none of these texts can be too long."""
        if self.limit is None or not self.limit.may_be_long([title, *texts]):
            return 0
        return self.limit.room - (self.limit.counts([f"{title}:"])[0] if title else 0)

    def _sized(self, sentences: Sequence[Placed], room: int) -> Iterator[tuple[int, str, int, int]]:
        """Yield the line, the text, the words and the tokens of sentences, in pieces where they are too long."""
        parts = list(sentences)
        if any(len(text) > _SLICE for _, text in parts):
            parts = [(line, part) for line, text in parts for part in _slices(text)]
        counts = self._counts([text for _, text in parts], room)
        for (line, text), tokens in zip(parts, counts, strict=True):
            words = _size(text)
            if words <= self.words and tokens <= room:
                yield line, text, words, tokens
                continue
            for piece in self._cut(text):
                (count,) = self._counts([piece], room)
                if not self.limit or count <= room:
                    yield line, piece, _size(piece), count
                    continue
                for short in self.limit.pieces(piece, room - _SPARE):
                    yield line, short.strip(), _size(short), self.limit.counts([short])[0]

    def _counts(self, texts: Sequence[str], room: int) -> list[int]:
        """Return the number of tokens of each text; 0 if there is room for any."""
        return self.limit.counts(texts) if self.limit and room else [0] * len(texts)

    def _cut(self, text: str) -> Iterator[str]:
        """Yield a text in pieces that are no longer than a passage in words."""
        divided = DividedText.of(text)
        for begin in range(0, len(divided), self.words):
            piece = divided.part(begin, begin + self.words)
            step = max(1, len(piece) * self.words // max(1, _size(piece)))
            if _size(piece) <= self.words:
                yield piece
            else:  # of words that are too long for words
                yield from (piece[start : start + step] for start in range(0, len(piece), step))

    def _lines(self, placed: Sequence[Placed], title: str) -> Iterator[Placed]:
        """Join the lines of code or of a table, unchanged, to passages.

        Each passage of a divided table begins with its header. A row that has no room below it becomes the texts of
        its cells, each behind the name of its column.
        """
        texts = [text for _, text in placed]
        room = self._room(texts, title)
        sizes = [(_size(text), count) for text, count in zip(texts, self._counts(texts, room), strict=True)]
        first = 2 if len(placed) > 2 and _is_delimiter(texts[1]) else 0
        names, is_wide = _cells_of(texts[0]) if first else [], False
        above = (sum(words for words, _ in sizes[:first]), sum(count for _, count in sizes[:first]))
        if above[0] > self.words // 2 or (room and above[1] > room // 2):  # a header that leaves no room is given once
            first, above, is_wide = 0, (0, 0), bool(first)
        header = texts[:first]
        buffer: list[str] = []
        begin = words = count = 0
        for place, ((line, text), (own_words, own_count)) in enumerate(zip(placed, sizes, strict=True)):
            is_row = place >= (2 if names else 0)
            is_full = words + own_words > self.words or bool(room and count + own_count > room)
            if is_full and len(buffer) > len(header):
                yield begin, "\n".join(buffer)
                buffer, (words, count), begin = list(header), above, line
            begin = begin or line
            is_long = above[0] + own_words > self.words or bool(room and above[1] + own_count > room)
            if is_row and (is_long or is_wide):
                cells = _named(names, text) if names else [text]
                yield from self._passages([(line, cell) for cell in cells], title)
                continue
            buffer.append(text)
            words, count = words + own_words, count + own_count
        if len(buffer) > len(header) or (buffer and not header):
            yield begin, "\n".join(buffer)


def _named(names: Sequence[str], row: str) -> list[str]:
    """Return the cells of a row, each behind the name of its column."""
    pairs = zip_longest(names, _cells_of(row), fillvalue="")
    return [f"{name}: {cell}" if name else cell for name, cell in pairs if cell]


def _slices(text: str) -> Iterator[str]:
    """Yield a text in pieces, cut at blanks, that a tokenizer reads quickly."""
    start = 0
    while len(text) - start > _SLICE:
        end = text.rfind(" ", start, start + _SLICE) + 1 or start + _SLICE
        end = end if end > start else start + _SLICE
        yield text[start:end].strip()
        start = end
    yield text[start:].strip()


def _name(paragraph: Paragraph) -> str | int | None:
    """Return the id of a row, None if it has none."""
    row = paragraph.row or {}
    own = next((row[key] for key in (ID, "id") if row.get(key) not in (None, "")), None)
    return own if own is None or isinstance(own, int) else without_invisible(str(own))


def _is_delimiter(line: str) -> bool:
    """Return whether a line is the one below a table's header.

    >>> _is_delimiter("| --- | ---: |"), _is_delimiter("| a - b |")
    (True, False)
    """
    return "|" in line and "-" in line and not line.strip(" \t|:-")


def _cells_of(row: str) -> list[str]:
    """Return the cells of a row of a table.

    >>> _cells_of("| a | b \\\\| c |")
    ['a', 'b | c']
    """
    return [cell.replace("\\|", "|").strip() for cell in _BAR.split(row.strip().strip("|"))]
