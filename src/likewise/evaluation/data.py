"""The folder of evaluation data, and the reading of its files."""

import os
from pathlib import Path

from likewise.corpus.downloads import data_folder
from likewise.corpus.files import strict_lines
from likewise.corpus.options import CorpusError
from likewise.evaluation.task import DataError, TaskMissing

# A folder that holds one of these is a data folder.
_KNOWN = ("STS", "SICK", "MR", "CR", "SUBJ", "MPQA", "SST", "TREC", "MRPC", "AFS", "wikipedia", "wikipedia-sections")

LAYOUT = (
    "The folder has SentEval's layout: STS/STS12-en-test ... STS/STS16-en-test (STS.input.*.txt, STS.gs.*.txt), "
    "STS/STSBenchmark/sts-dev.csv and sts-test.csv, SICK/SICK_test_annotated.txt, and for the transfer tasks MR, CR, "
    "SUBJ, MPQA, SST/binary, TREC and MRPC."
)


def find_data(data: str | os.PathLike[str] | None = None) -> Path:
    """Return the folder of SentEval's layout.

    Args:
        data: the folder, or one that holds it as `senteval`; None takes the folder that the environment variable
            LIKEWISE_DATA names, or the one that `likewise data get` writes to.

    Raises:
        DataError: there is no data; the message names the three places and the layout.
    """
    place = Path(data).expanduser() if data is not None else data_folder()
    for folder in (place / "senteval", place):
        if any((folder / name).is_dir() for name in _KNOWN):
            return folder
    raise DataError(
        f"No evaluation data in '{place}'. Name a folder by --data (data=...) or in the environment variable "
        f"LIKEWISE_DATA, or fetch the data to its usual place by `likewise data get sts` (or transfer). {LAYOUT}"
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
    try:
        value = float(text)
    except ValueError:
        raise DataError(
            f"{where}: '{text.strip()}' is not a rating. Put a number there, or copy the file again."
        ) from None
    low, high = scale
    if not low <= value <= high:
        raise DataError(f"{where}: the rating {value:g} is outside {low:g} to {high:g}. Copy the file again.")
    return value
