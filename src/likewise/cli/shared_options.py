"""The options that many commands have. Nothing here imports torch."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from typing import Annotated, Literal, Optional

import typer
from typer import Argument, Option

from likewise.cli.groups import JOBS
from likewise.runs.progress import Progress

ModelArgument = Annotated[str, Argument(help="A model's folder, its hub name, bundled:minilm or bundled:mpnet.")]
BASE = "A Hugging Face name, a folder, bundled:minilm or bundled:mpnet."
CORPUS = "Text: a file, a folder, a glob or bundled:wiki-sample; repeatable."
Precisions = Literal["close", "auto", "fp32", "bf16", "int8"]
ReplaceOption = Annotated[
    bool, Option("--overwrite", help="Replace a file at this place, even if likewise did not write it.")
]
SHARED: Mapping[str, object] = {
    "batch_size": Annotated[int, Option(help="Sentences in a batch.")],
    "data": Annotated[
        Optional[str],
        Option(
            help="The folder of SentEval's data [otherwise $LIKEWISE_DATA, or the folder `likewise data get` writes "
            "to].",
            rich_help_panel=JOBS,
        ),
    ],
    "engine": Annotated[
        Literal["auto", "torch", "openvino", "onnx"],
        Option(help="The engine that runs the model; auto takes the fastest that is installed and keeps the vectors."),
    ],
    "language": Annotated[str, Option(help="The language of the text, for the stems of words.")],
    "overwrite": Annotated[
        bool,
        Option(
            "--overwrite",
            help="Discard stopped work, and replace a finished result once the new one is complete.",
            rich_help_panel=JOBS,
        ),
    ],
    "preset": Annotated[Optional[str], Option(help="A named set of options; the first by default.")],
    "precision": Annotated[
        Precisions,
        Option(help="fp32 keeps the vectors exact; auto takes int8 or bfloat16 if the vectors stay close enough."),
    ],
    "quiet": Annotated[bool, Option("--quiet", help="Print nothing but errors.", rich_help_panel=JOBS)],
    "resume": Annotated[
        bool,
        Option(
            "--resume",
            help="Require stopped work to resume; without this option it is resumed if there is any.",
            callback=lambda insists: insists or "auto",
            rich_help_panel=JOBS,
        ),
    ],
    "workers": Annotated[Optional[int], Option(help="Workers of the Ray cluster; by default one on each core.")],
}
"""The options that mean the same in every command, by the names of parameters."""
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
