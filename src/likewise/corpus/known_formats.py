"""The only list of formats: formats of entry points, such as documents, and the formats of text and rows."""

import re
from functools import cache
from importlib.metadata import EntryPoint
from pathlib import Path

from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.csv_rows import SeparatedValues
from likewise.corpus.files import format_suffix
from likewise.corpus.formats import Format, Source
from likewise.corpus.json_rows import JsonLines, JsonList
from likewise.corpus.parquet_rows import Parquet
from likewise.corpus.text_lines import PlainText
from likewise.runs.plugins import FORMATS_GROUP, entry_points_of, load_registered

_OWN = (Parquet(), SeparatedValues(), JsonList(), JsonLines(), PlainText())
"""Formats of this room, in the order in which they are asked whether they accept a file."""
_SUFFIX = re.compile(r"\.[^\sA-Z]+")


@cache
def formats() -> tuple[Format, ...]:
    """Return all formats in the order in which they are tried.

    Formats that this library registers come first, then other packages' formats, then text and rows.

    Raises:
        CorpusError: If a registered format cannot be loaded, or is not a subclass of `Format`.
    """
    entries = sorted(entry_points_of(FORMATS_GROUP), key=lambda entry: (not _is_own(entry), entry.name))
    return (*map(_loaded, {entry.value: entry for entry in entries}.values()), *_OWN)


def format_of(source: Source) -> Format:
    """Return the format of a file."""
    return next(format for format in formats() if format.accepts(source))


def format_named(path: Path) -> Format | None:
    """Return the format that the ending of a file names, None if none does."""
    return _by_suffix().get(format_suffix(path))


def folder_suffixes() -> tuple[str, ...]:
    """Return the endings of the files of a folder that are read."""
    ours = [suffix for format in reversed(formats()) if format.in_folders for suffix in format.suffixes]
    return tuple(dict.fromkeys(ours))


def readable() -> str:
    """Return what can be read, for a message."""
    texts = dict.fromkeys(format.name for format in reversed(formats()) if format.holds != "pages")
    documents = [suffix for format in formats() if format.holds == "pages" for suffix in format.suffixes]
    return ", ".join([*texts, f"or a document ({', '.join(documents)})" if documents else "or a document"])


def row_format(path: Path) -> Format:
    """Return the format of a table: that of its ending, and separated values for any other."""
    format = format_named(path)
    return format if format is not None and has_rows(path) else SeparatedValues()


def has_rows(path: Path) -> bool:
    """Return whether the suffix of a file belongs to a table."""
    format = format_named(path)
    return format is not None and (format.holds == "rows" or format.has_rows)


@cache
def _by_suffix() -> dict[str, Format]:
    return {suffix: format for format in reversed(formats()) for suffix in format.suffixes}


def _is_own(entry: EntryPoint) -> bool:
    return entry.value.startswith("likewise.")


def _loaded(entry: EntryPoint) -> Format:
    kind = load_registered(entry, type, f"the format {entry.name!r}", CorpusError)
    named = f"the format {entry.name!r} ({entry.value})"
    if not issubclass(kind, Format):
        raise CorpusError(f"{named} is not a subclass of likewise.corpus.Format")
    if wrong := [suffix for suffix in kind.suffixes if not _SUFFIX.fullmatch(suffix)]:
        raise CorpusError(
            f"{named} has the suffix {wrong[0]!r}: `suffixes` must be a tuple of lower-case suffixes with their dots, "
            f"such as ('.srt',)"
        )
    return kind()
