"""`likewise encode`, `similarity`, `export` and `push`: use a model."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any, Optional

import typer

import likewise
from likewise.cli.commands import calls
from likewise.cli.groups import typed
from likewise.errors import counted

Model = Annotated[str, typer.Argument(help="A model's folder, its hub name, bundled:minilm or bundled:mpnet.")]


@calls(
    "likewise:encode_file",
    arguments=("model", "source"),
    defaults={"out": Path("vectors.npy"), "engine": "auto", "precision": "auto"},
)
def encode(found: Any) -> None:
    """Print the shape of the vectors."""
    typer.echo(f"{found.rows:,} x {found.dimension}, float32", err=True)


@typed
def similarity(
    model: Model,
    a: Annotated[str, typer.Argument(help="A sentence.")],
    b: Annotated[str, typer.Argument(help="Another sentence.")],
) -> None:
    """Print the cosine of two sentences, from -1 to 1."""
    from likewise.inference.deferred import DeferredEncoder

    encoder = DeferredEncoder(model)
    try:  # torch takes seconds to import, and an export of a known model does not need it
        first, second = encoder.export()([a, b])
        typer.echo(f"{first @ second:.4f}")
    except LookupError:
        typer.echo(f"{likewise.similarity(a, b, model=encoder.model):.4f}")
        sys.stdout.flush()
        encoder.make_export([a, b])


@calls("likewise:export", arguments=("model",))
def export(paths: Any) -> None:
    """Print the files that were written."""
    for path in paths:
        typer.echo(path)


@calls(
    "likewise:push",
    arguments=("model", "repository"),
    types={"tasks": Optional[str]},
    defaults={"tasks": None},
    texts={
        "model": "The folder that train, adapt or finetune wrote.",
        "tasks": "Tasks of the table on the card, evaluated on the base and on the model; names with commas.",
    },
)
def push(found: Any) -> None:
    """Print what was sent, or would be."""
    if not found.url:
        for name, size in found.files.items():
            typer.echo(f"{size:>12,}  {name}")
        typer.echo(f"\n{found.card}\ndry run: nothing was sent to {found.repository}")
    else:
        typer.echo(f"{counted(len(found.files), 'file')} sent: {found.url}")
