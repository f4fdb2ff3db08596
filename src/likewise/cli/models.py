"""`likewise encode`, `similarity` and `export`: use a model."""

from typing import Annotated

import typer

import likewise
from likewise.cli.from_function import with_function
from likewise.cli.groups import typed
from likewise.cli.shared_options import ModelArgument
from likewise.runs.whole_files import Record


@typed
@with_function(
    "inference/encoded_files.py:encode_file",
    arguments=["source"],
    kinds={"model": ModelArgument},
    defaults={"out": "vectors.npy", "engine": "auto", "precision": "auto"},
)
def encode(arguments: Record) -> None:
    """Encode a text file with one sentence per line; row i of the output belongs to line i."""
    vectors = likewise.encode_file(**arguments)
    if not arguments["quiet"]:
        typer.echo(f"{vectors.rows:,} x {vectors.dimension}, float32", err=True)


@typed
def similarity(
    model: ModelArgument,
    a: Annotated[str, typer.Argument(help="First sentence.")],
    b: Annotated[str, typer.Argument(help="Second sentence.")],
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
@with_function(
    "inference/model_export.py:export",
    kinds={"model": ModelArgument},
    texts={
        "format": "Name of the format: onnx, openvino, or model2vec for a model that averages word vectors. Without "
        "--out, the default is the fastest format on this processor.",
        "out": "Path to the folder to write, for your own program; by default the export goes to the cache, where "
        "`load` finds it.",
        "overwrite": "Whether to replace an existing export.",
    },
)
def export(arguments: Record) -> None:
    """Export a model as a graph for `load` or your own program, or in the format of model2vec."""
    for path in likewise.export(**arguments):
        typer.echo(path)
