"""Counts of the sentences that were read, kept and dropped, by reason."""

import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal

from likewise.errors import counted
from likewise.runs.whole_files import Record

Reason = Literal["empty", "too short", "too long", "undecodable", "markup", "bad row", "duplicate"]

EXAMPLES = 5
"""Places remembered for each reason."""
_EXAMPLE_LINES = EXAMPLES + 1
"""Sentences of a kind that a user is shown: so many that the rows of one file and the count of its others fit."""
_KINDS = 20
"""Kinds of sentences that a user is shown."""
_OWN = re.compile(r"""\d+|'[^']*'|"[^"]*"|\([^()]*\)""")  # what a sentence says of its own row or file


def shortened(notes: Sequence[str]) -> list[str]:
    """Return the first sentences of each kind on skipped input, and one sentence that counts the others.

    >>> shortened(["a", "b"]), shortened([f"a.csv:{line}: no text" for line in range(8)] + ["b.txt: no end"])[-2:]
    (['a', 'b'], ['2 more lines of this kind', 'b.txt: no end'])
    """
    kinds: dict[str, list[str]] = {}
    for sentence in notes:
        kinds.setdefault(_OWN.sub("", sentence.partition(": ")[2] or sentence), []).append(sentence)
    lines = []
    for sentences in list(kinds.values())[:_KINDS]:
        lines += sentences[:_EXAMPLE_LINES]
        if len(sentences) > _EXAMPLE_LINES:
            lines.append(f"{counted(len(sentences) - _EXAMPLE_LINES, 'more line')} of this kind")
    if others := sum(map(len, list(kinds.values())[_KINDS:])):
        lines.append(f"{counted(others, 'more line')} of other kinds")
    return lines


@dataclass
class CorpusReport:
    """Counts of one reading of a corpus.

    Attributes:
        kept: Number of kept sentences.
        dropped: Number of dropped sentences, by reason: "empty" (only white space and punctuation), "too short" and
            "too long" (in words), "undecodable" (invalid bytes in the encoding), "markup" (tables, headings, list
            entries and captions of a wiki page; code, tables and headings without text in Markdown), "bad row" (an
            invalid row of its file), "duplicate".
        examples: First 5 distinct locations of each reason, as "file:line".
        files: Kind of each file, from its path to "line", "prose", "markdown", "document", "jsonl", "csv", "parquet",
            "json", "xlsx", "articles" or "wiki".
        notes: Sentences on input that was skipped or converted: an encoding, and the first 5 invalid rows of each file.
        odd_rows: Number of invalid rows of each file.
        unnamed_rows: Number of invalid rows that are not in the notes.
        failed: Files and folders that could not be read, and rows with a skipped value.
    """

    kept: int = 0
    dropped: dict[str, int] = field(default_factory=dict)
    examples: dict[str, list[str]] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    odd_rows: dict[str, int] = field(default_factory=dict)
    unnamed_rows: dict[str, int] = field(default_factory=dict)
    failed: int = 0

    @property
    def read(self) -> int:
        """The number of sentences that were read, including empty and undecodable lines."""
        return self.kept + sum(self.dropped.values())

    def drop(self, reason: Reason, file: object, line: int, count: int = 1) -> None:
        """Count dropped sentences that begin at `line` (from 1) of `file`."""
        self.dropped[reason] = self.dropped.get(reason, 0) + count
        places = self.examples.setdefault(reason, [])
        place = f"{file}:{line}"
        if len(places) < EXAMPLES and place not in places:  # a long line may lose many sentences
            places.append(place)

    def note(self, sentence: str) -> None:
        """Add a note on a file, unless it is already present."""
        if sentence not in self.notes:
            self.notes.append(sentence)

    def tell(self, file: object, line: int, reason: str) -> None:
        """Add a note on an invalid row, for the first rows of a file, and count all invalid rows."""
        name, sentence = str(file), f"{file}:{line}: {reason}" if line else f"{file}: {reason}"
        count, unnamed = self.odd_rows.get(name, 0), self.unnamed_rows.get(name, 0)
        self.odd_rows[name] = count + 1
        if count - unnamed < EXAMPLES and sentence not in self.notes:
            self.note(sentence)
        else:  # there are enough, or a row of the same line has this one
            self.unnamed_rows[name] = unnamed + 1

    def left_out(self, file: object, line: int, reason: str) -> None:
        """Report that a part of a line, a page or a row was skipped."""
        self.tell(file, line, reason)
        self.failed += 1

    @property
    def is_partial(self) -> bool:
        """Whether files, rows or lines could not be read."""
        return self.failed > 0 or "bad row" in self.dropped or "undecodable" in self.dropped

    @property
    def messages(self) -> list[str]:
        """The notes, and a line for each file with further invalid rows."""
        more = [f"{file}: {counted(count, 'more row')} like these" for file, count in self.unnamed_rows.items()]
        return [*self.notes, *more]

    def __str__(self) -> str:
        """Return a short text: counts, and the first places, without the file name if there is only one.

        >>> report = CorpusReport(kept=1)
        >>> report.drop("too short", "texts/a.txt", 7)
        >>> report.drop("too short", "texts/a.txt", 9)
        >>> print(report)
        read                 3
        kept                 1
        too short            2  lines 7, 9
        >>> report.drop("empty", "texts/b.txt", 2)
        >>> print(str(report).splitlines()[-1])
        empty                1  b.txt:2
        """
        rows = [f"{'read':<12}{self.read:>10,}", f"{'kept':<12}{self.kept:>10,}"]
        one_file = len({place.rpartition(":")[0] for places in self.examples.values() for place in places}) == 1
        for reason, count in self.dropped.items():
            lines: dict[str, list[str]] = {}
            for place in self.examples[reason]:
                file, _, line = place.rpartition(":")
                lines.setdefault(f"{Path(file).name}:", []).append(line)
            if one_file:
                lines = {"lines " if len(numbers) > 1 else "line ": numbers for numbers in lines.values()}
            where = "; ".join(file + ", ".join(numbers) for file, numbers in lines.items())
            more = ", ..." if count > len(self.examples[reason]) else ""
            rows.append(f"{reason:<12}{count:>10,}  {where}{more}")
        return "\n".join(rows)

    def to_dict(self) -> Record:
        """Return plain values for JSON."""
        return {"read": self.read, **asdict(self)}
