"""`likewise evaluate`, `compare` and `analyze`: the commands that measure models."""

import functools
import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

import likewise
from likewise.cli.commands import calls
from likewise.cli.groups import CommandTable, group
from likewise.cli.messages import table_of
from likewise.errors import counted
from likewise.runs.installation import job_of
from likewise.runs.job import check_target

ORIGIN = "origin:"
"""The prefix of a workspace of `likewise context`, for its Origin."""
_PRECISION = "fp32, or bf16 for bfloat16 autocast."
_OF_A_MODEL: dict[str, Any] = {"arguments": ("model",), "given": {"quiet": not sys.stderr.isatty()}}


def _check_json(json: Path | None) -> Path | None:
    """Check the folder before minutes of encoding."""
    if json is not None:
        check_target(json, "file")
    return json


@functools.wraps(likewise.evaluate)
def _evaluated(model: Any, *arguments: Any, **given: Any) -> Any:
    if model.startswith(ORIGIN):
        from likewise.context import open_origin

        model = open_origin(model.removeprefix(ORIGIN))
    elif job_of(model) == "index":
        model = likewise.Index(model)
    return likewise.evaluate(model, *arguments, **given)


@calls(
    "likewise.cli.scores:_evaluated",
    texts={
        "model": "A model's folder, its hub name, bundled:minilm or bundled:mpnet; bertscore:MODEL, "
        "cross-encoder:MODEL or origin:WORKSPACE (likewise context); or an index, for retrieval:FOLDER.",
        "precision": _PRECISION,
        "tasks": "Names with commas: sts (the seven test sets of the papers), transfer (SentEval's seven tasks), "
        "sts12, sts-b-dev, mr, semantoneg, negation-gap, wiki-sections, news ...; your own data: "
        "retrieval:FOLDER, pairs:FILE, classes:FOLDER (docs/evaluation.md).",
    },
    **_OF_A_MODEL,
)
def evaluate(
    report: Any,
    json: Annotated[
        Optional[Path], typer.Option(help="Write the whole report to this file as well.", callback=_check_json)
    ] = None,
) -> None:
    """Print the report."""
    _show_report(report)
    if json is not None:
        report.to_json(json)
        typer.echo(f"Report: {json}")


def _show_report(report: Any) -> None:
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    settings = report.settings
    console.print(Text(report.model, style="bold"), soft_wrap=True)
    how = f"{settings['similarity']}, {settings['precision']}"
    console.print(f"{how}, {counted(settings['sentences'], 'sentence')}, {report.seconds:.0f} s", style="dim")
    for columns, rows in report.sections():
        console.print()
        console.print(table_of(columns, rows))
    if report.notes():
        console.print()
    for note in report.notes():
        warn = note.startswith(("Missing", "Undefined"))
        style = "yellow" if warn else "bold" if note.startswith("Average") else "dim"
        console.print(Text(note, style=style), soft_wrap=True)


@calls(
    "likewise:compare",
    names={"methods": "method"},
    leave_out=("max_steps", "epochs"),
    options="likewise.recipes:TrainingOptions",
    config=True,
    exclusive=("steps", "minutes"),
)
def compare(found: Any) -> None:
    """Print the table of the comparison, its notes, and the place of the page."""
    from likewise.comparison.comparison_page import notes, scores_table

    typer.echo(f"\n{scores_table(found)}\n")
    for line in notes(found):
        typer.echo(line)
    typer.echo(f"report: {found.path / 'comparison.html'}")


@group("See what a model does: similarities and errors, as data, a table and a picture.")
def analyze() -> CommandTable:
    """Return the commands of `likewise analyze`."""
    return {
        "similarity": (_similarity, "Compare the cosines of a sentence with itself, its negation and another one."),
        "errors": (_errors, "Find the pairs whose rank by the cosine is furthest from that by human ratings."),
    }


def _checked(out: Path) -> Path:
    """Check the folder and the extra before minutes of encoding; an analysis that fails makes no folder."""
    from likewise.comparison.comparison_page import check_folder

    check_folder(out)
    return out


Out = Annotated[Path, typer.Option(help="The folder to write to.", callback=_checked)]


@calls(
    "likewise.comparison.analyses:analyze_similarity",
    types={"sentences": str},
    texts={
        "precision": _PRECISION,
        "sentences": "A text file with one sentence per line; by default the seven STS test sets.",
    },
    **_OF_A_MODEL,
)
def _similarity(report: Any, out: Out) -> None:
    from likewise.comparison.analyses import write_similarity

    written = write_similarity(report, out)
    left_out = sum(report.left_out.values())
    typer.echo(f"{counted(len(report.sentences), 'sentence')}, {left_out:,} left out without a negation")
    for found in report.distributions:
        typer.echo(f"  {found.label:<6}  {found.kind:<20}  mean {found.cosines.mean():.3f}  peak {found.peak:.2f}")
    _tell(written)


@calls("likewise.evaluation.rank_errors:analyze_errors", texts={"precision": _PRECISION}, **_OF_A_MODEL)
def _errors(found: Any, out: Out) -> None:
    from likewise.comparison.analyses import write_errors
    from likewise.comparison.comparison_page import rank

    written = write_errors(found, out)
    typer.echo(
        f"{found.title}: {found.pairs:,} pairs, Spearman {found.spearman:.2f}; "
        f"of the worst {len(found.worst)} pairs {found.overestimated} are overestimated"
    )
    for i, pair in enumerate(found.worst[:5], start=1):
        typer.echo(f"  {i}. R_G {rank(pair.gold_rank)}, R_E {rank(pair.estimated_rank)}, {pair.direction}")
        typer.echo(f"     {pair.first}\n     {pair.second}")
    _tell(written)


def _tell(paths: list[Path]) -> None:
    for path in paths:
        typer.echo(f"written: {path}")
