"""Rows in JSON: one object per line, or a list of objects."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace

from likewise.corpus.corpus_options import TEXT, CorpusError
from likewise.corpus.files import LINE_LIMIT, format_suffix
from likewise.corpus.formats import Format, Row, Source
from likewise.corpus.rows import json_type
from likewise.corpus.text_lines import decoded_lines
from likewise.runs.whole_files import Record, parse_json

ROW_LIMIT = 1 << 26
"""Longest row that is read, in bytes or characters: it must be held whole."""
_PIECE = 1 << 16
"""Number of characters that are read at a time."""
_GAP = re.compile(r"[\s,]*")


def json_object(text: str, where: str) -> Record:
    """Return the object that a line of a JSONL file contains; the error of one that holds none names its place."""
    try:
        value = parse_json(text)
        reason = f"it is {json_type(value)}"
    except ValueError as error:
        value, reason = None, str(error)
    if isinstance(value, dict):
        return value
    raise CorpusError(f"{where}: not a JSON object ({reason}): a JSONL file has exactly one object per line")


class JsonLines(Format):
    """Files with a JSON object on each line."""

    name = "JSONL"
    suffixes = (".jsonl", ".ndjson")
    holds = "rows"

    def accepts(self, source: Source) -> bool:
        """Return whether a file is called so, or begins with an object; a text may well begin with a brace."""
        if format_suffix(source.path) in (*self.suffixes, *JsonList.suffixes):
            return source.start != b""
        return source.start.startswith(b"{") and _begins(self, source)

    def read(self, source: Source) -> Iterator[Row]:
        """Yield the objects."""
        for number, text in decoded_lines(source, ROW_LIMIT):
            if text.strip():
                try:
                    row = json_object(text.lstrip("\ufeff"), "")  # of a file that was put behind another one
                except CorpusError as error:
                    source.drop_row(number, str(error).removeprefix(": "))
                else:
                    yield number, row


class JsonList(Format):
    """Files with one JSON list, or with objects that follow each other on any number of lines."""

    name = "JSON"
    suffixes = (".json",)
    holds = "rows"
    in_folders = False

    def accepts(self, source: Source) -> bool:
        """Return whether a file has the suffix, and is not JSON Lines."""
        if format_suffix(source.path) not in (*self.suffixes, *JsonLines.suffixes):
            return False
        is_one = source.start.startswith(b"[") or (source.start.startswith(b"{") and b"\n" in source.start)
        return is_one and not _begins(JsonLines(), source) and _begins(self, source)

    def read(self, source: Source) -> Iterator[Row]:
        """Yield the objects; a string of a list is a row with that text alone."""
        pieces = _Pieces(source)
        is_list, begun = pieces.peek() == "[", False
        while first := pieces.peek():
            if is_list and first == ("]" if begun else "["):
                if begun:
                    return
                begun = True
                pieces.skip()
                continue
            line = pieces.line
            try:
                value = pieces.value()
            except ValueError as error:
                source.drop_row(line, f"not a JSON object ({error}): it and the rest of the file are skipped")
                return
            if isinstance(value, dict):
                yield line, value
            elif is_list and isinstance(value, str):
                yield line, {source.options.field or TEXT: value}
            else:
                rows = "a list has one object or string per row" if is_list else "one object per line"
                source.drop_row(line, f"not a JSON object (it is {json_type(value)}): {rows}")
        if is_list:
            source.drop_row(pieces.line, "the list does not end: the file is truncated, or is still being written")


class _Pieces:
    """The values of a file of JSON, of which one at a time is held.

    Attributes:
        line: Number of the line that is reached, from 1.
    """

    def __init__(self, source: Source) -> None:
        self.line = 1
        self._lines = decoded_lines(source, LINE_LIMIT)
        self._decoder = json.JSONDecoder()
        self._text, self._at, self._ended = "", 0, False

    def peek(self) -> str:
        """Return the first character of the next value, "" at the end."""
        while True:
            gap = _GAP.match(self._text, self._at)
            assert gap is not None
            self._go_to(gap.end())
            if self._at < len(self._text) or not self._read_on():
                return self._text[self._at : self._at + 1]

    def skip(self) -> None:
        """Go on behind one character."""
        self._at += 1

    def value(self) -> object:
        """Return the next value.

        Raises:
            ValueError: If the value is invalid JSON, or incomplete.
        """
        while True:
            try:
                value, end = self._decoder.raw_decode(self._text, self._at)
            except RecursionError:
                raise ValueError("it is nested too deeply") from None
            except json.JSONDecodeError as error:
                is_cut = error.pos > len(self._text) - 64 or error.msg.startswith("Unterminated")
                if is_cut and len(self._text) - self._at < ROW_LIMIT and self._read_on():
                    continue
                raise
            self._go_to(end)
            return value

    def _go_to(self, place: int) -> None:
        self.line += self._text.count("\n", self._at, place)
        self._at = place

    def _read_on(self) -> bool:
        """Read on, as much again as is held, and return whether there was anything."""
        parts, size = [self._text[self._at :]], 0
        limit = max(_PIECE, len(parts[0]))
        while size < limit and not self._ended:
            _, text = next(self._lines, (0, ""))
            self._ended = not text
            parts.append(text)
            size += len(text)
        self._text, self._at = "".join(parts), 0
        return size > 0


def _begins(format: Format, source: Source) -> bool:
    """Return whether the first row of a file can be read in a format."""
    try:
        next(format.read(replace(source, strict=True)), None)
    except CorpusError:
        return False
    return True
