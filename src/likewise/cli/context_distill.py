"""`likewise context distill`: train a surrogate on a harvest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import typer

from likewise.cli.generated import AGAIN, command, loaded_command, options_of, param
from likewise.cli.messages import clean_errors
from likewise.cli.outcome import show_outcome

RUN = (
    param("harvest", Path, ..., "The folder of the harvest's Parquet shards."),
    param("out", Path, ..., "The run folder; it becomes the model."),
    param("base", str, "bundled:minilm", "A Hugging Face name, a folder, or bundled:minilm."),
    param("preset", Optional[str], None, "A named set of options (see above); the first by default."),
    param("seed", int, 1, "Fixes batches, dropout and the cross-encoder's first weights."),
    param("data", Optional[Path], None, "Folder in SentEval's layout; the surrogate is scored on its STS-B."),
    *AGAIN,
)


def distill() -> None:
    """Train a surrogate on a harvest."""
    # `DistillCommand` calls the generated function in its place: options are read when they are needed.


def distill_command() -> Callable[..., None]:
    """The function behind `likewise context distill`."""
    from likewise.context.surrogate import PRESETS, SurrogateOptions

    own = options_of(SurrogateOptions, "Options of the surrogate")
    return command(
        lambda given: run(given, [one.name for one in own]),
        [*RUN, *own],
        "Train a Siamese encoder, or a cross-encoder, towards harvested similarity. (Sun et al. 2022, sections 3.4 and "
        f"5.6.)\n\nPresets: {', '.join(PRESETS)}.",
    )


@clean_errors
def run(given: dict[str, Any], own: list[str]) -> None:
    """Distill with what was given on the command line."""
    from likewise.context.surrogate import distill as train

    options = {key: value for key in own if (value := given.pop(key)) is not None}
    result = train(given.pop("harvest"), **given, **options)
    show_outcome(result, given["quiet"])
    if given["quiet"]:
        return
    if test := result.record.get("test"):
        typer.echo(f"test_mse: {test['test_mse']:.4g} ({test['test_mse_harvest']:.4g} on the harvest's own scale)")
    for task, score in result.record.get("sts", {}).items():
        typer.echo(f"{task}: {score:.2f}")


DistillCommand = loaded_command(distill_command)
