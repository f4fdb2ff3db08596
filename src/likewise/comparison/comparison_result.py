"""The result of a comparison: means and spreads over the seeds, their differences, and the page."""

from __future__ import annotations

import statistics
from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pandas

from likewise.comparison.compared_methods import Method
from likewise.comparison.one_run import FINISHED, kept_items
from likewise.errors import counted
from likewise.evaluation.registry import GROUPS
from likewise.evaluation.score_table import DIFFERENCES, Cell, Column, Printed, ScoreTable, TableTexts
from likewise.runs.dot_plot import Dot, dot_plot
from likewise.runs.pages import page_of
from likewise.runs.whole_files import Record

DEV = "dev"
_COLLAPSED = -0.01
"""A uniformity above it: all vectors are nearly one. It is 0 where they coincide, and -2 to -3.5 in a good encoder."""


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
        files = {(m.label, seed): self.path / "results" / f"{m.key}-seed{seed}.npz" for m, seed in self.runs}
        items = {(*run, task): one for run, path in files.items() for task, one in kept_items(path).items()}
        labels = tuple(row.label for row in self.rows)
        return ScoreTable(labels, self.columns, cells, items, "Method", notes, self.reference)

    @property
    def reference(self) -> str:
        """The label of the row that the others are compared with: the first unchanged base, or the first row."""
        return next((row.label for row in self.rows if row.method.is_base and row.cells), self.rows[0].label)

    @cached_property
    def missing(self) -> dict[str, str]:
        """The tasks that could not be scored, with the reason: by 'task', or 'method, task' where others could be."""
        lacking = [(r["label"], title, why) for r in self._finished for title, why in r["missing"].items()]
        runs = Counter(title for _, title, _ in lacking)
        every = len(self._finished)
        return {title if runs[title] == every else f"{label}, {title}": why for label, title, why in lacking}

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
        return "\n\n".join([verdict(self), self.scores.table(), *notes(self)])

    def texts(self) -> TableTexts:
        """Return the scores, a row for each method."""
        return self.scores.texts()

    def to_frame(self) -> pandas.DataFrame:
        """Return a row for each method, and for each column its mean, and its spread where there are several seeds."""
        return self.scores.to_frame()

    def to_dict(self, differences: bool = True) -> Record:
        """Return plain values for JSON: the table, its differences from the base if they are wanted, and each run."""
        compared = self.scores.differences() if differences else {}
        return {
            "settings": self.settings,
            "seeds": list(self.seeds),
            "waiting": self.waiting,
            "missing": self.missing,
            "columns": [
                {"name": one.name, "title": one.title, "best": sorted(self.scores.best(one))} for one in self.columns
            ],
            "rows": [row.to_dict() for row in self.rows],
            "reference": self.reference,
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


def about(comparison: Comparison) -> str:
    """Return a paragraph about what all rows share."""
    settings = comparison.settings
    shared = ", ".join(f"{name} {value}" for name, value in settings["shared"].items())
    budget = (
        "of each method's own" if any(row.method.kind == "recipe" for row in comparison.rows) else "nothing is trained"
    )
    if settings["steps"] is not None:
        budget = f"{settings['steps']:,} updates"
    parts = [
        f"Base {settings['base']}",
        f"word vectors {settings['vectors']}" if any(row.method.takes_vectors for row in comparison.rows) else "",
        f"{settings['sentences']:,} sentences" if settings["sentences"] else "",
        f"budget {budget}",
        f"preset {settings['preset']}" if settings["preset"] else "",
        f"every recipe with {shared}" if shared else "",
        f"seeds {', '.join(map(str, comparison.seeds))}",
    ]
    return "; ".join(part for part in parts if part) + "."


def reading(comparison: Comparison) -> str:
    """Return the explanation of the table."""
    text = (
        "Mean over the seeds ± standard deviation (of N - 1); the best mean of a column is marked. A method that is "
        "the same for every seed runs once and has no spread."
    )
    if comparison.dev_metric:
        by = "STS-B dev" if comparison.dev_metric == "sts_dev_spearman" else "the separation of held-out sentences"
        text += f" Checkpoints are selected by {by}, so the scores of trained methods there are slightly too high."
    return text


def notes(comparison: Comparison) -> list[str]:
    """List what is missing, failed or still to be done, and what looks wrong, one line each."""
    lines = [f"Missing: {title}, {reason}." for title, reason in comparison.missing.items()]
    lines += [f"Failed: {run['label']}, seed {run['seed']}: {run['error']}" for run in comparison.failures]
    if comparison.waiting:
        runs = "1 run is" if comparison.waiting == 1 else f"{comparison.waiting} runs are"
        lines.append(f"{runs} still to be done: run the same command again to resume.")
    return [*lines, *_warnings(comparison)]


def _warnings(comparison: Comparison) -> list[str]:
    """List the rows whose vectors have collapsed, and parts of a loss that did nothing."""
    lines = []
    for row in comparison.rows:
        uniformity = row.mean_of("uniformity")
        if uniformity is not None and uniformity > _COLLAPSED:
            lines.append(
                f"{row.label}: all of its vectors are nearly the same (uniformity {uniformity:.3f}), so that its "
                "scores are of what little is left: take a base that is a sentence encoder, or another pooling."
            )
        idle = set.intersection(*(set(result.get("idle", ())) for result in row.finished)) if row.finished else set()
        lines += [
            f"{row.label}: the part '{part}' of the loss was 0 in every update: it added nothing here."
            for part in sorted(idle)
        ]
    return lines


def verdict(comparison: Comparison) -> str:
    """Return which method is best by the first column, and by how much, in a sentence or two."""
    done = len(comparison.results)
    so_far = f"So far ({done} of {counted(len(comparison.runs), 'run')}): " if comparison.waiting else ""
    column = next(iter(comparison.columns), None)
    scored = [row for row in comparison.rows if column and column.name in row.cells]
    if column is None or not scored:
        return f"{so_far}nothing has been scored yet."
    best, *others = sorted(scored, key=lambda row: -row.cells[column.name].mean)
    if best.method.is_base:
        none = "nothing that was scored" if comparison.waiting else "nothing"
        said = f"{none} is better than the unchanged {best.label}, which scores {best.cells[column.name]} by "
        return so_far + (said if so_far else said.capitalize()) + f"{column.title}."
    said = f"{so_far}{best.label} is best by {column.title}: {best.cells[column.name]}"
    base = next((row for row in scored if row.label == comparison.reference and row.method.is_base), None)
    if base is None:
        return f"{said}."
    difference = comparison.scores.difference(best.label, base.label, column.name)
    if difference is None:
        gain = best.cells[column.name].mean - base.cells[column.name].mean
        return f"{said}, {gain:+.2f} over the unchanged {base.label}: how much of it is chance is not known."
    said += f", {difference.value:+.2f} over the unchanged {base.label}"
    said += f" (95% interval {difference.low:+.2f} to {difference.high:+.2f})."
    if not difference.is_sure:
        return f"{said} It may be chance."
    second = others[0]
    if not second.method.is_base and (ahead := comparison.scores.difference(best.label, second.label, column.name)):
        sure = "" if ahead.is_sure else ", which may be chance"
        said += f" Beside {second.label}: {ahead.value:+.2f} ({ahead.low:+.2f} to {ahead.high:+.2f}){sure}."
    return said if len(best.finished) > 1 or best.same_for_every_seed else f"{said} One seed: its chance is not in it."


def _dots(comparison: Comparison) -> list[Dot]:
    """Return the gains over the reference by the first column, the best first."""
    if not comparison.columns:
        return []
    name, label = comparison.columns[0].name, comparison.reference
    cells = {row.label: row.cells[name] for row in comparison.rows if name in row.cells}
    if len(cells) < 2 or label not in cells:
        return []
    dots = []
    for other, cell in sorted(cells.items(), key=lambda item: -item[1].mean):
        found = comparison.scores.difference(other, label, name) if other != label else None
        gain, low, high = (found.value, found.low, found.high) if found else (cell.mean - cells[label].mean, None, None)
        said = str(found) if found else f"{gain:+.2f}"
        dots.append(
            Dot(other, str(cell), said, gain, low, high, other in comparison.scores.best(comparison.columns[0]))
        )
    return dots


def page(comparison: Comparison) -> str:
    """Return the page of a comparison: the verdict, the table, the differences, and a drawing of the first column's."""
    dots = _dots(comparison)
    return page_of(
        "likewise.comparison",
        "report.html.j2",
        *(about, reading, notes, verdict),
        differences=comparison.scores.difference_texts(),
        reading_of_differences=DIFFERENCES,
        headline=f"Comparison of {len(comparison.rows)} methods",
        dots=dot_plot(dots) if dots else None,
        comparison=comparison,
    )
