"""`likewise similarity`: the cosine of two sentences."""

from __future__ import annotations

from typing import Annotated

import typer

from likewise.cli.messages import clean_errors


@clean_errors
def similarity(
    model: Annotated[str, typer.Argument(help="A model's folder, its hub name, or bundled:minilm.")],
    a: Annotated[str, typer.Argument(help="A sentence.")],
    b: Annotated[str, typer.Argument(help="Another one.")],
) -> None:
    """Print the cosine of two sentences, from -1 to 1."""
    from likewise.inference import similarity as cosines

    typer.echo(f"{cosines(a, b, model=model).item():.4f}")
