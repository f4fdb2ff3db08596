"""The parts that all pictures share: colours for colour-blind readers, plain axes, and no global state.

Figures are matplotlib Figure objects, which draw with Agg and are freed with their last reference; pyplot, its
windows and its list of open figures stay out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from likewise.errors import require_extra
from likewise.runs.whole_files import written_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito 2008, 'Color Universal Design'; yellow is left out, too pale for a line on white.
BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE, BLACK = "#56B4E9", "#CC79A7", "#000000"
CYCLE = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK)
# Lines differ by their marker too: a colour alone is lost in a grey print.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DPI = 150
_QUIET = "#666666"


def check_extra() -> None:
    """Check that the packages for a report are installed, before long work starts."""
    require_extra("report", "a report with pictures", "matplotlib")


def panels(
    count: int,
    size: Callable[[int, int], tuple[float, float]],
    *,
    columns: int = 9,
    share_x: bool = True,
    share_y: bool = False,
    lines: Literal["x", "y", "both"] = "y",
) -> tuple[Figure, list[Any]]:
    """Return a figure with `count` axes in rows of at most `columns`.

    Args:
        size: from the rows and columns of the figure to its size in inches.
        share_x, share_y: whether the axes have the same scale.
        lines: faint lines across the axes, at the ticks of x, y or both.
    """
    check_extra()
    from matplotlib.figure import Figure

    columns = min(columns, count)
    rows = -(-count // columns)
    figure = Figure(figsize=size(rows, columns), layout="constrained")
    grid = figure.subplots(rows, columns, sharex=share_x, sharey=share_y, squeeze=False)
    for i, axes in enumerate(grid.flat):
        axes.set_visible(i < count)
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(_QUIET)
        axes.tick_params(colors=_QUIET, labelsize=9, labelbottom=True)  # the last line may have gaps
        axes.grid(axis=lines, color="#E5E5E5", linewidth=0.8)
        axes.set_axisbelow(True)
    return figure, list(grid.flat[:count])


def save(figure: Figure, path: Path, y: str = "") -> Path:
    """Write a PNG atomically, with a name for the y axis of the first panel of each row."""
    for axes in figure.axes:
        place = axes.get_subplotspec()
        if y and place is not None and place.is_first_col():
            axes.set_ylabel(y)
    with written_whole(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=_DPI, facecolor="white")
    return path


def cut_middle(label: str, length: int = 40) -> str:
    """Return a label that fits, its middle cut: the beginning and the end identify it.

    >>> cut_middle("gclsr augmentation=full noise_share=0.3 group_size=0", 32)
    'gclsr augmentat…0.3 group_size=0'
    """
    if len(label) <= length:
        return label
    end = length // 2
    return label[: length - end - 1] + "…" + label[-end:]


def styles(count: int) -> Sequence[tuple[str, str]]:
    """Return (colour, marker) of `count` lines; they repeat after seven colours."""
    return [(CYCLE[i % len(CYCLE)], MARKERS[i % len(MARKERS)]) for i in range(count)]
