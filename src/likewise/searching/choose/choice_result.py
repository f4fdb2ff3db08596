"""The result of a choice: the systems with their scores, the recommended system, its judgment, and the page.

Letters of the shapes: Q queries.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

import numpy as np

from likewise.errors import counted
from likewise.evaluation.bootstrap import sampled_scores
from likewise.evaluation.task import Items, number
from likewise.runs.dot_plot import WIDTH, Dot, dot_plot, ticks
from likewise.runs.pages import page_of
from likewise.runs.whole_files import Record, Values, write_json, write_text
from likewise.searching.choose.held_out import CALLED
from likewise.searching.parts.pipeline import Pipeline
from likewise.searching.search_index import Mode

COLUMNS = ("System", "Found again", "Gain", "ms a query", "Passages/s", "Index MB", "Model MB")
WRITTEN_COLUMNS = ("Written queries",)
JUDGED_COLUMNS = ("nDCG@10, judged", "Gain")
_DRAWS = 10_000  # samples of the bootstrap
_TALL = 300.0


@dataclass(frozen=True)
class System:
    """A base with a search pipeline, and its scores.

    Attributes:
        name: Short description of the system.
        model: Base of the system; "" for BM25, which needs none.
        mode, pipeline: Settings of the search.
        free: Whether the system is a baseline: BM25, an unchanged base, or their sum.
        learnt: Whether its base was adapted earlier, possibly to this text; such a system is never recommended.
        score: NDCG@10, times 100, of retrieving the passages from which queries were removed.
        low, high: 95% confidence interval of the gain over the best baseline; None for that baseline.
        milliseconds: Median time of a query with its encoding on this machine.
        passages_a_second: Indexed passages per second, including the loading of the model; None for BM25.
        index_bytes, model_bytes: Sizes on disk; None if unknown.
        written: Same score on the written queries; None without them.
        judged: NDCG@10, times 100, by your judgments; None without them.
        judged_low, judged_high: Confidence interval of its gain over the same baseline.
        only_measured: Whether the system is only a row for comparison, which no search offers.
    """

    name: str
    model: str
    mode: Mode
    pipeline: Pipeline
    free: bool
    score: float
    low: float | None = None
    high: float | None = None
    milliseconds: float | None = None
    passages_a_second: float | None = None
    index_bytes: int | None = None
    model_bytes: int | None = None
    written: float | None = None
    judged: float | None = None
    judged_low: float | None = None
    judged_high: float | None = None
    learnt: bool = False
    only_measured: bool = False

    def cells(self, written: bool, judged: bool) -> list[str]:
        """Return the row of the system: `COLUMNS`, and `WRITTEN_COLUMNS` and `JUDGED_COLUMNS` if there are any."""
        megabytes = [None if value is None else value / 1e6 for value in (self.index_bytes, self.model_bytes)]
        cells = [self.name, number(self.score), interval_of(self.low, self.high), _short(self.milliseconds)]
        cells += [_short(value) for value in (self.passages_a_second, *megabytes)]
        cells += [number(self.written)] if written else []
        return [*cells, *([number(self.judged), interval_of(self.judged_low, self.judged_high)] if judged else [])]

    def to_dict(self) -> Record:
        """Return plain values for JSON."""
        return {**asdict(self), "pipeline": self.pipeline.to_dict()}


def gain_interval(gains: np.ndarray) -> tuple[float, float]:
    """Return the 95% interval of a mean gain, by samples of the queries with replacement (a paired bootstrap).

    Args:
        gains: (Q,) of each query.

    >>> gain_interval(np.zeros(20))
    (0.0, 0.0)
    """
    low, high = np.quantile(sampled_scores("queries", [Items(gains / 100)], _DRAWS), (0.025, 0.975))
    return float(low), float(high)


def interval_of(low: float | None, high: float | None) -> str:
    """Return an interval of a gain, for a table."""
    return "" if low is None or high is None else f"{low:+.1f} to {high:+.1f}"


def _short(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}" if value >= 10 else f"{value:.1f}"


@dataclass(frozen=True)
class Choice:
    """The result of `choose`: the compared systems, the recommended system, and the reason.

    Attributes:
        table: All systems in the order of measurement.
        chosen: Recommended system.
        reason: Verdict in one sentence.
        judgement: Verdict by your judgments; "" without them.
        facts: Passages, queries by their kind, seconds, and the queries on which systems disagree most.
        folder: Path to the saved files; None if nothing is saved.
    """

    table: Sequence[System]
    chosen: System
    reason: str
    judgement: str = ""
    facts: Values = field(default_factory=dict)
    folder: Path | None = None

    @property
    def best(self) -> Pipeline:
        """The recommended pipeline, as an argument of `likewise.index` and `likewise.search`."""
        return self.chosen.pipeline

    @property
    def ranked(self) -> list[System]:
        """All systems in descending order of their scores."""
        return sorted(self.table, key=lambda system: -system.score)

    @property
    def columns(self) -> list[str]:
        """The columns of the table, with columns of written queries and of judgments only if there are any."""
        return [*COLUMNS, *(WRITTEN_COLUMNS if self.written else ()), *(JUDGED_COLUMNS if self.judged else ())]

    @property
    def written(self) -> bool:
        """Whether there are written queries."""
        return any(system.written is not None for system in self.table)

    @property
    def judged(self) -> bool:
        """Whether judgments were given."""
        return any(system.judged is not None for system in self.table)

    @property
    def rows(self) -> list[list[str]]:
        """The cells of all systems in descending order of their scores, in the order of `columns`."""
        return [system.cells(self.written, self.judged) for system in self.ranked]

    @property
    def model(self) -> str:
        """The recommended base; for a search by words alone, the first base, because every index has vectors."""
        return self.chosen.model or next((system.model for system in self.table if system.model), "")

    def to_dict(self) -> Record:
        """Return plain values for JSON."""
        return {
            "table": [system.to_dict() for system in self.table],
            "chosen": self.chosen.name,
            "model": self.model,
            "best": self.best.to_dict(),
            "reason": self.reason,
            "judgement": self.judgement,
            "facts": dict(self.facts),
        }

    @classmethod
    def from_dict(cls, content: Values, folder: Path | None = None) -> Choice:
        """Return the choice that `to_dict` wrote."""
        table = [System(**{**system, "pipeline": Pipeline(**system["pipeline"])}) for system in content["table"]]
        chosen = next(system for system in table if system.name == content["chosen"])
        return cls(table, chosen, content["reason"], content["judgement"], content["facts"], folder)

    def save(self, folder: str | Path) -> Path:
        """Write the page, and all figures as JSON, to a folder; return the page."""
        target = Path(folder)
        target.mkdir(parents=True, exist_ok=True)
        write_json(target / "choice.json", self.to_dict())
        write_text(target / "report.html", choice_page(self))
        if self.folder and self.folder.resolve() != target.resolve() and (self.folder / "queries").is_dir():
            shutil.copytree(self.folder / "queries", target / "queries", dirs_exist_ok=True)
        return target / "report.html"


def compared(systems: Sequence[System], each: Sequence[np.ndarray], judged: Sequence[np.ndarray]) -> list[System]:
    """Return systems with the intervals of their gains over the best baseline.

    Args:
        each, judged: Scores (Q,) of the queries by each system, and of judged queries if there are any.
    """
    free = best_free(systems)
    changed = []
    for i, system in enumerate(systems):
        changes: Record = {}
        if i != free:
            changes["low"], changes["high"] = gain_interval(each[i] - each[free])
        if i < len(judged):
            changes["judged"] = float(judged[i].mean())
            if i != free:
                changes["judged_low"], changes["judged_high"] = gain_interval(judged[i] - judged[free])
        changed.append(replace(system, **changes))
    return changed


def best_free(systems: Sequence[System]) -> int:
    """Return the position of the best baseline."""
    return max((i for i, system in enumerate(systems) if system.free), key=lambda i: systems[i].score)


def decided(systems: Sequence[System], each: Sequence[np.ndarray], usual: int) -> tuple[System, str]:
    """Return the system to use, and the verdict in one sentence.

    The usual search is used unless another is better by more than chance: on sets that people judged it lost nothing,
    and queries that are taken out of a text tell less than people's.

    Args:
        each: Scores (Q,) of the queries by each system.
        usual: Place of the default of `likewise search`, with the first base.
    """
    own, free = systems[usual], systems[best_free(systems)]
    others = [i for i, system in enumerate(systems) if i != usual and not (system.learnt or system.only_measured)]
    gains = {i: gain_interval(each[i] - each[usual]) for i in others}
    if better := [i for i, (low, _) in gains.items() if low > 0]:
        place = max(better, key=lambda i: systems[i].score)
        best = systems[place]
        more = f"it scores {best.score - own.score:.1f} points more than {own.name} ({interval_of(*gains[place])})"
        return best, f"use {best.name}: {more}"
    over = f"{free.name}, the best baseline"
    if own.low is not None and own.low > 0:
        more = f"it scores {own.score - free.score:.1f} points more than {over} ({interval_of(own.low, own.high)})"
        return own, f"use {own.name}: {more}"
    change = f"{own.score - free.score:+.1f} points, {interval_of(own.low, own.high)}"
    return own, f"use {own.name}: no gain is statistically significant (compared with {over}: {change})"


def judgement(systems: Sequence[System], chosen: System, queries: int) -> str:
    """Say whether judgments agree with the choice, and how much so few of them can show."""
    scores = [system.judged for system in systems if system.judged is not None]
    if not scores or chosen.judged is None:
        return ""
    # Of systems that are equally good, the chosen one is the best.
    judged = [chosen, *(system for system in systems if system.judged is not None)]
    best = max(judged, key=lambda system: system.judged or 0.0)
    widths = [
        (system.judged_high - system.judged_low) / 2
        for system in systems
        if system.judged_low is not None and system.judged_high is not None
    ]
    lost = (best.judged or 0.0) - chosen.judged
    said = (
        "which the label-free column also chose"
        if lost <= 0
        else f"and the choice of the label-free column scores {lost:.1f} points less"
    )
    width = float(np.median(widths)) if widths else 0.0
    text = (
        f"so few queries only show differences of about {width:.0f} points or more"
        if queries > 1
        else "a single query says nothing about other queries"
    )
    return f"By your {counted(queries, 'judged query')} {best.name} is best ({best.judged:.1f}), {said}; {text}"


def choice_page(choice: Choice) -> str:
    """Return the page."""
    return page_of(
        "likewise.searching.choose",
        "report.html.j2",
        choice=choice,
        rows=list(zip(choice.ranked, choice.rows, strict=True)),
        dots=dot_plot(_dots(choice)),
        times=_times(choice),
        queries=", ".join(counted(count, CALLED[kind]) for kind, count in choice.facts["queries"].items()),
        called=CALLED,
    )


def _dots(choice: Choice) -> list[Dot]:
    """Return the gains over the best baseline, in descending order."""
    free = next(system for system in choice.table if system.name == choice.facts["free"])
    dots = []
    for system in choice.ranked:
        gain = system.score - free.score
        compared = f"{gain:+.1f} ({interval_of(system.low, system.high)})"
        said = "best baseline" if system is free else compared
        chosen = system.name == choice.chosen.name
        dots.append(Dot(system.name, f"{system.score:.1f}", said, gain, system.low, system.high, chosen))
    return dots


def _times(choice: Choice) -> Record:
    """Return scores and milliseconds (on a scale of powers of ten), placed for a drawing."""
    timed = [system for system in choice.table if system.milliseconds]
    if not timed:
        return {}
    logs = [math.log10(system.milliseconds or 1.0) for system in timed]
    left, right = math.floor(min(logs)), math.ceil(max(logs) + 1e-9)
    right = max(right, left + 1)
    scores = [system.score for system in timed]
    low, high = min(scores), max(scores)
    room = 0.1 * (high - low or 1.0)
    low, high = low - room, high + room

    def across(log: float) -> float:
        return round(50 + (log - left) / (right - left) * (WIDTH - 70), 1)

    def up(score: float) -> float:
        return round(_TALL - 40 - (score - low) / (high - low) * (_TALL - 60), 1)

    order = {system.name: i for i, system in enumerate(choice.ranked, start=1)}
    points = [
        {
            "name": system.name,
            "number": order[system.name],
            "x": across(log),
            "y": up(system.score),
            "said": f"{system.name}: {system.score:.1f}, {system.milliseconds:.1f} ms",
            "chosen": system.name == choice.chosen.name,
        }
        for system, log in zip(timed, logs, strict=True)
    ]
    across_ticks = [(across(log), f"{10.0**log:g} ms") for log in range(left, right + 1)]
    up_ticks = [(up(value), f"{value:g}") for value in ticks(low, high)]
    return {"points": points, "across": across_ticks, "up": up_ticks, "width": WIDTH, "height": _TALL}
