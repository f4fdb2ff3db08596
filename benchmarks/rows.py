"""The result file of a table: one JSONL, a header and then a row for each measurement.

Not a script. A header says where the rows below it come from:

    {"table": "arccse", "command": "python benchmarks/arccse_sts.py", "machine": {...}, "versions": {...},
     "mathematics": {"arccse": 1, "sncse": 1, ...}, "date": ...}
    {"arm": "simcse", "seed": 1, "set": "sts12", "score": 71.36}
    {"arm": "simcse", "seed": 1, "set": "sts13", "score": 78.64}

'mathematics' has the version of each system: a table reads no row that is older than the mathematics of its system.

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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scipy.stats import t

from likewise.context.stage_options import MATHEMATICS as CONTEXTS
from likewise.recipes.all_recipes import RECIPES
from likewise.runs.releases import machine, versions
from likewise.searching.query.exclusion_recipe import EXCLUSION

RESULTS = Path(__file__).parent / "results"
MATHEMATICS = {name: recipe.mathematics for name, recipe in (RECIPES | {"exclusion": EXCLUSION}).items()} | CONTEXTS
"""The version of each system's mathematics in the code of today."""


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

    def dated(self) -> list[dict[str, Any]]:
        """Return the rows with the date and the command of their run."""
        rows, origin = [], dict[str, Any]()
        for row in self._lines():
            if "table" in row:
                origin = {key: row[key] for key in ("date", "command")}
            else:
                rows.append(origin | row)
        return rows

    def current(self) -> list[dict[str, Any]]:
        """Return the rows that today's mathematics would measure again.

        A row of a system whose equations have changed since is left out. Its systems are those that its table, its arm
        or its part is named after.
        """
        rows, measured = [], dict[str, int]()
        for row in self._lines():
            if "table" in row:
                measured = row.get("mathematics", {})
                continue
            named = " ".join([self.path.stem, *(str(row[key]).lower() for key in ("arm", "part") if key in row)])
            if all(measured.get(name) == version for name, version in MATHEMATICS.items() if name in named):
                rows.append(row)
        return rows

    def add(self, *rows: Mapping[str, Any]) -> None:
        """Append rows that belong together, all of them or none, also while other processes append to the same file."""
        here = {"table": self.path.stem, "command": self.command, "machine": machine(), "versions": versions()}
        here["mathematics"] = MATHEMATICS
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

    @property
    def chance(self) -> float:
        """The two-sided p of Student's test that the difference is zero; 1 for one seed."""
        count = len(self.gaps)
        if count < 2:
            return 1.0
        error = statistics.stdev(self.gaps) / count**0.5
        return float(2 * t.sf(abs(self.mean) / error, count - 1)) if error else float(self.mean == 0)

    def __str__(self) -> str:
        low, high = self.mean - self.half, self.mean + self.half
        return f"{self.mean:+.2f}" + (f" ({low:+.2f} to {high:+.2f})" if len(self.gaps) > 1 else "")


def difference(
    rows: Iterable[Mapping[str, Any]], arm: str, other: str, set: str | Sequence[str] = "average"
) -> Difference:
    """Return by how much an arm scores above another on a set, or on the mean of several, for the seeds of both.

    Raises:
        LookupError: they have no seed in common.
    """
    sets = (set,) if isinstance(set, str) else tuple(set)
    scores: dict[str, dict[int, dict[str, float]]] = {arm: {}, other: {}}
    for row in rows:
        if row.get("arm") in scores and row.get("set") in sets:
            scores[row["arm"]].setdefault(row["seed"], {})[row["set"]] = row["score"]
    means = {
        name: {seed: statistics.fmean(own.values()) for seed, own in seeds.items() if len(own) == len(sets)}
        for name, seeds in scores.items()
    }
    seeds = tuple(sorted(means[arm].keys() & means[other].keys()))
    if not seeds:
        raise LookupError(f"{arm} and {other} have no seed in common on {', '.join(sets)}")
    return Difference(seeds, tuple(means[arm][seed] - means[other][seed] for seed in seeds))


def _has(row: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(name in row and row[name] == value for name, value in wanted.items())


def _portable(argument: str) -> str:
    """An argument without the folders of this machine."""
    path = Path(argument)
    if not path.is_absolute():
        return argument
    here = Path(__file__).parents[1]
    return str(path.relative_to(here)) if path.is_relative_to(here) else path.name
