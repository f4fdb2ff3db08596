"""`likewise analyze`: what a model does, as data, a table and a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Optional

import typer

from likewise.cli.messages import clean_errors

analyze_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="See what a model does: similarities and errors.",
)

Model = Annotated[str, typer.Argument(help="A model's folder, its hub name, or bundled:minilm.")]
Data = Annotated[
    Optional[Path],
    typer.Option(help="The folder of SentEval's data; else $LIKEWISE_DATA, else that of likewise data get."),
]
Out = Annotated[Path, typer.Option(help="The folder to write to; made where it is not there.")]
BatchSize = Annotated[int, typer.Option(help="Sentences a batch.", min=1)]
Bf16 = Annotated[bool, typer.Option("--bf16", help="Run the model under bfloat16 autocast.")]


@analyze_app.callback()
def _analyze() -> None:
    """See what a model does: similarities and errors."""


@analyze_app.command("similarity")
@clean_errors
def similarity(
    model: Model,
    out: Out,
    before: Annotated[Optional[str], typer.Option(help="A model to compare with, as its base.")] = None,
    sentences: Annotated[
        Optional[Path], typer.Option(help="Text, a sentence a line; without it the STS test sets.")
    ] = None,
    data: Data = None,
    n: Annotated[int, typer.Option("--n", help="Sentences to draw.", min=2)] = 5000,
    seed: Annotated[int, typer.Option(help="Fixes the draw, the random pairs and the dropout.")] = 42,
    batch_size: BatchSize = 64,
    bf16: Bf16 = False,
) -> None:
    """Compare the cosines of a sentence with itself, its negation and another sentence."""
    from likewise.comparison.pictures import check_extra
    from likewise.comparison.similarity import analyze_similarity, write_similarity
    from likewise.comparison.tables import open_folder

    # Told before the minutes of encoding, not after.
    check_extra()
    open_folder(out)
    report = analyze_similarity(
        model,
        before,
        sentences=sentences,
        data=data,
        n=n,
        seed=seed,
        batch_size=batch_size,
        precision="bf16" if bf16 else None,
        quiet=not sys.stderr.isatty(),
    )
    written = write_similarity(report, out)
    left_out = sum(report.left_out.values())
    typer.echo(f"{len(report.sentences):,} sentences, {left_out:,} left out without a negation")
    for found in report.distributions:
        typer.echo(f"  {found.label:<6}  {found.kind:<20}  mean {found.cosines.mean():.3f}  peak {found.peak:.2f}")
    _tell(written)


@analyze_app.command("errors")
@clean_errors
def errors(
    model: Model,
    out: Out,
    task: Annotated[str, typer.Option(help="A task of rated pairs: sts12 ... sts16, sts-b, sick-r, sts-b-dev.")],
    worst: Annotated[int, typer.Option(help="How many pairs to show.", min=1)] = 20,
    data: Data = None,
    batch_size: BatchSize = 64,
    bf16: Bf16 = False,
) -> None:
    """Find the pairs of an STS task whose rank by the cosine is furthest from the rank by the human rating."""
    from likewise.comparison.errors import write_errors
    from likewise.comparison.page import rank
    from likewise.comparison.pictures import check_extra
    from likewise.comparison.tables import open_folder
    from likewise.evaluation.rank_errors import analyze_errors

    check_extra()
    open_folder(out)
    found = analyze_errors(
        model,
        task,
        data=data,
        worst=worst,
        batch_size=batch_size,
        precision="bf16" if bf16 else None,
        quiet=not sys.stderr.isatty(),
    )
    written = write_errors(found, out)
    typer.echo(
        f"{found.title}: {found.n:,} pairs, Spearman {found.spearman:.2f}; of the worst {len(found.worst)} pairs "
        f"{found.overestimated} are overestimated"
    )
    for i, pair in enumerate(found.worst[:5], start=1):
        typer.echo(f"  {i}. R_G {rank(pair.gold_rank)}, R_E {rank(pair.estimated_rank)}, {pair.direction}")
        typer.echo(f"     {pair.first}\n     {pair.second}")
    _tell(written)


def _tell(paths: list[Path]) -> None:
    for path in paths:
        typer.echo(f"written: {path}")
