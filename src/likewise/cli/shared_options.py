"""The options that many commands have. Nothing here imports torch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Literal, Optional

import typer
from typer import Argument, Option

from likewise.cli.groups import JOBS
from likewise.runs.progress import Progress

ModelArgument = Annotated[
    str, Argument(help="Path or name of a model: a folder, a hub name, bundled:minilm or bundled:mpnet.")
]
BASE = "Name or path of the base: a Hugging Face name, a folder, bundled:minilm or bundled:mpnet."
CORPUS = "Path to the text: a file, a folder, a glob pattern or bundled:wiki-sample; repeatable."
Precisions = Literal["close", "auto", "fp32", "bf16", "int8"]
ReplaceOption = Annotated[
    bool, Option("--overwrite", help="Whether to replace an existing file, even if likewise did not write it.")
]
SHARED: Mapping[str, object] = {
    "batch_size": Annotated[int, Option(help="Number of sentences in a batch.")],
    "data": Annotated[
        Optional[str],
        Option(
            help="Path to SentEval's data; by default $LIKEWISE_DATA, or the folder that `likewise data get` writes "
            "to.",
            rich_help_panel=JOBS,
        ),
    ],
    "engine": Annotated[
        Literal["auto", "torch", "openvino", "onnx"],
        Option(
            help="Engine that runs the model; auto selects the fastest installed engine that preserves the vectors."
        ),
    ],
    "language": Annotated[str, Option(help="Language of the text, for stemming.")],
    "overwrite": Annotated[
        bool,
        Option(
            "--overwrite",
            help="Whether to discard an interrupted job and replace a finished result once the new one is complete.",
            rich_help_panel=JOBS,
        ),
    ],
    "preset": Annotated[Optional[str], Option(help="Name of a set of options; the first one by default.")],
    "precision": Annotated[
        Precisions,
        Option(help="Precision of the engine; auto selects int8 or bfloat16 if the vectors stay close to fp32."),
    ],
    "quiet": Annotated[bool, Option("--quiet", help="Whether to print nothing but errors.", rich_help_panel=JOBS)],
    "resume": Annotated[
        bool,
        Option(
            "--resume",
            help="Whether to fail if there is no interrupted job; by default, an interrupted job is resumed if there "
            "is one.",
            callback=lambda insists: insists or "auto",
            rich_help_panel=JOBS,
        ),
    ],
    "workers": Annotated[Optional[int], Option(help="Number of workers of the Ray cluster; by default one per core.")],
}
"""The options with the same meaning in every command, by the names of parameters."""
PARTIAL = 3
"""The exit code of a command that is done, but could not read all that it should have read."""


def end_partial(is_partial: bool) -> None:
    """End with the exit code `PARTIAL` if something could not be read."""
    if is_partial:
        raise typer.Exit(PARTIAL)


def keep_export(model: str, quiet: bool) -> None:
    """Export a model that a command has made or loaded, so that the next command need not load it."""
    if "torch" not in sys.modules:  # there is an export, which did the work
        return
    from likewise.inference import model_export
    from likewise.inference.tokens import SENTENCES

    model_export.keep_export(model, SENTENCES, Progress(quiet))
