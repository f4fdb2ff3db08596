"""Pictures of what happens in training: scores and losses over the updates, alignment over uniformity."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from likewise.comparison.outcome import Comparison, Row
from likewise.report.pictures import cut_middle, panels, save, styles

_IN_A_PANEL = 6
"""Lines of a panel: more of them cannot be told apart, so that the others go into a panel beside it."""
_QUIET = "#555555"
_MARKS = ("X", "P", "*", "d", "p", "h", "8", "<", ">")
_LEAST = 0.5  # of a scale of 100: below it a change of the score is not worth a whole axis


def groups(rows: Sequence[Row]) -> list[list[Row]]:
    """The rows in panels of nearly equal size."""
    count = -(-len(rows) // _IN_A_PANEL)
    sizes = [len(rows) // count + (i < len(rows) % count) for i in range(count)] if rows else []
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [list(rows[start : start + size]) for start, size in zip(starts, sizes, strict=True)]


def mean_curve(row: Row, *names: str) -> list[tuple[int, list[list[float]]]]:
    """The evaluations that every run of a row has: (step, the values of each name, one a run)."""
    curves = [{point["step"]: point for point in result.get("curve", ())} for result in row.finished]
    common = set.intersection(*(set(curve) for curve in curves)) if curves else set()
    return [
        (step, [[float(curve[step][name]) for curve in curves] for name in names])
        for step in sorted(common)
        if all(curve[step].get(name) is not None for curve in curves for name in names)
    ]


def draw_curves(found: Comparison, path: Path) -> Path | None:
    """Draw what selects the checkpoint over the updates: the mean over the seeds, and a band from lowest to highest."""
    rows = [row for row in found.rows if len(mean_curve(row, "score")) > 1]
    if not rows:
        return None
    split = groups(rows)
    figure, (grid,) = panels(1, len(split), size=(1.2 + 4.6 * len(split), 4.6), share_y=True)
    every = [value for row in rows for _, (values,) in mean_curve(row, "score") for value in values]
    low, high = frame(every, 0.2, _LEAST if found.dev_metric == "sts_dev_spearman" else 0.0)
    untrained = {
        row.label: score
        for row in found.rows
        if row.method.kind == "base" and row.finished
        if (score := (row.finished[0].get("dev") or {}).get("score")) is not None
    }
    for axes, members in zip(grid, split, strict=True):
        for row, look in zip(members, _looks(len(members)), strict=True):
            points = mean_curve(row, "score")
            steps = [step for step, _ in points]
            scores = [values for _, (values,) in points]
            axes.plot(steps, [statistics.fmean(values) for values in scores], label=_label(row), **look)
            if len(row.finished) > 1:
                bounds = [min(values) for values in scores], [max(values) for values in scores]
                axes.fill_between(steps, *bounds, color=look["color"], alpha=0.15, linewidth=0)
        for label, score in untrained.items():
            where = "" if low < score < high else f", {'above' if score > high else 'below'}: {score:.2f}"
            axes.axhline(score, color=_QUIET, linestyle=":", linewidth=1.4, label=f"{label} (untrained{where})")
        axes.set_ylim(low, high)
        axes.set_xlabel("update")
        axes.xaxis.get_major_locator().set_params(integer=True)
        _legend(axes)
    grid[0].set_ylabel(score_name(found))
    return save(figure, path)


def draw_losses(found: Comparison, path: Path) -> Path | None:
    """Draw the loss of each method over the updates, a panel and a scale of its own for each: losses do not compare."""
    rows = [row for row in found.rows if any(len(result.get("losses", ())) > 1 for result in row.finished)]
    if not rows:
        return None
    columns = min(4, len(rows))
    lines = -(-len(rows) // columns)
    figure, grid = panels(lines, columns, size=(max(4.0, 0.6 + 2.7 * columns), 0.5 + 2.2 * lines))
    flat = [axes for line in grid for axes in line]
    colour, _ = styles(1)[0]
    for axes, row in zip(flat, rows, strict=False):
        for result in row.finished:
            axes.plot(*zip(*result["losses"], strict=True), color=colour, linewidth=1.2, alpha=0.8)
        axes.set_title(cut_middle(row.label, 34), loc="left", fontsize=9)
        axes.set_xlabel("update")
        axes.tick_params(labelbottom=True)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.ticklabel_format(axis="y", style="plain", useOffset=False)  # a factor would push the title up
    for axes in flat[len(rows) :]:
        axes.set_visible(False)
    for line in grid:
        line[0].set_ylabel("training loss")
    return save(figure, path)


def draw_path(found: Comparison, path: Path) -> Path | None:
    """Draw alignment over uniformity during training, from the untrained encoder on (ArcCSE, figure 8)."""
    rows = [row for row in found.rows if len(mean_curve(row, "uniformity", "alignment")) > 1]
    still = [row for row in found.rows if row not in rows and _place(row) is not None]
    if not rows and not still:
        return None
    split = groups(rows) or [[]]
    figure, (grid,) = panels(1, len(split), size=(1.4 + 4.8 * len(split), 5.2), share_y=True)
    paths = {row.label: _path(row) for row in rows}
    places = {row.label: place for row in still if (place := _place(row)) is not None}
    (left, right), (low, high) = _window([point for points in paths.values() for point in points], [*places.values()])
    for axes, members in zip(grid, split, strict=True):
        for row, look in zip(members, _looks(len(members)), strict=True):
            x, y = zip(*paths[row.label], strict=True)
            large = {**look, "markersize": look["markersize"] + 4}
            axes.plot(x, y, **{**look, "markersize": look["markersize"] - 1}, zorder=3)
            axes.plot(x[:1], y[:1], **large, markerfacecolor="white", zorder=4)
            axes.plot(x[-1:], y[-1:], label=_label(row), **large, zorder=5)
        for i, (label, (across, up)) in enumerate(places.items()):
            inside = left < across < right and low < up < high
            where = "" if inside else f" (outside: {across:.2f}, {up:.2f})"
            mark = _MARKS[i % len(_MARKS)]
            axes.plot(
                [across], [up], color=_QUIET, marker=mark, markersize=8, linestyle="", label=cut_middle(label) + where
            )
        if members:
            axes.plot([], [], color=_QUIET, marker="o", markerfacecolor="white", linestyle="", label="open: untrained")
        axes.grid(axis="x", color="#E5E5E5", linewidth=0.8)
        axes.set_xlim(left, right)
        axes.xaxis.get_major_locator().set_params(nbins=6)
        axes.set_ylim(low, high)
        axes.set_xlabel("uniformity (lower: vectors spread more evenly)")
        _legend(axes)
    grid[0].set_ylabel("alignment (lower: positives lie closer)")
    return save(figure, path)


def _window(
    paths: Sequence[tuple[float, float]], places: Sequence[tuple[float, float]]
) -> tuple[tuple[float, float], tuple[float, float]]:
    """The ranges of x and y that are drawn: all paths, and the places near them.

    A baseline far off would press the paths into a corner: it is left outside.
    """
    across, up = (frame([point[axis] for point in paths or places], 0.5, 0.02) for axis in (0, 1))
    near = [(x, y) for x, y in places if across[0] < x < across[1] and up[0] < y < up[1]]
    x, y = (frame([point[axis] for point in (*paths, *near)], 0.1, 0.02) for axis in (0, 1))
    return x, y


def frame(values: Sequence[float], beyond: float, least: float) -> tuple[float, float]:
    """The range of values, widened on both sides by a share of itself, and of `least` extent before that.

    >>> frame([1.0, 3.0], 0.5, 0.0)
    (0.0, 4.0)
    """
    low, high = min(values), max(values)
    extent = max(high - low, least, 1e-3)
    middle = (low + high) / 2
    return middle - extent * (0.5 + beyond), middle + extent * (0.5 + beyond)


def score_name(found: Comparison) -> str:
    """What the checkpoints are selected by, as the name of an axis."""
    if found.dev_metric == "sts_dev_spearman":
        return "Spearman on STS-B dev, × 100"
    return "separation of held-out sentences, in standard deviations"


def _path(row: Row) -> list[tuple[float, float]]:
    """(uniformity, alignment) at each evaluation, means over the seeds."""
    points = mean_curve(row, "uniformity", "alignment")
    return [(statistics.fmean(x), statistics.fmean(y)) for _, (x, y) in points]


def _looks(count: int) -> list[dict[str, Any]]:
    """How lines look: the later the thinner, so that one that lies on another does not hide it."""
    return [
        {"color": colour, "marker": marker, "linewidth": 1.4 + 0.35 * later, "markersize": 4.5 + 0.7 * later}
        for later, (colour, marker) in zip(reversed(range(count)), styles(count), strict=True)
    ]


def _place(row: Row) -> tuple[float, float] | None:
    """(uniformity, alignment) of a row's models."""
    x, y = row.mean_of("uniformity"), row.mean_of("alignment")
    return None if x is None or y is None else (x, y)


def _label(row: Row) -> str:
    return cut_middle(row.label)


def _legend(axes: Any) -> None:
    # Above the axes: no line is ever under it.
    axes.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), ncols=2, frameon=False, fontsize=8.5)
