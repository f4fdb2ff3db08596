"""The report of an evaluation: typed results, exported as JSON or a table."""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.evaluation.task import TaskResult, number, plain
from likewise.runs.job import check_target
from likewise.runs.whole_files import write_json


@dataclass(frozen=True)
class MissingTask:
    """A task that could not be run, and the reason."""

    name: str
    title: str
    reason: str


@dataclass(frozen=True)
class EvaluationReport:
    """The scores of one model.

    Attributes:
        model: the name or folder of the model, or its class where it was handed over in memory.
        results: a result for each task that ran, in the order given.
        missing: the tasks that did not run.
        averages: for each group whose tasks were all asked for ("sts"), the plain mean of its main scores, times
            100; None if one of its tasks is missing or undefined.
        settings: other facts that decide a score: precision, similarity, the model's longest sequence, versions.
        seconds: wall time of reading, encoding and scoring.
    """

    model: str
    results: tuple[TaskResult, ...]
    missing: tuple[MissingTask, ...] = ()
    averages: Mapping[str, float | None] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def average(self) -> float | None:
        """The average of the group; None if there is not exactly one group, or if a task is missing."""
        return next(iter(self.averages.values())) if len(self.averages) == 1 else None

    def __getitem__(self, name: str) -> TaskResult:
        """Return the result of a task by its name."""
        for result in self.results:
            if result.name == name:
                return result
        for task in self.missing:
            if task.name == name:
                raise KeyError(f"{name} is missing: {task.reason}")
        raise KeyError(f"{name} was not evaluated; there are {', '.join(r.name for r in self.results) or 'none'}")

    def to_dict(self) -> dict[str, Any]:
        """Return plain dicts, lists, strings and numbers; undefined scores are None."""
        return {
            "model": self.model,
            "results": [result.to_dict() for result in self.results],
            "missing": [vars(task).copy() for task in self.missing],
            "averages": plain(dict(self.averages)),
            "settings": plain(dict(self.settings)),
            "seconds": round(self.seconds, 2),
        }

    def to_json(self, path: str | os.PathLike[str]) -> None:
        """Write `to_dict` to a file, atomically.

        Raises:
            JobError: the folder to write in is not there.
        """
        check_target(path, "file")
        write_json(Path(path), self.to_dict(), strict=True)

    def sections(self) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        """Return one table (its columns, its rows) for each kind of result."""
        kinds: dict[type[TaskResult], list[tuple[str, ...]]] = {}
        for result in self.results:
            kinds.setdefault(type(result), []).append(result.cells())
        return [(tuple(kind.COLUMNS), rows) for kind, rows in kinds.items()]

    def notes(self) -> list[str]:
        """Return the lines below the tables: averages, other main scores, missing tasks, undefined scores."""
        lines = []
        for group, average in self.averages.items():
            reason = "" if average is not None else " (a task is missing or undefined)"
            lines.append(f"Average of {group}: {number(average)}{reason}")
        lines += [
            f"{result.title} is scored by its {result.metric.capitalize()} correlation"
            for result in self.results
            if result.metric == "pearson"
        ]
        left_out = {result.title: result.left_out for result in self.results if getattr(result, "left_out", 0)}
        if left_out:
            pairs = ", ".join(f"{title} {count:,}" for title, count in left_out.items())
            lines.append(f"Pairs left out, which STS-B train or dev holds: {pairs}")
        lines += [f"Missing: {task.title}, {task.reason}" for task in self.missing]
        lines += [
            f"Undefined: {result.title}, the vectors are all alike or not finite"
            for result in self.results
            if math.isnan(result.score)
        ]
        return lines

    def table(self) -> str:
        """Return the scores as Markdown."""
        blocks = [markdown_table(columns, rows) for columns, rows in self.sections()]
        blocks += ["\n".join(f"{note}  " for note in self.notes()).rstrip()] if self.notes() else []
        return "\n\n".join(blocks)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a Markdown table that is readable as plain text.

    Args:
        rows: the cells; a '|' in one is escaped, line breaks become blanks.
        left: how many columns from the left are text; the others are numbers, aligned to the right.

    >>> print(markdown_table(("Pair", "Rank"), [("a", "1"), ("long", "12")]))
    | Pair | Rank |
    | ---- | ---: |
    | a    |    1 |
    | long |   12 |
    """
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in (columns, *rows)]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(columns))]
    cells.insert(1, ["-" * width if i < left else "-" * (width - 1) + ":" for i, width in enumerate(widths)])
    sides = ["<" if i < left else ">" for i in range(len(columns))]
    lines = [[f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)] for row in cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
