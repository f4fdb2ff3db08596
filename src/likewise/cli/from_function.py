"""Commands built from the functions that they call: an option is defined once, in a signature and its docstring."""

import functools
import inspect
from collections.abc import Callable, Collection, Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Optional, get_args

import typer
from typer import Argument, Option

from likewise.cli.described import Described, described
from likewise.cli.groups import JOBS, METHOD, TRAINING
from likewise.cli.shared_options import SHARED
from likewise.corpus.corpus_options import CorpusOptions
from likewise.recipes.recipe_options import AdamWOptions, TrainingOptions
from likewise.runs.options import OptionError, Options, unknown_option
from likewise.runs.toml_files import read_toml
from likewise.runs.whole_files import Record

_WHOLE_TEXTS = ("min_words", "max_words", "deduplicate")
"""Options of a corpus that select sentences; a command whose texts are identified later does not have them."""


def with_function(
    place: str,
    *,
    options: Options | None = None,
    config: bool = False,
    arguments: Sequence[str] = (),
    names: Mapping[str, str] = {},
    kinds: Mapping[str, object] = {},
    defaults: Mapping[str, object] = {},
    texts: Mapping[str, str] = {},
    without: Sequence[str] = (),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put the parameters of a function before the command's own, and pass their values to it as a dictionary.

    The parameter `corpus_options` becomes the options of how text is read.

    Args:
        place: Function, as `described` takes it.
        options: Keyword options of the function, with the defaults in the help.
        config: Whether to add the option `--config`, a TOML file with any of the other options.
        arguments: Names of positional arguments.
        names: Names of options by parameter, such as "-k".
        kinds: Types on the command line by parameter, or annotations of typer.
        defaults: Defaults of the command by parameter.
        texts: Help texts by parameter, which replace the docstring's.
        without: Parameters and options that the command does not have.
    """

    def parameter_of(name: str, facts: Described) -> Parameter:
        default = defaults.get(name, False if name == "resume" else facts.default)
        default = list(default) if isinstance(default, tuple) else default
        kind = kinds.get(name) or (name not in texts and SHARED.get(name)) or facts.kind
        if not hasattr(kind, "__metadata__"):
            info = _info(texts.get(name, facts.text), None if kind is bool and default else _option(name, names))
            info = Argument(help=texts.get(name, facts.text)) if name in arguments else info
            kind = Annotated[kind if default is not None else Optional[kind], info]
        return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()
        facts = described(place)
        reads = "corpus_options" in facts and "corpus_options" not in without
        left = {*without, "corpus_options", *(parameter.name for parameter in own)}
        parameters = [*(parameter_of(name, fact) for name, fact in facts.items() if name not in left), *own]
        left |= {parameter.name for parameter in parameters}
        whole = _WHOLE_TEXTS if "texts" in facts else ()
        of_corpus = _of_fields(CorpusOptions(), {*left, *whole}) if reads else []
        parameters += of_corpus + (_of_fields(options, left) if options is not None else [])
        if config:
            parameters.append(_of_config(parameters))
        called = _called(function, own, of_corpus if reads else None)
        functools.update_wrapper(called, function)
        parameters = [parameter.replace(kind=Parameter.KEYWORD_ONLY) for parameter in parameters]
        called.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        called.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return called

    return decorated


def _called(
    function: Callable[..., None], own: Sequence[Parameter], of_corpus: Sequence[Parameter] | None
) -> Callable[..., None]:
    """Return a function that gives a command its own parameters by name, and all others as a dictionary."""

    def called(**values: Any) -> None:
        values.pop("config", None)
        others = {parameter.name: values.pop(parameter.name) for parameter in own}
        if of_corpus is not None:
            given = _given({parameter.name: values.pop(parameter.name) for parameter in of_corpus})
            values["corpus_options"] = CorpusOptions(**given)
        function(_given(values), **others)

    return called


def _option(name: str, names: Mapping[str, str]) -> str:
    return names.get(name, f"--{name.replace('_', '-')}")


def _info(text: str, option: str | None) -> Any:
    """Return typer's description of an option; without a name, typer adds the opposite of a flag."""
    return Option(option, help=text) if option else Option(help=text)


def _given(values: Mapping[str, object]) -> Record:
    """Return the given options of a command; the function has its own defaults for the others."""
    return {name: value for name, value in values.items() if value is not None}


def _of_fields(options: Options, left: Collection[str]) -> list[Parameter]:
    """Return an option for each field of a class of options that is not left out, the class's own fields first."""
    kind, parameters = type(options), []
    for name in dict.fromkeys([*vars(kind).get("__annotations__", {}), *kind.model_fields]):
        if name not in kind.model_fields or name in left:
            continue
        field, value = kind.model_fields[name], getattr(options, name)
        default = str(value).lower() if isinstance(value, bool) else value
        text = field.description or ""
        text = text if value in (None, "", []) else f"{text} [default: {default}]"
        info = Option(help=text, rich_help_panel=_panel(kind, name))
        parameters.append(_parameter(name, Optional[field.annotation], info))
    return parameters


def _panel(options: type[Options], name: str) -> str | None:
    """Return the panel of the help text that an option belongs to; None for one that is the command's own."""
    if issubclass(options, CorpusOptions):
        return JOBS
    if not issubclass(options, TrainingOptions):
        return None
    return TRAINING if name in AdamWOptions.model_fields else METHOD


def _of_config(parameters: Sequence[Parameter]) -> Parameter:
    # The type of each, and whether it is a list.
    known = {parameter.name: "list[" in str(get_args(parameter.annotation)[0]) for parameter in parameters}

    def read(ctx: typer.Context, path: Optional[Path]) -> Optional[Path]:
        if path is not None:
            ctx.default_map = {**(ctx.default_map or {}), **_read_config(path, known)}
        return path

    text = "Path to a TOML file with any of these options; options on the command line take precedence."
    info = Option("--config", help=text, callback=read, is_eager=True, rich_help_panel=JOBS)
    return _parameter("config", Optional[Path], info)


def _read_config(path: Path, known: Mapping[str, bool]) -> Record:
    """Return the options in a file; `known` says of each option whether it is a list."""
    entries = read_toml(path, [*known, "recipe", "objective", "options", "corpus_options"])
    for table in ("options", "corpus_options"):
        if not isinstance(content := entries.pop(table, {}), Mapping):
            raise OptionError(f"{path}: {table} must be a table: write [{table}] on a line, and its entries below it")
        entries |= content
    entries = {name: value for name, value in entries.items() if name not in ("recipe", "objective")}
    if wrong := [name for name in entries if name not in known]:
        raise OptionError(f"{path}: {unknown_option(wrong[0], known)}")
    return {name: [value] if known[name] and not isinstance(value, list) else value for name, value in entries.items()}


def _parameter(name: str, kind: object, info: object) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind, info])
