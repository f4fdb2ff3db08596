"""`likewise evaluate`, `compare` and `analyze`: the commands that measure models."""

import functools
import sys
from pathlib import Path
from typing import Any, Optional

import typer

from likewise.cli.commands import command_of
from likewise.cli.groups import group_of
from likewise.errors import counted
from likewise.runs.job import check_target

ORIGIN = "origin:"
"""The prefix of a workspace of `likewise context`, for its Origin."""
_PRECISION = "fp32, or bf16 for bfloat16 autocast."


def evaluate_command() -> Any:
    """Return `likewise evaluate`."""
    import likewise

    def show(report: Any, json: Path | None) -> None:
        _show_report(report)
        if json is not None:
            report.to_json(json)
            typer.echo(f"Report: {json}")

    @functools.wraps(likewise.evaluate)
    def evaluate(model: Any, *arguments: Any, **given: Any) -> Any:
        if model.startswith(ORIGIN):
            from likewise.context import open_origin

            model = open_origin(model.removeprefix(ORIGIN))
        return likewise.evaluate(model, *arguments, **given)

    return command_of(
        evaluate,
        show,
        arguments=("model",),
        given={"quiet": not sys.stderr.isatty()},
        texts={
            "model": "A model's folder, its hub name, or bundled:minilm; bertscore:MODEL, cross-encoder:MODEL or "
            "origin:WORKSPACE (likewise context).",
            "precision": _PRECISION,
            "tasks": "Names with commas: sts (the seven test sets of the papers), transfer (SentEval's seven tasks), "
            "sts12, sts-b-dev, mr, semantoneg, negation-gap, wiki-sections, news ...; your own data: "
            "retrieval:FOLDER, pairs:FILE, classes:FOLDER (docs/evaluation.md).",
        },
        added={"json": (Optional[Path], None, "Write the whole report to this file as well.")},
        before=_check_json,
    )


def _check_json(json: Path | None) -> None:
    """Check the folder before minutes of encoding."""
    if json is not None:
        check_target(json, "file")


def _show_report(report: Any) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    settings = report.settings
    console.print(Text(report.model, style="bold"), soft_wrap=True)
    how = f"{settings['similarity']}, {settings['precision']}"
    console.print(f"{how}, {counted(settings['sentences'], 'sentence')}, {report.seconds:.0f} s", style="dim")
    for columns, rows in report.sections():
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
        for i, column in enumerate(columns):
            table.add_column(column, justify="right" if i else "left", overflow="fold")  # a path may be long
        for row in rows:
            table.add_row(*(Text(cell) for cell in row))
        console.print()
        console.print(table)
    if report.notes():
        console.print()
    for note in report.notes():
        warn = note.startswith(("Missing", "Undefined"))
        style = "yellow" if warn else "bold" if note.startswith("Average") else "dim"
        console.print(Text(note, style=style), soft_wrap=True)


def compare_command() -> Any:
    """Return `likewise compare`."""
    import likewise
    from likewise.recipes import TrainingOptions

    def show(found: Any) -> None:
        from likewise.comparison.tables import notes, scores_table

        typer.echo(f"\n{scores_table(found)}\n")
        for line in notes(found):
            typer.echo(line)
        typer.echo(f"report: {found.path / 'comparison.html'}")

    return command_of(
        likewise.compare,
        show,
        names={"methods": "method"},
        texts={
            "out": "The folder of the report.",
            "minutes": "Minutes of updates for each training, converted to a number of updates by a short training.",
            "preset": "The preset of every recipe that does not name one; by default each recipe's first.",
            "seeds": "Seeds; each method that depends on the seed is trained once with each.",
            "tasks": "Evaluation tasks, as for likewise evaluate.",
        },
        leave_out=("max_steps", "epochs"),
        options=TrainingOptions(),
        config=True,
        exclusive=("steps", "minutes"),
    )


def analyze_group() -> Any:
    """Return `likewise analyze`."""
    return group_of(
        lambda: {
            "similarity": (_similarity, "Compare the cosines of a sentence with itself, its negation and another one."),
            "errors": (_errors, "Find the pairs whose rank by the cosine is furthest from that by human ratings."),
        },
        help="See what a model does: similarities and errors, as data, a table and a picture.",
    )


def _similarity() -> Any:
    from likewise.comparison.analyses import analyze_similarity, write_similarity

    def show(report: Any, out: Path) -> None:
        written = write_similarity(report, out)
        left_out = sum(report.left_out.values())
        typer.echo(f"{counted(len(report.sentences), 'sentence')}, {left_out:,} left out without a negation")
        for found in report.distributions:
            typer.echo(f"  {found.label:<6}  {found.kind:<20}  mean {found.cosines.mean():.3f}  peak {found.peak:.2f}")
        _tell(written)

    sentences = "A text file with one sentence per line; by default the seven STS test sets."
    return _analysis(analyze_similarity, show, types={"sentences": str}, texts={"sentences": sentences})


def _errors() -> Any:
    from likewise.comparison.analyses import write_errors
    from likewise.comparison.page import rank
    from likewise.evaluation.rank_errors import analyze_errors

    def show(found: Any, out: Path) -> None:
        written = write_errors(found, out)
        typer.echo(
            f"{found.title}: {found.pairs:,} pairs, Spearman {found.spearman:.2f}; "
            f"of the worst {len(found.worst)} pairs {found.overestimated} are overestimated"
        )
        for i, pair in enumerate(found.worst[:5], start=1):
            typer.echo(f"  {i}. R_G {rank(pair.gold_rank)}, R_E {rank(pair.estimated_rank)}, {pair.direction}")
            typer.echo(f"     {pair.first}\n     {pair.second}")
        _tell(written)

    return _analysis(analyze_errors, show, types={"task": str}, texts={})


def _analysis(function: Any, show: Any, *, types: dict[str, Any], texts: dict[str, str]) -> Any:
    """Return the command of an analysis of one model, which writes into a folder."""
    return command_of(
        function,
        show,
        arguments=("model",),
        given={"quiet": not sys.stderr.isatty()},
        types=types,
        texts={"precision": _PRECISION, **texts},
        added={"out": (Path, ..., "The folder to write to.")},
        before=_prepare,
    )


def _prepare(out: Path) -> None:
    """Check the extra and the folder before minutes of encoding."""
    from likewise.comparison.pictures import check_extra
    from likewise.comparison.tables import check_folder

    check_extra()
    check_folder(out)


def _tell(paths: list[Path]) -> None:
    for path in paths:
        typer.echo(f"written: {path}")
