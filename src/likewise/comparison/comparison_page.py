"""The report of a comparison or an analysis, as Markdown and as a page.

A page is one file that needs no network and follows the reader's light or dark setting.
"""

import base64
import os
import re
from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any

from likewise.comparison.methods import ComparisonError
from likewise.comparison.outcome import Cell, Column, Comparison, Row
from likewise.comparison.pictures import check_extra
from likewise.evaluation.rank_errors import ErrorAnalysis
from likewise.evaluation.report import markdown_table
from likewise.runs.pages import page_of

_WORDS = re.compile(r"\w+(?:['’]\w+)*|\s+|[^\w\s]")

#: Words of a sentence, and whether each stands in the other sentence of the pair as well.
Marked = list[tuple[str, bool]]

_NO = "–"


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with a fixed count of decimals, a dash for none."""
    return _NO if value is None else f"{value:.{digits}f}"


def cell_text(cell: Cell | None) -> tuple[str, str]:
    """Return the mean, followed by ± and the spread if there is one.

    >>> cell_text(Cell({1: 70.0, 2: 72.0}))
    ('71.00', '± 1.41')
    """
    if cell is None:
        return _NO, ""
    return number(cell.mean), "" if cell.spread is None else f"± {cell.spread:.2f}"


def seeds_text(row: Row) -> str:
    """Return the number of runs behind the means, in words."""
    if row.waiting:
        return f"{len(row.finished)} ({len(row.waiting)} to do)"
    if row.failed:
        return f"{len(row.finished)} ({len(row.failed)} failed)"
    return "same for all" if row.same_for_every_seed else str(len(row.finished))


def about(found: Comparison) -> str:
    """Return a paragraph about what all rows share."""
    settings = found.settings
    shared = ", ".join(f"{name} {value}" for name, value in settings["shared"].items())
    budget = "nothing is trained"
    if settings["steps"] is not None:
        budget = f"{settings['steps']:,} updates"
    elif settings["minutes"] is not None:
        budget = f"{settings['minutes']:g} minutes of updates"
    parts = [
        f"Base {settings['base']}",
        f"word vectors {settings['vectors']}" if any(row.method.takes_vectors for row in found.rows) else "",
        f"{settings['sentences']:,} sentences",
        f"budget {budget}",
        f"preset {settings['preset']}" if settings["preset"] else "",
        f"every recipe with {shared}" if shared else "",
        f"seeds {', '.join(map(str, found.seeds))}",
    ]
    return "; ".join(part for part in parts if part) + "."


def reading(found: Comparison) -> str:
    """Return the explanation of the table."""
    text = (
        "Mean over the seeds ± standard deviation (of N - 1); the best mean of a column is marked. A method that is "
        "the same for every seed runs once and has no spread."
    )
    if found.dev_metric:
        by = "STS-B dev" if found.dev_metric == "sts_dev_spearman" else "the separation of held-out sentences"
        text += f" Checkpoints are selected by {by}, so the scores of trained methods there are slightly too high."
    return text


def notes(found: Comparison) -> list[str]:
    """List the runs that are missing, failed or still to be done, one line each."""
    lines = [f"Missing: {title}, {reason}." for title, reason in found.missing.items()]
    lines += [f"Not scored: {what}, {reason}." for what, reason in found.left_out.items()]
    lines += [f"Left out of the grid: {label}, as {reason}." for label, reason in found.contradictions.items()]
    lines += [f"Failed: {run['label']}, seed {run['seed']}: {run['error']}" for run in found.failures]
    if found.waiting:
        runs = "1 run is" if found.waiting == 1 else f"{found.waiting} runs are"
        lines.append(f"{runs} still to be done: run the same command again to resume.")
    return lines


def scores_table(found: Comparison) -> str:
    """Return the scores as Markdown."""

    def shown(row: Row, column: Column) -> str:
        mean, spread = cell_text(row.cells.get(column.name))
        return f"{f'**{mean}**' if row.label in found.best(column) else mean} {spread}".rstrip()

    columns = ("Method", *(column.title for column in found.columns), "Seeds")
    rows = [(row.label, *(shown(row, column) for column in found.columns), seeds_text(row)) for row in found.rows]
    return markdown_table(columns, rows)


#: The columns of `making`.
MADE = ("Method", "Base", "Preset", "Changed", "Updates", "Batch", "Kept at", "Seconds", "Alignment", "Uniformity")


def making(row: Row) -> tuple[str, ...]:
    """Return the settings and the cost of a row: the cells under `MADE`."""
    first = row.finished[0] if row.finished else {}
    options = first.get("options") or {}
    trained = row.method.kind == "recipe"
    batch = options.get("batch_size", 0) * options.get("accumulation", 1)
    kept = [step for result in row.finished if (step := (result.get("dev") or {}).get("step")) is not None]
    return (
        row.label,
        str(first.get("base", row.method.base or _NO)),
        str(first.get("preset") or _NO),
        ", ".join(f"{name} {short(value)}" for name, value in row.method.options.items()) or _NO,
        f"{first['steps']:,}" if first.get("steps") is not None else _NO,
        f"{batch:,}" if trained and batch else _NO,
        ", ".join(map(str, kept)) or _NO,
        number(row.mean_of("training_seconds"), 0) if row.method.kind in ("recipe", "baseline") else _NO,
        number(row.mean_of("alignment"), 3),
        number(row.mean_of("uniformity"), 3),
    )


def short(value: Any) -> str:
    """Return the value of an option as text."""
    return f"{value:g}" if isinstance(value, float) else str(value)


def markdown(found: Comparison) -> str:
    """Return the whole report as Markdown."""
    made = markdown_table(MADE, [making(row) for row in found.rows], left=4)
    kinds = "\n".join(f"- `{row.label}`: {row.method.summary}" for row in found.rows)
    listed = "\n".join(f"- {line}" for line in notes(found))
    return (
        f"# Comparison of {len(found.rows)} methods\n\n{about(found)}\n\n{reading(found)}\n\n{scores_table(found)}\n\n"
        + (f"{listed}\n\n" if listed else "")
        + "## How each row was made\n\n"
        + "Updates, seconds of training (evaluations counted), the update at which the checkpoint was kept for each "
        + f"seed; alignment and uniformity of the kept model (lower is better for both).\n\n{made}\n\n{kinds}\n"
    )


def verdict(found: Comparison) -> str:
    """Return which method is best by the first column, and by how much, in a sentence or two."""
    column = next(iter(found.columns), None)
    scored = [row for row in found.rows if column and column.name in row.cells]
    if column is None or not scored:
        return "Nothing has been scored yet."
    best = max(scored, key=lambda row: row.cells[column.name].mean)
    cell, base = best.cells[column.name], found.base_row(best.method)
    score = " ".join(cell_text(cell)).strip()
    if best.method.is_base:
        return f"Nothing is better than the unchanged {best.label}, which scores {score} by {column.title}."
    said = f"{best.label} is best by {column.title}: {score}"
    if base is None or column.name not in base.cells:
        return f"{said}."
    gain = cell.mean - base.cells[column.name].mean
    said += f", {gain:+.2f} over the unchanged {base.label}."
    if cell.spread is None:
        return said if best.same_for_every_seed else f"{said} That is one seed: how much of it is chance is not known."
    return said if gain > 2 * cell.spread else f"{said} That is less than twice the spread over the seeds."


_ON_THE_PAGE = ("scores", "curves", "similarity")


def page(found: Comparison, pictures: Mapping[str, Path]) -> str:
    """Return the page of a comparison: the verdict, the table and three pictures; the others are named."""
    worst = {row.label: errors for row in found.rows if (errors := row.inspection.get("worst"))}
    # Over a grid, what its options do says more than a line for each of their values.
    first = ("grid" if name == "scores" and "grid" in pictures else name for name in _ON_THE_PAGE)
    shown = {name: pictures[name] for name in first if name in pictures}
    others = sorted(path.name for name, path in pictures.items() if name not in shown)
    return _rendered(f"Comparison of {len(found.rows)} methods", about(found), shown, worst, found, others)


def errors_page(analysis: ErrorAnalysis, headline: str, about: str, picture: Path) -> str:
    """Return the page of an error analysis."""
    return _rendered(headline, about, {"errors": picture}, {analysis.model: analysis.to_dict()})


def _rendered(
    headline: str,
    about: str,
    pictures: Mapping[str, Path],
    worst: Mapping[str, Any],
    found: Comparison | None = None,
    others: Sequence[str] = (),
) -> str:
    check_extra()
    shown = {name: base64.b64encode(path.read_bytes()).decode("ascii") for name, path in pictures.items()}
    among: dict[int, list[str]] = {}  # the methods that have a pair among their worst, by its index
    for label, errors in worst.items():
        for pair in errors["worst"]:
            among.setdefault(pair["index"], []).append(label)
    return page_of(
        "likewise.comparison",
        "report.html.j2",
        *(cell_text, seeds_text, reading, notes, making, differences, rank, verdict),
        MADE=MADE,
        headline=headline,
        about=about,
        pictures=shown,
        worst=worst,
        among=among,
        found=found,
        others=others,
    )


def rank(value: float) -> str:
    """Return a rank as text, with '.5' where an even number of pairs shares it.

    >>> rank(3564.0), rank(3.5)
    ('3,564', '3.5')
    """
    return f"{value:,.0f}" if value == int(value) else f"{value:,.1f}"


def differences(first: str, second: str) -> tuple[Marked, Marked]:
    """Return the parts that two sentences have in common, in order and ignoring case.

    Returns:
        The parts of each sentence with True for what is in both; joined they give the sentence back.

    >>> differences("I oppose it.", "I support it.")[0]
    [('I ', True), ('oppose', False), (' it.', True)]
    """
    left, right = _WORDS.findall(first), _WORDS.findall(second)
    # A blank is in both only next to a word that is.
    matcher = SequenceMatcher(str.isspace, [w.lower() for w in left], [w.lower() for w in right], autojunk=False)
    sides: tuple[Marked, Marked] = ([], [])
    for what, *ends in matcher.get_opcodes():
        for side, part in zip(sides, (left[ends[0] : ends[1]], right[ends[2] : ends[3]]), strict=True):
            if part:
                side.append(("".join(part), what == "equal"))
    return sides


def check_folder(out: str | os.PathLike[str]) -> None:
    """Check that a report can be written to a folder, and that its extra is there; nothing is made."""
    check_extra()
    there = next(path for path in (Path(out).absolute(), *Path(out).absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        reason = "Permission denied" if there.is_dir() else f"'{there}' is a file"
        raise ComparisonError(f"--out '{out}' cannot be made a folder ({reason}). Give another one.")


def open_folder(out: str | os.PathLike[str]) -> Path:
    """Return the folder of a report, created if needed."""
    check_folder(out)
    Path(out).mkdir(parents=True, exist_ok=True)
    return Path(out)
