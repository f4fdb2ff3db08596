"""The picture of the cosines of positive, soft negative and random pairs (SNCSE, figure 4)."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from likewise.report.pictures import BLACK, BLUE, GREEN, ORANGE, panels, save, shorten
from likewise.report.similarity import KINDS, POSITIVE, RANDOM, SOFT_NEGATIVE, SimilarityReport

_LOOKS = {
    POSITIVE: ("positive\n(two dropout views)", GREEN, "-."),
    SOFT_NEGATIVE: ("soft negative\n(its negation)", ORANGE, "-"),
    RANDOM: ("random\n(another sentence)", BLUE, "--"),
}


def draw_similarity(report: SimilarityReport, path: Path) -> Path:
    """Draw a panel for each model, one above the other on the same axis, and write it as PNG."""
    labels = report.labels
    figure, grid = panels(len(labels), 1, size=(8.0, 0.9 + 2.6 * len(labels)))
    # The axis starts where the lowest cosine is, so that the part near 1 has room.
    lowest = min(float(np.quantile(d.cosines, 0.001)) for d in report.distributions)
    left = max(-1.0, np.floor(lowest * 10) / 10)
    for label, (axes,) in zip(labels, grid, strict=True):
        tallest = 0.0
        for kind in KINDS:
            found = report.of(label, kind)
            if found is None:
                continue
            counts, edges = found.histogram()
            share = 100 * counts / counts.sum()  # percent of the pairs in each bin
            tallest = max(tallest, share.max())
            inside = np.flatnonzero(counts)  # no line along the axis where there is nothing
            share = share[inside[0] : inside[-1] + 1]
            edges = edges[inside[0] : inside[-1] + 2]
            name, colour, line = _LOOKS[kind]
            axes.stairs(share, edges, fill=True, color=colour, alpha=0.25)
            axes.stairs(
                share,
                edges,
                color=colour,
                linestyle=line,
                linewidth=1.8,
                label=f"{name}\nmean {found.cosines.mean():.2f}, peak {found.peak:.2f}",
            )
        axes.axvline(1.0, color=BLACK, linestyle=":", linewidth=1.5, label="the sentence itself\n(1 by definition)")
        axes.set_ylim(0, 1.08 * tallest)
        axes.set_ylabel("% of pairs")
        model = next(d.model for d in report.distributions if d.label == label)
        axes.set_title(f"{label}: {shorten(model)}", loc="left", fontsize=10)
        # Beside the axes: no curve is ever under it.
        axes.legend(loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False, fontsize=8.5, labelspacing=0.9)
    grid[-1][0].set_xlim(left, 1.02)
    grid[-1][0].set_xlabel("cosine similarity")
    return save(figure, path)
