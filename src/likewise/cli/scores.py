"""`likewise evaluate`, `compare` and `analyze`: the commands that measure models."""

import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer import Argument, Option

import likewise
from likewise.cli.groups import CommandTable, group, typed
from likewise.cli.messages import table_of
from likewise.cli.shared_options import (
    DataOption,
    ModelArgument,
    QuietOption,
    ReplaceOption,
    flag,
    given,
    with_config,
    with_corpus,
    with_options,
)
from likewise.errors import counted
from likewise.recipes.recipe import TrainingOptions
from likewise.runs.results import check_results, written_result

MeasuringPrecision = Annotated[Optional[str], Option(help="fp32, or bf16 for bfloat16 autocast.")]
BatchSize = Annotated[int, Option(help="Sentences in a batch.")]


def _whole_numbers(text: Any) -> tuple[int, ...]:
    """Parse whole numbers with commas between them."""
    try:
        return tuple(int(part) for part in str(text).strip("[]").replace(",", " ").split())
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a list of whole numbers") from None


@typed
def evaluate(
    *,
    model: Annotated[
        list[str],
        Argument(
            help="A model's folder, its hub name, bundled:minilm or bundled:mpnet; bertscore:MODEL, "
            "cross-encoder:MODEL or origin:WORKSPACE (likewise context); or an index, for retrieval:FOLDER. Of "
            "several, one table with the differences from the first."
        ),
    ],
    tasks: Annotated[
        str,
        Option(
            help="Names with commas: sts (the seven test sets of the papers), transfer (SentEval's seven tasks), "
            "sts12, sts-b-dev, mr, semantoneg, negation-gap, wiki-sections ...; your own data: "
            "retrieval:FOLDER, pairs:FILE, classes:FOLDER (docs/guides/evaluate.md)."
        ),
    ] = "sts",
    data: DataOption = None,
    batch_size: BatchSize = 64,
    precision: MeasuringPrecision = None,
    without_overlap: Annotated[
        bool, flag("--without-overlap", "Leave the pairs of STS-B train and dev out of the other STS tests.")
    ] = False,
    json: Annotated[Optional[Path], Option(help="Write the whole report to this file as well.")] = None,
    latex: Annotated[Optional[Path], Option(help="Write the table as LaTeX (booktabs) to this file as well.")] = None,
    csv: Annotated[Optional[Path], Option(help="Write the numbers as CSV to this file as well.")] = None,
    overwrite: ReplaceOption = False,
) -> None:
    """Score a model, or several side by side, on tasks."""
    check_results(json, latex, csv, overwrite=overwrite)  # before minutes of encoding
    how: dict[str, Any] = {"batch_size": batch_size, "precision": precision, "quiet": not sys.stderr.isatty()}
    how["without_overlap"] = without_overlap
    report: Any = likewise.evaluate(model if len(model) > 1 else model[0], tasks, data=data, **how)
    (_show_reports if len(model) > 1 else _show_report)(report)
    for path, write in ((json, report.to_json), (latex, report.to_latex), (csv, report.to_csv)):
        if path is not None:
            with written_result(path, overwrite) as unfinished:
                write(unfinished)
            typer.echo(f"Report: {path}")


def _show_reports(reports: Any) -> None:
    """Print the scores of several models, a row for each task, and their differences from the first."""
    from rich.console import Console
    from rich.text import Text

    from likewise.evaluation.score_table import DIFFERENCES

    console = Console(highlight=False)
    for columns, rows in (reports.scores.texts(), reports.scores.difference_texts()):
        if rows:
            plain = [[cell.replace("**", "") for cell in row] for row in rows]
            turned = list(zip(*(columns, *plain), strict=True))
            console.print(table_of(("Task" if columns[0] == "Model" else columns[0], *turned[0][1:]), turned[1:]))
            console.print()
    console.print(Text(DIFFERENCES, style="dim"), soft_wrap=True)
    for note in reports.notes():
        console.print(Text(note, style="yellow"), soft_wrap=True)


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


@typed
@with_config(exclusive=("steps", "minutes"))
@with_options("options", TrainingOptions(), without=("max_steps", "epochs"))
@with_corpus()
def compare(
    *,
    methods: Annotated[
        list[str],
        Option(
            "--method",
            help='A method and its options: "simcse", "arccse margin=0", "sncse alpha={0.1,0.2}" (a grid); or "all".',
        ),
    ],
    corpus: Annotated[
        Optional[list[str]],
        Option(help="Text to train on: a file, a folder, a glob or bundled:wiki-sample; repeatable."),
    ] = None,
    base: Annotated[
        str,
        Option(help="A Hugging Face name, a folder, or bundled:NAME, for every method that takes a transformer."),
    ] = "bundled:minilm",
    vectors: Annotated[str, Option(help="Word vectors, for every method that takes them.")] = "bundled:glove",
    out: Annotated[str, Option(help="The folder of the comparison.")],
    seeds: Annotated[
        str,
        Option(
            help="The seeds; a method that a seed changes is made with each of them.",
            parser=_whole_numbers,
            metavar="N,N...",
        ),
    ] = "1,2,3",
    steps: Annotated[Optional[int], Option(help="Updates of each training; give either steps or minutes.")] = None,
    minutes: Annotated[
        Optional[float],
        Option(
            help="Minutes that each training may spend on updates, evaluations not counted; a short training of each "
            "method turns them into a number of updates."
        ),
    ] = None,
    preset: Annotated[
        Optional[str],
        Option(help="The preset of every recipe that names none itself; the first of each by default."),
    ] = None,
    tasks: Annotated[str, Option(help="The evaluation tasks, as `likewise evaluate` takes them.")] = "sts",
    data: DataOption = None,
    precision: MeasuringPrecision = None,
    keep_models: Annotated[bool, flag("--keep-models", "Keep the models in the folder, under runs/.")] = False,
    retry_failed: Annotated[bool, flag("--retry-failed", "Repeat runs that failed before.")] = False,
    quiet: QuietOption = False,
    corpus_options: Any,
    options: Any,
) -> None:
    """Train methods under one budget, evaluate them, and write a report."""
    arguments = given(locals())
    found = likewise.compare(**arguments.pop("options"), **arguments)
    if not quiet:
        _show_comparison(found)


def _show_comparison(found: Any) -> None:
    """Print the table of the comparison, its notes, and the place of the page."""
    from likewise.comparison.comparison_page import notes, scores_table, verdict

    typer.echo(f"\n{scores_table(found)}\n")
    for line in [*notes(found), verdict(found)]:
        typer.echo(line)
    typer.echo(f"report: {found.path / 'comparison.html'}")


@group("See what a model does: similarities and errors, as data, a table and a picture.")
def analyze() -> CommandTable:
    """Return the commands of `likewise analyze`."""
    return {
        "similarity": (_similarity, "Compare the cosines of a sentence with itself, its negation and another one."),
        "errors": (_errors, "Find the pairs whose rank by the cosine is furthest from that by human ratings."),
    }


ReportFolder = Annotated[Path, Option(help="The folder to write to.")]


@typed
def _similarity(
    *,
    model: ModelArgument,
    before: Annotated[Optional[str], Option(help="Another model to compare with, such as its base.")] = None,
    sentences: Annotated[
        Optional[str],
        Option(help="A text file with one sentence per line; by default the seven STS test sets."),
    ] = None,
    data: DataOption = None,
    n: Annotated[
        int, Option("-n", help="How many sentences to draw (the paper's 5,000); all if there are fewer.")
    ] = 5000,
    seed: Annotated[int, Option(help="Fixes the draw, the partners and the dropout (42 is the paper's).")] = 42,
    batch_size: BatchSize = 64,
    precision: MeasuringPrecision = None,
    out: ReportFolder,
    overwrite: ReplaceOption = False,
) -> None:
    """Compare a sentence's cosines with itself, its negation and another sentence, before and after training."""
    from likewise.comparison.analyses import SIMILARITY_FILES, analyze_similarity, write_similarity
    from likewise.comparison.comparison_page import check_folder

    check_folder(out, SIMILARITY_FILES, overwrite)  # before minutes of encoding; an analysis that fails makes no folder
    how: dict[str, Any] = {"batch_size": batch_size, "precision": precision, "quiet": not sys.stderr.isatty()}
    report = analyze_similarity(model, before, sentences=sentences, data=data, n=n, seed=seed, **how)
    written = write_similarity(report, out, overwrite)
    left_out = sum(report.left_out.values())
    typer.echo(f"{counted(len(report.sentences), 'sentence')}, {left_out:,} left out without a negation")
    for found in report.distributions:
        typer.echo(f"  {found.label:<6}  {found.kind:<20}  mean {found.cosines.mean():.3f}  peak {found.peak:.2f}")
    _tell(written)


@typed
def _errors(
    *,
    model: ModelArgument,
    task: Annotated[
        str, Option(help="One task of rated pairs: sts12 to sts16, sts-b, sick-r, sts-b-dev, sts-b-train.")
    ],
    data: DataOption = None,
    worst: Annotated[int, Option(help="Number of pairs to keep.")] = 20,
    batch_size: BatchSize = 64,
    precision: MeasuringPrecision = None,
    out: ReportFolder,
    overwrite: ReplaceOption = False,
) -> None:
    """Find the pairs whose rank by the cosine is furthest from that by human ratings."""
    from likewise.comparison.analyses import ERROR_FILES, write_errors
    from likewise.comparison.comparison_page import check_folder, rank
    from likewise.evaluation.rank_errors import analyze_errors

    check_folder(out, ERROR_FILES, overwrite)
    how: dict[str, Any] = {"batch_size": batch_size, "precision": precision, "quiet": not sys.stderr.isatty()}
    found = analyze_errors(model, task, data=data, worst=worst, **how)
    written = write_errors(found, out, overwrite)
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
