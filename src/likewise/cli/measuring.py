"""`likewise evaluate`, `compare` and `analyze`: what measures models."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Optional

import typer

from likewise.cli.commands import command_of, group_of


def evaluate_command() -> Any:
    """Return `likewise evaluate`."""
    import likewise

    def show(report: Any, json: Path | None) -> None:
        _show_report(report)
        if json is not None:
            report.to_json(json)
            typer.echo(f"Report: {json}")

    return command_of(
        likewise.evaluate,
        show,
        arguments=("model",),
        added={"json": (Optional[Path], None, "Write the whole report to this file as well.")},
    )


def _show_report(report: Any) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    settings = report.settings
    console.print(Text(report.model, style="bold"), soft_wrap=True)
    how = f"{settings['similarity']}, {settings['precision']}"
    console.print(f"{how}, {settings['sentences']:,} sentences, {report.seconds:.0f} s", style="dim")
    for columns, rows in report.sections():
        table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 3, 0, 0))
        for i, column in enumerate(columns):
            table.add_column(column, justify="right" if i else "left")
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
        leave_out=("max_steps", "epochs"),
        options=TrainingOptions(),
        config=True,
    )


def analyze_group() -> Any:
    """Return `likewise analyze`."""
    return group_of(
        lambda: {
            "similarity": (
                _similarity_command,
                "Compare the cosines of a sentence with itself, its negation and another sentence.",
            ),
            "errors": (
                _errors_command,
                "Find the pairs whose rank by the cosine is furthest from the rank by the human rating.",
            ),
        },
        help="See what a model does: similarities, errors. Data, a table and a picture.",
    )
