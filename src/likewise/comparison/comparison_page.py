"""The report of a comparison or an analysis, as Markdown and as a page.

A page is one file that needs no network and follows the reader's light or dark setting.
"""

from __future__ import annotations

import base64
import os
import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likewise.comparison.methods import ComparisonError
from likewise.comparison.pictures import check_extra
from likewise.errors import counted
from likewise.evaluation.rank_errors import ErrorAnalysis
from likewise.evaluation.score_table import DIFFERENCES, markdown_table
from likewise.runs.pages import page_of
from likewise.runs.results import check_results

if TYPE_CHECKING:
    from likewise.comparison.result import Comparison, Row

_WORDS = re.compile(r"\w+(?:['’]\w+)*|\s+|[^\w\s]")

#: Words of a sentence, and whether each stands in the other sentence of the pair as well.
Marked = list[tuple[str, bool]]

_NO = "–"
_COLLAPSED = -0.01
"""A uniformity above it: all vectors are nearly one. It is 0 where they coincide, and -2 to -3.5 in a good encoder."""


def number(value: float | None, digits: int = 2) -> str:
    """Return a number with a fixed count of decimals, a dash for none."""
    return _NO if value is None else f"{value:.{digits}f}"


def about(found: Comparison) -> str:
    """Return a paragraph about what all rows share."""
    settings = found.settings
    shared = ", ".join(f"{name} {value}" for name, value in settings["shared"].items())
    budget = "of each method's own" if any(row.method.kind == "recipe" for row in found.rows) else "nothing is trained"
    if settings["steps"] is not None:
        budget = f"{settings['steps']:,} updates"
    elif settings["minutes"] is not None:
        budget = f"{settings['minutes']:g} minutes of updates"
    parts = [
        f"Base {settings['base']}",
        f"word vectors {settings['vectors']}" if any(row.method.takes_vectors for row in found.rows) else "",
        f"{settings['sentences']:,} sentences" if settings["sentences"] else "",
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
    """List what is missing, failed or still to be done, and what looks wrong, one line each."""
    lines = [f"Missing: {title}, {reason}." for title, reason in found.missing.items()]
    lines += [f"Not scored: {what}, {reason}." for what, reason in found.left_out.items()]
    lines += [f"Left out of the grid: {label}, as {reason}." for label, reason in found.contradictions.items()]
    lines += [f"Failed: {run['label']}, seed {run['seed']}: {run['error']}" for run in found.failures]
    if found.waiting:
        runs = "1 run is" if found.waiting == 1 else f"{found.waiting} runs are"
        lines.append(f"{runs} still to be done: run the same command again to resume.")
    return [*lines, *_warnings(found)]


def _warnings(found: Comparison) -> list[str]:
    """List the rows whose vectors have collapsed, parts of a loss that did nothing, and rows that are the same."""
    lines = []
    for row in found.rows:
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
    same: dict[Any, list[str]] = {}
    for row in found.rows:
        if row.method.kind == "recipe" and row.cells:
            scores = tuple((name, *cell.scores.items()) for name, cell in row.cells.items())
            same.setdefault(scores, []).append(row.label)
    return lines + [
        f"{', '.join(labels)}: the same scores to the last digit; what differs between them changed nothing here."
        for labels in same.values()
        if len(labels) > 1
    ]


def scores_table(found: Comparison) -> str:
    """Return the scores, and the differences from the unchanged base, as Markdown."""
    blocks = [markdown_table(*found.texts())]
    columns, rows = _differences(found)
    return "\n\n".join([*blocks, *([markdown_table(columns, rows), DIFFERENCES] if rows else [])])


def _differences(found: Comparison) -> Any:
    return found.scores.difference_texts(found.reference) if found.columns and len(found.rows) > 1 else ((), [])


#: The columns of `making`.
MADE = (
    *("Method", "Base", "Preset", "Changed", "Updates", "Batch", "Kept at", "Updates a second", "Alignment"),
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
        number(row.mean_of("updates_a_second")),
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
        f"# Comparison of {len(found.rows)} methods\n\n{verdict(found)}\n\n{about(found)}\n\n{reading(found)}\n\n"
        + f"{scores_table(found)}\n\n"
        + (f"{listed}\n\n" if listed else "")
        + f"## How each row was made\n\n{_MAKING}\n\n{made}\n\n{kinds}\n"
    )


_MAKING = (
    "Updates a second are those of training alone; 'kept at' is the update of the selected checkpoint for each seed; "
    "alignment and uniformity are those of the kept model (lower is better for both)."
)


def verdict(found: Comparison) -> str:
    """Return which method is best by the first column, and by how much, in a sentence or two."""
    done = len(found.results)
    so_far = f"So far ({done} of {counted(len(found.runs), 'run')}): " if found.waiting else ""
    column = next(iter(found.columns), None)
    scored = [row for row in found.rows if column and column.name in row.cells]
    if column is None or not scored:
        return f"{so_far}nothing has been scored yet."
    best = max(scored, key=lambda row: row.cells[column.name].mean)
    if best.method.is_base:
        others = "nothing that was scored" if found.waiting else "nothing"
        said = f"{others} is better than the unchanged {best.label}, which scores {best.cells[column.name]} by "
        return so_far + (said if so_far else said.capitalize()) + f"{column.title}."
    said = f"{so_far}{best.label} is best by {column.title}: {best.cells[column.name]}"
    base = next((row for row in scored if row.label == found.reference and row.method.is_base), None)
    if base is None:
        return f"{said}."
    difference = found.scores.difference(best.label, base.label, column.name)
    if difference is None:
        gain = best.cells[column.name].mean - base.cells[column.name].mean
        return f"{said}, {gain:+.2f} over the unchanged {base.label}: how much of it is chance is not known."
    said += f", {difference.value:+.2f} over the unchanged {base.label}"
    said += f" (95% interval {difference.low:+.2f} to {difference.high:+.2f})."
    if not difference.is_sure:
        return f"{said} It may be chance."
    return said if len(best.finished) > 1 or best.same_for_every_seed else f"{said} One seed: its chance is not in it."


def page(found: Comparison, picture: Path | None) -> str:
    """Return the page of a comparison: the verdict, the table, the differences, and the picture of the scores."""
    return page_of(
        "likewise.comparison",
        "report.html.j2",
        *(reading, notes, making, verdict),
        MADE=MADE,
        making_text=_MAKING,
        differences=_differences(found),
        reading_of_differences=DIFFERENCES,
        headline=f"Comparison of {len(found.rows)} methods",
        about=about(found),
        picture=_encoded(picture) if picture else None,
        found=found,
    )


def errors_page(analysis: ErrorAnalysis, headline: str, about: str, picture: Path) -> str:
    """Return the page of an error analysis."""
    return page_of(
        "likewise.comparison",
        "errors.html.j2",
        *(differences, rank),
        headline=headline,
        about=about,
        picture=_encoded(picture),
        errors=analysis.to_dict(),
    )


def _encoded(picture: Path) -> str:
    return base64.b64encode(picture.read_bytes()).decode()


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


def check_folder(out: str | os.PathLike[str], names: Sequence[str] = (), overwrite: bool = False) -> None:
    """Check that a report can be written to a folder, and that its extra is there; nothing is made.

    Args:
        names: the files that are going to be written there.
        overwrite: replace those that likewise did not write.
    """
    check_extra()
    there = next(path for path in (Path(out).absolute(), *Path(out).absolute().parents) if path.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        reason = "Permission denied" if there.is_dir() else f"'{there}' is a file"
        raise ComparisonError(f"--out '{out}' cannot be made a folder ({reason}). Give another one.")
    if Path(out).is_dir():
        check_results(*(Path(out) / name for name in names), overwrite=overwrite)


def open_folder(out: str | os.PathLike[str], names: Sequence[str] = (), overwrite: bool = False) -> Path:
    """Return the folder of a report, created if needed; see `check_folder`."""
    check_folder(out, names, overwrite)
    Path(out).mkdir(parents=True, exist_ok=True)
    return Path(out)
