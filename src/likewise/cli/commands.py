"""Commands built from public functions: their parameters are the options, and their docstrings the help texts."""

from __future__ import annotations

import inspect
import pkgutil
import re
import sys
import typing
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Optional

import typer

from likewise.cli.groups import command

if TYPE_CHECKING:
    from likewise.runs.options import Options

_TEXTS = {
    "model": "A model's folder, its hub name, bundled:minilm or bundled:mpnet.",
    "data": "The folder of SentEval's data [otherwise $LIKEWISE_DATA, or the folder `likewise data get` writes to].",
    "corpus": "Text: a file, a folder, a glob or bundled:wiki-sample; repeatable.",
    "engine": "The engine that runs the model; auto takes the fastest that is installed and keeps the vectors.",
    "precision": "fp32 keeps the vectors exact; auto takes int8 or bfloat16 if the vectors stay close enough.",
    "workers": "Workers of the Ray cluster; by default one on each core.",
    "resume": "Require stopped work to resume; without this option it is resumed if there is any.",
    "overwrite": "Discard stopped work, and replace a finished result once the new one is complete.",
    "quiet": "Print nothing but errors.",
}
"""Help texts of what many commands have, where a docstring speaks of Python objects."""
_PLAIN = {"bool": bool, "int": int, "float": float}
_KEYWORD = inspect.Parameter.KEYWORD_ONLY


def calls(function: str, *, options: str = "", **settings: Any) -> Callable[[Callable[..., None]], Callable[[], Any]]:
    """Turn the function below, which shows a public function's result, into one that makes the command calling it.

    Args:
        function: the public function, as "likewise:encode_file"; imported when the command is made.
        options: the class of its `**options`, in the same form.
        settings: those of `command_of`.
    """

    def decorated(show: Callable[..., None]) -> Callable[[], Any]:
        def make() -> Any:
            extra = {"options": pkgutil.resolve_name(options)()} if options else {}
            return command_of(pkgutil.resolve_name(function), show, **settings, **extra)

        return make

    return decorated


def command_of(
    function: Callable[..., Any],
    show: Callable[..., None],
    *,
    summary: str = "",
    arguments: Sequence[str] = (),
    given: Mapping[str, Any] | None = None,
    leave_out: Sequence[str] = (),
    defaults: Mapping[str, Any] | None = None,
    names: Mapping[str, str] | None = None,
    texts: Mapping[str, str] | None = None,
    types: Mapping[str, Any] | None = None,
    options: Options | None = None,
    config: bool = False,
    exclusive: Sequence[str] = (),
) -> Any:
    """Return a command that calls a public function.

    Args:
        function: its parameters become options, with the texts of 'Args' in its docstring as help. `corpus_options`
            becomes one option for each way of reading, `resume` a flag.
        show: prints the result, its first argument; its other parameters are further options of the command.
        summary: the help text; the first line of the docstring where it is empty.
        arguments: the parameters that are positional arguments.
        given: parameters with a fixed value.
        leave_out: parameters that the command line does not have.
        defaults: of parameters, in place of the function's; `...` makes one required.
        names: of options that are not called as their parameter, as {"methods": "method"}.
        texts: help texts, in place of the docstring's.
        types: of options whose annotation says less, or more, than the command line takes.
        options: what the function takes as `**options`, with the defaults that the help shows.
        config: take `--config FILE.toml`, which holds any of the options.
        exclusive: options of which one on the command line takes the place of another one in the file.
    """
    from likewise.corpus import CorpusOptions

    given, names, defaults, types = (dict(one or {}) for one in (given, names, defaults, types))
    described = {**describe(function), **_TEXTS, **(texts or {})}
    own: list[inspect.Parameter] = []
    groups: dict[str, Options] = {}
    for name, parameter in inspect.signature(function).parameters.items():
        if name in given or name in leave_out:
            continue
        if parameter.kind is parameter.VAR_KEYWORD:
            if options is not None:
                groups[""] = options
        elif name == "corpus_options":
            groups[name] = CorpusOptions()
        else:
            default = defaults.get(name, parameter.default)
            kind = types.get(name) or _kind(function, str(parameter.annotation))
            if name == "resume":
                kind, default = bool, False
            default = ... if default is parameter.empty else default
            own.append(_option(name, kind, default, described.get(name, ""), names.get(name), name in arguments))
    added = [one.replace(kind=_KEYWORD) for one in inspect.signature(show, eval_str=True).parameters.values()][1:]
    own += added
    taken = {one.name for one in own} | given.keys() | set(leave_out)
    fields: dict[str, str] = {}  # option to the group that it belongs to
    for group, values in groups.items():
        for name, item in type(values).model_fields.items():
            if name not in taken:
                fields[name] = group
                value = getattr(values, name)
                shown = str(value).lower() if isinstance(value, bool) else str(value)
                text = (texts or {}).get(name, item.description or "")
                text += "" if value in (None, "") else f" [default: {shown}]"
                own.append(_option(name, Optional[item.annotation], None, text))
    if config:
        own.append(_config({one.name: _is_list(one.annotation) for one in own}))

    def call(ctx: typer.Context, **values: Any) -> None:
        values.pop("config", None)
        sources = {name: getattr(ctx.get_parameter_source(name), "name", "") for name in exclusive}
        if "COMMANDLINE" in sources.values():
            values |= {name: None for name, source in sources.items() if source == "DEFAULT_MAP"}
        extra = {one.name: values.pop(one.name) for one in added}
        passed = dict(given)
        by_group: dict[str, dict[str, Any]] = {group: {} for group in groups}
        for name, value in values.items():
            if name in fields:
                if value is not None:
                    by_group[fields[name]][name] = value
            elif name == "resume":
                passed[name] = value or "auto"
            elif value is not None and value != []:  # not given, so that the function's own default holds
                passed[name] = value
        passed |= by_group.pop("", {})
        passed |= {name: groups[name].updated(**found) for name, found in by_group.items()}
        result = function(**passed)
        processes = sys.modules.get("likewise.runs.processes")  # if it was not needed, this process is the only one
        if not values.get("quiet") and (processes is None or processes.is_first()):
            show(result, **extra)

    context = inspect.Parameter("ctx", _KEYWORD, annotation=typer.Context)
    ordered = [context, *sorted(own, key=lambda one: one.name not in arguments)]
    call.__signature__ = inspect.Signature(ordered)  # type: ignore[attr-defined]
    call.__annotations__ = {one.name: one.annotation for one in ordered}
    call.__doc__ = summary or (inspect.getdoc(function) or "").partition("\n")[0]
    return command(call)


def describe(function: Callable[..., Any]) -> dict[str, str]:
    """Return the description of each argument in a docstring, its lines joined.

    >>> def add(a, b):
    ...     '''Add.
    ...
    ...     Args:
    ...         a, b: what is added,
    ...             `int` or float.
    ...     '''
    >>> describe(add)
    {'a': 'What is added, int or float.', 'b': 'What is added, int or float.'}
    """
    section = re.search(r"^Args:\n((?:[ ]{4,}.*\n?|\n)+)", inspect.getdoc(function) or "", re.MULTILINE)
    found: dict[str, str] = {}
    for match in re.finditer(r"^ {4}([\w, *]+): (.*(?:\n {8,}.*)*)", section[1] if section else "", re.MULTILINE):
        text = " ".join(match[2].split()).replace("`", "")
        for name in (part.strip() for part in match[1].replace("*", "").split(",")):
            if reference := re.match(r"as (?:in|for) likewise\.(\w+)", text):
                found[name] = describe(pkgutil.resolve_name(f"likewise:{reference[1]}")).get(name, text)
            else:
                found[name] = text[:1].upper() + text[1:]
    return found


def _kind(function: Any, annotation: str) -> Any:
    """Return the type of an option, as far as a command line can express the annotation."""
    literal = getattr(inspect.unwrap(function), "__globals__", {}).get(annotation.removesuffix(" | None"))
    if typing.get_origin(literal) is Literal:
        return literal
    if match := re.search(r"Literal\[([^\]]*)\]", annotation):
        return Literal[tuple(part.strip().strip("\"'") for part in match[1].split(","))]
    if re.search(r"Sequence\[int\]|tuple\[int", annotation):
        return _numbers
    if annotation.startswith("GivenTexts"):
        return list[Path]  # a word of the command line is always the name of a file
    if re.search(r"Sequence\[|list\[|Files|Spec", annotation):
        return list[str]
    words = re.findall(r"\w+", annotation)
    if "str" in words:
        return str
    return Path if "Path" in words else next((_PLAIN[word] for word in _PLAIN if word in words), str)


def _numbers(text: Any) -> Any:
    """Parse whole numbers with commas between them."""
    try:
        return tuple(int(part) for part in str(text).strip("[]").replace(",", " ").split())
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not a list of whole numbers") from None


def _option(
    name: str, kind: Any, default: Any, text: str, called: str | None = None, positional: bool = False
) -> inspect.Parameter:
    """Return a parameter of a command: an option, or a positional argument."""
    optional = default is None or (positional and default is not ...)
    default = list(default) if isinstance(default, tuple) and kind is not _numbers else default
    if positional:
        info = typer.Argument(help=text, show_default=False)
    elif kind is _numbers:
        info = typer.Option(help=text, parser=_numbers, metavar="N,N...")
        kind, default = str, ",".join(map(str, default))
    else:
        word = (called or name).replace("_", "-")
        flag = ("-" if len(word) == 1 else "--") + word
        # A flag that is off by default needs no opposite, one that may be either has both forms.
        declared = [] if kind is Optional[bool] or default is True else [flag]
        info = typer.Option(*declared, help=text, show_default=default not in (None, ..., False, []))
    kind = Optional[kind] if optional else kind
    return inspect.Parameter(name, _KEYWORD, default=default, annotation=typing.Annotated[kind, info])


def _is_list(annotation: Any) -> bool:
    return "list[" in str(typing.get_args(annotation)[0])


def _config(known: Mapping[str, bool]) -> inspect.Parameter:
    """Return the option `--config`, a TOML file; `known` says of each option whether it is a list."""

    def read(ctx: typer.Context, path: Optional[Path]) -> Optional[Path]:
        if path is not None:
            from likewise.runs.options import OptionError, read_toml, unknown_option

            found = read_toml(path, [*known, "recipe", "objective", "options", "corpus_options"])
            for table in ("options", "corpus_options"):
                if not isinstance(content := found.pop(table, {}), Mapping):
                    raise OptionError(f"{path}: {table} is a table: write [{table}] on a line, its entries below")
                found |= content
            found = {name: value for name, value in found.items() if name not in ("recipe", "objective")}
            if wrong := [name for name in found if name not in known]:
                raise OptionError(f"{path}: {unknown_option(wrong[0], known)}")
            listed = {name: [value] for name, value in found.items() if known[name] and not isinstance(value, list)}
            ctx.default_map = {**(ctx.default_map or {}), **found, **listed}
        return path

    text = "A TOML file with any of these options; those on the command line take precedence."
    annotation = typing.Annotated[Optional[Path], typer.Option("--config", help=text, callback=read, is_eager=True)]
    return inspect.Parameter("config", _KEYWORD, default=None, annotation=annotation)
