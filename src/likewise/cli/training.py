"""`likewise train`, `finetune` and `baseline`: one command per recipe, objective and baseline."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import typer

from likewise.cli.commands import command_of
from likewise.cli.groups import LazyGroup, group_of

_OBJECTIVE_ROWS = {
    "nli": "SNLI's .jsonl, a table with sentence1, sentence2 and gold_label, or labels.train with s1.train and "
    "s2.train in its folder; may be repeated.",
    "sts": "A table with sentence1, sentence2 and score; STS-B train of the data folder where none is given.",
    "triplets": "train.csv of the Wikipedia sections, or another table with Sentence1, Sentence2 and Sentence3.",
}

_CURE = "Stay with the base, or try fewer --max-steps, a lower --learning-rate or other data."


class _TrainGroup(LazyGroup):
    """A group that takes the recipe from the file of `--config` if none is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0].startswith("--config"):
            from likewise.runs.options import OptionError, read_toml

            path = args[0].partition("=")[2] or (args[1] if len(args) > 1 else "")
            if not (recipe := read_toml(Path(path)).get("recipe")):
                raise OptionError(f"{path} names no recipe: write recipe = NAME into it, or name one before --config")
            args = [recipe, *args]
        return super().parse_args(ctx, args)


def train_group() -> Any:
    """Return `likewise train`."""
    return group_of(_recipes, kind=_TrainGroup)


def _recipes() -> Mapping[str, tuple[Any, str]]:
    from likewise.recipes import RECIPES, recipe_names

    summaries = {name: recipe.summary for name, recipe in RECIPES.items()}
    return {
        name: (partial(_train_command, name), summaries.get(name, "A recipe of another package."))
        for name in recipe_names()
    }


def _train_command(name: str) -> Any:
    import likewise
    from likewise.recipes import find_recipe

    recipe = find_recipe(name)
    return command_of(
        likewise.train,
        show_outcome,
        summary=f"{recipe.summary} ({recipe.source}.)\n\nPresets: {', '.join(recipe.presets)}.",
        given={"recipe": name},
        defaults={"base": recipe.default_base},
        options=recipe.options(),
        texts={"base": "A Hugging Face name, a folder, bundled:minilm, or the word vectors that the recipe takes."},
        config=True,
    )


def finetune_group() -> Any:
    """Return `likewise finetune`."""
    return group_of(_objectives)


def _objectives() -> Mapping[str, tuple[Any, str]]:
    from likewise.training.objectives import OBJECTIVES

    return {name: (partial(_finetune_command, name), one.summary) for name, one in OBJECTIVES.items()}


def _finetune_command(name: str) -> Any:
    import likewise
    from likewise.training.objectives import find_objective

    objective = find_objective(name)
    return command_of(
        likewise.finetune,
        show_outcome,
        summary=f"{objective.summary} ({objective.source}.)\n\nPresets: {', '.join(objective.presets)}.",
        given={"objective": name},
        defaults={} if name == "sts" else {"rows": ...},
        names={"rows": "train"},
        texts={"rows": _OBJECTIVE_ROWS[name], "dev": "Files like those of --train that select the checkpoint."},
        options=objective.options(),
        config=True,
    )


def baseline_group() -> Any:
    """Return `likewise baseline`."""
    return group_of(_baselines)


def _baselines() -> Mapping[str, tuple[Any, str]]:
    from likewise.baselines import BASELINES

    return {name: (partial(_baseline_command, name), one.summary) for name, one in BASELINES.items()}


def _baseline_command(name: str) -> Any:
    import likewise
    from likewise.baselines import find_baseline

    baseline = find_baseline(name)
    return command_of(
        likewise.baseline,
        lambda result: typer.echo(f"model: {result.path}"),
        summary=f"{baseline.summary} ({baseline.source}.)",
        given={"name": name},
        leave_out=("corpus", "corpus_options", "seed") if baseline.corpus == "none" else (),
        texts={"base": "A Hugging Face name, a folder, bundled:minilm, or a file of word vectors."},
        defaults={"base": baseline.default_base} | ({"corpus": ...} if baseline.corpus == "required" else {}),
        options=baseline.options(),
        config=True,
    )


def adapt_command() -> Any:
    """Return `likewise adapt`."""
    import likewise

    return command_of(
        likewise.adapt,
        show_adapted,
        arguments=("corpus",),
        types={"corpus": list[str]},
        config=True,
    )


def show_adapted(result: Any) -> None:
    """Print the scores of every candidate, the choice, and the model's folder."""
    from rich.console import Console
    from rich.table import Table

    from likewise.training.adapt_page import COLUMNS, cells

    table = Table(COLUMNS[0], box=None, padding=(0, 2, 0, 0))
    for column in COLUMNS[1:]:
        table.add_column(column, justify="right")
    for one in result.candidates:
        table.add_row(*cells(one.to_dict()), style="bold" if one.name == result.chosen else "")
    Console(highlight=False).print(table)
    typer.echo(f"chosen: {result.chosen}, because {result.reason}")
    typer.echo(f"model: {result.path}")


def show_outcome(result: Any) -> None:
    """Print the scores of the base and of the model, the model's folder, and whether training paid."""
    if result.best:
        metric = result.best["metric"]
        typer.echo(f"{metric}: {result.before[metric]:.4g} before, {result.best['score']:.4g} after")
    if reason := result.record.get("kept_base"):
        typer.echo(f"model: {result.path}  (the unchanged base)")
        typer.echo(f"The base was kept: {reason}.", err=True)
        return
    typer.echo(f"model: {result.path}  (step {(result.best or {}).get('step', result.steps)})")
    if result.no_gain:
        typer.echo(f"No gain: {result.no_gain}. {_CURE}", err=True)
