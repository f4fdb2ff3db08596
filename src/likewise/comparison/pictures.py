"""What all pictures share: colours that colour-blind readers tell apart, plain axes, and no global state.

Figures are matplotlib Figure objects, which draw with Agg and are freed with their last reference; pyplot, its
windows and its list of open figures stay out of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.runs.whole_files import written_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Okabe and Ito 2008, 'Color Universal Design'; yellow is left out, too pale for a line on white.
BLUE, VERMILLION, GREEN, ORANGE, SKY, PURPLE, BLACK = (
    "#0072B2",
    "#D55E00",
    "#009E73",
    "#E69F00",
    "#56B4E9",
    "#CC79A7",
    "#000000",
)
CYCLE = (BLUE, VERMILLION, GREEN, ORANGE, PURPLE, SKY, BLACK)
# Lines differ by their marker too: a colour alone is lost in a grey print.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
_DPI = 150
_QUIET = "#666666"


class ReportExtraMissing(ImportError):  # noqa: N818 - an ImportError already
    """A part of the extra 'report' is not installed."""


def require_extra() -> None:
    """Check for matplotlib and jinja2 before long work starts.

    Raises:
        ReportExtraMissing: one is not installed; the message says what to install.
    """
    try:
        import jinja2  # noqa: F401
        import matplotlib.figure  # noqa: F401
    except ImportError as error:
        raise ReportExtraMissing(
            f'reports need matplotlib and jinja2: pip install "likewise[report]" ({error})'
        ) from error


def panels(
    rows: int, columns: int, *, size: tuple[float, float], share_x: bool = True, share_y: bool = False
) -> tuple[Figure, list[list[Any]]]:
    """A figure with a grid of axes: rows x columns.

    Args:
        rows, columns: of the grid.
        size: of the whole, in inches.
        share_x, share_y: whether all have the same x axis, and the same y axis.
    """
    require_extra()
    from matplotlib.figure import Figure

    figure = Figure(figsize=size, layout="constrained")
    grid = figure.subplots(rows, columns, sharex=share_x, sharey=share_y, squeeze=False)
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(_QUIET)
        axes.tick_params(colors=_QUIET, labelsize=9)
        axes.grid(axis="y", color="#E5E5E5", linewidth=0.8)
        axes.set_axisbelow(True)
    return figure, [list(row) for row in grid]


def save(figure: Figure, path: Path) -> Path:
    """Write a PNG by rename."""
    with written_whole(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=_DPI, facecolor="white")
    return path


def shorten(name: str, length: int = 48) -> str:
    """A name for a title: the end of a long path, which is what tells two of them apart.

    >>> shorten("/somewhere/very/deep/in/a/tree/of/folders/runs/sncse-long")
    '…/very/deep/in/a/tree/of/folders/runs/sncse-long'
    """
    return name if len(name) <= length else "…" + name[-(length - 1) :]


def cut_middle(label: str, length: int = 40) -> str:
    """A label that fits: its beginning says what it is, and its end what it differs in.

    >>> cut_middle("gclsr augmentation=full noise_share=0.3 group_size=0", 32)
    'gclsr augmentat…0.3 group_size=0'
    """
    if len(label) <= length:
        return label
    end = length // 2
    return label[: length - end - 1] + "…" + label[-end:]


def styles(count: int) -> Sequence[tuple[str, str]]:
    """(colour, marker) of `count` lines; they repeat after seven colours."""
    return [(CYCLE[i % len(CYCLE)], MARKERS[i % len(MARKERS)]) for i in range(count)]
