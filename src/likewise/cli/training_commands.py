"""`likewise adapt`, `train` and `finetune`: a command per recipe and objective."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

import likewise
from likewise.adaptation.adapt_options import AdaptOptions, CharactersOptions
from likewise.cli.from_function import with_function
from likewise.cli.groups import ClickContext, CommandSections, CommandTable, LazyGroup, command, group, typed
from likewise.cli.messages import table_of
from likewise.cli.shared_options import BASE, CORPUS, end_partial, keep_export
from likewise.recipes.recipe_options import WithPresets
from likewise.runs.options import OptionError
from likewise.runs.plugins import COMPARED, not_installed
from likewise.runs.toml_files import read_toml
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from likewise.adaptation import AdaptResult
    from likewise.cli.groups import PanelCommand
    from likewise.training.training_result import TrainingResult

_OBJECTIVE_ROWS = {
    "nli": "Path to the rows: SNLI's .jsonl, a table with sentence1, sentence2 and gold_label, or labels.train with "
    "s1.train and s2.train in its folder; repeatable.",
    "sts": "Path to a table with sentence1, sentence2 and score; by default STS-B train of the data folder.",
    "triplets": "Path to train.csv of the Wikipedia sections, or to another table with Sentence1, Sentence2 and "
    "Sentence3.",
}

_CHARACTERS = "An encoder of the characters of your own text, for a language without a base; it is built in seconds."
_CURE = "Keep the base, or try another --max-steps, a lower --learning-rate or other data."


@typed
@with_function(
    "adaptation/adaptation_flow.py:adapt",
    options=AdaptOptions(),
    config=True,
    arguments=["corpus"],
    texts={"corpus": CORPUS, "base": BASE},
)
def adapt(arguments: Record) -> None:
    """Adapt a sentence encoder to your own text, without labels."""
    result = likewise.adapt(**arguments)
    if not arguments["quiet"]:
        show_adapted(result)
    keep_export(arguments["out"], arguments["quiet"])
    end_partial(result.is_partial)


@typed
@with_function(
    "adaptation/characters.py:train_characters",
    options=CharactersOptions(),
    config=True,
    texts={"corpus": CORPUS},
)
def characters(arguments: Record) -> None:
    """Build a sentence encoder from the characters of your own text, for a language without a base."""
    result = likewise.train_characters(**arguments)
    if not arguments["quiet"]:
        typer.echo(f"model: {result.path}  ({result.record['dimensions']:,} dimensions)")
    end_partial(result.is_partial)


class _RegisteredGroup(LazyGroup):
    """A group that says which package brings a name, if that package is not installed."""

    def get_command(self, ctx: ClickContext, cmd_name: str) -> Any:
        """Build and return a command; None if there is none of that name."""
        if cmd_name in COMPARED and cmd_name not in self.table():
            raise OptionError(not_installed(cmd_name))
        return super().get_command(ctx, cmd_name)


class _TrainGroup(_RegisteredGroup):
    """A group that takes the recipe from the file of `--config` if none is named."""

    def parse_args(self, ctx: ClickContext, args: list[str]) -> list[str]:
        if args and args[0].startswith("--config"):
            path = args[0].partition("=")[2] or (args[1] if len(args) > 1 else "")
            if not (recipe := read_toml(Path(path)).get("recipe")):
                raise OptionError(
                    f"{path} does not name a recipe: add recipe = NAME to it, or name a recipe before --config"
                )
            args = [recipe, *args]
        return super().parse_args(ctx, args)


@group(kind=_TrainGroup)
def train() -> CommandSections:
    """Return the commands of `likewise train`, one for each recipe."""
    headings = "The four papers", "This library's", "To compare with"
    sections: dict[str, Record] = {heading: {} for heading in headings}
    papers, own, others = sections.values()
    for name, (source, summary) in _recipe_summaries().items():
        is_own = source.startswith("this library")
        place = papers if name in ("arccse", "sncse", "gclsr") else own if is_own else others
        place[name] = (partial(_train_by, name), summary if is_own else f"{source}: {summary}")
    own["characters"] = ("training_commands:characters", _CHARACTERS)
    cited = "Sun et al. 2022, Sentence Similarity Based on Contexts"
    papers["contexts"] = ("context:context", f"{cited}: stage by stage, by `likewise context`.")
    return sections


def _recipe_summaries() -> dict[str, tuple[str, str]]:
    """Return the source and the summary of each recipe by its name; of one that cannot be loaded, what is wrong."""
    from likewise.recipes import find_recipe, recipe_names

    summaries = {}
    for name in recipe_names():
        try:
            recipe = find_recipe(name)
            summaries[name] = (recipe.source, recipe.summary)
        except OptionError as error:
            summaries[name] = ("", str(error))
    return summaries


def _train_by(name: str) -> "PanelCommand":
    from likewise.recipes import find_recipe

    recipe = find_recipe(name)
    bases = (
        "Name or path of the base: a Hugging Face name, a folder, bundled:minilm, bundled:mpnet, or word vectors if "
        "the recipe accepts them."
    )

    @with_function(
        "training/train.py:train",
        options=recipe.options(),
        config=True,
        defaults={"base": recipe.default_base},
        texts={"corpus": CORPUS, "base": bases},
        without=["recipe"],
    )
    def run(arguments: Record) -> None:
        result = likewise.train(name, **arguments)
        show_outcome(result, arguments["quiet"])
        from likewise.runs import processes

        if processes.is_first():
            keep_export(arguments["out"], arguments["quiet"])
        end_partial(result.is_partial)

    return command_of(run, recipe)


@group()
def finetune() -> CommandTable:
    """Return the commands of `likewise finetune`, one for each objective."""
    from likewise.training.objectives import OBJECTIVES

    return {name: (partial(_finetune_by, objective), objective.summary) for name, objective in OBJECTIVES.items()}


def _finetune_by(objective: WithPresets) -> "PanelCommand":
    @with_function(
        "training/finetune.py:finetune",
        options=objective.options(),
        config=True,
        names={"rows": "--train"},
        kinds={"rows": list[str], "dev": list[str]},
        defaults={} if objective.name == "sts" else {"rows": ...},
        texts={
            "rows": _OBJECTIVE_ROWS[objective.name],
            "dev": "Path to rows in the format of --train that select the checkpoint; repeatable.",
        },
        without=["objective"],
    )
    def run(arguments: Record) -> None:
        show_outcome(likewise.finetune(objective.name, **arguments), arguments["quiet"])

    return command_of(run, objective)


def command_of(run: Callable[..., None], method: WithPresets) -> "PanelCommand":
    """Return the command of a recipe, an objective or the surrogate, whose help shows the presets."""
    run.__doc__ = f"{method.summary} ({method.source}.)"
    made: PanelCommand = command(run)
    if any(parameter.name == "preset" for parameter in made.params):
        made.presets = {name: method.preset_notes.get(name, "") for name in method.presets}
    return made


def show_adapted(result: "AdaptResult") -> None:
    """Print the scores of every candidate, the choice, and the model's folder."""
    from rich.console import Console

    from likewise.adaptation.adaptation_result import COLUMNS

    chosen = next((i for i, candidate in enumerate(result.candidates) if candidate.name == result.chosen), None)
    Console(highlight=False, emoji=False).print(
        table_of(COLUMNS, [candidate.cells() for candidate in result.candidates], bold=chosen)
    )
    typer.echo(f"chosen: {result.chosen}, because {result.reason}")
    typer.echo(f"form: {result.form}")
    typer.echo(result.advice)
    typer.echo(f"model: {result.path}")


def show_outcome(result: "TrainingResult", quiet: bool = False) -> None:
    """Print the scores of the base and of the model, the model's folder, and whether training paid."""
    from likewise.runs import processes

    if quiet or not processes.is_first():
        return
    if result.best:
        metric = result.best["metric"]
        typer.echo(f"{metric}: {result.before[metric]:.4g} before, {result.best['score']:.4g} after")
    typer.echo(f"model: {result.path}  (step {(result.best or {}).get('step', result.steps)})")
    if result.no_gain:
        typer.echo(f"No improvement: {result.no_gain}. {_CURE}", err=True)
