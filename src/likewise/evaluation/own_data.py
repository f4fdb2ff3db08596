"""Tasks on your own files: their names, as `retrieval:FOLDER:dev`, and the reading of their tables."""

import csv
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

from likewise.corpus.decoding import read_rows
from likewise.corpus.options import CorpusOptions
from likewise.corpus.report import CorpusReport
from likewise.evaluation.data import read_lines
from likewise.evaluation.task import DataError, Task

TEST = "test"
"""The part that is scored where the name gives none."""


@dataclass(frozen=True)
class OwnTask(Task):
    """A task on a file or folder that its name gives, with the part of a folder's data that is scored."""

    path: Path
    part: str = TEST

    @classmethod
    def at(cls, name: str, place: str) -> Self:
        """Return the task called `name`, as "retrieval:my/folder:dev", from what follows the first colon.

        A word after the last colon is the part, unless a folder is called so.
        """
        folder, colon, part = place.rpartition(":")
        if not colon or not re.fullmatch(r"[\w-]+", part) or Path(place).expanduser().is_dir():
            folder, part = place, TEST
        path = Path(folder).expanduser()
        title = path.resolve().name
        return cls(name, title if part == TEST else f"{title} {part}", path, part, needs_data=False)

    def find(self, *names: str) -> Path:
        """Return the first of these files that is in the folder."""
        if not self.path.is_dir():
            raise DataError(f"{self.name}: there is no folder '{self.path}'. Check the path.")
        found = next((path for name in names if (path := self.path / name).is_file()), None)
        if found is None:
            there = ", ".join(sorted(path.name for path in self.path.iterdir())[:12]) or "nothing"
            raise DataError(f"{self.path}: there is no {' or '.join(names)}; the folder holds {there}.")
        return found


def table_rows(path: Path, separator: str = "\t") -> Iterator[tuple[str, list[str]]]:
    """Yield the place ("file, line 3") and the cells of each line that is not blank.

    Cells are stripped. With a comma as the separator they may be quoted; between tabs a quote is only a sign.
    """
    lines = read_lines(path)
    rows: Iterable[tuple[int, list[str]]]
    if separator == "\t":
        rows = enumerate((line.split("\t") for line in lines), start=1)
    else:
        reader = csv.reader((line + "\n" for line in lines), delimiter=separator)
        rows = ((reader.line_num, cells) for cells in reader)
    for number, cells in rows:
        if any(cell.strip() for cell in cells):
            yield f"{path}, line {number}", [cell.strip() for cell in cells]


def json_rows(path: Path) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the place ("file, line 3") and the object of each line that is not blank."""
    report = CorpusReport()
    for number, row in read_rows(path, CorpusOptions(), report):
        yield f"{path}, line {number}", row
    if report.read:
        raise DataError(f"{report.examples['undecodable'][0]}: not UTF-8. Copy the file again, or convert it by iconv.")


def is_number(text: str) -> bool:
    """Return whether a cell is a number, which the names of a header are not.

    >>> is_number("0.5"), is_number("score")
    (True, False)
    """
    try:
        float(text)
    except ValueError:
        return False
    return True
