"""The outcome of a comparison: means and spreads over the seeds, from the results of the runs."""

import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from likewise.comparison.methods import Method
from likewise.comparison.one_run import FINISHED

# It does not measure quality (see likewise.evaluation.tasks.negation), so none of it is the best.
_WITHOUT_BEST = ("negation-gap",)
DEV = "dev"


@dataclass(frozen=True)
class Cell:
    """The scores of a method on a task, by seed."""

    scores: dict[int, float]

    @property
    def mean(self) -> float:
        """The mean over the seeds."""
        return statistics.fmean(self.scores.values())

    @property
    def spread(self) -> float | None:
        """The standard deviation over the seeds (with N - 1); None for a single seed."""
        return statistics.stdev(self.scores.values()) if len(self.scores) > 1 else None


@dataclass(frozen=True)
class Column:
    """A column of the table: the name of a task, 'average NAME' or `DEV`, and its title."""

    name: str
    title: str


@dataclass(frozen=True)
class Row:
    """A row of the table: a method with all its runs.

    Attributes:
        finished, failed: results of its runs, in the order of the seeds.
        same_for_every_seed: whether it has one run for this reason.
        cells: by the name of the column; only where every finished run has a score there.
    """

    method: Method
    finished: tuple[dict[str, Any], ...]
    failed: tuple[dict[str, Any], ...]
    waiting: tuple[int, ...]
    same_for_every_seed: bool
    cells: dict[str, Cell]

    @property
    def label(self) -> str:
        """Its name in tables and pictures."""
        return self.method.label

    @property
    def inspection(self) -> dict[str, Any]:
        """The inspection of its first model; {} if there is none."""
        return next((found for result in self.finished if (found := result.get("inspection"))), {})

    @property
    def dev_score(self) -> float | None:
        """The score of its first model by the metric that selects checkpoints."""
        return (self.finished[0].get("dev") or {}).get("score") if self.finished else None

    def mean_of(self, name: str) -> float | None:
        """Return the mean of a value over the seeds; None if it is missing for one of them."""
        values = [result.get(name) for result in self.finished]
        return statistics.fmean(map(float, values)) if values and None not in values else None  # type: ignore[arg-type]

    def to_dict(self) -> dict[str, Any]:
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


@dataclass(frozen=True)
class Comparison:
    """The finished part of a comparison.

    Attributes:
        path: its folder.
        settings: what all rows share, as plain values.
        seeds: those asked for.
        runs: every run: the method and the seed.
        results: of those that are done.
        contradictions: the methods of a grid that cannot be made, and why.
    """

    path: Path
    settings: dict[str, Any]
    seeds: tuple[int, ...]
    runs: tuple[tuple[Method, int], ...]
    results: tuple[dict[str, Any], ...]
    contradictions: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def _finished(self) -> list[dict[str, Any]]:
        return [result for result in self.results if result["status"] == FINISHED]

    @cached_property
    def columns(self) -> tuple[Column, ...]:
        """The columns: first the averages, then the tasks in the order asked for, then the selection metric."""
        titles = {name: title for result in self._finished for name, title in result["titles"].items()}
        groups = dict.fromkeys(name for result in self._finished for name in result["averages"])
        found = [Column(f"average {name}", f"Average of {name}") for name in groups]
        found += [Column(name, titles[name]) for name in self.settings["tasks"] if name in titles]
        # Where the task itself is in the table, its column is enough.
        if (metric := self.dev_metric) and not (metric == "sts_dev_spearman" and "sts-b-dev" in titles):
            found.append(Column(DEV, "STS-B dev" if metric == "sts_dev_spearman" else "held-out separation"))
        return tuple(found)

    @cached_property
    def dev_metric(self) -> str | None:
        """The metric that selects checkpoints: 'sts_dev_spearman', 'held_out_separation', or None."""
        return next((metric for r in self.results if (metric := (r.get("dev") or {}).get("metric"))), None)

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The rows, one for each method in the order asked for."""
        done = {(result["label"], result["seed"]): result for result in self.results}
        rows = []
        for label, method in {method.label: method for method, _ in self.runs}.items():
            seeds = [seed for one, seed in self.runs if one.label == label]
            waiting = tuple(seed for seed in seeds if (label, seed) not in done)
            found = [done[label, seed] for seed in seeds if seed not in waiting]
            finished = tuple(result for result in found if result["status"] == FINISHED)
            failed = tuple(result for result in found if result["status"] != FINISHED)
            cells = {c.name: cell for c in self.columns if (cell := _cell(c.name, finished))}
            rows.append(Row(method, finished, failed, waiting, len(seeds) < len(self.seeds), cells))
        return tuple(rows)

    def base_row(self, method: Method) -> Row | None:
        """Return the row of the unchanged base that a method starts from."""
        wanted = (method.takes_vectors, method.base)
        bases = (row for row in self.rows if row.method.is_base and row.finished)
        return next((row for row in bases if (row.method.takes_vectors, row.method.base) == wanted), None)

    def best(self, column: Column) -> frozenset[str]:
        """Return the labels with the highest mean of a column; means that agree in two decimals are tied."""
        means = {row.label: round(row.cells[column.name].mean, 2) for row in self.rows if column.name in row.cells}
        if len(means) < 2 or column.name in _WITHOUT_BEST:
            return frozenset()
        return frozenset(label for label, mean in means.items() if mean == max(means.values()))

    @cached_property
    def missing(self) -> dict[str, str]:
        """The tasks that could not be scored for any method, with the reason."""
        found = [result["missing"] for result in self._finished]
        return {title: reason for one in found for title, reason in one.items() if all(title in o for o in found)}

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
    def failures(self) -> list[dict[str, Any]]:
        """The runs that failed."""
        return [result for row in self.rows for result in row.failed]

    @property
    def waiting(self) -> int:
        """The number of runs that are not done yet."""
        return len(self.runs) - len(self.results)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for JSON: the table, and each run without what only the pictures show."""
        return {
            "settings": self.settings,
            "seeds": list(self.seeds),
            "waiting": self.waiting,
            "missing": self.missing,
            "left_out": self.left_out,
            "columns": [vars(column) | {"best": sorted(self.best(column))} for column in self.columns],
            "rows": [row.to_dict() for row in self.rows],
            "runs": [{key: v for key, v in r.items() if key not in ("inspection", "traceback")} for r in self.results],
        }


def _cell(name: str, finished: tuple[dict[str, Any], ...]) -> Cell | None:
    """Return the scores of a column; None if one is missing or undefined, so that no mean covers fewer runs."""
    scores = {}
    for result in finished:
        averages = {f"average {group}": score for group, score in result["averages"].items()}
        score = {**averages, **result["scores"], DEV: (result.get("dev") or {}).get("score")}.get(name)
        if score is None:
            return None
        scores[int(result["seed"])] = float(score)
    return Cell(scores) if scores else None
