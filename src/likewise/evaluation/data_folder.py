"""The reading of evaluation data: SentEval's folder, and tasks on your own files, as `retrieval:FOLDER:dev`."""

import csv
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Self

from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.encodings import AUTO
from likewise.corpus.files import read_head, strict_lines
from likewise.corpus.formats import Source
from likewise.corpus.json_rows import JsonLines
from likewise.corpus.rows import read_rows
from likewise.corpus.sources import refuse_binary
from likewise.evaluation.task import DataError, Task, TaskMissing
from likewise.runs.cache import data_folder
from likewise.runs.whole_files import Record

# A folder that contains one of these is a data folder.
_KNOWN = ("STS", "SICK", "MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC", "AFS", "wikipedia", "wikipedia-sections")
LAYOUT = (
    "The folder has SentEval's layout: STS/STS12-en-test ... STS/STS16-en-test (STS.input.*.txt, STS.gs.*.txt), "
    "STS/STSBenchmark/sts-dev.csv and sts-test.csv, SICK/SICK_test_annotated.txt, and for the transfer tasks MR, CR, "
    "SUBJ, MPQA, SST/binary, TREC and MRPC."
)
TEST = "test"
"""The part that is scored where the name gives none."""


def find_data(data: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of SentEval's layout.

    Args:
        data: Path to the folder, or to a folder that contains it as `senteval`; by default the environment variable
            LIKEWISE_DATA, or the folder that `likewise data get` writes to.

    Raises:
        DataError: If there is no data; the message names the three places and the layout.
    """
    place = Path(data).expanduser() if data is not None else data_folder()
    for folder in (place / "senteval", place):
        if any((folder / name).is_dir() for name in _KNOWN):
            return folder
    raise DataError(
        f"No evaluation data in '{place}'. Give its path by --data (data=...) or in the environment variable "
        f"LIKEWISE_DATA, or fetch the data to its default place by `likewise data get sts` (or transfer). {LAYOUT}"
    )


def find_file(data: Path, name: Path | str) -> Path:
    """Return a file in the data folder or next to it."""
    for folder in (data, data.parent):
        if (folder / name).is_file():
            return folder / name
    raise TaskMissing(f"there is no file {name} in or next to the data folder")


def read_lines(path: Path, encoding: str = "utf-8") -> list[str]:
    """Return all lines, decompressed, split only at line feeds: some sentences contain other line separators."""
    try:
        return [line.removesuffix("\n").removesuffix("\r") for line in strict_lines(path, encoding)]
    except CorpusError as error:
        raise DataError(str(error)) from None


def read_rating(text: str, scale: tuple[float, float], where: str) -> float:
    """Return a rating parsed from text."""
    if not is_number(text):
        raise DataError(f"{where}: '{text.strip()}' is not a rating. Replace it by a number, or copy the file again.")
    low, high = scale
    if not low <= (value := float(text)) <= high:
        raise DataError(f"{where}: the rating {value:g} is outside {low:g} to {high:g}. Copy the file again.")
    return value


@dataclass(frozen=True)
class OwnTask(Task):
    """A task on a file or folder that its name gives, with the part of a folder's data that is scored."""

    PLACE: ClassVar[str] = "FOLDER"
    """What the name of a task has after the first colon, for messages."""

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
        existing = next((path for name in names if (path := self.path / name).is_file()), None)
        if existing is None:
            there = ", ".join(sorted(path.name for path in self.path.iterdir())[:12]) or "nothing"
            raise DataError(f"{self.path}: there is no {' or '.join(names)}; the folder contains {there}.")
        return existing


def table_rows(path: Path, separator: str = "\t") -> Iterator[tuple[str, list[str]]]:
    """Yield the place ("file:3") and the stripped cells of each line that is not blank.

    With a comma as the separator they may be quoted; between tabs a quote is an ordinary character.
    """
    try:
        refuse_binary(path, read_head(path))
    except CorpusError as error:
        raise DataError(str(error)) from None
    lines = read_lines(path, AUTO)
    rows: Iterator[tuple[int, list[str]]] = enumerate((line.split("\t") for line in lines), start=1)
    for number, cells in rows if separator == "\t" else _separated(path, lines, separator):
        if any(cell.strip() for cell in cells):
            yield f"{path}:{number}", [cell.strip() for cell in cells]


def json_rows(path: Path) -> Iterator[tuple[str, Record]]:
    """Yield the place ("file:3") and the object of each line that is not blank."""
    for number, row in read_rows(Source(path, format=JsonLines(), strict=True)):
        yield f"{path}:{number}", row


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


def _separated(path: Path, lines: list[str], separator: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the line and the cells of each row of separated values."""
    reader = csv.reader((line + "\n" for line in lines), delimiter=separator, strict=True)
    number = 1
    try:
        for cells in reader:
            yield number, cells
            number = reader.line_num + 1
    except csv.Error as error:
        raise DataError(f"{path}:{number}: this row is not valid CSV ({error}). Correct its quotes.") from None
