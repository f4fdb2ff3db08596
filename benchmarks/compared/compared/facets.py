"""Argument facet similarity: pairs of arguments, rated by whether they make the same point (Misra et al. 2016).

The pairs are on three topics and rated from 0 to 5; the cosines are taken as they are. The papers fine-tune the encoder
on part of the pairs (Reimers and Gurevych 2019, section 4.3, which 'Sentence Similarity Based on Contexts' follows),
which `likewise finetune sts` does.
"""

import csv
import re
from dataclasses import dataclass
from pathlib import Path

from likewise.errors import counted
from likewise.evaluation.data_folder import find_file, is_number, read_rating
from likewise.evaluation.pairs import RatedPairs, prepare_pairs, score_pairs
from likewise.evaluation.task import DataError, Prepared, Task

TOPICS = {"DP": "death penalty", "GC": "gun control", "GM": "gay marriage"}
FOLDER = "AFS"
SCALE = (0.0, 5.0)
_SCORE, _FIRST, _SECOND = 0, 9, 10
# The release contains curly quotes and dashes that went through two wrong encodings: three bytes for one character.
_BROKEN = {0xAA: "'", 0xCF: '"', 0x9D: '"', 0xD2: "-", 0xD3: "-"}


def read_facets(data: Path) -> RatedPairs:
    """Read the file of each topic from the folder AFS in the data folder or next to it; the topics are subsets."""
    return RatedPairs.of(
        {name: _read(find_file(data, f"{FOLDER}/ArgPairs_{topic}.csv")) for topic, name in TOPICS.items()}
    )


@dataclass(frozen=True)
class FacetTask(Task):
    """The correlation of the cosines with the ratings, over all topics and by topic."""

    def read(self, data: Path) -> Prepared:
        """Read the pairs for the suite."""
        pairs = read_facets(data)
        return prepare_pairs(pairs, lambda scores: score_pairs(self, scores, pairs.gold, pairs.subsets))


def _read(path: Path) -> list[tuple[str, str, float]]:
    """Return the rows of a file; the first line is a header if its rating is not a number."""
    rows = []
    reader = csv.reader(_text(path.read_bytes()).splitlines(keepends=True))
    for i, cells in enumerate(reader):
        where = f"{path}:{reader.line_num}"
        if not cells:
            continue
        if len(cells) <= _SECOND:
            raise DataError(
                f"{where}: {counted(len(cells), 'column')}, and the sentences are in columns 9 and 10. "
                "Copy the file again."
            )
        if i == 0 and not is_number(cells[_SCORE]):
            continue
        rating = read_rating(cells[_SCORE], SCALE, where)
        rows.append((" ".join(cells[_FIRST].split()), " ".join(cells[_SECOND].split()), rating))
    if not rows:
        raise DataError(f"{path}: there is no rated pair. Copy the file again.")
    return rows


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        fixed = re.sub(rb"\x89\xdb(.)", lambda m: _BROKEN.get(m[1][0], "").encode("ascii"), raw)
        return fixed.decode("mac_roman")


FACETS = FacetTask("afs", "AFS")
