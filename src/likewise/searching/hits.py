"""The results of a search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Hit:
    """A passage that was found.

    Attributes:
        score: what the hits are sorted by: the reciprocal rank in a hybrid search, otherwise `similarity` or `words`.
        file, line: where the passage begins.
        title: the heading above it, "" if there is none.
        text: the passage.
        sentence: the one of its sentences that fits the query best.
        similarity: the cosine of query and passage; None if it was found by its words only.
        words: the BM25 score; None if it was found by its vector only.
        metadata: the fields that were kept with the passage.
    """

    score: float
    file: str
    line: int
    title: str
    text: str
    sentence: str
    similarity: float | None = None
    words: float | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def place(self) -> str:
        """File and line, relative to the present folder if the file is in it."""
        path = Path(self.file)
        return f"{path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path}:{self.line}"

    @property
    def parts(self) -> tuple[str, str, str]:
        """The text before the marked sentence, the sentence, and the text after it.

        >>> Hit(1.0, "a.txt", 1, "", "It rains. Take a coat. Run.", "Take a coat.").parts
        ('It rains. ', 'Take a coat.', ' Run.')
        """
        before, found, after = self.text.partition(self.sentence)
        return before, found, after

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)
