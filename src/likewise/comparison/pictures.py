"""Pictures of scores, cosines and rank errors: colours for colour-blind readers, and plain axes.

Figures are matplotlib Figure objects, which draw with Agg and are freed with their last reference; pyplot, its
windows and its list of open figures stay out of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from likewise.errors import require_extra
from likewise.evaluation.rank_errors import ErrorAnalysis
from likewise.runs.whole_files import written_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from likewise.comparison.result import Comparison

# Okabe and Ito 2008, 'Color Universal Design'; yellow is left out, too pale for a line on white.
BLUE, VERMILLION, GREEN, ORANGE = "#0072B2", "#D55E00", "#009E73", "#E69F00"
SKY, PURPLE = "#56B4E9", "#CC79A7"
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


def draw_scores(found: Comparison, path: Path) -> Path | None:
    """Draw the scores of the first column, a line for each method: its mean, and its runs as small dots.

    The axis is at least two points wide, so that hundredths of a point do not look far apart.
    """
    if not found.columns:
        return None
    column = found.columns[0]
    shown = {row.label: cell for row in found.rows if (cell := row.cells.get(column.name))}
    if len(shown) < 2:
        return None
    figure, axes = _lines_of(list(shown))
    for row in found.rows:
        if row.method.is_base and row.label in shown:
            axes.axvline(shown[row.label].mean, color=_QUIET, linestyle=":", linewidth=1.4)
    for height, cell in enumerate(shown.values()):
        axes.plot([*cell.scores.values()], [height] * len(cell.scores), "o", color=SKY, markersize=4, zorder=2)
        axes.plot([cell.mean], [height], "o", color=BLUE, markersize=8, zorder=3)
    every = [score for cell in shown.values() for score in cell.scores.values()]
    middle, half = (min(every) + max(every)) / 2, max(1.0, 0.55 * (max(every) - min(every)))
    axes.set_xlim(middle - half, middle + half)
    axes.set_xlabel(column.title)
    return save(figure, path)


def _lines_of(labels: Sequence[str], high: float = 0.36) -> tuple[Figure, Any]:
    """Return a figure, and its axes with a line of the height `high`, in inches, for each label, the first on top."""
    figure, (axes,) = panels(1, lambda *_: (8.0, 1.2 + high * len(labels)), lines="x")
    axes.set_yticks(range(len(labels)), [cut_middle(label) for label in labels])
    axes.set_ylim(len(labels) - 0.5, -0.5)
    return figure, axes


def draw_similarity(
    shown: Mapping[str, Sequence[Mapping[str, Any]]], path: Path, name: str = "a sentence and …"
) -> Path:
    """Draw distributions (`Distribution.to_dict`), a panel for each model and a shape for each kind of pairs."""
    kinds = list(dict.fromkeys(one["kind"] for parts in shown.values() for one in parts))
    colours = dict(zip(kinds, (GREEN, ORANGE, BLUE, PURPLE, VERMILLION, SKY), strict=False))
    figure, flat = panels(
        len(shown),
        lambda lines, n: (max(5.0, 1.6 + 3.0 * n), 0.6 + lines * (0.9 + 0.34 * len(kinds))),
        columns=3,
        share_y=True,
        lines="x",
    )
    lowest = min(one["quantiles"]["0.01"] for parts in shown.values() for one in parts)
    for axes, (label, parts) in zip(flat, shown.items(), strict=True):
        for one in parts:
            _shape(axes, one, len(kinds) - 1 - kinds.index(one["kind"]), colours)
        axes.set_title(cut_middle(label, 38), loc="left", fontsize=9.5)
        axes.set_yticks(range(len(kinds)), kinds[::-1])
        axes.set_xlabel("cosine similarity")
    flat[0].set_xlim(max(-1.0, np.floor(lowest * 5) / 5 - 0.02), 1.02)
    return save(figure, path, name)


def _shape(axes: Any, one: Mapping[str, Any], height: int, colours: Mapping[str, str]) -> None:
    """Draw a histogram mirrored at its axis, with a tick at the median."""
    counts = np.array(one["histogram"]["counts"], dtype=float)
    edges = np.linspace(-1.0, 1.0, len(counts) + 1)
    inside = np.flatnonzero(counts)
    part = slice(inside[0], inside[-1] + 2)  # to the end of the last bin
    share = np.append(0.42 * counts / counts.max(), 0.0)[part]
    colour = colours.get(one["kind"], PURPLE)
    axes.fill_between(edges[part], height - share, height + share, step="post", color=colour, alpha=0.55, linewidth=0)
    median = one["quantiles"]["0.5"]
    axes.plot([median, median], [height - 0.42, height + 0.42], color="#222222", linewidth=1.6)


def draw_errors(analysis: ErrorAnalysis, path: Path) -> Path:
    """Draw the rank by the cosine over the rank by the rating for all pairs, the worst ones marked."""
    figure, (axes,) = panels(1, lambda *_: (6.4, 5.6))
    axes.plot([1, analysis.pairs], [1, analysis.pairs], color="#999999", linewidth=1, zorder=1)
    axes.scatter(analysis.gold_ranks, analysis.estimated_ranks, s=4, color="#AAAAAA", linewidths=0, zorder=2)
    for direction, colour, marker in (("overestimated", VERMILLION, "^"), ("underestimated", BLUE, "v")):
        worst = [pair for pair in analysis.worst if pair.direction == direction]
        x, y = [pair.gold_rank for pair in worst], [pair.estimated_rank for pair in worst]
        label = f"{direction}, {len(worst)} of the worst {len(analysis.worst)}"
        axes.scatter(x, y, s=42, color=colour, marker=marker, edgecolors="white", linewidths=0.6, label=label, zorder=3)
    axes.set_xlabel("gold rank $R_G$ (by the human rating; higher is more similar)")
    axes.set_ylabel("estimated rank $R_E$ (by the cosine)")
    axes.set_title(
        f"{analysis.title}: Spearman {analysis.spearman:.2f}\n{cut_middle(analysis.model, 60)}", loc="left", fontsize=10
    )
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return save(figure, path)
