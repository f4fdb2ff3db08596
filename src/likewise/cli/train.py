"""`likewise train`, `finetune` and `baseline`: one command per recipe, objective and baseline."""

from functools import partial
from pathlib import Path
from typing import Any

import typer

import likewise
from likewise.cli.commands import calls, command_of
from likewise.cli.groups import CommandTable, LazyGroup, group
from likewise.cli.messages import table_of

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


@group(kind=_TrainGroup)
def train() -> CommandTable:
    """Return the commands of `likewise train`, one for each recipe."""
    from likewise.recipes import find_recipe, recipe_summaries

    def make(name: str) -> Any:
        recipe = find_recipe(name)
        text = "A Hugging Face name, a folder, bundled:minilm, bundled:mpnet, or word vectors if the recipe takes them."
        defaults = {"base": recipe.default_base}
        return method_command(likewise.train, "recipe", recipe, defaults=defaults, texts={"base": text})

    return {name: (partial(make, name), summary) for name, summary in recipe_summaries().items()}


@group()
def finetune() -> CommandTable:
    """Return the commands of `likewise finetune`, one for each objective."""
    from likewise.training.objectives import OBJECTIVES

    def make(objective: Any) -> Any:
        return method_command(
            likewise.finetune,
            "objective",
            objective,
            defaults={} if objective.name == "sts" else {"rows": ...},
            names={"rows": "train"},
            texts={
                "rows": _OBJECTIVE_ROWS[objective.name],
                "dev": "Files like those of --train that select the checkpoint.",
            },
        )

    return {name: (partial(make, one), one.summary) for name, one in OBJECTIVES.items()}


@group()
def baseline() -> CommandTable:
    """Return the commands of `likewise baseline`, one for each."""
    from likewise.baselines import BASELINES

    def make(method: Any) -> Any:
        return method_command(
            likewise.baseline,
            "name",
            method,
            lambda result: typer.echo(f"model: {result.path}"),
            leave_out=("corpus", "corpus_options", "seed") if method.corpus == "none" else (),
            texts={"base": "A Hugging Face name, a folder, bundled:minilm, bundled:mpnet, or a file of word vectors."},
            defaults={"base": method.default_base} | ({"corpus": ...} if method.corpus == "required" else {}),
        )

    return {name: (partial(make, one), one.summary) for name, one in BASELINES.items()}


def method_command(function: Any, parameter: str, method: Any, show: Any = None, **settings: Any) -> Any:
    """Return the command of a recipe, an objective, a baseline or the surrogate, whose name the parameter takes."""
    presets = f"\n\nPresets: {', '.join(method.presets)}." if function is not likewise.baseline else ""
    return command_of(
        function,
        show or show_outcome,
        summary=f"{method.summary} ({method.source}.){presets}",
        given={parameter: method.name} if parameter else {},
        options=method.options(),
        config=True,
        **settings,
    )


def show_adapted(result: Any) -> None:
    """Print the scores of every candidate, the choice, and the model's folder."""
    from rich.console import Console

    from likewise.adaptation.choice import COLUMNS

    chosen = next((i for i, one in enumerate(result.candidates) if one.name == result.chosen), None)
    Console(highlight=False).print(table_of(COLUMNS, [one.cells() for one in result.candidates], bold=chosen))
    typer.echo(f"chosen: {result.chosen}, because {result.reason}")
    typer.echo(f"form: {result.form}")
    typer.echo(result.advice)
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


adapt = calls("likewise:adapt", options="likewise.adaptation:AdaptOptions", arguments=("corpus",), config=True)(
    show_adapted
)
