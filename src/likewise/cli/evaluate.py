"""`likewise evaluate`: score a model on evaluation tasks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from likewise.cli.messages import clean_errors


@clean_errors
def evaluate(
    model: Annotated[
        str,
        typer.Argument(
            help="A model's folder, its hub name, bundled:minilm; or bertscore:MODEL, or cross-encoder:MODEL."
        ),
    ],
    tasks: Annotated[
        str,
        typer.Option(help="'sts', 'transfer' (seven tasks each) or names with commas: sts12, mr, news, afs, ..."),
    ] = "sts",
    data: Annotated[
        Optional[Path],
        typer.Option(help="The folder of SentEval's data; else $LIKEWISE_DATA, else that of likewise data get."),
    ] = None,
    json: Annotated[
        Optional[Path],
        typer.Option("--json", help="Write the whole report there as well."),
    ] = None,
    batch_size: Annotated[int, typer.Option(help="Sentences a batch.", min=1)] = 64,
    bf16: Annotated[bool, typer.Option("--bf16", help="Run the model under bfloat16 autocast.")] = False,
) -> None:
    """Score a model on semantic textual similarity, transfer and other tasks."""
    from likewise.evaluation import evaluate as run

    if json is not None and not json.parent.is_dir():
        # Told before the minutes of encoding, not after.
        raise FileNotFoundError(f"There is no folder '{json.parent}' to write '{json.name}' in; make it first.")
    report = run(
        model,
        tasks,
        data=data,
        batch_size=batch_size,
        precision="bf16" if bf16 else None,
        quiet=not sys.stderr.isatty(),
    )
    _show(report)
    if json is not None:
        report.to_json(json)
        typer.echo(f"Report: {json}")


def _show(report: object) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from likewise.evaluation import EvaluationReport

    assert isinstance(report, EvaluationReport)
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
        console.print(
            Text(note, style="yellow" if warn else "bold" if note.startswith("Average") else "dim"),
            soft_wrap=True,
        )
