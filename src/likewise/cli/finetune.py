"""`likewise finetune OBJECTIVE`: train an encoder further on labelled rows."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import typer

from likewise.cli.generated import AGAIN, command, loaded_group, options_of, param
from likewise.cli.messages import clean_errors
from likewise.cli.outcome import show_outcome

WHAT = {
    "nli": "SNLI's .jsonl, a table with sentence1, sentence2, gold_label, or labels.train with s1.train and s2.train "
    "beside it; may be repeated.",
    "sts": "A table with sentence1, sentence2 and score; STS-B train of the data folder where none is given.",
    "triplets": "train.csv of the Wikipedia sections, or another table with Sentence1, Sentence2 and Sentence3.",
}


def _run_params(name: str) -> list[Any]:
    has_default = name == "sts"
    kind: Any = Optional[list[Path]] if has_default else list[Path]
    train = param("train", kind, None if has_default else ..., WHAT[name])
    return [
        param("base", str, ..., "The model to train further: a folder, a name of the hub, or bundled:minilm."),
        param("out", Path, ..., "The run folder; it becomes the model."),
        train,
        param("dev", Optional[list[Path]], None, "Files of the same kind that pick the checkpoint."),
        param("data", Optional[Path], None, "Folder in SentEval's layout."),
        param("preset", Optional[str], None, "A named set of options (see above); the first by default."),
        param("seed", int, 1, "Fixes batches, dropout, the classifier and the rows held out."),
        *AGAIN,
    ]


def finetune_command(name: str) -> Callable[..., None]:
    """The function behind `likewise finetune NAME`."""
    from likewise.training import OBJECTIVES

    objective = OBJECTIVES[name]
    own = options_of(objective.options_type, f"Options of {name}")
    return command(
        lambda given: run(name, given, [one.name for one in own]),
        [*_run_params(name), *own],
        f"{objective.summary} ({objective.source}.)\n\nPresets: {', '.join(objective.presets)}.",
    )


@clean_errors
def run(name: str, given: dict[str, Any], own: list[str]) -> None:
    """Train with what was given on the command line."""
    from likewise.training import finetune

    options = {key: value for key in own if (value := given.pop(key)) is not None}
    result = finetune(name, given.pop("train"), **given, **options)
    show_outcome(result, given["quiet"])


def _objectives() -> dict[str, tuple[Callable[..., None], str]]:
    from likewise.training import OBJECTIVES

    return {name: (finetune_command(name), objective.summary) for name, objective in OBJECTIVES.items()}


finetune_app = typer.Typer(
    cls=loaded_group(_objectives), no_args_is_help=True, help="Train an encoder further on labelled rows."
)


@finetune_app.callback()
def _finetune() -> None:
    """Train an encoder further on labelled rows."""
