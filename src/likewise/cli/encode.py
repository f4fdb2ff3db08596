"""`likewise encode`: a text file to a file of vectors."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from likewise.cli.messages import clean_errors


@clean_errors
def encode(
    model: Annotated[str, typer.Argument(help="A model's folder, its hub name, or bundled:minilm.")],
    sentences: Annotated[
        str,
        typer.Argument(metavar="IN", help="A text file, one sentence a line (.gz, .bz2, .zst too), or '-'."),
    ],
    out: Annotated[Path, typer.Option(help="The .npy file of the vectors, one row a line.")] = Path("vectors.npy"),
    batch_size: Annotated[int, typer.Option(help="Sentences a batch.", min=1)] = 64,
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale each vector to length 1.")] = False,
    bf16: Annotated[bool, typer.Option("--bf16", help="Run the model under bfloat16 autocast.")] = False,
) -> None:
    """Encode a text file, one sentence a line, into a numpy file of vectors."""
    from likewise.inference import encode_file, load

    if sentences != "-" and not Path(sentences).is_file():
        raise FileNotFoundError(f"There is no file '{sentences}'.")
    rows, size = encode_file(
        load(model),
        sentences,
        out,
        batch_size=batch_size,
        precision="bf16" if bf16 else None,
        normalize=normalize,
        progress=sys.stderr.isatty(),
    )
    typer.echo(f"{out}: {rows:,} x {size}, float32{', length 1' if normalize else ''}")
