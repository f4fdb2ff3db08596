"""A block of a marked text or of a document: prose, code, a table or a heading, with the headings above it."""

import re
from dataclasses import dataclass
from typing import Literal

from likewise.corpus.sentence_splitter import Placed

BlockKind = Literal["prose", "code", "table", "heading"]

ITEM = re.compile(r"\s{0,200}(?:[-*+•]|\d{1,9}[.)])\s+\S")
"""The beginning of an entry of a list."""


@dataclass(frozen=True)
class Block:
    """A part of a marked text.

    Attributes:
        kind: Kind of the block; a heading is a separate block only if it has no text.
        lines: Unchanged lines with their numbers. The marks of quotations are removed from prose; the marks of list
            entries are not.
        headings: Headings above the block, starting with the outermost.
    """

    kind: BlockKind
    lines: list[Placed]
    headings: tuple[str, ...] = ()
