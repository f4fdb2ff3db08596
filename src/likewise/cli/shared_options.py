"""The options that many commands have, and those that a class of options brings to one.

A command is a function in typer's own way: its parameters are its options. Nothing here imports torch.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, get_args

import typer
from typer import Argument, Option

from likewise.cli.groups import JOBS, METHOD, TRAINING
from likewise.corpus.corpus_options import CorpusOptions
from likewise.recipes.recipe import AdamWOptions, TrainingOptions
from likewise.runs.options import OptionError, Options, read_toml, unknown_option
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record


def flag(name: str, help: str, **settings: Any) -> Any:
    """Return an option that is off if it is not given, and has no opposite."""
    return Option(name, help=help, **settings)


ModelArgument = Annotated[str, Argument(help="A model's folder, its hub name, bundled:minilm or bundled:mpnet.")]
BASE = "A Hugging Face name, a folder, bundled:minilm or bundled:mpnet."
CORPUS = "Text: a file, a folder, a glob or bundled:wiki-sample; repeatable."
PresetOption = Annotated[Optional[str], Option(help="A named set of options; the first by default.")]
DataOption = Annotated[
    Optional[str],
    Option(
        help="The folder of SentEval's data [otherwise $LIKEWISE_DATA, or the folder `likewise data get` writes to].",
        rich_help_panel=JOBS,
    ),
]
EngineOption = Annotated[
    Literal["auto", "torch", "openvino", "onnx"],
    Option(help="The engine that runs the model; auto takes the fastest that is installed and keeps the vectors."),
]
Precisions = Literal["close", "auto", "fp32", "bf16", "int8"]
PrecisionOption = Annotated[
    Precisions,
    Option(help="fp32 keeps the vectors exact; auto takes int8 or bfloat16 if the vectors stay close enough."),
]
WorkersOption = Annotated[Optional[int], Option(help="Workers of the Ray cluster; by default one on each core.")]
ResumeOption = Annotated[
    bool,
    flag(
        "--resume",
        "Require stopped work to resume; without this option it is resumed if there is any.",
        callback=lambda insists: insists or "auto",
        rich_help_panel=JOBS,
    ),
]
OverwriteOption = Annotated[
    bool,
    flag(
        "--overwrite",
        "Discard stopped work, and replace a finished result once the new one is complete.",
        rich_help_panel=JOBS,
    ),
]
ReplaceOption = Annotated[bool, flag("--overwrite", "Replace a file at this place, even if likewise did not write it.")]
LanguageOption = Annotated[str, Option(help="The language of the text, for the stems of words.")]
QuietOption = Annotated[bool, flag("--quiet", "Print nothing but errors.", rich_help_panel=JOBS)]

WHOLE_TEXTS = ("min_words", "max_words", "deduplicate")
"""Options of a corpus that choose sentences: not those of a command whose texts are found again."""


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


def given(values: Mapping[str, object]) -> Record:
    """Return the options of a command without those that were not given: the function has its own defaults."""
    return {name: value for name, value in values.items() if value is not None}


def with_options(
    parameter: str, options: Options, *, without: Collection[str] = (), made: Callable[[Record], object] = dict
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put an option for each field of a class of options in the place of a parameter.

    The parameter gets what `made` makes of those that were given, by name. A field whose name is that of another
    parameter is left to it.

    Args:
        options: the defaults that the help shows.
        without: fields that the command does not have.
    """

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(function, eval_str=True)
        others = [other for name, other in signature.parameters.items() if name != parameter]
        left = {*without, *(other.name for other in others)}
        fields = {name: field for name, field in _own_first(type(options)).items() if name not in left}

        def called(**values: object) -> None:
            chosen = given({name: values.pop(name) for name in fields})
            function(**values, **{parameter: made(chosen)})

        def shown(name: str) -> str:
            value, text = getattr(options, name), fields[name].description or ""
            told = str(value).lower() if isinstance(value, bool) else value
            return text if value in (None, "", []) else f"{text} [default: {told}]"

        panels = {name: _panel(type(options), name) for name in fields}
        added = [
            _parameter(name, Optional[field.annotation], Option(help=shown(name), rich_help_panel=panels[name]))
            for name, field in fields.items()
        ]
        return signed(called, function, [*others, *added])

    return decorated


def _own_first(options: type[Options]) -> Record:
    """Return the fields of a class of options, those that it declares itself before those that it inherits."""
    fields = options.model_fields
    return {name: fields[name] for name in [*vars(options).get("__annotations__", {}), *fields] if name in fields}


def _panel(options: type[Options], name: str) -> str | None:
    """Return the panel of the help text that an option belongs to; None for one that is the command's own."""
    if issubclass(options, CorpusOptions):
        return JOBS
    if not issubclass(options, TrainingOptions):
        return None
    return TRAINING if name in AdamWOptions.model_fields else METHOD


def with_corpus(*, without: Collection[str] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put the options of how text is read in the place of the parameter `corpus_options`, which gets them as one."""
    options = CorpusOptions()
    return with_options("corpus_options", options, without=without, made=lambda values: options.updated(**values))


def with_config(function: Callable[..., None]) -> Callable[..., None]:
    """Add the option `--config`, a TOML file with any of the other options."""
    parameters = list(inspect.signature(function, eval_str=True).parameters.values())
    # The type of each, and whether it is a list.
    known = {parameter.name: "list[" in str(get_args(parameter.annotation)[0]) for parameter in parameters}

    def called(config: Path | None, **values: object) -> None:
        function(**values)

    def read(ctx: typer.Context, path: Optional[Path]) -> Optional[Path]:
        if path is not None:
            ctx.default_map = {**(ctx.default_map or {}), **_read_config(path, known)}
        return path

    text = "A TOML file with any of these options; those on the command line take precedence."
    shown = Option("--config", help=text, callback=read, is_eager=True, rich_help_panel=JOBS)
    return signed(called, function, [*parameters, _parameter("config", Optional[Path], shown)])


def _read_config(path: Path, known: Mapping[str, bool]) -> Record:
    """Return the options in a file; `known` says of each option whether it is a list."""
    entries = read_toml(path, [*known, "recipe", "objective", "options", "corpus_options"])
    for table in ("options", "corpus_options"):
        if not isinstance(content := entries.pop(table, {}), Mapping):
            raise OptionError(f"{path}: {table} is a table: write [{table}] on a line, and its entries below it")
        entries |= content
    entries = {name: value for name, value in entries.items() if name not in ("recipe", "objective")}
    if wrong := [name for name in entries if name not in known]:
        raise OptionError(f"{path}: {unknown_option(wrong[0], known)}")
    return {name: [value] if known[name] and not isinstance(value, list) else value for name, value in entries.items()}


def _parameter(name: str, kind: object, info: object) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, info])


def signed(
    called: Callable[..., None], function: Callable[..., None], parameters: list[inspect.Parameter]
) -> Callable[..., None]:
    """Give a function that stands before another one its name and help, and a signature of its own."""
    functools.update_wrapper(called, function)
    parameters = [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in parameters]
    called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    return called
