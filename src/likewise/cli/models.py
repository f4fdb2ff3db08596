"""`likewise encode`, `similarity` and `export`: use a model."""

from __future__ import annotations

from typing import Annotated, Literal, Optional

import typer
from typer import Argument, Option

import likewise
from likewise.cli.groups import typed
from likewise.cli.shared_options import (
    EngineOption,
    ModelArgument,
    OverwriteOption,
    PrecisionOption,
    QuietOption,
    ResumeOption,
    WorkersOption,
    flag,
    given,
)


@typed
def encode(
    *,
    model: ModelArgument,
    source: Annotated[
        str,
        Argument(
            help="A text or JSONL file, plain, .gz, .bz2 or .zst, or '-' for standard input. An empty line has a row, "
            "too."
        ),
    ],
    out: Annotated[
        str,
        Option(
            help="X.npy (float32, a row per line), X.parquet ('sentence' and 'embedding'), or '-' (a JSON array per "
            "line on standard output, which cannot be resumed). The folder X/ takes Parquet shards of 'file', 'row', "
            "'sentence' and 'embedding', and X.lance a Lance table of these; their source may also be a Parquet file, "
            "a folder, a pattern, or the URL of an object store."
        ),
    ] = "vectors.npy",
    normalize: Annotated[bool, flag("--normalize", "Scale each row to length 1.")] = False,
    batch_size: Annotated[
        Optional[int], Option(help="Most sentences in a batch; by default only their tokens are limited.")
    ] = None,
    engine: EngineOption = "auto",
    precision: PrecisionOption = "auto",
    field: Annotated[
        Optional[str],
        Option(help="The field with the text, if the file is JSONL; or the column of a Parquet file."),
    ] = None,
    encoding: Annotated[
        str,
        Option(
            help="The encoding of the file, as Python names it; auto is UTF-8, or what a file that is not looks like."
        ),
    ] = "auto",
    on: Annotated[
        Optional[str],
        Option(
            help="'ray' for workers on the cores of this machine (or of the cluster in $RAY_ADDRESS), or the address "
            "of a Ray cluster, such as ray://head:10001; out is then a folder."
        ),
    ] = None,
    workers: WorkersOption = None,
    quiet: QuietOption = False,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
) -> None:
    """Encode a text file with one sentence per line; row i of the output belongs to line i."""
    vectors = likewise.encode_file(**given(locals()))
    if not quiet:
        typer.echo(f"{vectors.rows:,} x {vectors.dimension}, float32", err=True)


@typed
def similarity(
    model: ModelArgument,
    a: Annotated[str, typer.Argument(help="A sentence.")],
    b: Annotated[str, typer.Argument(help="Another sentence.")],
) -> None:
    """Print the cosine of two sentences, from -1 to 1."""
    from likewise.inference.handle import ModelHandle

    encoder = ModelHandle(model)
    try:  # torch takes seconds to import, and an export of a known model does not need it
        first, second = encoder.export()([a, b])
        typer.echo(f"{first @ second:.4f}")
    except LookupError:
        typer.echo(f"{likewise.similarity(a, b, model=encoder.model):.4f}")


@typed
def export(
    *,
    model: ModelArgument,
    format: Annotated[
        Optional[Literal["openvino", "onnx", "model2vec"]],
        Option(
            help='"onnx" or "openvino"; or "model2vec", for a model that is a mean of word vectors. By default what is '
            "fastest here, if there is no --out."
        ),
    ] = None,
    out: Annotated[
        Optional[str],
        Option(help="The folder to write, for a program of your own; by default it is made where `load` finds it."),
    ] = None,
    overwrite: Annotated[bool, flag("--overwrite", "Replace what is there.")] = False,
    quiet: QuietOption = False,
) -> None:
    """Export a model as a graph that an engine runs: for `load`, for a program of your own, or for model2vec."""
    for path in likewise.export(model, format, out, overwrite=overwrite, quiet=quiet):
        typer.echo(path)
