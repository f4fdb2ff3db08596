"""A table of scores: models in the rows, tasks in the columns, means over the seeds, and the differences of rows."""

from __future__ import annotations

import os
import statistics
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from likewise.evaluation.bootstrap import Difference, paired_difference, sampled_scores
from likewise.evaluation.task import EvaluationError, Items
from likewise.runs.whole_files import Record, write_text

if TYPE_CHECKING:
    import pandas

TableTexts = tuple[Sequence[str], Sequence[Sequence[str]]]
"""The columns of a table and the cells of its rows, as text."""
WITHOUT_BEST = ("negation-gap",)
"""Tasks that do not measure quality, so that no model is the best."""
_LATEX = {"\\": r"\textbackslash{}", "±": r"$\pm$", "–": "--", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
DIFFERENCES = (
    "Brackets contain the 95% confidence interval over items and seeds, by a paired bootstrap; * marks intervals that "
    "exclude zero. With one seed, the variance of training is not included."
)


class Printed(ABC):
    """A result that prints as a table and becomes a DataFrame, CSV or LaTeX."""

    @abstractmethod
    def table(self) -> str:
        """Return the result as Markdown."""

    @abstractmethod
    def to_frame(self) -> pandas.DataFrame:
        """Return the numbers as a pandas DataFrame, unrounded."""

    @abstractmethod
    def texts(self) -> TableTexts:
        """Return the columns of the main table and the cells of its rows, rounded."""

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return `to_frame` as CSV; with a path, write it there as well."""
        return _written(self.to_frame().to_csv(), path)

    def to_latex(self, path: str | os.PathLike[str] | None = None) -> str:
        """Return the main table as LaTeX for the package booktabs; with a path, write it there as well."""
        columns, rows = self.texts()
        lines = [
            rf"\begin{{tabular}}{{l{'r' * (len(columns) - 1)}}}",
            r"\toprule",
            _latex_row(columns),
            r"\midrule",
            *map(_latex_row, rows),
            r"\bottomrule",
            r"\end{tabular}",
        ]
        return _written("\n".join(lines) + "\n", path)

    def __str__(self) -> str:
        return self.table()

    def __repr__(self) -> str:
        return self.table()


_LATEX |= {char: f"\\{char}" for char in "&%$#_{}"}


@dataclass(frozen=True)
class Cell:
    """The scores of a model on a task, by seed."""

    scores: Mapping[int, float]

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return statistics.fmean(self.scores.values())

    @property
    def spread(self) -> float | None:
        """The standard deviation over the seeds (with N - 1); None for a single seed."""
        return statistics.stdev(self.scores.values()) if len(self.scores) > 1 else None

    def __str__(self) -> str:
        """Return the mean, and ± the spread if there is one.

        >>> str(Cell({1: 70.0, 2: 72.0}))
        '71.00 ± 1.41'
        """
        return f"{self.mean:.2f}" + ("" if self.spread is None else f" ± {self.spread:.2f}")


@dataclass(frozen=True)
class Column:
    """A column of the table.

    Attributes:
        name: Name of a task, or "average GROUP".
        title: Heading of the column.
        tasks: Tasks that are averaged.
    """

    name: str
    title: str
    tasks: tuple[str, ...] = ()


@dataclass(frozen=True, repr=False)
class ScoreTable(Printed):
    """Scores of models on tasks.

    Attributes:
        labels: Rows, in order.
        cells: Scores by label and name of the column; missing scores have no cell.
        items: Items of a score by label, seed and task, if they are known.
        heading: Heading of the first column.
        notes_of: Cells of an optional last column by label, such as the number of seeds.
        reference: Row with which the other rows are compared; by default the first row.
    """

    labels: tuple[str, ...]
    columns: tuple[Column, ...]
    cells: Mapping[tuple[str, str], Cell]
    items: Mapping[tuple[str, int, str], Items] = field(default_factory=dict)
    heading: str = "Model"
    notes_of: Mapping[str, str] = field(default_factory=dict)
    reference: str = ""

    def __post_init__(self) -> None:
        if self.labels and not self.reference:
            object.__setattr__(self, "reference", self.labels[0])

    def best(self, column: Column) -> frozenset[str]:
        """Return the labels with the highest mean of a column; means that agree in two decimals are tied."""
        cells = {label: cell for label in self.labels if (cell := self.cells.get((label, column.name)))}
        means = {label: round(cell.mean, 2) for label, cell in cells.items()}
        if len(means) < 2 or column.name in WITHOUT_BEST:
            return frozenset()
        return frozenset(label for label, mean in means.items() if mean == max(means.values()))

    def difference(self, label: str, other: str, column: str | None = None) -> Difference | None:
        """Return the difference between two rows, with the 95% confidence interval over the items and the seeds.

        Args:
            column: Title or name of a column; the first by default.

        Returns:
            None if a score is missing, or if there is only one seed and the items of the task are unknown.

        Raises:
            EvaluationError: If there is no such row or column.
        """
        chosen = next((one for one in self.columns if column in (None, one.name, one.title)), None)
        if chosen is None:
            titles = ", ".join(one.title for one in self.columns)
            raise EvaluationError(f"there is no column '{column}'; choose one of {titles}")
        for row in (label, other):
            if row not in self.labels:
                raise EvaluationError(f"there is no row '{row}'; choose one of {', '.join(self.labels)}")
        cells = [self.cells.get((row, chosen.name)) for row in (label, other)]
        if None in cells:
            return None
        samples = [self._samples(row, chosen) for row in (label, other)]
        ours, theirs = samples if all(samples) else ({}, {})
        return paired_difference(cells[0].scores, cells[1].scores, ours, theirs)  # type: ignore[union-attr]

    def differences(self) -> dict[str, dict[str, Difference]]:
        """Return label and title of a column to the difference from the reference."""
        return {
            label: {
                column.title: difference
                for column in self.columns
                if (difference := self.difference(label, self.reference, column.name)) is not None
            }
            for label in self.labels
            if label != self.reference
        }

    def _samples(self, label: str, column: Column) -> dict[int, np.ndarray]:
        """Return seed to the mean of the tasks' scores on samples; {} if the items of one task are not known."""
        samples = {}
        for seed in self.cells[label, column.name].scores:
            parts = [self._sampled.get((label, seed, task)) for task in column.tasks]
            if not parts or any(part is None for part in parts):
                return {}
            samples[seed] = np.mean(parts, axis=0)  # type: ignore[arg-type]
        return samples

    @cached_property
    def _sampled(self) -> dict[tuple[str, int, str], np.ndarray]:
        """(label, seed, task) to the scores on samples of the items, where all models have the same number of them."""
        sampled: dict[tuple[str, int, str], np.ndarray] = {}
        for task in dict.fromkeys(task for column in self.columns for task in column.tasks):
            items = {run: one for run, one in self.items.items() if run[2] == task}
            counts = {len(one.values) for one in items.values()}
            if len(counts) == 1 and max(counts) > 1:  # a single item would be drawn again and again
                sampled |= zip(items, sampled_scores(task, [*items.values()]), strict=True)
        return sampled

    def texts(self) -> TableTexts:
        """Return the columns and the cells.

        The best mean of each column is between two asterisks; one asterisk after a cell means that the confidence
        interval of its difference from the reference excludes zero.
        """
        last = ("Seeds",) if self.notes_of else ()
        columns = (self.heading, *(column.title for column in self.columns), *last)
        rows = [
            (label, *(self._text(label, column) for column in self.columns), *([self.notes_of[label]] if last else []))
            for label in self.labels
        ]
        return columns, rows

    def _text(self, label: str, column: Column) -> str:
        cell = self.cells.get((label, column.name))
        if cell is None:
            return "–"
        mean, _, spread = str(cell).partition(" ")
        text = f"{f'**{mean}**' if label in self.best(column) else mean} {spread}".rstrip()
        difference = self.difference(label, self.reference, column.name) if label != self.reference else None
        return f"{text}*" if difference and difference.is_sure else text

    def difference_texts(self) -> TableTexts:
        """Return the columns and the cells of the differences from the reference."""
        differences = self.differences()
        titles = [c.title for c in self.columns if any(c.title in row for row in differences.values())]
        rows = [(label, *(str(row.get(title, "–")) for title in titles)) for label, row in differences.items() if row]
        return (f"Difference from {self.reference}", *titles), rows

    def table(self) -> str:
        """Return the scores, and the differences from the reference, as Markdown."""
        blocks = [markdown_table(*self.texts())]
        columns, rows = self.difference_texts()
        if rows:
            blocks += [markdown_table(columns, rows), DIFFERENCES]
        return "\n\n".join(blocks)

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each model, with the mean of each column, and its spread if there are several seeds."""
        import pandas

        rows: dict[str, Record] = {label: {} for label in self.labels}
        for label, row in rows.items():
            for column in self.columns:
                cell = self.cells.get((label, column.name))
                row[column.title] = cell and cell.mean
                if cell and cell.spread is not None:
                    row[f"{column.title} ±"] = cell.spread
        return pandas.DataFrame.from_dict(rows, orient="index").rename_axis(self.heading)


def markdown_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a Markdown table that is readable as plain text.

    Args:
        rows: Cells of each row, a text followed by numbers; '|' is escaped, and line breaks become blanks.

    >>> print(markdown_table(("Pair", "Rank"), [("a", "1"), ("long", "12")]))
    | Pair | Rank |
    | ---- | ---: |
    | a    |    1 |
    | long |   12 |
    """
    cells = [[" ".join(cell.replace("|", "\\|").split()) for cell in row] for row in (columns, *rows)]
    widths = [max(3, *(len(row[i]) for row in cells)) for i in range(len(columns))]
    cells.insert(1, ["-" * width if i == 0 else "-" * (width - 1) + ":" for i, width in enumerate(widths)])
    sides = ["<", *">" * (len(columns) - 1)]
    lines = [[f"{cell:{side}{width}}" for cell, side, width in zip(row, sides, widths, strict=True)] for row in cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def _written(text: str, path: str | os.PathLike[str] | None) -> str:
    if path is not None:
        write_text(Path(path), text)
    return text


def _latex_row(cells: Sequence[str]) -> str:
    texts = []
    for cell in cells:
        bold = cell.startswith("**")
        text = "".join(_LATEX.get(char, char) for char in cell.replace("**", ""))
        texts.append(rf"\textbf{{{text}}}" if bold else text)
    return f"{' & '.join(texts)} \\\\"
