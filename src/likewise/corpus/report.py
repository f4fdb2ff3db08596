"""Counts of the sentences that were read, kept and dropped, by reason."""

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

Reason = Literal["empty", "too short", "too long", "undecodable", "markup", "duplicate"]

EXAMPLES = 5
"""Places remembered for each reason."""


@dataclass
class CorpusReport:
    """Counts of one reading of a corpus; `read == kept + dropped` always holds at its end.

    Attributes:
        read: sentences looked at; in a file with one sentence per line, its lines (the empty ones too). A line
            that cannot be decoded counts as one.
        kept: sentences kept.
        dropped: how many were dropped, by reason: "empty" (nothing but blanks and signs), "too short" and
            "too long" (in words), "undecodable" (bytes that are not text in the encoding), "markup" (tables,
            headings, list entries and captions of a wiki page), "duplicate".
        examples: for each reason the first 5 different places, as "file:line".
        files: how each file was read: path to "line", "prose", "jsonl", "csv", "parquet", "articles" or "wiki".
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
        """Return a short text: counts, and the first places, without the file name if there is only one.

        >>> report = CorpusReport(read=3, kept=1)
        >>> report.drop("too short", "texts/a.txt", 7)
        >>> report.drop("too short", "texts/a.txt", 9)
        >>> print(report.table())
        read                 3
        kept                 1
        too short            2  lines 7, 9
        >>> report.drop("empty", "texts/b.txt", 2)
        >>> print(report.table().splitlines()[-1])
        empty                1  b.txt:2
        """
        one_file = len({_split(place)[0] for places in self.examples.values() for place in places}) == 1
        rows = [f"{'read':<12}{self.read:>10,}", f"{'kept':<12}{self.kept:>10,}"]
        for reason, count in self.dropped.items():
            places = self.examples.get(reason, [])
            more = ", ..." if count > len(places) else ""
            rows.append(f"{reason:<12}{count:>10,}  {_brief(places, one_file)}{more}")
        return "\n".join(rows)

    def __str__(self) -> str:
        return self.table()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return asdict(self)


def _split(place: str) -> tuple[str, str]:
    file, _, line = place.rpartition(":")
    return file, line


def _brief(places: list[str], one_file: bool) -> str:
    """Return the places as text, with each file named once, or not at all."""
    lines: dict[str, list[str]] = {}
    for place in places:
        file, line = _split(place)
        lines.setdefault(file, []).append(line)
    if one_file:
        found = next(iter(lines.values()), [])
        return f"{'lines' if len(found) > 1 else 'line'} {', '.join(found)}"
    return "; ".join(f"{Path(file).name}:{', '.join(found)}" for file, found in lines.items())
