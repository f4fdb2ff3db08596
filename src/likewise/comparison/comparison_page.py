"""The report of a comparison, as Markdown and as a page."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from likewise.errors import counted
from likewise.evaluation.score_table import DIFFERENCES, markdown_table
from likewise.runs.dot_plot import Dot, dot_plot
from likewise.runs.pages import page_of

if TYPE_CHECKING:
    from likewise.comparison.comparison_result import Comparison, Row

_NO = "–"
_COLLAPSED = -0.01
"""A uniformity above it: all vectors are nearly one. It is 0 where they coincide, and -2 to -3.5 in a good encoder."""


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with a fixed count of decimals, a dash for none."""
    return _NO if value is None else f"{value:.{digits}f}"


def about(comparison: Comparison) -> str:
    """Return a paragraph about what all rows share."""
    settings = comparison.settings
    shared = ", ".join(f"{name} {value}" for name, value in settings["shared"].items())
    budget = (
        "of each method's own" if any(row.method.kind == "recipe" for row in comparison.rows) else "nothing is trained"
    )
    if settings["steps"] is not None:
        budget = f"{settings['steps']:,} updates"
    parts = [
        f"Base {settings['base']}",
        f"word vectors {settings['vectors']}" if any(row.method.takes_vectors for row in comparison.rows) else "",
        f"{settings['sentences']:,} sentences" if settings["sentences"] else "",
        f"budget {budget}",
        f"preset {settings['preset']}" if settings["preset"] else "",
        f"every recipe with {shared}" if shared else "",
        f"seeds {', '.join(map(str, comparison.seeds))}",
    ]
    return "; ".join(part for part in parts if part) + "."


def reading(comparison: Comparison) -> str:
    """Return the explanation of the table."""
    text = (
        "Mean over the seeds ± standard deviation (of N - 1); the best mean of a column is marked. A method that is "
        "the same for every seed runs once and has no spread."
    )
    if comparison.dev_metric:
        by = "STS-B dev" if comparison.dev_metric == "sts_dev_spearman" else "the separation of held-out sentences"
        text += f" Checkpoints are selected by {by}, so the scores of trained methods there are slightly too high."
    return text


def notes(comparison: Comparison) -> list[str]:
    """List what is missing, failed or still to be done, and what looks wrong, one line each."""
    lines = [f"Missing: {title}, {reason}." for title, reason in comparison.missing.items()]
    lines += [f"Not scored: {what}, {reason}." for what, reason in comparison.left_out.items()]
    lines += [f"Failed: {run['label']}, seed {run['seed']}: {run['error']}" for run in comparison.failures]
    if comparison.waiting:
        runs = "1 run is" if comparison.waiting == 1 else f"{comparison.waiting} runs are"
        lines.append(f"{runs} still to be done: run the same command again to resume.")
    return [*lines, *_warnings(comparison)]


def _warnings(comparison: Comparison) -> list[str]:
    """List the rows whose vectors have collapsed, parts of a loss that did nothing, and rows that are the same."""
    lines = []
    for row in comparison.rows:
        uniformity = row.mean_of("uniformity")
        if uniformity is not None and uniformity > _COLLAPSED:
            lines.append(
                f"{row.label}: all of its vectors are nearly the same (uniformity {uniformity:.3f}), so that its "
                "scores are of what little is left: take a base that is a sentence encoder, or another pooling."
            )
        idle = set.intersection(*(set(result.get("idle", ())) for result in row.finished)) if row.finished else set()
        lines += [
            f"{row.label}: the part '{part}' of the loss was 0 in every update: it added nothing here."
            for part in sorted(idle)
        ]
    same: dict[object, list[str]] = {}
    for row in comparison.rows:
        if row.method.kind == "recipe" and row.cells:
            scores = tuple((name, *cell.scores.items()) for name, cell in row.cells.items())
            same.setdefault(scores, []).append(row.label)
    return lines + [
        f"{', '.join(labels)}: the same scores to the last digit; what differs between them changed nothing here."
        for labels in same.values()
        if len(labels) > 1
    ]


def scores_table(comparison: Comparison) -> str:
    """Return the scores, and the differences from the unchanged base, as Markdown."""
    blocks = [markdown_table(*comparison.texts())]
    columns, rows = _differences(comparison)
    return "\n\n".join([*blocks, *([markdown_table(columns, rows), DIFFERENCES] if rows else [])])


def _differences(comparison: Comparison) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    return (
        comparison.scores.difference_texts(comparison.reference)
        if comparison.columns and len(comparison.rows) > 1
        else ((), [])
    )


#: The columns of `making`.
MADE = (
    *("Method", "Base", "Preset", "Changed", "Updates", "Batch", "Kept at", "Seconds", "Alignment"),
    "Uniformity",
)


def making(row: Row) -> tuple[str, ...]:
    """Return the settings and the cost of a row: the cells under `MADE`."""
    first = row.finished[0] if row.finished else {}
    options = first.get("options") or {}
    trained = row.method.kind == "recipe"
    batch = options.get("batch_size", 0) * options.get("accumulation", 1)
    kept = [step for run in row.finished if trained and (step := (run.get("dev") or {}).get("step")) is not None]
    return (
        row.label,
        str(first.get("base", row.method.base or _NO)),
        str(first.get("preset") or _NO),
        ", ".join(f"{name} {short(value)}" for name, value in row.method.options.items()) or _NO,
        f"{first['steps']:,}" if trained and first.get("steps") is not None else _NO,
        f"{batch:,}" if trained and batch else _NO,
        ", ".join(map(str, kept)) or _NO,
        number(row.mean_of("training_seconds"), 0),
        number(row.mean_of("alignment"), 3),
        number(row.mean_of("uniformity"), 3),
    )


def short(value: object) -> str:
    """Return the value of an option as text."""
    return f"{value:g}" if isinstance(value, float) else str(value)


_MAKING = (
    "Seconds are those of a training with its evaluations; 'kept at' is the update of the selected checkpoint for each "
    "seed; alignment and uniformity are those of the kept model (lower is better for both)."
)


def verdict(comparison: Comparison) -> str:
    """Return which method is best by the first column, and by how much, in a sentence or two."""
    done = len(comparison.results)
    so_far = f"So far ({done} of {counted(len(comparison.runs), 'run')}): " if comparison.waiting else ""
    column = next(iter(comparison.columns), None)
    scored = [row for row in comparison.rows if column and column.name in row.cells]
    if column is None or not scored:
        return f"{so_far}nothing has been scored yet."
    best, *others = sorted(scored, key=lambda row: -row.cells[column.name].mean)
    if best.method.is_base:
        none = "nothing that was scored" if comparison.waiting else "nothing"
        said = f"{none} is better than the unchanged {best.label}, which scores {best.cells[column.name]} by "
        return so_far + (said if so_far else said.capitalize()) + f"{column.title}."
    said = f"{so_far}{best.label} is best by {column.title}: {best.cells[column.name]}"
    base = next((row for row in scored if row.label == comparison.reference and row.method.is_base), None)
    if base is None:
        return f"{said}."
    difference = comparison.scores.difference(best.label, base.label, column.name)
    if difference is None:
        gain = best.cells[column.name].mean - base.cells[column.name].mean
        return f"{said}, {gain:+.2f} over the unchanged {base.label}: how much of it is chance is not known."
    said += f", {difference.value:+.2f} over the unchanged {base.label}"
    said += f" (95% interval {difference.low:+.2f} to {difference.high:+.2f})."
    if not difference.is_sure:
        return f"{said} It may be chance."
    second = others[0]
    if not second.method.is_base and (ahead := comparison.scores.difference(best.label, second.label, column.name)):
        sure = "" if ahead.is_sure else ", which may be chance"
        said += f" Beside {second.label}: {ahead.value:+.2f} ({ahead.low:+.2f} to {ahead.high:+.2f}){sure}."
    return said if len(best.finished) > 1 or best.same_for_every_seed else f"{said} One seed: its chance is not in it."


def _dots(comparison: Comparison) -> list[Dot]:
    """Return the gains over the reference by the first column, the best first."""
    if not comparison.columns:
        return []
    name, label = comparison.columns[0].name, comparison.reference
    cells = {row.label: row.cells[name] for row in comparison.rows if name in row.cells}
    if len(cells) < 2 or label not in cells:
        return []
    dots = []
    for other, cell in sorted(cells.items(), key=lambda item: -item[1].mean):
        found = comparison.scores.difference(other, label, name) if other != label else None
        gain, low, high = (found.value, found.low, found.high) if found else (cell.mean - cells[label].mean, None, None)
        said = str(found) if found else f"{gain:+.2f}"
        dots.append(Dot(other, str(cell), said, gain, low, high, other in comparison.best(comparison.columns[0])))
    return dots


def page(comparison: Comparison) -> str:
    """Return the page of a comparison: the verdict, the table, the differences, and a drawing of the first column's."""
    dots = _dots(comparison)
    return page_of(
        "likewise.comparison",
        "report.html.j2",
        *(reading, notes, making, verdict),
        MADE=MADE,
        making_text=_MAKING,
        differences=_differences(comparison),
        reading_of_differences=DIFFERENCES,
        headline=f"Comparison of {len(comparison.rows)} methods",
        about=about(comparison),
        dots=dot_plot(dots) if dots else None,
        comparison=comparison,
    )
