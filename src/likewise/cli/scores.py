"""`likewise evaluate` and `compare`: the commands that evaluate models."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer
from typer import Option

import likewise
from likewise.cli.from_function import with_function
from likewise.cli.groups import typed
from likewise.cli.messages import table_of
from likewise.cli.shared_options import ReplaceOption
from likewise.errors import counted, printable
from likewise.recipes.recipe_options import TrainingOptions
from likewise.runs.results import check_results, written_result
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from likewise.evaluation import EvaluationReport, EvaluationReports

MeasuringPrecision = Annotated[
    Optional[str], Option(help="Precision of the evaluation: fp32, or bf16 for bfloat16 autocast.")
]


def _whole_numbers(text: object) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in str(text).strip("[]").replace(",", " ").split())
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a list of integers") from None


@typed
@with_function(
    "evaluation/suite.py:evaluate",
    arguments=["model"],
    kinds={"model": list[str], "precision": MeasuringPrecision},
    texts={
        "model": "Path or name of a model: a folder, a hub name, bundled:minilm or bundled:mpnet; origin:WORKSPACE "
        "(likewise context); or an index, for retrieval:FOLDER. Several models give one table with the "
        "differences from the first.",
        "tasks": "Comma-separated names of tasks: sts (the seven test sets of the papers), transfer (SentEval's seven "
        "tasks), "
        "sts12, sts-b-dev, mr, semantoneg, negation-gap, wiki-sections and others; on your own data, "
        "retrieval:FOLDER, pairs:FILE or classes:FOLDER (docs/guides/evaluate.md).",
        "without_overlap": "Whether to exclude the pairs of STS-B train and dev from the other STS tests.",
    },
    without=["quiet"],
)
def evaluate(
    arguments: Record,
    *,
    json: Annotated[Optional[Path], Option(help="Path to a JSON file for the whole report.")] = None,
    latex: Annotated[Optional[Path], Option(help="Path to a LaTeX file (booktabs) for the table.")] = None,
    csv: Annotated[Optional[Path], Option(help="Path to a CSV file for the numbers.")] = None,
    overwrite: ReplaceOption = False,
) -> None:
    """Evaluate a model, or compare several models, on tasks."""
    check_results(json, latex, csv, overwrite=overwrite)  # before minutes of encoding
    models = arguments.pop("model")
    is_one = len(models) == 1
    report: Any = likewise.evaluate(models[0] if is_one else models, **arguments, quiet=not sys.stderr.isatty())
    (_show_report if is_one else _show_reports)(report)
    for path, write in ((json, report.to_json), (latex, report.to_latex), (csv, report.to_csv)):
        if path is not None:
            with written_result(path, overwrite) as unfinished:
                write(unfinished)
            typer.echo(f"Report: {path}")


def _show_reports(reports: "EvaluationReports") -> None:
    """Print the scores of several models, a row for each task, and their differences from the first."""
    from rich.console import Console
    from rich.text import Text

    from likewise.evaluation.score_table import DIFFERENCES

    console = Console(highlight=False, emoji=False)
    for columns, rows in (reports.scores.texts(), reports.scores.difference_texts()):
        if rows:
            plain = [[cell.replace("**", "") for cell in row] for row in rows]
            turned = list(zip(*(columns, *plain), strict=True))
            console.print(table_of(("Task" if columns[0] == "Model" else columns[0], *turned[0][1:]), turned[1:]))
            console.print()
    console.print(Text(DIFFERENCES, style="dim"), soft_wrap=True)
    for note in reports.notes():
        console.print(Text(note, style="yellow"), soft_wrap=True)


def _show_report(report: "EvaluationReport") -> None:
    how = f"{report.settings['similarity']}, {report.settings['precision']}"
    typer.echo(printable(report.model))
    typer.echo(f"{how}, {counted(report.settings['sentences'], 'sentence')}, {report.seconds:.0f} s\n")
    typer.echo(printable(report.table()))


@typed
@with_function(
    "training/comparison.py:compare",
    options=TrainingOptions(),
    config=True,
    names={"methods": "--method"},
    kinds={
        "tasks": str,
        "precision": MeasuringPrecision,
        "seeds": Annotated[
            str,
            Option(
                help="Comma-separated random seeds; a method that depends on the seed is trained with each of them.",
                parser=_whole_numbers,
                metavar="N,N...",
            ),
        ],
    },
    defaults={"seeds": "1,2,3"},
    texts={
        "methods": 'Recipe with its options ("arccse margin=0", "sncse alpha={0.1,0.2}" for a grid), or a model; '
        "repeatable.",
        "corpus": "Path to the training text: a file, a folder, a glob pattern or bundled:wiki-sample; repeatable.",
    },
    without=["on_result", "max_steps", "epochs"],
)
def compare(arguments: Record) -> None:
    """Train methods under one budget, evaluate them, and print one table."""
    likewise.compare(**arguments)
    if not arguments["quiet"]:
        table = Path(arguments["out"]) / "comparison.md"
        typer.echo(f"\n{printable(table.read_text(encoding='utf-8'))}\ntable: {table}")
