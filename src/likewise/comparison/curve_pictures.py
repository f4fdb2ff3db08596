"""Pictures of training: scores and losses over the updates, alignment over uniformity, scores over a grid."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from likewise.comparison.comparison_page import short
from likewise.comparison.outcome import DEV, Column, Comparison, Row
from likewise.comparison.pictures import cut_middle, panels, save, styles

_IN_A_PANEL = 6
"""The most lines of a panel: more cannot be distinguished, so the others go into the next panel."""
_LONG = 30
"""Letters of a label that has a line of the legend for itself."""
_QUIET = "#555555"
_UNTRAINED: dict[str, Any] = {"color": _QUIET, "linestyle": ":", "linewidth": 1.4}
_MARKS = ("X", "P", "*", "d", "p", "h", "8", "<", ">")
_LEAST = 0.5  # of a scale of 100: below it a change of the score is not worth a whole axis


def draw_curves(found: Comparison, path: Path) -> Path | None:
    """Draw the selection metric over the updates: the mean over the seeds, and a band from lowest to highest."""
    # Two points are a line whatever happened between them.
    curves = {label: curve for label, curve in _curves(found.rows, "score").items() if len(curve[0]) > 2}
    if not curves:
        return None
    rows = [row for row in found.rows if row.label in curves]
    figure, grid = _panels_of(rows, 1.2, 6.4, 4.0)
    every = np.concatenate([scores.ravel() for _, scores in curves.values()])
    low, high = frame(every, 0.2, _LEAST if found.dev_metric == "sts_dev_spearman" else 0.0)
    untrained = {base.label: base.dev_score for row in rows if (base := found.base_row(row.method))}
    for axes, members in grid:
        for row, look in zip(members, _looks(len(members)), strict=True):
            steps, (scores,) = curves[row.label]
            axes.plot(steps, scores.mean(axis=0), label=cut_middle(row.label), **look)
            if len(scores) > 1:
                axes.fill_between(steps, scores.min(0), scores.max(0), color=look["color"], alpha=0.15, linewidth=0)
        for label, score in untrained.items():
            if score is not None:
                where = "" if low < score < high else f", {'above' if score > high else 'below'}: {score:.2f}"
                axes.axhline(score, label=f"{label} (untrained{where})", **_UNTRAINED)
        axes.set_ylim(low, high)
        axes.set_xlabel("update")
        axes.xaxis.get_major_locator().set_params(integer=True)
        _legend(axes)
    return save(figure, path, _score_name(found))


def draw_losses(found: Comparison, path: Path) -> Path | None:
    """Draw the loss of each method over the updates, each in its own panel and scale: losses are not comparable."""
    rows = [row for row in found.rows if any(len(result.get("losses", ())) > 1 for result in row.finished)]
    if not rows:
        return None
    figure, grid = panels(len(rows), lambda lines, n: (max(4.0, 0.6 + 2.7 * n), 0.5 + 2.2 * lines), columns=4)
    colour, _ = styles(1)[0]
    for axes, row in zip(grid, rows, strict=True):
        for result in row.finished:
            axes.plot(*zip(*result["losses"], strict=True), color=colour, linewidth=1.2, alpha=0.8)
        axes.set_title(cut_middle(row.label, 34), loc="left", fontsize=9)
        axes.set_xlabel("update")
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.ticklabel_format(axis="y", style="plain", useOffset=False)  # a factor would push the title up
    return save(figure, path, "training loss")


def draw_path(found: Comparison, path: Path) -> Path | None:
    """Draw alignment over uniformity during training, from the untrained encoder on (ArcCSE, figure 8)."""
    curves = _curves(found.rows, "uniformity", "alignment")
    paths = {label: values.mean(axis=1) for label, (_, values) in curves.items()}  # (2, T) each
    rows = [row for row in found.rows if row.label in paths]
    means = {row.label: (row.mean_of("uniformity"), row.mean_of("alignment")) for row in found.rows if row not in rows}
    places = {label: np.array(place) for label, place in means.items() if None not in place}
    if not paths and not places:
        return None
    # A baseline far off would press the paths into a corner: it is left outside.
    points = [point for x_and_y in paths.values() for point in x_and_y.T]
    window = _window(points or [*places.values()], 0.5)  # (2, 2): the lowest and the highest x and y
    near = {label: place for label, place in places.items() if (window[0] < place).all() and (place < window[1]).all()}
    low, high = _window([*points, *near.values()], 0.1)
    figure, grid = _panels_of(rows, 1.4, 4.8, 5.2, lines="both")
    for axes, members in grid:
        for row, look in zip(members, _looks(len(members)), strict=True):
            x, y = paths[row.label]
            large = {**look, "markersize": look["markersize"] + 4}
            axes.plot(x, y, **{**look, "markersize": look["markersize"] - 1}, zorder=3)
            axes.plot(x[:1], y[:1], **large, markerfacecolor="white", zorder=4)
            axes.plot(x[-1:], y[-1:], label=cut_middle(row.label), **large, zorder=5)
        for i, (label, (across, up)) in enumerate(places.items()):
            where = "" if label in near else f" (outside: {across:.2f}, {up:.2f})"
            look = {"color": _QUIET, "marker": _MARKS[i % len(_MARKS)], "markersize": 8, "linestyle": ""}
            axes.plot([across], [up], label=cut_middle(label) + where, **look)
        if members:
            axes.plot([], [], color=_QUIET, marker="o", markerfacecolor="white", linestyle="", label="open: untrained")
        axes.set_xlim(low[0], high[0])
        axes.xaxis.get_major_locator().set_params(nbins=6)
        axes.set_ylim(low[1], high[1])
        axes.set_xlabel("uniformity (lower: vectors spread more evenly)")
        _legend(axes)
    return save(figure, path, "alignment (lower: positives lie closer)")


def draw_grids(found: Comparison, path: Path) -> Path | None:
    """Draw the scores of each grid over its first option, a line for each value of the second (SNCSE, figure 3).

    Each combination of further options has its own panel. Bars are the standard deviation over the seeds. The score is
    that of STS-B dev or of held-out sentences where there is one: the test sets are not there to choose options by.
    """
    members: dict[tuple[str, str], list[Row]] = {}
    for row in found.rows:
        further = ", ".join(f"{name}={short(value)}" for name, value in list(row.method.varied.items())[2:])
        if row.method.varied and row.finished:
            members.setdefault((row.method.grid, further), []).append(row)
    column = next((c for c in found.columns if c.name in (DEV, "sts-b-dev")), next(iter(found.columns), None))
    if not members or column is None:
        return None
    figure, grid = panels(
        len(members),
        lambda lines, n: (max(5.4, 0.8 + 4.2 * n), 0.4 + 4.2 * lines),
        columns=3,
        share_x=False,
        share_y=True,
    )
    for axes, ((line, further), rows) in zip(grid, members.items(), strict=True):
        _draw_grid(axes, rows, column)
        if (base := found.base_row(rows[0].method)) and (cell := base.cells.get(column.name)):
            axes.axhline(cell.mean, label=f"{base.label} (untrained)", **_UNTRAINED)
        title = " ".join(word for word in line.split() if "{" not in word) or line
        axes.set_title(cut_middle(f"{title}: {further}" if further else title, 56), loc="left", fontsize=9.5)
        _legend(axes, loc="upper left", bbox_to_anchor=(-0.02, -0.14))
    return save(figure, path, _score_name(found) if column.name == DEV else column.title)


def _draw_grid(axes: Any, rows: Sequence[Row], column: Column) -> None:
    """Draw one panel of a grid; the values of the first option are spaced evenly."""
    across, second = (*rows[0].method.varied, "")[:2]
    cells = {(row.method.varied[across], row.method.varied.get(second)): row.cells.get(column.name) for row in rows}
    values, lines = (_in_order(side) for side in zip(*cells, strict=True))
    for i, (value, (colour, marker)) in enumerate(zip(lines, styles(len(lines)), strict=True)):
        # Points of the same value stand a little apart, so that no error bar hides another.
        shift = 0.06 * (i - (len(lines) - 1) / 2)
        points = [(x + shift, cell) for x, at in enumerate(values) if (cell := cells.get((at, value)))]
        spreads = [cell.spread or 0.0 for _, cell in points]
        axes.errorbar(
            [x for x, _ in points],
            [cell.mean for _, cell in points],
            yerr=spreads if any(spreads) else None,
            **{"color": colour, "marker": marker, "markersize": 6, "linewidth": 1.6, "elinewidth": 1.0, "capsize": 2.5},
            label=f"{second}={short(value)}" if second else rows[0].method.name,
        )
    axes.set_xticks(range(len(values)), [short(value) for value in values])
    axes.set_xlim(-0.35, len(values) - 0.65)
    axes.set_xlabel(across)


def _in_order(values: Sequence[Any]) -> list[Any]:
    """Return the different values, numbers by size and others as written."""
    different = list(dict.fromkeys(values))
    numbers = all(isinstance(value, (int, float)) for value in different)
    return sorted(different) if numbers else different


def _curves(rows: Sequence[Row], *names: str) -> dict[str, tuple[list[int], np.ndarray]]:
    """Return the curves of the rows that have one: the T steps that all runs share, and the values (names, runs, T)."""
    curves = {}
    for row in rows:
        runs = [{at["step"]: [at.get(name) for name in names] for at in one.get("curve", ())} for one in row.finished]
        common = set.intersection(*map(set, runs)) if runs else set()
        steps = [step for step in sorted(common) if all(None not in run[step] for run in runs)]
        if len(steps) > 1:
            values = np.array([[run[step] for step in steps] for run in runs], dtype=np.float64)
            curves[row.label] = steps, values.transpose(2, 0, 1)
    return curves


def _panels_of(
    rows: Sequence[Row], edge: float, width: float, height: float, **how: Any
) -> tuple[Any, list[tuple[Any, list[Row]]]]:
    """Return a figure, and its panels with nearly as many of the rows each."""
    count = max(1, -(-len(rows) // _IN_A_PANEL))
    more = 0.6 if any(len(row.label) >= _LONG for row in rows) else 0.0  # a legend of long labels is higher
    figure, grid = panels(count, lambda _, n: (edge + width * n, height + more), share_y=True, **how)
    parts = np.array_split(np.arange(len(rows)), count)
    return figure, [(axes, [rows[i] for i in part]) for axes, part in zip(grid, parts, strict=True)]


def _window(points: Sequence[np.ndarray], beyond: float) -> np.ndarray:
    """Return the lowest and the highest x and y of a frame around points: rows of (2, 2)."""
    return np.array([frame(side, beyond, 0.02) for side in zip(*points, strict=True)]).T


def frame(values: Sequence[float] | np.ndarray, beyond: float, least: float) -> tuple[float, float]:
    """Return the range of values, at least `least` wide, widened on both sides by a share of itself.

    >>> frame([1.0, 3.0], 0.5, 0.0)
    (0.0, 4.0)
    """
    low, high = min(values), max(values)
    extent = max(high - low, least, 1e-3)
    middle = (low + high) / 2
    return middle - extent * (0.5 + beyond), middle + extent * (0.5 + beyond)


def _score_name(found: Comparison) -> str:
    """Return the selection metric as the label of an axis."""
    if found.dev_metric == "sts_dev_spearman":
        return "Spearman on STS-B dev, × 100"
    return "separation of held-out sentences, in standard deviations"


def _looks(count: int) -> list[dict[str, Any]]:
    """Return the styles of lines: later ones are thinner, so that they do not hide those below."""
    return [
        {"color": colour, "marker": marker, "linewidth": 1.4 + 0.35 * later, "markersize": 4.5 + 0.7 * later}
        for later, (colour, marker) in zip(reversed(range(count)), styles(count), strict=True)
    ]


def _legend(axes: Any, **place: Any) -> None:
    """Draw a legend, by default above the axes so that it hides no line. Dotted lines come last."""
    place = place or {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0)}
    shown = sorted(zip(*axes.get_legend_handles_labels(), strict=True), key=lambda one: one[1].endswith("(untrained)"))
    handles, labels = zip(*shown, strict=True)
    columns = 2 if max(map(len, labels)) < _LONG else 1
    axes.legend(handles, labels, **place, ncols=columns, frameon=False, fontsize=8.5)
