"""Pictures of training: scores and losses over the updates, alignment over uniformity, scores over a grid."""

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from likewise.comparison.outcome import DEV, Cell, Column, Comparison, Row
from likewise.comparison.pictures import cut_middle, name_y, panels, save, styles

_IN_A_PANEL = 6
"""The most lines of a panel: more cannot be distinguished, so the others go into the next panel."""
_LONG = 30
"""Letters of a label that has a line of the legend for itself."""
_QUIET = "#555555"
_MARKS = ("X", "P", "*", "d", "p", "h", "8", "<", ">")
_LEAST = 0.5  # of a scale of 100: below it a change of the score is not worth a whole axis


def groups(rows: Sequence[Row]) -> list[list[Row]]:
    """Return the rows in panels of nearly equal size."""
    count = -(-len(rows) // _IN_A_PANEL)
    sizes = [len(rows) // count + (i < len(rows) % count) for i in range(count)] if rows else []
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [list(rows[start : start + size]) for start, size in zip(starts, sizes, strict=True)]


def mean_curve(row: Row, *names: str) -> list[tuple[int, list[list[float]]]]:
    """Return the evaluations that every run of a row has: (step, the values of each name, one per run)."""
    curves = [{point["step"]: point for point in result.get("curve", ())} for result in row.finished]
    common = set.intersection(*(set(curve) for curve in curves)) if curves else set()
    return [
        (step, [[float(curve[step][name]) for curve in curves] for name in names])
        for step in sorted(common)
        if all(curve[step].get(name) is not None for curve in curves for name in names)
    ]


def draw_curves(found: Comparison, path: Path) -> Path | None:
    """Draw the selection metric over the updates: the mean over the seeds, and a band from lowest to highest."""
    rows = [row for row in found.rows if len(mean_curve(row, "score")) > 1]
    if not rows:
        return None
    split = groups(rows)
    figure, grid = panels(len(split), lambda _, n: (1.2 + 4.6 * n, 4.6 + _more(rows)), share_y=True)
    every = [value for row in rows for _, (values,) in mean_curve(row, "score") for value in values]
    low, high = frame(every, 0.2, _LEAST if found.dev_metric == "sts_dev_spearman" else 0.0)
    bases = {base.label: base for row in rows if (base := found.base_row(row.method))}
    untrained = {label: row.dev_score for label, row in bases.items() if row.dev_score is not None}
    for axes, members in zip(grid, split, strict=True):
        for row, look in zip(members, _looks(len(members)), strict=True):
            points = mean_curve(row, "score")
            steps = [step for step, _ in points]
            scores = [values for _, (values,) in points]
            axes.plot(steps, [statistics.fmean(values) for values in scores], label=cut_middle(row.label), **look)
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
    name_y(grid, _score_name(found))
    return save(figure, path)


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
    name_y(grid, "training loss")
    return save(figure, path)


def draw_path(found: Comparison, path: Path) -> Path | None:
    """Draw alignment over uniformity during training, from the untrained encoder on (ArcCSE, figure 8)."""
    rows = [row for row in found.rows if len(mean_curve(row, "uniformity", "alignment")) > 1]
    places = {row.label: place for row in found.rows if row not in rows and (place := _place(row))}
    if not rows and not places:
        return None
    split = groups(rows) or [[]]
    figure, grid = panels(len(split), lambda _, n: (1.4 + 4.8 * n, 5.2 + _more(rows)), share_y=True)
    paths = {row.label: _path(row) for row in rows}
    # A baseline far off would press the paths into a corner: it is left outside.
    points = [point for one in paths.values() for point in one]
    (left, right), (low, high) = _window(points or [*places.values()], 0.5)
    near = [(x, y) for x, y in places.values() if left < x < right and low < y < high]
    (left, right), (low, high) = _window([*points, *near], 0.1)
    for axes, members in zip(grid, split, strict=True):
        for row, look in zip(members, _looks(len(members)), strict=True):
            x, y = zip(*paths[row.label], strict=True)
            large = {**look, "markersize": look["markersize"] + 4}
            axes.plot(x, y, **{**look, "markersize": look["markersize"] - 1}, zorder=3)
            axes.plot(x[:1], y[:1], **large, markerfacecolor="white", zorder=4)
            axes.plot(x[-1:], y[-1:], label=cut_middle(row.label), **large, zorder=5)
        for i, (label, (across, up)) in enumerate(places.items()):
            where = "" if (across, up) in near else f" (outside: {across:.2f}, {up:.2f})"
            look = {"color": _QUIET, "marker": _MARKS[i % len(_MARKS)], "markersize": 8, "linestyle": ""}
            axes.plot([across], [up], label=cut_middle(label) + where, **look)
        if members:
            axes.plot([], [], color=_QUIET, marker="o", markerfacecolor="white", linestyle="", label="open: untrained")
        axes.grid(axis="x", color="#E5E5E5", linewidth=0.8)
        axes.set_xlim(left, right)
        axes.xaxis.get_major_locator().set_params(nbins=6)
        axes.set_ylim(low, high)
        axes.set_xlabel("uniformity (lower: vectors spread more evenly)")
        _legend(axes)
    name_y(grid, "alignment (lower: positives lie closer)")
    return save(figure, path)


def draw_grids(found: Comparison, path: Path) -> Path | None:
    """Draw the scores of each grid over its first option, a line for each value of the second (SNCSE, figure 3).

    Each combination of further options has its own panel. Bars are the standard deviation over the seeds. The score is
    that of STS-B dev or of held-out sentences where there is one: the test sets are not there to choose options by.
    """
    members: dict[tuple[str, str], list[Row]] = {}
    for row in found.rows:
        further = ", ".join(f"{name}={_text(value)}" for name, value in list(row.method.varied.items())[2:])
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
            axes.axhline(cell.mean, color=_QUIET, linestyle=":", linewidth=1.4, label=f"{base.label} (untrained)")
        title = " ".join(word for word in line.split() if "{" not in word) or line
        axes.set_title(cut_middle(f"{title}: {further}" if further else title, 56), loc="left", fontsize=9.5)
        _legend(axes, loc="upper left", bbox_to_anchor=(-0.02, -0.14))
    name_y(grid, _score_name(found) if column.name == DEV else column.title)
    return save(figure, path)


def _draw_grid(axes: Any, rows: Sequence[Row], column: Column) -> None:
    """Draw one panel of a grid; the values of the first option are spaced evenly."""
    across, second = (*rows[0].method.varied, "")[:2]
    values = _in_order([row.method.varied[across] for row in rows])
    lines = _in_order([row.method.varied.get(second) for row in rows])
    for i, (value, (colour, marker)) in enumerate(zip(lines, styles(len(lines)), strict=True)):
        cells: dict[Any, Cell] = {
            row.method.varied[across]: row.cells[column.name]
            for row in rows
            if column.name in row.cells and row.method.varied.get(second) == value
        }
        # Points of the same value stand a little apart, so that no error bar hides another.
        shift = 0.06 * (i - (len(lines) - 1) / 2)
        points = [(values.index(at) + shift, cells[at]) for at in values if at in cells]
        spreads = [cell.spread or 0.0 for _, cell in points]
        axes.errorbar(
            [x for x, _ in points],
            [cell.mean for _, cell in points],
            yerr=spreads if any(spreads) else None,
            **{"color": colour, "marker": marker, "markersize": 6, "linewidth": 1.6, "elinewidth": 1.0, "capsize": 2.5},
            label=f"{second}={_text(value)}" if second else rows[0].method.name,
        )
    axes.set_xticks(range(len(values)), [_text(value) for value in values])
    axes.set_xlim(-0.35, len(values) - 0.65)
    axes.set_xlabel(across)


def _in_order(values: Sequence[Any]) -> list[Any]:
    """Return the different values, numbers by size and others as written."""
    different = list(dict.fromkeys(values))
    numbers = all(isinstance(value, (int, float)) for value in different)
    return sorted(different) if numbers else different


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _window(points: Sequence[tuple[float, float]], beyond: float) -> list[tuple[float, float]]:
    """Return the ranges of x and y around points."""
    return [frame([point[axis] for point in points], beyond, 0.02) for axis in (0, 1)]


def frame(values: Sequence[float], beyond: float, least: float) -> tuple[float, float]:
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


def _path(row: Row) -> list[tuple[float, float]]:
    """Return (uniformity, alignment) at each evaluation, means over the seeds."""
    points = mean_curve(row, "uniformity", "alignment")
    return [(statistics.fmean(x), statistics.fmean(y)) for _, (x, y) in points]


def _looks(count: int) -> list[dict[str, Any]]:
    """Return the styles of lines: later ones are thinner, so that they do not hide those below."""
    return [
        {"color": colour, "marker": marker, "linewidth": 1.4 + 0.35 * later, "markersize": 4.5 + 0.7 * later}
        for later, (colour, marker) in zip(reversed(range(count)), styles(count), strict=True)
    ]


def _place(row: Row) -> tuple[float, float] | None:
    """Return (uniformity, alignment) of the models of a row."""
    x, y = row.mean_of("uniformity"), row.mean_of("alignment")
    return None if x is None or y is None else (x, y)


def _more(rows: Sequence[Row]) -> float:
    """Return the extra inches that a legend with long labels needs."""
    return 0.6 if any(len(row.label) >= _LONG for row in rows) else 0.0


def _legend(axes: Any, **place: Any) -> None:
    """Draw a legend, by default above the axes so that it hides no line. Dotted lines come last."""
    handles, labels = axes.get_legend_handles_labels()
    last = sorted(range(len(labels)), key=lambda i: labels[i].endswith("(untrained)"))
    columns = 2 if max(map(len, labels)) < _LONG else 1
    place = place or {"loc": "lower left", "bbox_to_anchor": (-0.02, 1.0)}
    how = {"ncols": columns, "frameon": False, "fontsize": 8.5}
    axes.legend([handles[i] for i in last], [labels[i] for i in last], **place, **how)
