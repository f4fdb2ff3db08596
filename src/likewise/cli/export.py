"""`likewise export`: a model as one ONNX or OpenVINO graph, pooling and all."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from likewise.cli.messages import clean_errors


@clean_errors
def export(
    model: Annotated[str, typer.Argument(help="A model's folder, its hub name, or bundled:minilm.")],
    format: Annotated[Literal["onnx", "openvino"], typer.Option("--format", help="Which graph.")],
    out: Annotated[Path, typer.Option(help="The folder; it may not hold other files.")],
) -> None:
    """Write a model as one graph: token ids and mask in, sentence vectors out, in float32.

    Beside it lie the tokenizer and a file that says what to feed it.
    """
    from likewise.inference import export as write

    for path in write(model, format, out):
        typer.echo(path)
