"""`likewise encode`: a text file to a file of vectors."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, Optional

import typer

from likewise.cli.messages import clean_errors


@clean_errors
def encode(
    model: Annotated[str, typer.Argument(help="A model's folder, its hub name, or bundled:minilm.")],
    sentences: Annotated[
        str,
        typer.Argument(metavar="IN", help="A text file, one sentence a line (.gz, .bz2, .zst too), or '-'."),
    ],
    out: Annotated[
        Path,
        typer.Option(help="X.npy (a row a line), X.parquet (sentence and embedding), or '-' (a JSON array a line)."),
    ] = Path("vectors.npy"),
    engine: Annotated[
        Literal["auto", "torch", "openvino", "onnx"],
        typer.Option(help="What runs the model; auto exports it when that pays, and takes the fastest."),
    ] = "auto",
    precision: Annotated[
        Literal["auto", "fp32", "bf16", "int8"],
        typer.Option(help="fp32 keeps the vectors; auto goes lower where they stay near enough, and says how near."),
    ] = "auto",
    batch_size: Annotated[
        # Optional[...] and not `| None`: typer reads these annotations at run time.
        Optional[int],
        typer.Option(help="Sentences a batch at most; by default their tokens decide.", min=1),
    ] = None,
    normalize: Annotated[bool, typer.Option("--normalize", help="Scale each vector to length 1.")] = False,
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Begin anew where a stopped run had other options or another model.")
    ] = False,
) -> None:
    """Encode a text file, one sentence a line, into a file of vectors. A stopped run goes on where it was."""
    from likewise.inference import encode_file

    rows, size = encode_file(
        model,
        sentences,
        out,
        batch_size=batch_size,
        engine=engine,
        precision=precision,
        normalize=normalize,
        overwrite=overwrite,
    )
    if str(out) != "-":
        typer.echo(f"{out}: {rows:,} x {size}, float32{', length 1' if normalize else ''}")
