"""How a run ended, for the person who started it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from likewise.training import TrainingResult


def show_outcome(result: TrainingResult, quiet: bool) -> None:
    """Print the score before and after and where the model is."""
    if quiet:
        return
    if result.best:
        metric = result.best["metric"]
        typer.echo(f"{metric}: {result.before[metric]:.4g} before, {result.best['score']:.4g} after")
        if not result.best["improved"]:
            typer.echo(
                "The base was better: stay with it, or try fewer --max-steps, a lower --learning-rate or other data.",
                err=True,
            )
    typer.echo(f"model: {result.path}  (step {(result.best or {}).get('step', result.steps)})")
