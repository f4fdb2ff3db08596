"""The picture of scores: colours for colour-blind readers, and plain axes.

Figures are matplotlib Figure objects, which draw with Agg and are freed with their last reference; pyplot, its
windows and its list of open figures stay out of it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from likewise.errors import require_extra
from likewise.runs.whole_files import written_whole

if TYPE_CHECKING:
    from likewise.comparison.comparison_result import Comparison

# Okabe and Ito 2008, 'Color Universal Design'.
BLUE, SKY = "#0072B2", "#56B4E9"
_QUIET = "#666666"


def check_extra() -> None:
    """Check that the packages for a report are installed, before long work starts."""
    require_extra("report", "a report with pictures", "matplotlib")


def cut_middle(label: str, length: int = 40) -> str:
    """Return a label that fits, its middle cut: the beginning and the end identify it.

    >>> cut_middle("gclsr augmentation=full noise_share=0.3 group_size=0", 32)
    'gclsr augmentat…0.3 group_size=0'
    """
    if len(label) <= length:
        return label
    end = length // 2
    return label[: length - end - 1] + "…" + label[-end:]


def draw_scores(comparison: Comparison, path: Path) -> Path | None:
    """Draw the scores of the first column, a line for each method: its mean, and its runs as small dots.

    The axis is at least two points wide, so that hundredths of a point do not look far apart.
    """
    if not comparison.columns:
        return None
    column = comparison.columns[0]
    shown = {row.label: cell for row in comparison.rows if (cell := row.cells.get(column.name))}
    if len(shown) < 2:
        return None
    check_extra()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8.0, 1.2 + 0.36 * len(shown)), layout="constrained")
    axes = figure.subplots()
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(_QUIET)
    axes.tick_params(colors=_QUIET, labelsize=9)
    axes.grid(axis="x", color="#E5E5E5", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_yticks(range(len(shown)), [cut_middle(label) for label in shown])
    axes.set_ylim(len(shown) - 0.5, -0.5)
    for row in comparison.rows:
        if row.method.is_base and row.label in shown:
            axes.axvline(shown[row.label].mean, color=_QUIET, linestyle=":", linewidth=1.4)
    for height, cell in enumerate(shown.values()):
        axes.plot([*cell.scores.values()], [height] * len(cell.scores), "o", color=SKY, markersize=4, zorder=2)
        axes.plot([cell.mean], [height], "o", color=BLUE, markersize=8, zorder=3)
    every = [score for cell in shown.values() for score in cell.scores.values()]
    middle, half = (min(every) + max(every)) / 2, max(1.0, 0.55 * (max(every) - min(every)))
    axes.set_xlim(middle - half, middle + half)
    axes.set_xlabel(column.title)
    with written_whole(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=150, facecolor="white")
    return path
