"""`likewise baseline NAME`: one command a baseline, its options generated from the baseline's dataclass."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import typer

from likewise.cli.generated import AGAIN, Param, command, loaded_group, param
from likewise.cli.messages import clean_errors
from likewise.cli.train import READING


def _parameters(name: str) -> list[Param]:
    """The parameters of `likewise baseline NAME`."""
    from likewise.baselines import find_baseline

    baseline = find_baseline(name)
    shown = [
        param("base", str, baseline.default_base, "A Hugging Face name, a folder, bundled:minilm, or word vectors."),
        param("out", Path, ..., "The folder; it becomes the model."),
    ]
    if baseline.corpus != "none":
        default = ... if baseline.corpus == "required" else None
        kind = list[str] if baseline.corpus == "required" else Optional[list[str]]
        text = "Text to fit to: a file, a glob, or bundled:wiki-sample; may be repeated."
        shown += [param("corpus", kind, default, text), param("seed", int, 1, "Fixes what is drawn."), *READING]
    panel = f"Options of {name}"
    own = [
        param(
            option,
            item.annotation,
            getattr(baseline.options, option),
            item.description or "",
            panel=panel,
        )
        for option, item in type(baseline.options).model_fields.items()
    ]
    return [*shown, *own, *(one for one in AGAIN if one.name in ("overwrite", "quiet"))]


@clean_errors
def run(name: str, given: dict[str, Any]) -> None:
    """Make the baseline with what was given on the command line."""
    from likewise.baselines import baseline
    from likewise.corpus import CorpusOptions

    reading = {p.name: value for p in READING if (value := given.pop(p.name, None)) is not None}
    result = baseline(
        name,
        given.pop("corpus", None) or None,
        base=given.pop("base"),
        out=given.pop("out"),
        corpus_options=CorpusOptions(**reading),
        **given,
    )
    if not given["quiet"]:
        typer.echo(f"model: {result.path}")


def _commands() -> dict[str, tuple[Callable[..., None], str]]:
    from likewise.baselines import BASELINES

    def made(name: str) -> Callable[..., None]:
        baseline = BASELINES[name]
        return command(lambda given: run(name, given), _parameters(name), f"{baseline.summary} ({baseline.source}.)")

    return {name: (made(name), baseline.summary) for name, baseline in BASELINES.items()}


baseline_app = typer.Typer(
    cls=loaded_group(_commands),
    no_args_is_help=True,
    help="Make a model that others are compared with: averages, whitening, flow.",
)


@baseline_app.callback()
def _baseline() -> None:
    """Make a model that others are compared with: averages, whitening, flow."""
