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
"""The field that holds the text of a row where none is named, in a file as in Python."""


class CorpusError(LikewiseError):
    """Raised if a corpus cannot be read; the message names the file, the line if there is one, and the cure."""


class CorpusOptions(Options):
    """The rules by which files become sentences.

    Words are counted by white space, and as two letters each in languages that are written without blanks.

    >>> CorpusOptions(min_words=5).max_words
    100
    >>> CorpusOptions(min_words=9, max_words=3)
    Traceback (most recent call last):
    ...
    likewise.runs.options.OptionError: min_words 9 is more than max_words 3: no sentence could be kept
    """

    field: str | None = option(
        None, "Field that holds the text in JSONL, CSV and Parquet rows; by default text.", min_length=1
    )
    split: Split = option(
        "auto",
        "Plain text: each line is a sentence, or prose to be split; auto looks at the beginning of each file. Fields "
        "of rows, articles and MediaWiki dumps are always prose.",
    )
    # One or two words are headings and list entries, not sentences.
    min_words: int = option(3, "Minimum number of words; shorter sentences are dropped.", ge=1)
    # Longer ones are mostly lists that no full stop divides, and encoders cut at 32 to 128 tokens anyway.
    max_words: int | None = option(100, "Maximum number of words; longer sentences are dropped.")
    encoding: str = option(
        AUTO, "Encoding of the files, by Python's name for it; auto is UTF-8, or what a file that is not looks like."
    )
    exclude: list[str] = option(
        [],
        "Files and folders of a folder that are left out, as patterns of a .gitignore; beside those of .gitignore and "
        ".likewiseignore files.",
    )
    separator: str | None = option(
        None,
        "Separator of the cells of CSV files; by default the one that fits their rows.",
        min_length=1,
        max_length=1,
    )
    decimal: Literal["auto", ".", ","] = option(
        "auto", "Decimal sign of numbers in CSV files; auto takes a comma only where the separator is another sign."
    )
    deduplicate: bool = option(True, "Drop repeated sentences; differences in white space do not count.")
    # Text shrinks to a tenth to a third; a thousandth is a damaged or hostile file, which would fill the disk.
    max_expansion: int = option(
        100,
        "Refuse a compressed file that expands to more than 64 MiB and to more than this many times its size.",
        ge=1,
    )

    def _check(self) -> None:
        if self.field is not None and self.split == "line":
            raise OptionError("split 'line' is for plain text, but field names a field of rows, which is always prose")
        if self.max_words is not None and self.max_words < self.min_words:
            raise OptionError(
                f"min_words {self.min_words} is more than max_words {self.max_words}: no sentence could be kept"
            )
        if self.encoding == AUTO:
            return
        try:
            is_text = codecs.lookup(self.encoding)._is_text_encoding
        except LookupError:
            raise OptionError(f"unknown encoding {self.encoding!r}: try utf-8, latin-1 or utf-16") from None
        if not is_text:
            raise OptionError(f"encoding {self.encoding!r} is not a text encoding: try utf-8 or latin-1")
