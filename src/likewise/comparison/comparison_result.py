"""The result of a comparison: means and spreads over the seeds, from the results of the runs, and their differences."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas

from likewise.comparison.compared_methods import Method
from likewise.comparison.one_run import FINISHED, kept_items
from likewise.evaluation.registry import GROUPS
from likewise.evaluation.score_table import Cell, Column, Printed, ScoreTable, TableTexts
from likewise.evaluation.task import Items
from likewise.runs.whole_files import Record

DEV = "dev"


@dataclass(frozen=True)
class Row:
    """A row of the table: a method with all its runs.

    Attributes:
        finished, failed: results of its runs, in the order of the seeds.
        same_for_every_seed: whether it has one run for this reason.
        cells: by the name of the column; only where every finished run has a score there.
    """

    method: Method
    finished: tuple[Record, ...]
    failed: tuple[Record, ...]
    waiting: tuple[int, ...]
    same_for_every_seed: bool
    cells: dict[str, Cell]

    @property
    def label(self) -> str:
        """Its name in tables and pictures."""
        return self.method.label

    def mean_of(self, name: str) -> float | None:
        """Return the mean of a value over the seeds; None if it is missing for one of them."""
        values = [result.get(name) for result in self.finished]
        return statistics.fmean(map(float, values)) if values and None not in values else None  # type: ignore[arg-type]

    def seeds_text(self) -> str:
        """Return the number of runs behind the means, in words."""
        if self.waiting:
            return f"{len(self.finished)} ({len(self.waiting)} to do)"
        if self.failed:
            return f"{len(self.finished)} ({len(self.failed)} failed)"
        return "same for all" if self.same_for_every_seed else str(len(self.finished))

    def to_dict(self) -> Record:
        """Return plain values for JSON."""
        return {
            "method": self.label,
            "kind": self.method.kind,
            "same_for_every_seed": self.same_for_every_seed,
            "seeds": [result["seed"] for result in self.finished],
            "failed": [result["seed"] for result in self.failed],
            "waiting": list(self.waiting),
            "cells": {
                name: {"mean": cell.mean, "spread": cell.spread, "scores": {str(s): v for s, v in cell.scores.items()}}
                for name, cell in self.cells.items()
            },
        }


@dataclass(frozen=True, repr=False)
class Comparison(Printed):
    """The finished part of a comparison.

    Attributes:
        path: its folder.
        settings: what all rows share, as plain values.
        seeds: those asked for.
        runs: every run: the method and the seed.
        results: of those that are done.
    """

    path: Path
    settings: Record
    seeds: tuple[int, ...]
    runs: tuple[tuple[Method, int], ...]
    results: tuple[Record, ...]

    @cached_property
    def _finished(self) -> list[Record]:
        return [result for result in self.results if result["status"] == FINISHED]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns: first the averages, then the tasks in the order asked for, then the selection metric."""
        titles = {name: title for result in self._finished for name, title in result["titles"].items()}
        groups = dict.fromkeys(name for result in self._finished for name in result["averages"])
        columns = [Column(f"average {name}", f"Average of {name}", GROUPS.get(name, ())) for name in groups]
        columns += [Column(name, titles[name], (name,)) for name in self.settings["tasks"] if name in titles]
        # Where the task itself is in the table, its column is enough.
        if (metric := self.dev_metric) and not (metric == "sts_dev_spearman" and "sts-b-dev" in titles):
            columns.append(Column(DEV, "STS-B dev" if metric == "sts_dev_spearman" else "held-out separation"))
        return tuple(columns)

    @cached_property
    def dev_metric(self) -> str | None:
        """The metric that selects checkpoints: 'sts_dev_spearman', 'held_out_separation', or None."""
        devs = [dev for result in self.results if isinstance(dev := result.get("dev"), dict)]
        return next((metric for dev in devs if (metric := dev.get("metric"))), None)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows, one for each method in the order asked for."""
        done = {(result["label"], result["seed"]): result for result in self.results}
        rows = []
        for label, method in {method.label: method for method, _ in self.runs}.items():
            seeds = [seed for other, seed in self.runs if other.label == label]
            waiting = tuple(seed for seed in seeds if (label, seed) not in done)
            results = [done[label, seed] for seed in seeds if seed not in waiting]
            finished = tuple(result for result in results if result["status"] == FINISHED)
            failed = tuple(result for result in results if result["status"] != FINISHED)
            cells = {c.name: cell for c in self.columns if (cell := _cell(c.name, finished))}
            rows.append(Row(method, finished, failed, waiting, len(seeds) < len(self.seeds), cells))
        return tuple(rows)

    @cached_property
    def scores(self) -> ScoreTable:
        """The table of the scores, with the differences of any two rows."""
        cells = {(row.label, name): cell for row in self.rows for name, cell in row.cells.items()}
        notes = {row.label: row.seeds_text() for row in self.rows}
        return ScoreTable(
            tuple(row.label for row in self.rows), self.columns, cells, self._items, "Method", notes, self.reference
        )

    def _items(self, label: str, seed: int, task: str) -> Items | None:
        return self._items_of.get((label, seed), {}).get(task)

    @cached_property
    def _items_of(self) -> dict[tuple[str, int], dict[str, Items]]:
        files = {(m.label, seed): self.path / "results" / f"{m.key}-seed{seed}.npz" for m, seed in self.runs}
        return {key: kept_items(path) for key, path in files.items()}

    @property
    def reference(self) -> str:
        """The label of the row that the others are compared with: the first unchanged base, or the first row."""
        return next((row.label for row in self.rows if row.method.is_base and row.cells), self.rows[0].label)

    def best(self, column: Column) -> frozenset[str]:
        """Return the labels with the highest mean of a column; means that agree in two decimals are tied."""
        return self.scores.best(column)

    @cached_property
    def missing(self) -> dict[str, str]:
        """The tasks that could not be scored for any method, with the reason."""
        missing = [result["missing"] for result in self._finished]
        return {
            title: reason
            for reasons in missing
            for title, reason in reasons.items()
            if all(title in o for o in missing)
        }

    @cached_property
    def left_out(self) -> dict[str, str]:
        """The tasks that single methods could not be scored on, with the reason, by 'method, task'."""
        return {
            f"{result['label']}, {title}": reason
            for result in self._finished
            for title, reason in result["missing"].items()
            if title not in self.missing
        }

    @property
    def failures(self) -> list[Record]:
        """The runs that failed."""
        return [result for row in self.rows for result in row.failed]

    @property
    def waiting(self) -> int:
        """The number of runs that are not done yet."""
        return len(self.runs) - len(self.results)

    def table(self) -> str:
        """Return the verdict, the scores, their differences and what is missing, as Markdown."""
        from likewise.comparison.comparison_page import notes, scores_table, verdict

        return "\n\n".join([verdict(self), scores_table(self), *notes(self)])

    def texts(self) -> TableTexts:
        """Return the scores, a row for each method."""
        return self.scores.texts()

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each method, and for each column its mean, and its spread where there are several seeds."""
        return self.scores.to_frame()

    def to_dict(self, differences: bool = True) -> Record:
        """Return plain values for JSON: the table, its differences from the base if they are wanted, and each run."""
        wanted = differences and self.rows and self.columns
        compared = self.scores.differences(self.reference) if wanted else {}
        return {
            "settings": self.settings,
            "seeds": list(self.seeds),
            "waiting": self.waiting,
            "missing": self.missing,
            "left_out": self.left_out,
            "columns": [{"name": one.name, "title": one.title, "best": sorted(self.best(one))} for one in self.columns],
            "rows": [row.to_dict() for row in self.rows],
            "reference": self.reference if self.rows else None,
            "differences": {label: {t: vars(d) for t, d in row.items()} for label, row in compared.items()},
            "runs": [{key: value for key, value in r.items() if key != "traceback"} for r in self.results],
        }


def _cell(name: str, finished: tuple[Record, ...]) -> Cell | None:
    """Return the scores of a column; None if one is missing or undefined, so that no mean covers fewer runs."""
    scores = {}
    for result in finished:
        averages = {f"average {group}": score for group, score in result["averages"].items()}
        dev = result.get("dev")
        score = {**averages, **result["scores"], DEV: dev.get("score") if isinstance(dev, dict) else dev}.get(name)
        if score is None:
            return None
        scores[int(result["seed"])] = float(score)
    return Cell(scores) if scores else None
