"""The report of an evaluation, of one model or of several: typed results as tables, JSON, a DataFrame or LaTeX."""

from __future__ import annotations

import math
import os
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from likewise.evaluation.registry import GROUPS
from likewise.evaluation.score_table import Cell, Column, Printed, ScoreTable, TableTexts, markdown_table
from likewise.evaluation.task import EvaluationError, TaskResult, number, plain
from likewise.runs.results import written_result
from likewise.runs.whole_files import Record, Values, write_json

if TYPE_CHECKING:
    import pandas


@dataclass(frozen=True)
class MissingTask:
    """A task that could not be run, and the reason."""

    name: str
    title: str
    reason: str


class _Report(Printed):
    """A report that is also written as JSON, and says below its tables what is missing."""

    @abstractmethod
    def to_dict(self) -> Record:
        """Return plain values for JSON; undefined scores are None."""

    @abstractmethod
    def notes(self) -> list[str]:
        """Return the lines below the tables."""

    def to_json(self, path: str | os.PathLike[str], overwrite: bool = False) -> None:
        """Write `to_dict` to a file, atomically.

        Args:
            overwrite: Whether to replace a file that likewise did not write.

        Raises:
            JobError: If the folder to write in is not there, or likewise did not write the file that is.
        """
        with written_result(Path(path), overwrite) as unfinished:
            write_json(unfinished, self.to_dict(), strict=True)

    def _with_notes(self, *tables: str) -> str:
        """Return tables, and the notes below them, as Markdown."""
        return "\n\n".join([*tables, *(["  \n".join(self.notes())] if self.notes() else [])])


@dataclass(frozen=True, repr=False)
class EvaluationReport(_Report):
    """The scores of one model.

    Attributes:
        model: Name or folder of the model, or its class if it was passed in memory.
        results: Result for each task that ran, in the order given.
        missing: Tasks that could not be run.
        averages: Mean of the main scores of each completely requested group ("sts"), times 100; None if one of its
            tasks is missing or undefined.
        settings: Other settings that affect a score: precision, similarity, maximum sequence length, versions.
        seconds: Wall time of reading, encoding and scoring.
    """

    model: str
    results: tuple[TaskResult, ...]
    missing: tuple[MissingTask, ...] = ()
    averages: Mapping[str, float | None] = field(default_factory=dict)
    settings: Values = field(default_factory=dict)
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
        raise KeyError(f"{name} was not evaluated; choose one of {', '.join(r.name for r in self.results) or 'none'}")

    def to_dict(self) -> Record:
        """Return plain dicts, lists, strings and numbers; undefined scores are None."""
        return {
            "model": self.model,
            "results": [result.to_dict() for result in self.results],
            "missing": [vars(task).copy() for task in self.missing],
            "averages": plain(dict(self.averages)),
            "settings": plain(dict(self.settings)),
            "seconds": round(self.seconds, 2),
        }

    def sections(self) -> list[tuple[tuple[str, ...], list[tuple[str, ...]]]]:
        """Return one table (its columns, its rows) for each kind of result."""
        kinds: dict[type[TaskResult], list[tuple[str, ...]]] = {}
        for result in self.results:
            kinds.setdefault(type(result), []).append(result.cells())
        return [(tuple(title for title, _ in kind.COLUMNS), rows) for kind, rows in kinds.items()]

    def notes(self) -> list[str]:
        """Return the lines below the tables: averages, other main scores, missing tasks, undefined scores."""
        lines = []
        for group, average in self.averages.items():
            reason = "" if average is not None else " (a task is missing or undefined)"
            lines.append(f"Average of {group}: {number(average)}{reason}")
        for kind, what in (
            ("parts", "Pairs excluded, because STS-B train or dev contains them"),
            ("documents", "Queries excluded, because no document answers them"),
        ):
            left_out = [(r.title, getattr(r, "left_out", 0)) for r in self.results if hasattr(r, kind)]
            if counts := ", ".join(f"{title} {count:,}" for title, count in left_out if count):
                lines.append(f"{what}: {counts}")
        lines += [f"Missing: {task.title}, {task.reason}" for task in self.missing]
        lines += [
            f"Undefined: {result.title}, the vectors are all alike or not finite"
            for result in self.results
            if math.isnan(result.score)
        ]
        return lines

    def table(self) -> str:
        """Return the scores as Markdown."""
        return self._with_notes(*(markdown_table(columns, rows) for columns, rows in self.sections()))

    def texts(self) -> TableTexts:
        """Return the main score of each task, and below them the averages."""
        rows = [(result.title, result.metric, number(result.score), f"{result.n:,}") for result in self.results]
        rows += [(f"Average of {group}", "", number(average), "") for group, average in self.averages.items()]
        return ("Task", "Metric", "Score", "Items"), rows

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each task, with all of its numbers."""
        import pandas

        rows = [
            {k: v for k, v in result.to_dict().items() if not isinstance(v, list | dict)} for result in self.results
        ]
        return pandas.DataFrame(rows).set_index("name") if rows else pandas.DataFrame()


@dataclass(frozen=True, repr=False)
class EvaluationReports(_Report):
    """The scores of several models on the same tasks.

    Attributes:
        reports: Report for each model, in the order given.

    Raises:
        EvaluationError: If two models have the same name.
    """

    reports: tuple[EvaluationReport, ...]

    def __post_init__(self) -> None:
        names = [report.model for report in self.reports]
        if twice := [name for name in names if names.count(name) > 1]:
            raise EvaluationError(f"two models are named '{twice[0]}': give each once, by the name of its folder")

    def __getitem__(self, model: str) -> EvaluationReport:
        """Return the report of a model by its name."""
        for report in self.reports:
            if report.model == model:
                return report
        raise KeyError(f"{model} was not evaluated; choose one of {', '.join(r.model for r in self.reports)}")

    @cached_property
    def scores(self) -> ScoreTable:
        """The main scores as one table, with the differences of any two models."""
        return score_table({report.model: {0: report} for report in self.reports})

    def notes(self) -> list[str]:
        """Return notes on missing tasks and undefined scores, by model."""
        lines = [(report.model, note) for report in self.reports for note in report.notes()]
        return [f"{model}: {note}" for model, note in lines if not note.startswith("Average of")]

    def table(self) -> str:
        """Return the scores of all models, and their differences from the first, as Markdown."""
        return self._with_notes(self.scores.table())

    def texts(self) -> TableTexts:
        """Return the scores, a row for each model."""
        return self.scores.texts()

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each model and a column for each task."""
        return self.scores.to_frame()

    def to_dict(self) -> Record:
        """Return plain values for JSON: the reports, and the differences from the first model."""
        differences = self.scores.differences()
        return {
            "reports": [report.to_dict() for report in self.reports],
            "differences": {
                model: {title: vars(one) for title, one in row.items()} for model, row in differences.items()
            },
        }


def score_table(
    reports: Mapping[str, Mapping[int, EvaluationReport]], heading: str = "Model", notes_of: Mapping[str, str] = {}
) -> ScoreTable:
    """Return the main scores of models as one table; a score that one seed of a model lacks has no cell.

    Args:
        reports: Label of a row to its reports by seed.
        heading, notes_of: as in `ScoreTable`.
    """
    runs = [(label, seed, report) for label, row in reports.items() for seed, report in row.items()]
    groups = dict.fromkeys(group for _, _, report in runs for group in report.averages)
    tasks = {result.name: result.title for _, _, report in runs for result in report.results}
    columns = [Column(f"average {group}", f"Average of {group}", GROUPS.get(group, ())) for group in groups]
    columns += [Column(name, title, (name,)) for name, title in tasks.items()]
    scores = {(label, seed): _scores(report) for label, seed, report in runs}
    cells: dict[tuple[str, str], Cell] = {}
    for label, row in reports.items():
        for column in columns:
            values = {seed: scores[label, seed].get(column.name, math.nan) for seed in row}
            if values and not any(map(math.isnan, values.values())):
                cells[label, column.name] = Cell(values)
    items = {(label, seed, result.name): result.items for label, seed, report in runs for result in report.results}
    known = {run: one for run, one in items.items() if one is not None}
    return ScoreTable(tuple(reports), tuple(columns), cells, known, heading, notes_of)


def _scores(report: EvaluationReport) -> dict[str, float]:
    averages = {f"average {group}": value for group, value in report.averages.items() if value is not None}
    return averages | {result.name: result.score for result in report.results}
