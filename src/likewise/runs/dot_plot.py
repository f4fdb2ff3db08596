"""Gains with their intervals, placed for a drawing on a page, which `dots.html.j2` draws."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from likewise.runs.whole_files import Record

WIDTH, _ROW = 640.0, 52.0


@dataclass(frozen=True)
class Dot:
    """A row of the drawing.

    Attributes:
        score, said: Score, and description of the gain.
        low, high: Confidence interval of the gain, or None.
        chosen: Whether it is highlighted.
    """

    name: str
    score: str
    said: str
    gain: float
    low: float | None = None
    high: float | None = None
    chosen: bool = False

    @property
    def is_sure(self) -> bool:
        """Whether the interval excludes zero."""
        return self.low is not None and self.high is not None and (self.low > 0 or self.high < 0)


def dot_plot(dots: Sequence[Dot]) -> Record:
    """Return rows, one below the other, placed for the drawing."""
    ends = [end for dot in dots for end in (dot.gain, dot.low, dot.high) if end is not None]
    low, high = min([0.0, *ends]), max([0.0, *ends])
    room = 0.04 * (high - low or 1.0)
    low, high = low - room, high + room

    def place(value: float | None, otherwise: float = 0.0) -> float:
        return round(12 + ((otherwise if value is None else value) - low) / (high - low) * (WIDTH - 24), 1)

    rows = [
        {
            "dot": dot,
            "y": round((i + 0.72) * _ROW, 1),
            "x": place(dot.gain),
            "low": place(dot.low, dot.gain),
            "high": place(dot.high, dot.gain),
        }
        for i, dot in enumerate(dots)
    ]
    labels = [(place(value), f"{value:+g}" if value else "0") for value in ticks(low, high)]
    return {"rows": rows, "zero": place(0.0), "ticks": labels, "width": WIDTH, "height": len(rows) * _ROW + 30}


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Return round numbers between two, `most` of them at most.

    >>> ticks(-3.2, 8.1)
    [-2.0, 0.0, 2.0, 4.0, 6.0, 8.0]
    """
    step = 10.0 ** math.floor(math.log10((high - low) / most))
    step = next(step * factor for factor in (1, 2, 5, 10, 20) if (high - low) / (step * factor) <= most)
    first = math.ceil(low / step)
    return [round(i * step, 9) for i in range(first, math.floor(high / step) + 1)]
