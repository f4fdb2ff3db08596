"""The page of a choice: one HTML file with a dot plot, quality against time, and where systems disagree."""

from __future__ import annotations

import math

from likewise.choice.choice_result import Choice, interval_of
from likewise.choice.held_out import CALLED
from likewise.errors import counted
from likewise.runs.dot_plot import WIDTH, Dot, dot_plot, ticks
from likewise.runs.pages import page_of
from likewise.runs.whole_files import Record

_TALL = 300.0


def choice_page(choice: Choice) -> str:
    """Return the page."""
    return page_of(
        "likewise.choice",
        "report.html.j2",
        choice=choice,
        rows=list(zip(choice.ranked, choice.rows, strict=True)),
        dots=dot_plot(_dots(choice)),
        times=_times(choice),
        asked=", ".join(counted(count, CALLED[kind]) for kind, count in choice.facts["queries"].items()),
        called=CALLED,
    )


def _dots(choice: Choice) -> list[Dot]:
    """Return the gains over the best free system, the best first."""
    free = next(system for system in choice.table if system.name == choice.facts["free"])
    dots = []
    for system in choice.ranked:
        gain = system.score - free.score
        said = "the free system to beat" if system is free else f"{gain:+.1f} ({interval_of(system.low, system.high)})"
        chosen = system.name == choice.chosen.name
        dots.append(Dot(system.name, f"{system.score:.1f}", said, gain, system.low, system.high, chosen))
    return dots


def _times(choice: Choice) -> Record:
    """Return scores and milliseconds (on a scale of powers of ten), placed for a drawing."""
    shown = [system for system in choice.table if system.milliseconds]
    if not shown:
        return {}
    logs = [math.log10(system.milliseconds or 1.0) for system in shown]
    left, right = math.floor(min(logs)), math.ceil(max(logs) + 1e-9)
    right = max(right, left + 1)
    scores = [system.score for system in shown]
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
        for system, log in zip(shown, logs, strict=True)
    ]
    across_ticks = [(across(log), f"{10.0**log:g} ms") for log in range(left, right + 1)]
    up_ticks = [(up(value), f"{value:g}") for value in ticks(low, high)]
    return {"points": points, "across": across_ticks, "up": up_ticks, "width": WIDTH, "height": _TALL}
