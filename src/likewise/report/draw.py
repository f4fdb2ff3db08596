"""Which sentences a report is about, and which is paired with which at random."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np

from likewise.evaluation.data import find_data
from likewise.evaluation.task import TaskMissing
from likewise.evaluation.tasks.sts import SEVEN
from likewise.evaluation.tasks.sts import TASKS as STS_TASKS
from likewise.report.writing import ReportError


def draw_sentences(
    sentences: str | os.PathLike[str] | Sequence[str] | None,
    data: str | os.PathLike[str] | None,
    n: int,
    seed: int,
) -> tuple[list[str], str]:
    """A seeded draw of different sentences, and where they come from, in words.

    Args:
        sentences: a text file, a sentence a line, or a list; None reads the seven STS test sets.
        data: the folder of SentEval's data, for these.
        n: how many; all where there are fewer.
        seed: fixes the draw; the order and repeats of what is given do not matter.

    Raises:
        ReportError: `n` is below 2, or there are fewer than two sentences.
        FileNotFoundError, LinesError: the file cannot be read.
        DataError: there is no data folder, or a file in it is malformed.
    """
    if n < 2:
        raise ReportError(f"n is {n}; a random pair needs 2 sentences or more.")
    if sentences is None:
        found, source = _sts(data)
    elif isinstance(sentences, (str, os.PathLike)):
        from likewise.inference.lines import open_lines

        source = os.fspath(sentences)
        with open_lines(source) as lines:
            found = list(lines)
    else:
        found, source = list(sentences), "a list"
    unique = sorted({text.strip() for text in found} - {""})
    if len(unique) < 2:
        raise ReportError(f"There are {len(unique)} different sentences in {source}. Give 2 or more.")
    order = np.random.default_rng(seed).permutation(len(unique))[:n]
    return [unique[i] for i in order], source


def partners(count: int, seed: int) -> np.ndarray:
    """(count,) the row of another one for each row, at random: never itself, and each row once.

    The rows are put on a ring in a random order, and the partner of a row is the next one on it.

    >>> partners(2, seed=0).tolist()
    [1, 0]
    """
    ring = np.random.default_rng([seed, 1]).permutation(count)
    following = np.empty(count, dtype=np.int64)
    following[ring] = np.roll(ring, -1)
    return following


def _sts(data: str | os.PathLike[str] | None) -> tuple[list[str], str]:
    folder = find_data(data)
    found: list[str] = []
    read = []
    for task in STS_TASKS:
        if task.name not in SEVEN:
            continue
        try:
            pairs = task.load(folder)
        except TaskMissing:
            continue  # its absence shows in the name of the source
        found += [*pairs.first, *pairs.second]
        read.append(task.title)
    missing = len(SEVEN) - len(read)
    return found, f"the test sets {', '.join(read) or '(none)'}" + (f" ({missing} of 7 are missing)" if missing else "")
