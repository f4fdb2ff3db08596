"""The picture of a sweep: the score over alpha, a line for each beta, a panel for each lambda (SNCSE, figure 3)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from likewise.report.pictures import panels, save, styles
from likewise.report.sweeping import SweepReport

_IN_A_ROW = 3
_BEFORE = "before training"


def draw_sweep(report: SweepReport, path: Path) -> Path:
    """Draw the means, with the standard deviation over the seeds where there are several, and write it as PNG."""
    means = report.means()
    weights = sorted({weight for weight, _, _ in means})
    betas = sorted({beta for _, beta, _ in means})
    alphas = sorted({alpha for _, _, alpha in means})
    columns = 2 if len(weights) == 4 else min(_IN_A_ROW, len(weights))
    rows = -(-len(weights) // columns)
    size = (max(5.0, 0.8 + 3.0 * columns), 1.2 + 2.8 * rows)
    figure, grid = panels(rows, columns, size=size, share_y=True)
    flat = [axes for row in grid for axes in row]
    looks = dict(zip(betas, styles(len(betas)), strict=True))
    # Lines at the same alpha stand a little apart, so that no error bar hides another; alphas are spaced evenly.
    place = {alpha: i for i, alpha in enumerate(alphas)}
    for axes, weight in zip(flat, weights, strict=False):
        for i, beta in enumerate(betas):
            points = [(alpha, means[weight, beta, alpha]) for alpha in alphas if (weight, beta, alpha) in means]
            if not points:
                continue
            shift = 0.06 * (i - (len(betas) - 1) / 2)
            colour, marker = looks[beta]
            axes.errorbar(
                [place[alpha] + shift for alpha, _ in points],
                [mean for _, (mean, _, _) in points],
                yerr=[spread for _, (_, spread, _) in points] if any(s > 0 for _, (_, s, _) in points) else None,
                color=colour,
                marker=marker,
                markersize=6,
                linewidth=1.6,
                elinewidth=1.0,
                capsize=2.5,
                label=f"β = {beta:g}" + (" (no bound)" if beta >= 2 else ""),
            )
        if report.before is not None:
            axes.axhline(report.before, color="#444444", linestyle=":", linewidth=1.3, label=_BEFORE)
        axes.set_title(f"λ = {weight:g}", loc="left", fontsize=10)
        axes.set_xticks(list(place.values()), [f"{alpha:g}" for alpha in alphas])
        axes.set_xlim(-0.35, len(alphas) - 0.65)
    for axes in flat[len(weights) :]:
        axes.set_visible(False)
    for axes in flat[: len(weights)]:
        axes.set_xlabel("α")
        axes.tick_params(labelbottom=True)  # the last row may have gaps
    for row in grid:
        row[0].set_ylabel(report.metric.replace("_", " "))
    entries: dict[str, Any] = {}
    for axes in flat[: len(weights)]:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            entries.setdefault(label, handle)
    if _BEFORE in entries:
        entries[_BEFORE] = entries.pop(_BEFORE)  # the last one
    figure.legend(list(entries.values()), list(entries), loc="outside lower center", ncols=3, frameon=False, fontsize=9)
    return save(figure, path)
