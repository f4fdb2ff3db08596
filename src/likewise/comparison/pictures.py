"""Pictures of scores, cosines and rank errors: colours for colour-blind readers, and plain axes.

Figures are matplotlib Figure objects, which draw with Agg and are freed with their last reference; pyplot, its
windows and its list of open figures stay out of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.errors import require_extra
from likewise.runs.whole_files import written_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from likewise.comparison.result import Comparison

# Okabe and Ito 2008, 'Color Universal Design'; yellow is left out, too pale for a line on white.
BLUE, VERMILLION, GREEN, ORANGE, SKY = "#0072B2", "#D55E00", "#009E73", "#E69F00", "#56B4E9"
_QUIET = "#666666"


def check_extra() -> None:
    """Check that the packages for a report are installed, before long work starts."""
    require_extra("report", "a report with pictures", "matplotlib")


def panels(count: int, width: float, height: float, lines: str = "y") -> tuple[Figure, list[Any]]:
    """Return a figure of that size in inches, and so many axes side by side with the same scales.

    Args:
        lines: faint lines across the axes, at the ticks of x, y or both.
    """
    check_extra()
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    grid = figure.subplots(1, count, sharex=True, sharey=True, squeeze=False)
    for axes in grid.flat:
        axes.spines[["top", "right"]].set_visible(False)
        axes.spines[["left", "bottom"]].set_color(_QUIET)
        axes.tick_params(colors=_QUIET, labelsize=9)
        axes.grid(axis=lines, color="#E5E5E5", linewidth=0.8)
        axes.set_axisbelow(True)
    return figure, list(grid.flat)


def save(figure: Figure, path: Path) -> Path:
    """Write a PNG atomically."""
    with written_whole(path) as unfinished:
        figure.savefig(unfinished, format="png", dpi=150, facecolor="white")
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
    figure, (axes,) = panels(1, 8.0, 1.2 + 0.36 * len(shown), lines="x")
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
    return save(figure, path)


def draw_similarity(shown: Mapping[str, Mapping[str, np.ndarray]], path: Path) -> Path:
    """Draw distributions of cosines: a panel for each model, and a shape for each kind of pairs.

    Args:
        shown: title of a panel to kind of pairs to cosines (S,).
    """
    figure, flat = panels(len(shown), 1.6 + 3.4 * len(shown), 3.4)
    lowest = min(np.quantile(cosines, 0.01) for kinds in shown.values() for cosines in kinds.values())
    edges = np.linspace(max(-1.0, np.floor(lowest * 5) / 5), 1.0, 81)
    for axes, (title, kinds) in zip(flat, shown.items(), strict=True):
        for (kind, cosines), colour in zip(kinds.items(), (GREEN, ORANGE, BLUE)[-len(kinds) :], strict=True):
            axes.hist(cosines, edges, density=True, histtype="stepfilled", alpha=0.55, color=colour, label=kind)
        axes.set_title(cut_middle(title, 38), loc="left", fontsize=9.5)
        axes.set_xlabel("cosine similarity")
    flat[0].set_ylabel("density")
    flat[0].legend(title="a sentence and …", frameon=False, fontsize=8, title_fontsize=8)
    return save(figure, path)


def draw_ranks(
    gold: np.ndarray,
    estimated: np.ndarray,
    marked: Mapping[str, Sequence[tuple[float, float]]],
    title: str,
    path: Path,
) -> Path:
    """Draw the ranks (P,) by the cosine over those by the rating, and mark some pairs of them by direction."""
    figure, (axes,) = panels(1, 6.4, 5.6, lines="both")
    axes.plot([1, len(gold)], [1, len(gold)], color="#999999", linewidth=1, zorder=1)
    axes.scatter(gold, estimated, s=4, color="#AAAAAA", linewidths=0, zorder=2)
    for (direction, pairs), colour, marker in zip(marked.items(), (VERMILLION, BLUE), "^v", strict=True):
        x, y = zip(*pairs, strict=True) if pairs else ((), ())
        label = f"{direction}, {len(pairs)} of the worst"
        axes.scatter(x, y, s=42, color=colour, marker=marker, edgecolors="white", linewidths=0.6, label=label, zorder=3)
    axes.set_xlabel("gold rank $R_G$ (by the human rating; higher is more similar)")
    axes.set_ylabel("estimated rank $R_E$ (by the cosine)")
    axes.set_title("\n".join(cut_middle(line, 60) for line in title.split("\n")), loc="left", fontsize=10)
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return save(figure, path)
