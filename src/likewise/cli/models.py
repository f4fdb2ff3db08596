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
@with_function(
    "inference/model_export.py:export",
    kinds={"model": ModelArgument},
    texts={
        "format": '"onnx" or "openvino"; or "model2vec", for a model that is a mean of word vectors. By default what '
        "is fastest here, if there is no --out.",
        "out": "The folder to write, for a program of your own; by default it is made where `load` finds it.",
        "overwrite": "Replace what is there.",
    },
)
def export(arguments: Record) -> None:
    """Export a model as a graph that an engine runs: for `load`, for a program of your own, or for model2vec."""
    for path in likewise.export(**arguments):
        typer.echo(path)
