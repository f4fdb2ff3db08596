"""The result file of a table: one JSONL, a header and then a row for each measurement.

Not a script. A header says where the rows below it come from:

    {"table": "arccse", "command": "python benchmarks/arccse_sts.py", "machine": {...}, "versions": {...}, "date": ...}
    {"arm": "simcse", "seed": 1, "set": "sts12", "score": 71.36}
    {"arm": "simcse", "seed": 1, "set": "sts13", "score": 78.64}

A row has at least an arm, a set and a score, and a seed where there is chance in it; whatever else was measured stands
beside them. A run that goes on with another command, on another machine or with other versions writes a header of its
own first. Rows are appended as soon as they are measured, so that a run that was stopped goes on where it was:

    results = ResultFile("arccse")
    if not results.has(arm="simcse", seed=1):
        results.add(*({"arm": "simcse", "seed": 1, "set": name, "score": score} for name, score in scores.items()))
"""

from __future__ import annotations

import fcntl
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.stats import t

from likewise.runs.job import machine, versions

RESULTS = Path(__file__).parent / "results"


class ResultFile:
    """The rows of one table on disk.

    Args:
        table: the table's name, which is that of its file in benchmarks/results, or the path of a file elsewhere.
        command: what makes the rows that will be added; the running script with its arguments if it is empty.
    """

    def __init__(self, table: str | Path, command: str = "") -> None:
        path = Path(table)
        self.path = path if path.suffix == ".jsonl" else RESULTS / f"{table}.jsonl"
        self.command = command or " ".join(["python", *map(_portable, sys.argv)])

    def rows(self, **wanted: Any) -> list[dict[str, Any]]:
        """Return the rows, without headers, that have all of the wanted values."""
        return [row for row in self._lines() if "table" not in row and _has(row, wanted)]

    def has(self, **wanted: Any) -> bool:
        """Whether there is a row with all of these values, such as `arm="simcse", seed=1, set="sts12"`."""
        return bool(self.rows(**wanted))

    def headers(self) -> list[dict[str, Any]]:
        """Return the headers, the oldest first."""
        return [row for row in self._lines() if "table" in row]

    def add(self, *rows: Mapping[str, Any]) -> None:
        """Append rows that belong together, all of them or none, also while other processes append to the same file."""
        here = {"table": self.path.stem, "command": self.command, "machine": machine(), "versions": versions()}
        here["date"] = time.strftime("%Y-%m-%d")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self._locked() as file:
            headers = self.headers()
            lines = [] if headers and headers[-1] == here else [here]
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in [*lines, *rows])
            os.write(file, text.encode())
            os.fsync(file)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Open the file to append, alone, without the unfinished line that a killed process may have left."""
        file = os.open(self.path, os.O_RDWR | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX)
            whole = self.path.read_bytes()
            os.ftruncate(file, whole.rfind(b"\n") + 1)
            yield file
        finally:
            os.close(file)

    def _lines(self) -> Iterator[dict[str, Any]]:
        if not self.path.exists():
            return
        for number, line in enumerate(self.path.read_bytes().splitlines(keepends=True), 1):
            if not line.endswith(b"\n"):
                return  # being written, or left by a process that was killed
            row = json.loads(line)
            if not isinstance(row, dict) or (number == 1 and "table" not in row):
                raise ValueError(f"{self.path}:{number}: no result file: it does not begin with a header")
            yield row


@dataclass(frozen=True)
class Difference:
    """The difference of two arms, paired by seed, in the unit of their scores.

    Attributes:
        seeds: those that both arms have, ascending.
        gaps: the difference of each of them.
    """

    seeds: tuple[int, ...]
    gaps: tuple[float, ...]

    @property
    def mean(self) -> float:
        return statistics.fmean(self.gaps)

    @property
    def half(self) -> float:
        """Half the width of Student's 95% interval of the mean; infinite for one seed."""
        count = len(self.gaps)
        return float(t.ppf(0.975, count - 1)) * statistics.stdev(self.gaps) / count**0.5 if count > 1 else math.inf

    def __str__(self) -> str:
        low, high = self.mean - self.half, self.mean + self.half
        return f"{self.mean:+.2f}" + (f" ({low:+.2f} to {high:+.2f})" if len(self.gaps) > 1 else "")


def difference(rows: Iterable[Mapping[str, Any]], arm: str, other: str, set: str = "average") -> Difference:
    """Return by how much an arm scores above another on a set, for the seeds that both have.

    Raises:
        LookupError: they have no seed in common.
    """
    scores: dict[str, dict[int, float]] = {arm: {}, other: {}}
    for row in rows:
        if row.get("arm") in scores and row.get("set") == set:
            scores[row["arm"]][row["seed"]] = row["score"]
    seeds = tuple(sorted(scores[arm].keys() & scores[other].keys()))
    if not seeds:
        raise LookupError(f"{arm} and {other} have no seed in common on {set}")
    return Difference(seeds, tuple(scores[arm][seed] - scores[other][seed] for seed in seeds))


def _has(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in row and row[name] == value for name, value in wanted.items())


def _portable(argument: str) -> str:
    """An argument without the folders of this machine."""
    path = Path(argument)
    if not path.is_absolute():
        return argument
    here = Path(__file__).parents[1]
    return str(path.relative_to(here)) if path.is_relative_to(here) else path.name
