"""`likewise train RECIPE`: one command a recipe, its options generated from the recipe's dataclass."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any, Optional

import typer
from typer.core import TyperGroup

from likewise.cli.messages import clean_errors

Param = inspect.Parameter


def _option(name: str, kind: Any, default: Any, text: str, *names: str, panel: str | None = None) -> Param:
    info = typer.Option(*names, help=text, rich_help_panel=panel, show_default=default is not None)
    return Param(name, Param.KEYWORD_ONLY, default=default, annotation=typing.Annotated[kind, info])


# Optional[...] and not `| None`: typer reads these annotations at run time.
RUN = (
    _option("corpus", list[str], ..., "Text to train on: a file, a glob, or bundled:wiki-sample; may be repeated."),
    _option(
        "base",
        str,
        "bundled:minilm",
        "A Hugging Face name, a folder, or bundled:minilm; gclsr: a file of word vectors.",
    ),
    _option("out", Path, ..., "The run folder; it becomes the model."),
    _option("preset", Optional[str], None, "A named set of options (see below); the first by default."),
    _option("seed", int, 1, "Fixes batches, masks, dropout and the training head."),
    _option("data", Optional[Path], None, "Folder in SentEval's layout; its STS-B dev selects the checkpoint."),
    _option("resume", bool, False, "Go on from the last checkpoint in --out.", "--resume"),
    _option("overwrite", bool, False, "Replace the run that lies in --out.", "--overwrite"),
    _option("keep_checkpoints", bool, False, "Keep the checkpoints of a finished run.", "--keep-checkpoints"),
    _option("quiet", bool, False, "Print nothing but errors.", "--quiet"),
)
READING = (
    _option("field", Optional[str], None, "JSONL: the field that holds the text.", panel="Reading the corpus"),
    _option(
        "split",
        Optional[typing.Literal["auto", "line", "prose"]],
        None,
        "Plain text: a sentence a line, or prose to be split.",
        panel="Reading the corpus",
    ),
    _option("min_words", Optional[int], None, "Drop shorter sentences.", panel="Reading the corpus"),
    _option("max_words", Optional[int], None, "Drop longer sentences.", panel="Reading the corpus"),
    _option(
        "encoding",
        Optional[str],
        None,
        "Encoding of the files, utf-8 by default.",
        panel="Reading the corpus",
    ),
    _option("deduplicate", Optional[bool], None, "Keep one of equal sentences.", panel="Reading the corpus"),
)


def recipe_options(name: str) -> list[Param]:
    """The options of a recipe as command line parameters; unset means the preset's value."""
    from likewise.recipes import find_recipe

    kind = find_recipe(name).options_type
    hints = typing.get_type_hints(kind)
    return [
        _option(item.name, Optional[hints[item.name]], None, item.metadata["help"], panel=f"Options of {name}")
        for item in fields(kind)
    ]


def train_command(name: str) -> Callable[..., None]:
    """The function behind `likewise train NAME`."""
    from likewise.recipes import find_recipe

    recipe = find_recipe(name)
    own = recipe_options(name)

    def command(**given: Any) -> None:
        run(name, given, [param.name for param in own])

    presets = ", ".join(recipe.presets)
    command.__doc__ = f"{recipe.summary} ({recipe.source}.)\n\nPresets: {presets}."
    params = [*(p.replace(default=recipe.default_base) if p.name == "base" else p for p in RUN), *READING, *own]
    command.__signature__ = inspect.Signature(params)  # type: ignore[attr-defined]
    command.__annotations__ = {param.name: param.annotation for param in params}
    return command


@clean_errors
def run(name: str, given: dict[str, Any], own: list[str]) -> None:
    """Train with what was given on the command line."""
    import likewise
    from likewise.corpus import CorpusOptions

    reading = {p.name: given.pop(p.name) for p in READING}
    options = {key: value for key in own if (value := given.pop(key)) is not None}
    result = likewise.train(
        name,
        given.pop("corpus"),
        given.pop("base"),
        given.pop("out"),
        corpus_options=CorpusOptions(**{key: value for key, value in reading.items() if value is not None}),
        **given,
        **options,
    )
    if not result.finished:
        typer.echo(f"Stopped after step {result.steps}. Go on with the same command and --resume.", err=True)
        raise typer.Exit(130)
    if given["quiet"]:
        return
    if result.best:
        metric = result.best["metric"]
        typer.echo(f"{metric}: {result.before[metric]:.2f} before, {result.best['score']:.2f} after")
    typer.echo(f"model: {result.path}  (step {(result.best or {}).get('step', result.steps)})")


class _Recipes(TyperGroup):
    """Reads the recipes only when `train` is called: their module imports torch."""

    def _load(self) -> None:
        from likewise.recipes import RECIPES

        for name, recipe in RECIPES.items():
            if name not in self.commands:
                app = typer.Typer(add_completion=False, rich_markup_mode=None)
                app.command(name, short_help=recipe.summary)(train_command(name))
                command = typer.main.get_command(app)
                command.name = name
                self.commands[name] = command

    def list_commands(self, ctx: Any) -> list[str]:
        self._load()
        return list(self.commands)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        self._load()
        return super().get_command(ctx, cmd_name)


train_app = typer.Typer(cls=_Recipes, no_args_is_help=True, help="Train a sentence encoder on plain text.")


@train_app.callback()
def _train() -> None:
    """Train a sentence encoder on plain text."""
