"""`likewise analyze`: what a model does beside its scores, as data, a table and a picture."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer.core import TyperCommand

from likewise.cli.messages import clean_errors

analyze_app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="See what a model does beside its scores: similarities, errors, a sweep.",
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
    """See what a model does beside its scores: similarities, errors, a sweep."""


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
    from likewise.report.pictures import require_extra
    from likewise.report.similarity import compare_similarity, write_similarity
    from likewise.report.writing import open_folder

    # Told before the minutes of encoding, not after.
    require_extra()
    open_folder(out)
    report = compare_similarity(
        model,
        before,
        sentences=sentences,
        data=data,
        n=n,
        seed=seed,
        batch_size=batch_size,
        precision="bf16" if bf16 else None,
        progress=sys.stderr.isatty(),
    )
    written = write_similarity(report, out)
    left_out = sum(report.left_out.values())
    typer.echo(f"{len(report.sentences):,} sentences, {left_out:,} left out without a negation")
    for found in report.distributions:
        typer.echo(f"  {found.label:<6}  {found.kind:<13}  mean {found.cosines.mean():.3f}  peak {found.peak:.2f}")
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
    from likewise.evaluation.rank_errors import analyze_errors
    from likewise.report.errors import rank, write_errors
    from likewise.report.pictures import require_extra
    from likewise.report.writing import open_folder

    require_extra()
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


class _Lists(TyperCommand):
    """Lets an option take several values, `--alphas 0.1 0.2`: they are handed on as one text with commas."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        lists = ("--alphas", "--betas", "--weights", "--seeds")
        joined: list[str] = []
        collecting = False
        for arg in args:
            if collecting and not arg.startswith("--"):
                joined[-1] += "," + arg
                continue
            name, equals, value = arg.partition("=")
            collecting = name in lists
            joined.append(f"{name}={value}" if collecting and equals else f"{name}=" if collecting else arg)
        return super().parse_args(ctx, joined)


def _numbers(name: str, text: str) -> list[float]:
    try:
        found = [float(part) for part in text.replace(",", " ").split()]
    except ValueError:
        raise typer.BadParameter(f"'{text}' is no list of numbers", param_hint=f"--{name}") from None
    if not found:
        raise typer.BadParameter("give a number or more", param_hint=f"--{name}")
    return found


@analyze_app.command("sweep", cls=_Lists)
@clean_errors
def sweep(
    corpus: Annotated[list[str], typer.Option(help="Text to train on, as in `likewise train`; may be repeated.")],
    out: Out,
    base: Annotated[str, typer.Option(help="A Hugging Face name, a folder, or bundled:minilm.")] = "bundled:minilm",
    alphas: Annotated[str, typer.Option(help="Least difference, one or more.")] = "0.1 0.2",
    betas: Annotated[str, typer.Option(help="Largest difference, one or more; 2: no bound.")] = "0.2 0.3 0.4 2.0",
    weights: Annotated[str, typer.Option(help="Weight lambda, one or more.")] = "5e-4 1e-3",
    seeds: Annotated[str, typer.Option(help="Seeds; each combination is trained with each.")] = "1",
    data: Data = None,
    preset: Annotated[Optional[str], typer.Option(help="A preset of the recipe sncse; the first by default.")] = None,
    max_steps: Annotated[Optional[int], typer.Option(help="Updates of a run.", min=0)] = None,
    eval_steps: Annotated[Optional[int], typer.Option(help="Updates between two evaluations.", min=0)] = None,
    batch_size: Annotated[Optional[int], typer.Option(help="Sentences of a forward pass.", min=2)] = None,
    learning_rate: Annotated[Optional[float], typer.Option(help="Peak learning rate.")] = None,
    max_length: Annotated[Optional[int], typer.Option(help="Tokens kept of a sentence.")] = None,
) -> None:
    """Train the recipe sncse for each alpha, beta and lambda, and compare the scores. Goes on where it was stopped."""
    from likewise.report.sweeping import sweep as run

    given = {
        "max_steps": max_steps,
        "eval_steps": eval_steps,
        "batch_size": batch_size,
        "learning_rate": learning_rate,
        "max_length": max_length,
    }
    try:
        report = run(
            corpus,
            base,
            out,
            alphas=_numbers("alphas", alphas),
            betas=_numbers("betas", betas),
            weights=_numbers("weights", weights),
            seeds=[int(seed) for seed in _numbers("seeds", seeds)],
            preset=preset,
            data=data,
            progress=typer.echo,
            **{name: value for name, value in given.items() if value is not None},
        )
    except KeyboardInterrupt:
        typer.echo("Stopped. Go on with the same command.", err=True)
        raise typer.Exit(130) from None
    (weight, beta, alpha), (mean, _, _) = max(report.means().items(), key=lambda item: item[1][0])
    typer.echo(f"best: alpha {alpha:g}, beta {beta:g}, lambda {weight:g} with {report.metric} {mean:.2f}")
    _tell([out / f"sweep.{kind}" for kind in ("json", "md", "png")])


def _tell(paths: list[Path]) -> None:
    for path in paths:
        typer.echo(f"written: {path}")
