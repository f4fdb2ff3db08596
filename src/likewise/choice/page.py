"""The page of a choice: one HTML file with a dot plot, quality against time, and where systems disagree."""

from __future__ import annotations

import math

from likewise.choice.choice_result import Choice, interval_of
from likewise.choice.held_out import CALLED
from likewise.errors import counted
from likewise.runs.pages import page_of
from likewise.runs.whole_files import Record

_WIDTH, _ROW = 640.0, 52.0
_TALL = 300.0


def choice_page(choice: Choice) -> str:
    """Return the page."""
    return page_of(
        "likewise.choice",
        "report.html.j2",
        choice=choice,
        rows=list(zip(choice.ranked, choice.rows, strict=True)),
        dots=_dots(choice),
        times=_times(choice),
        asked=", ".join(counted(count, CALLED[kind]) for kind, count in choice.facts["queries"].items()),
        called=CALLED,
    )


def _dots(choice: Choice) -> Record:
    """Return the gains over the best free system, placed for a drawing: the best first."""
    free = next(system for system in choice.table if system.name == choice.facts["free"])
    lows = [system.low for system in choice.table if system.low is not None]
    highs = [system.high for system in choice.table if system.high is not None]
    low, high = min([0.0, *lows]), max([0.0, *highs])
    room = 0.04 * (high - low or 1.0)
    low, high = low - room, high + room

    def place(value: float) -> float:
        return round(12 + (value - low) / (high - low) * (_WIDTH - 24), 1)

    rows = []
    for i, system in enumerate(choice.ranked):
        gain = system.score - free.score
        is_free = system is free
        rows.append(
            {
                "name": system.name,
                "y": round((i + 0.72) * _ROW, 1),
                "x": place(gain),
                "low": place(system.low if system.low is not None else gain),
                "high": place(system.high if system.high is not None else gain),
                "score": f"{system.score:.1f}",
                "gain": "the free system to beat"
                if is_free
                else f"{gain:+.1f} ({interval_of(system.low, system.high)})",
                "chosen": system.name == choice.chosen.name,
                "certain": system.low is not None and (system.low > 0 or (system.high or 0) < 0),
            }
        )
    ticks = [(place(value), f"{value:+g}" if value else "0") for value in _ticks(low, high)]
    return {"rows": rows, "zero": place(0.0), "ticks": ticks, "width": _WIDTH, "height": len(rows) * _ROW + 30}


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
        return round(50 + (log - left) / (right - left) * (_WIDTH - 70), 1)

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
    up_ticks = [(up(value), f"{value:g}") for value in _ticks(low, high)]
    return {"points": points, "across": across_ticks, "up": up_ticks, "width": _WIDTH, "height": _TALL}


def _ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers between two, `most` of them at most.

    >>> _ticks(-3.2, 8.1)
    [-2.0, 0.0, 2.0, 4.0, 6.0, 8.0]
    """
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(step * factor for factor in (1, 2, 5, 10, 20) if (high - low) / (step * factor) <= most)
    first = math.ceil(low / step)
    return [round(i * step, 9) for i in range(first, math.floor(high / step) + 1)]
