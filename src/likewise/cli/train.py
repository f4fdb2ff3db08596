"""`likewise adapt`, `train`, `finetune` and `baseline`: a command per recipe, objective and baseline."""

import inspect
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Optional

import typer
from typer import Argument, Option

import likewise
from likewise.adaptation.adapt_options import AdaptOptions
from likewise.cli.groups import CommandSections, CommandTable, LazyGroup, command, group, typed
from likewise.cli.messages import table_of
from likewise.cli.shared_options import (
    CORPUS,
    BaseOption,
    CorpusOption,
    DataOption,
    KeepCheckpointsOption,
    ModelFolderOption,
    OverwriteOption,
    PresetOption,
    QuietOption,
    ResumeOption,
    given,
    with_config,
    with_corpus,
    with_options,
)
from likewise.runs.options import OptionError, read_toml
from likewise.runs.plugins import COMPARED, not_installed
from likewise.runs.progress import Progress

_OBJECTIVE_ROWS = {
    "nli": "SNLI's .jsonl, a table with sentence1, sentence2 and gold_label, or labels.train with s1.train and "
    "s2.train in its folder; may be repeated.",
    "sts": "A table with sentence1, sentence2 and score; STS-B train of the data folder if none is given.",
    "triplets": "train.csv of the Wikipedia sections, or another table with Sentence1, Sentence2 and Sentence3.",
}

_CURE = "Stay with the base, or try fewer --max-steps, a lower --learning-rate or other data."


@typed
@with_config()
@with_options("options", AdaptOptions())
@with_corpus()
def adapt(
    *,
    corpus: Annotated[list[Path], Argument(help=CORPUS)],
    base: BaseOption = "bundled:minilm",
    out: ModelFolderOption,
    data: DataOption = None,
    resume: ResumeOption = False,
    overwrite: OverwriteOption = False,
    quiet: QuietOption = False,
    corpus_options: Any,
    options: Any,
) -> None:
    """Adapt a sentence encoder to your own text, without labels."""
    arguments = given(locals())
    result = likewise.adapt(**arguments.pop("options"), **arguments)
    if not quiet:
        show_adapted(result)
    _keep_export(out, quiet)


def _keep_export(folder: Path | str, quiet: bool) -> None:
    """Export the model that a command has made to the engine that is fastest here, as `likewise.load` expects it."""
    from likewise.inference.model_export import keep_export
    from likewise.inference.tokens import SENTENCES

    keep_export(folder, SENTENCES, Progress(quiet))


class _RegisteredGroup(LazyGroup):
    """A group that says which package brings a name, if that package is not installed."""

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Build and return a command; None if there is none of that name."""
        if cmd_name in COMPARED and cmd_name not in self.table():
            raise OptionError(not_installed(cmd_name))
        return super().get_command(ctx, cmd_name)


PAPERS = {
    "arccse": "Zhang, Zhu, Wang, Xu, Li, Zhao 2022, ArcCSE",
    "sncse": "Wang, Li, Huang, Dou, Kong, Shao 2022, SNCSE",
    "gclsr": "Wang, Zhang, Lei, Peng 2023, GCLSR",
    "contexts": "Sun, Meng, Ao, Wu, Zhang, Li, Fan 2022, Sentence Similarity Based on Contexts",
}
"""Name of each of the four systems to the authors, year and name of its paper."""


def _of_contexts() -> Any:
    """Return the command that leads from `train contexts`, whatever follows, to the stages of contexts."""

    def run() -> None:
        """Sentence similarity based on contexts is trained stage by stage: see `likewise context --help`."""
        stages = "likewise context index, train, score, harvest and distill"
        raise OptionError(f"contexts have a command of their own for each stage: {stages}")

    made = command(run)
    # A dictionary of its own: typer's is shared by all commands.
    made.context_settings = {**made.context_settings, "ignore_unknown_options": True, "allow_extra_args": True}
    return made


class _TrainGroup(_RegisteredGroup):
    """A group that takes the recipe from the file of `--config` if none is named."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        if args and args[0].startswith("--config"):
            path = args[0].partition("=")[2] or (args[1] if len(args) > 1 else "")
            if not (recipe := read_toml(Path(path)).get("recipe")):
                raise OptionError(f"{path} names no recipe: write recipe = NAME into it, or name one before --config")
            args = [recipe, *args]
        return super().parse_args(ctx, args)


@group(kind=_TrainGroup)
def train() -> CommandSections:
    """Return the commands of `likewise train`, one for each recipe."""
    from likewise.recipes import recipe_summaries

    headings = "The four papers", "This library's", "To compare with"
    sections: dict[str, dict[str, Any]] = {heading: {} for heading in headings}
    papers, own, others = sections.values()
    for name, (source, summary) in recipe_summaries().items():
        place = papers if name in PAPERS else own if source.startswith("this library") else others
        cited = PAPERS.get(name) or ("" if place is own else source.partition(";")[0])
        place[name] = (partial(_train_by, name), f"{cited}: {summary}" if cited else summary)
    papers["contexts"] = (_of_contexts, f"{PAPERS['contexts']}: stage by stage, by `likewise context`.")
    return sections


def _train_by(name: str) -> Any:
    """Return the command of a recipe."""
    from likewise.recipes import find_recipe

    recipe = find_recipe(name)
    bases = "A Hugging Face name, a folder, bundled:minilm, bundled:mpnet, or word vectors if the recipe takes them."

    @with_config()
    @with_options("options", recipe.options())
    @with_corpus()
    def run(
        *,
        corpus: CorpusOption,
        base: Annotated[str, Option(help=bases)] = recipe.default_base,
        out: ModelFolderOption,
        preset: PresetOption = None,
        seed: Annotated[int, Option(help="Fixes batches, masks, dropout and the training head.")] = 1,
        data: DataOption = None,
        resume: ResumeOption = False,
        overwrite: OverwriteOption = False,
        keep_checkpoints: KeepCheckpointsOption = False,
        quiet: QuietOption = False,
        corpus_options: Any,
        options: Any,
    ) -> None:
        show_outcome(_called(likewise.train, name, locals()), quiet)
        from likewise.runs import processes

        if processes.is_first():
            _keep_export(out, quiet)

    run.__doc__ = summary(recipe)
    return with_presets(command(run), recipe)


@group()
def finetune() -> CommandTable:
    """Return the commands of `likewise finetune`, one for each objective."""
    from likewise.training.objectives import OBJECTIVES

    return {name: (partial(_finetune_by, one), one.summary) for name, one in OBJECTIVES.items()}


def _finetune_by(objective: Any) -> Any:
    """Return the command of an objective."""
    files, own = Option("--train", help=_OBJECTIVE_ROWS[objective.name]), objective.name == "sts"

    @with_config()
    @with_options("options", objective.options())
    def run(
        *,
        rows: Annotated[Optional[list[str]], files] = None if own else ...,  # type: ignore[assignment]
        base: Annotated[
            str,
            Option(
                help="Any model: a folder (of likewise, sentence-transformers or transformers), a name of the hub, or "
                "bundled:NAME. Its modules are kept."
            ),
        ],
        out: Annotated[
            str,
            Option(help="The folder that becomes the model: the base's modules with other weights, and no classifier."),
        ],
        dev: Annotated[
            Optional[list[str]], Option(help="Files like those of --train that select the checkpoint.")
        ] = None,
        data: DataOption = None,
        preset: PresetOption = None,
        seed: Annotated[
            int, Option(help="Fixes batches, dropout, the classifier's first weights, and the rows held out.")
        ] = 1,
        resume: ResumeOption = False,
        overwrite: OverwriteOption = False,
        keep_checkpoints: KeepCheckpointsOption = False,
        quiet: QuietOption = False,
        options: Any,
    ) -> None:
        show_outcome(_called(likewise.finetune, objective.name, locals()), quiet)

    run.__doc__ = summary(objective)
    return with_presets(command(run), objective)


@group(kind=_RegisteredGroup)
def baseline() -> CommandTable:
    """Return the commands of `likewise baseline`, one for each."""
    from likewise.baselines import baseline_names, find_baseline

    return {name: (partial(_baseline_by, name), find_baseline(name).summary) for name in baseline_names()}


def _baseline_by(name: str) -> Any:
    """Return the command of a baseline, which takes a corpus if the baseline is fitted to one."""
    from likewise.baselines import find_baseline

    method = find_baseline(name)
    bases = "A Hugging Face name, a folder, bundled:minilm, bundled:mpnet, or a file of word vectors."
    required: Any = ... if method.corpus == "required" else None

    def made(values: dict[str, Any]) -> None:
        result = _called(likewise.baseline, name, values)
        if not values["quiet"]:
            typer.echo(f"model: {result.path}")

    @with_config()
    @with_options("options", method.options())
    def run(
        *,
        base: Annotated[str, Option(help=bases)] = method.default_base,
        out: ModelFolderOption,
        overwrite: OverwriteOption = False,
        quiet: QuietOption = False,
        options: Any,
    ) -> None:
        made(locals())

    @with_config()
    @with_options("options", method.options())
    @with_corpus()
    def run_on_corpus(
        *,
        corpus: Annotated[Optional[list[Path]], Option(help=CORPUS)] = required,
        base: Annotated[str, Option(help=bases)] = method.default_base,
        out: ModelFolderOption,
        seed: Annotated[int, Option(help="Fixes which sentences are drawn, and the start of the flow.")] = 1,
        overwrite: OverwriteOption = False,
        quiet: QuietOption = False,
        corpus_options: Any,
        options: Any,
    ) -> None:
        made(locals())

    chosen = run if method.corpus == "none" else run_on_corpus
    chosen.__doc__ = f"{method.summary} ({method.source}.)"
    return command(chosen)


def _called(function: Callable[..., Any], name: str, values: dict[str, Any]) -> Any:
    """Call a function of the library, whose first argument is a name, with the options of a command."""
    _, *parameters = inspect.signature(function).parameters
    known = [parameter for parameter in parameters if parameter in values and parameter != "options"]
    return function(name, **given({parameter: values[parameter] for parameter in known}), **values["options"])


def summary(method: Any) -> str:
    """Return the help text of a recipe, an objective or the surrogate."""
    return f"{method.summary} ({method.source}.)"


def with_presets(made: Any, method: Any) -> Any:
    """Return a command whose help has a line for each preset of its recipe, objective or surrogate."""
    made.presets = {name: method.preset_notes.get(name, "") for name in method.presets}
    return made


def show_adapted(result: Any) -> None:
    """Print the scores of every candidate, the choice, and the model's folder."""
    from rich.console import Console

    from likewise.adaptation.result import COLUMNS

    chosen = next((i for i, one in enumerate(result.candidates) if one.name == result.chosen), None)
    Console(highlight=False).print(table_of(COLUMNS, [one.cells() for one in result.candidates], bold=chosen))
    typer.echo(f"chosen: {result.chosen}, because {result.reason}")
    typer.echo(f"form: {result.form}")
    typer.echo(result.advice)
    typer.echo(f"model: {result.path}")


def show_outcome(result: Any, quiet: bool = False) -> None:
    """Print the scores of the base and of the model, the model's folder, and whether training paid."""
    from likewise.runs import processes

    if quiet or not processes.is_first():
        return
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
