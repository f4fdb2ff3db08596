"""`likewise train RECIPE`: one command a recipe, its options generated from the recipe's dataclass."""

from __future__ import annotations

import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any, Optional

import typer

from likewise.cli.generated import AGAIN, command, loaded_group, options_of, param
from likewise.cli.messages import clean_errors
from likewise.cli.outcome import show_outcome

RUN = (
    param("corpus", list[str], ..., "Text to train on: a file, a glob, or bundled:wiki-sample; may be repeated."),
    param(
        "base",
        str,
        "bundled:minilm",
        "A Hugging Face name, a folder, or bundled:minilm; gclsr: a file of word vectors.",
    ),
    param("out", Path, ..., "The run folder; it becomes the model."),
    param("preset", Optional[str], None, "A named set of options (see below); the first by default."),
    param("seed", int, 1, "Fixes batches, masks, dropout and the training head."),
    param("data", Optional[Path], None, "Folder in SentEval's layout; its STS-B dev selects the checkpoint."),
    *AGAIN,
)
READING = (
    param("field", Optional[str], None, "JSONL: the field that holds the text.", panel="Reading the corpus"),
    param(
        "split",
        Optional[typing.Literal["auto", "line", "prose"]],
        None,
        "Plain text: a sentence a line, or prose to be split.",
        panel="Reading the corpus",
    ),
    param("min_words", Optional[int], None, "Drop shorter sentences.", panel="Reading the corpus"),
    param("max_words", Optional[int], None, "Drop longer sentences.", panel="Reading the corpus"),
    param(
        "encoding",
        Optional[str],
        None,
        "Encoding of the files, utf-8 by default.",
        panel="Reading the corpus",
    ),
    param("deduplicate", Optional[bool], None, "Keep one of equal sentences.", panel="Reading the corpus"),
    param(
        "max_expansion",
        Optional[int],
        None,
        "Refuse a compressed file that expands to more than this many times its size (and 64 MiB), 100 by default.",
        panel="Reading the corpus",
    ),
)


def train_command(name: str) -> Callable[..., None]:
    """The function behind `likewise train NAME`."""
    from likewise.recipes import find_recipe

    recipe = find_recipe(name)
    own = options_of(recipe.options_type, f"Options of {name}")
    params = [*(p.replace(default=recipe.default_base) if p.name == "base" else p for p in RUN), *READING, *own]
    return command(
        lambda given: run(name, given, [one.name for one in own]),
        params,
        f"{recipe.summary} ({recipe.source}.)\n\nPresets: {', '.join(recipe.presets)}.",
    )


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
        corpus_options=CorpusOptions(**{key: value for key, value in reading.items() if value is not None}),
        **given,
        **options,
    )
    show_outcome(result, given["quiet"])


def _recipes() -> dict[str, tuple[Callable[..., None], str]]:
    from likewise.recipes import RECIPES

    return {name: (train_command(name), recipe.summary) for name, recipe in RECIPES.items()}


train_app = typer.Typer(
    cls=loaded_group(_recipes), no_args_is_help=True, help="Train a sentence encoder on plain text."
)


@train_app.callback()
def _train() -> None:
    """Train a sentence encoder on plain text."""
