"""What was read, kept and dropped, and why."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

Reason = Literal["empty", "too short", "too long", "undecodable", "markup", "duplicate"]

EXAMPLES = 5
"""How many places are remembered for each reason."""


@dataclass
class CorpusReport:
    """Counts of one reading of a corpus; `read == kept + dropped` always holds at its end.

    Attributes:
        read: sentences looked at; in a file with a sentence a line, its lines (the empty ones too). A line
            that cannot be decoded counts as one.
        kept: sentences kept.
        dropped: how many were dropped, by reason: "empty" (nothing but blanks and signs), "too short" and
            "too long" (in words), "undecodable" (bytes that are no text in the encoding), "markup" (tables,
            headings, list entries and captions of a wiki page), "duplicate".
        examples: for each reason the first 5 different places, as "file:line".
        files: how each file was read: path to "line", "prose", "jsonl", "articles" or "wiki".
    """

    read: int = 0
    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)

    def drop(self, reason: Reason, file: str, line: int) -> None:
        """Count a dropped sentence that begins at `line` (from 1) of `file`."""
        self.dropped[reason] = self.dropped.get(reason, 0) + 1
        places = self.examples.setdefault(reason, [])
        place = f"{file}:{line}"
        if len(places) < EXAMPLES and place not in places:  # a long line may lose many sentences
            places.append(place)

    def table(self) -> str:
        """Give a short text for people; places by the name of the file without its folder.

        >>> report = CorpusReport(read=2, kept=1)
        >>> report.drop("too short", "a.txt", 7)
        >>> print(report.table())
        read                 2
        kept                 1
        too short            1  a.txt:7
        """
        rows = [f"{'read':<12}{self.read:>10,}", f"{'kept':<12}{self.kept:>10,}"]
        for reason, count in self.dropped.items():
            places = [Path(place).name for place in self.examples.get(reason, [])]
            more = ", ..." if count > len(places) else ""
            rows.append(f"{reason:<12}{count:>10,}  {', '.join(places)}{more}")
        return "\n".join(rows)

    def __str__(self) -> str:
        return self.table()

    def to_dict(self) -> dict[str, Any]:
        """Give plain values that JSON can hold."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Self:
        """Make a report from what `to_dict` gave."""
        return cls(**values)
