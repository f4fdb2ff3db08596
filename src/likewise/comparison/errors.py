"""A report on the pairs that are ranked most wrongly, as data, a table, a picture and a page (SNCSE, table 4)."""

from __future__ import annotations

import os
from pathlib import Path

from likewise.comparison.page import errors_page, rank
from likewise.comparison.pictures import check_extra
from likewise.comparison.sight_pictures import draw_errors
from likewise.comparison.tables import open_folder
from likewise.evaluation.rank_errors import ErrorAnalysis
from likewise.evaluation.report import markdown_table
from likewise.runs.whole_files import write_json, write_text


def write_errors(analysis: ErrorAnalysis, out: str | os.PathLike[str]) -> list[Path]:
    """Write errors.json, .md, .png and .html into a folder; return their paths."""
    check_extra()
    folder = open_folder(out)
    headline = f"{analysis.title}: the {len(analysis.worst)} pairs with the most wrong rank"
    picture = draw_errors(analysis, folder / "errors.png")
    return [
        write_json(folder / "errors.json", analysis.to_dict(), strict=True),
        write_text(folder / "errors.md", f"# {headline}\n\n{_about(analysis)}\n\n{errors_table(analysis)}\n"),
        picture,
        write_text(folder / "errors.html", errors_page(analysis, headline, _about(analysis), picture)),
    ]


def errors_table(analysis: ErrorAnalysis) -> str:
    """Return the worst pairs as a Markdown table, each with its two sentences one above the other."""
    columns = ("No.", "Sentences", "Direction", "Gold", "Cosine", "R_G", "R_E", "(R_E - R_G)^2")
    rows = []
    for i, pair in enumerate(analysis.worst, start=1):
        numbers = (f"{pair.gold:g}", f"{pair.cosine:.3f}", rank(pair.gold_rank), rank(pair.estimated_rank))
        rows.append((str(i), pair.first, pair.direction, *numbers, f"{pair.error:,.0f}"))
        rows.append(("", pair.second, "", "", "", "", "", ""))
    return markdown_table(columns, rows, left=3)


def _about(analysis: ErrorAnalysis) -> str:
    low, high = analysis.scale
    return (
        f"Model {analysis.model}, {analysis.n:,} pairs, Spearman {analysis.spearman:.2f} "
        f"(by equation 10, which knows no ties, {analysis.spearman_equation_10:.2f}). "
        f"R_G is the rank by the human rating ({low:g} to {high:g}), R_E the rank by the cosine, from 1 for the least "
        f"similar pair to {analysis.n:,}; equal values share the mean of their ranks. Overestimated: R_E above R_G "
        f"({analysis.overestimated} of {len(analysis.worst)})."
    )
