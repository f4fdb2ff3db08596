"""The options of reading a corpus, and the error of one that cannot be read."""

import codecs
from collections.abc import Sequence
from os import PathLike
from typing import Literal

from likewise.corpus.encodings import AUTO
from likewise.errors import LikewiseError
from likewise.runs.options import OptionError, Options, option

Split = Literal["auto", "line", "prose"]
Spec = str | PathLike[str] | Sequence[str | PathLike[str]]
"""A path, a folder, a glob, `bundled:wiki-sample`, `hf:NAME[:CONFIG][:SPLIT][:COLUMN]`, or a list of these."""
TEXT = "text"
"""The field that contains the text of a row where none is named, in a file as in Python."""


class CorpusError(LikewiseError):
    """Raised if a corpus cannot be read; the message names the file, the line if there is one, and the cure."""


class CorpusOptions(Options):
    """The rules by which files become sentences.

    Words are separated by white space; in languages written without spaces, two characters count as a word.

    >>> CorpusOptions(min_words=5).max_words
    100
    >>> CorpusOptions(min_words=9, max_words=3)
    Traceback (most recent call last):
    ...
    likewise.runs.options.OptionError: min_words 9 is more than max_words 3: every sentence would be dropped
    """

    field: str | None = option(
        None, "Name of the field that contains the text in JSONL, CSV and Parquet rows; by default text.", min_length=1
    )
    split: Split = option(
        "auto",
        "Layout of plain text. line: each line is a sentence. prose: the text is split into sentences. auto: decided "
        "by the beginning of each file. Fields of rows, articles and MediaWiki dumps are always prose.",
    )
    # One or two words are headings and list entries, not sentences.
    min_words: int = option(3, "Minimum number of words; shorter sentences are dropped.", ge=1)
    # Longer ones are mostly lists that no full stop divides, and encoders cut at 32 to 128 tokens anyway.
    max_words: int | None = option(100, "Maximum number of words; longer sentences are dropped.")
    encoding: str = option(
        AUTO, "Encoding of the files, by its Python name; auto is UTF-8, or detected for files in another encoding."
    )
    exclude: list[str] = option(
        [], "Patterns of files and folders to skip, as in a .gitignore; .gitignore and .likewiseignore apply as well."
    )
    separator: str | None = option(
        None, "Separator of the cells of CSV files; by default it is detected.", min_length=1, max_length=1
    )
    decimal: Literal["auto", ".", ","] = option(
        "auto", "Decimal separator of numbers in CSV files; auto accepts a comma only if it does not separate cells."
    )
    deduplicate: bool = option(True, "Whether to drop repeated sentences; white space is ignored.")
    # Text shrinks to a tenth to a third; a thousandth is a damaged or hostile file, which would fill the disk.
    max_expansion: int = option(
        100, "Maximum expansion of a compressed file; a file that exceeds it and 64 MiB is refused.", ge=1
    )

    def _check(self) -> None:
        if self.field is not None and self.split == "line":
            raise OptionError(
                "split 'line' applies to plain text, but field names a field of rows, which is always prose"
            )
        if self.max_words is not None and self.max_words < self.min_words:
            raise OptionError(
                f"min_words {self.min_words} is more than max_words {self.max_words}: every sentence would be dropped"
            )
        if self.encoding == AUTO:
            return
        try:
            is_text = codecs.lookup(self.encoding)._is_text_encoding
        except LookupError:
            raise OptionError(f"unknown encoding {self.encoding!r}: try utf-8, latin-1 or utf-16") from None
        if not is_text:
            raise OptionError(f"encoding {self.encoding!r} is not a text encoding: try utf-8 or latin-1")
