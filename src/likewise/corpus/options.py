"""How a corpus is read: every choice in one frozen dataclass."""

import codecs
from dataclasses import dataclass
from typing import Literal, get_args

from likewise.corpus.errors import CorpusError

Split = Literal["auto", "line", "prose"]


@dataclass(frozen=True)
class CorpusOptions:
    """How the files of a corpus become sentences.

    Words are counted by white space. For a language that writes without blanks set `min_words=1`.

    Attributes:
        field: name of the JSONL field that holds the text; None for a corpus with no JSONL file.
        split: "line" takes every line of a plain text file as one sentence, "prose" splits its paragraphs,
            "auto" looks at the beginning of each file (the rule is in `likewise.corpus.splitting`). It is for
            plain text only: JSONL fields, articles and MediaWiki dumps are always prose.
        min_words: shortest sentence kept. 3: one or two words are headings and list entries, not sentences.
        max_words: longest sentence kept, None for no limit. 100: past it are mostly lists that no stop
            divides, and encoders cut at 32 to 128 tokens anyway.
        encoding: a Python codec name, for all files.
        deduplicate: keep only the first of equal sentences (equal after white space is made one blank).

    Raises:
        CorpusError: values that contradict each other or cannot be.

    >>> CorpusOptions(min_words=5).max_words
    100
    >>> CorpusOptions(min_words=9, max_words=3)
    Traceback (most recent call last):
    ...
    likewise.corpus.errors.CorpusError: min_words 9 is more than max_words 3: no sentence could be kept
    """

    field: str | None = None
    split: Split = "auto"
    min_words: int = 3
    max_words: int | None = 100
    encoding: str = "utf-8"
    deduplicate: bool = True

    def __post_init__(self) -> None:
        if self.split not in get_args(Split):
            raise CorpusError(f"split {self.split!r} is not one of {', '.join(get_args(Split))}")
        if self.field is not None and not self.field:
            raise CorpusError("field is an empty name: give the JSONL field's name, or leave it out")
        if self.field is not None and self.split == "line":
            raise CorpusError("split 'line' is for plain text, but field names a JSONL field, which is always prose")
        if self.min_words < 1:
            raise CorpusError(f"min_words {self.min_words} must be 1 or more: an empty sentence is never kept")
        if self.max_words is not None and self.max_words < self.min_words:
            raise CorpusError(
                f"min_words {self.min_words} is more than max_words {self.max_words}: no sentence could be kept"
            )
        try:
            codecs.lookup(self.encoding)
        except LookupError:
            raise CorpusError(f"unknown encoding {self.encoding!r}: try utf-8, latin-1 or utf-16") from None
        if not codecs.lookup(self.encoding)._is_text_encoding:
            raise CorpusError(f"encoding {self.encoding!r} is not a text encoding: try utf-8 or latin-1")
