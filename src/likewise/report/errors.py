"""The pairs with the most wrong rank, as JSON, a Markdown table, a picture and one HTML page (SNCSE, table 4)."""

from __future__ import annotations

import os
import re
from difflib import SequenceMatcher
from importlib.resources import files
from pathlib import Path

from likewise.evaluation.rank_errors import ErrorAnalysis, MisrankedPair
from likewise.report.pictures import BLUE, VERMILLION, panels, require_extra, save, shorten
from likewise.report.writing import markdown_table, open_folder
from likewise.runs.whole_files import write_json, write_text

_TEMPLATE = "errors_page.html.j2"
_WORDS = re.compile(r"\w+(?:['’]\w+)*|\s+|[^\w\s]")

#: Words of a sentence, and whether each stands in the other sentence of the pair as well.
Parts = list[tuple[str, bool]]


def write_errors(analysis: ErrorAnalysis, out: str | os.PathLike[str]) -> list[Path]:
    """Write errors.json, .md, .html and .png into a folder; their paths.

    Raises:
        ReportError: the folder cannot be made.
        ReportExtraMissing: matplotlib or jinja2 is not installed.
    """
    require_extra()
    folder = open_folder(out)
    return [
        write_json(folder / "errors.json", analysis.to_dict(), strict=True),
        write_text(folder / "errors.md", errors_table(analysis)),
        write_text(folder / "errors.html", errors_page(analysis)),
        draw_errors(analysis, folder / "errors.png"),
    ]


def rank(value: float) -> str:
    """A rank as text: '3,564', and with '.5' where an even number of pairs shares it.

    >>> rank(3564.0), rank(3.5)
    ('3,564', '3.5')
    """
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def errors_table(analysis: ErrorAnalysis) -> str:
    """The Markdown of the worst pairs, each with its two sentences one above the other."""
    columns = ("No.", "Sentences", "Direction", "Gold", "Cosine", "R_G", "R_E", "(R_E - R_G)^2")
    rows = []
    for i, pair in enumerate(analysis.worst, start=1):
        numbers = (f"{pair.gold:g}", f"{pair.cosine:.3f}", rank(pair.gold_rank), rank(pair.estimated_rank))
        rows.append((str(i), pair.first, pair.direction, *numbers, f"{pair.error:,.0f}"))
        rows.append(("", pair.second, "", "", "", "", "", ""))
    return f"# {_headline(analysis)}\n\n{_about(analysis)}\n\n{markdown_table(columns, rows, left=3)}\n"


def errors_page(analysis: ErrorAnalysis) -> str:
    """The HTML page: it needs no other file and no network, and follows the reader's light or dark setting."""
    require_extra()
    from jinja2 import Environment, StrictUndefined

    source = files("likewise.report").joinpath(_TEMPLATE).read_text(encoding="utf-8")
    template = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    rows = [(pair, *differences(pair.first, pair.second), *_place(pair, analysis.n)) for pair in analysis.worst]
    # Whole pixels of a square of 400: thousands of pairs share few of them, and the page stays small.
    cloud = sorted(
        {
            (round(400 * gold / analysis.n), round(400 - 400 * estimated / analysis.n))
            for gold, estimated in zip(analysis.gold_ranks.tolist(), analysis.estimated_ranks.tolist(), strict=True)
        }
    )
    return template.from_string(source).render(
        analysis=analysis, headline=_headline(analysis), about=_about(analysis), rows=rows, cloud=cloud, rank=rank
    )


def differences(first: str, second: str) -> tuple[Parts, Parts]:
    """Which parts of two sentences they have in common, in order and whatever the case.

    Returns:
        The parts of each sentence with True for what is in both; joined they give the sentence back.

    >>> differences("I oppose it.", "I support it.")[0]
    [('I ', True), ('oppose', False), (' it.', True)]
    """
    left, right = _WORDS.findall(first), _WORDS.findall(second)
    matcher = SequenceMatcher(None, [w.lower() for w in left], [w.lower() for w in right], autojunk=False)
    shared_left, shared_right = [False] * len(left), [False] * len(right)
    for block in matcher.get_matching_blocks():
        shared_left[block.a : block.a + block.size] = [True] * block.size
        shared_right[block.b : block.b + block.size] = [True] * block.size
    return _joined(left, shared_left), _joined(right, shared_right)


def draw_errors(analysis: ErrorAnalysis, path: Path) -> Path:
    """Draw the rank by the cosine over the rank by the rating for all pairs, the worst ones marked, as PNG."""
    figure, ((axes,),) = panels(1, 1, size=(6.4, 5.6))
    axes.plot([1, analysis.n], [1, analysis.n], color="#999999", linewidth=1, zorder=1)
    axes.scatter(analysis.gold_ranks, analysis.estimated_ranks, s=4, color="#AAAAAA", linewidths=0, zorder=2)
    looks = (("overestimated", VERMILLION, "^"), ("underestimated", BLUE, "v"))
    for direction, colour, marker in looks:
        worst = [pair for pair in analysis.worst if pair.direction == direction]
        x, y = [pair.gold_rank for pair in worst], [pair.estimated_rank for pair in worst]
        label = f"{direction}, {len(worst)} of the worst {len(analysis.worst)}"
        axes.scatter(x, y, s=42, color=colour, marker=marker, edgecolors="white", linewidths=0.6, label=label, zorder=3)
    axes.set_xlabel("gold rank $R_G$ (by the human rating; higher is more similar)")
    axes.set_ylabel("estimated rank $R_E$ (by the cosine)")
    axes.set_title(
        f"{analysis.title}: Spearman {analysis.spearman:.2f}\n{shorten(analysis.model, 60)}", loc="left", fontsize=10
    )
    figure.legend(loc="outside lower center", ncols=2, frameon=False, fontsize=9)
    return save(figure, path)


def _headline(analysis: ErrorAnalysis) -> str:
    return f"{analysis.title}: the {len(analysis.worst)} pairs with the most wrong rank"


def _about(analysis: ErrorAnalysis) -> str:
    low, high = analysis.scale
    return (
        f"Model {analysis.model}, {analysis.n:,} pairs, Spearman {analysis.spearman:.2f} "
        f"(by equation 10, which knows no ties, {analysis.spearman_equation_10:.2f}). "
        f"R_G is the rank by the human rating ({low:g} to {high:g}), R_E the rank by the cosine, from 1 for the least "
        f"similar pair to {analysis.n:,}; equal values share the mean of their ranks. Overestimated: R_E above R_G "
        f"({analysis.overestimated} of {len(analysis.worst)})."
    )


def _place(pair: MisrankedPair, n: int) -> tuple[float, float]:
    """Where a pair is in the page's picture, a square of 400."""
    return round(400 * pair.gold_rank / n, 1), round(400 - 400 * pair.estimated_rank / n, 1)


def _joined(words: list[str], shared: list[bool]) -> Parts:
    """Neighbours of one kind in one part; a blank between two words of a kind belongs to them."""
    parts: Parts = []
    for i, (word, both) in enumerate(zip(words, shared, strict=True)):
        if word.isspace() and 0 < i < len(words) - 1:
            both = shared[i - 1] or shared[i + 1]
        if parts and parts[-1][1] == both:
            parts[-1] = (parts[-1][0] + word, both)
        else:
            parts.append((word, both))
    return parts
