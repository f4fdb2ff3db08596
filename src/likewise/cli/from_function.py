"""Commands made of the functions that they call: an option is written once, in a signature and its docstring.

The source is read, and not imported: a help text does not wait for torch.
"""

import ast
import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Optional

from typer import Argument, Option

from likewise.cli import shared_options as shared

_SHARED: Mapping[str, object] = {
    "batch_size": Annotated[int, Option(help="Sentences in a batch.")],
    "data": shared.DataOption,
    "engine": shared.EngineOption,
    "language": shared.LanguageOption,
    "overwrite": shared.OverwriteOption,
    "preset": shared.PresetOption,
    "precision": shared.PrecisionOption,
    "quiet": shared.QuietOption,
    "resume": shared.ResumeOption,
    "workers": shared.WorkersOption,
}
"""The options that mean the same in every command."""
_KINDS = {"GivenTexts": list[Path], "Sequence": list[str], "bool": bool, "int": int, "float": float}
"""Word of an annotation to the type on the command line; whatever has none of these is a text there."""
_IN_PYTHON = re.compile(r"[.;] [Ii]n Python also\b.*", re.DOTALL)


class Described(NamedTuple):
    """A parameter of a function: its annotation, its default and what its docstring says of it."""

    annotation: str
    default: Any
    text: str


def described(place: str) -> dict[str, Described]:
    """Return the parameters of a function, which is named as "file of the package:name", without an import of it.

    What it takes as **keywords is the parameter `options`.
    """
    file, _, name = place.partition(":")
    module = ast.parse((Path(__file__).parents[1] / file).read_text(encoding="utf-8"))
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name]
    function = functions[-1]  # what is above it are its overloads
    named = {
        target.id: node.value
        for node in module.body
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    positional, keywords = function.args.args, function.args.kwonlyargs
    missing = [None] * (len(positional) - len(function.args.defaults))
    values = [*missing, *function.args.defaults, *function.args.kw_defaults]
    texts = _texts_of(ast.get_docstring(function) or "")
    parameters = {
        parameter.arg: Described(
            ast.unparse(parameter.annotation or ast.Constant("")), _value(node, named), texts.get(parameter.arg, "")
        )
        for parameter, node in zip([*positional, *keywords], values, strict=True)
    }
    return parameters | ({"options": Described("Any", Parameter.empty, "")} if function.args.kwarg else {})


def _value(node: ast.expr | None, named: Mapping[str, ast.expr]) -> Any:
    """Return a default, which may be a constant of the module; `Parameter.empty` for none, or one of another module."""
    node = named.get(node.id) if isinstance(node, ast.Name) else node
    return Parameter.empty if node is None or isinstance(node, ast.Attribute) else ast.literal_eval(node)


def _texts_of(docstring: str) -> dict[str, str]:
    """Return what the section 'Args' of a docstring says of each parameter, as sentences."""
    section = re.search(r"^Args:\n((?:    .*\n?|\n)*)", docstring, re.MULTILINE)
    texts: dict[str, str] = {}
    for entry in re.split(r"\n(?=    \w)", section[1] if section else ""):
        names, _, text = " ".join(entry.split()).partition(": ")
        text = _IN_PYTHON.sub("", text).rstrip(".") + "."
        texts |= dict.fromkeys(names.split(", "), text[:1].upper() + text[1:])
    return texts


def with_function(
    place: str,
    *,
    arguments: Sequence[str] = (),
    names: Mapping[str, str] = {},
    kinds: Mapping[str, object] = {},
    defaults: Mapping[str, object] = {},
    texts: Mapping[str, str] = {},
    without: Sequence[str] = (),
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Put the parameters of a function before those of a command, which gets the values of these as a dictionary.

    The parameters `corpus_options` and `options` are left to `with_corpus` and `with_options`.

    Args:
        place: the function, as `described` takes it.
        arguments: parameters that are given without an option's name.
        names: parameter to the name of its option, such as "-k".
        kinds: parameter to its type on the command line, or to an annotation as typer has it.
        defaults: parameter to a default of the command's own.
        texts: parameter to a help text in place of the docstring's.
        without: parameters that the command does not have.
    """

    def made(name: str, facts: Described) -> Parameter:
        default = defaults.get(name, False if name == "resume" else facts.default)
        default = list(default) if isinstance(default, tuple) else default
        kind = kinds.get(name) or (name not in texts and _SHARED.get(name)) or _kind(facts.annotation)
        if name in ("corpus_options", "options"):
            kind, default = Any, Parameter.empty
        elif not hasattr(kind, "__metadata__"):
            text = texts.get(name, facts.text)
            option = names.get(name, f"--{name.replace('_', '-')}")
            info = Argument(help=text) if name in arguments else Option(option, help=text)
            if kind is bool and default:
                info = Option(help=text)  # with its opposite
            kind = Annotated[kind if default is not None else Optional[kind], info]
        return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=kind)

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        _, *own = inspect.signature(function, eval_str=True).parameters.values()
        left = {*without, *(parameter.name for parameter in own)}
        parameters = [made(name, facts) for name, facts in described(place).items() if name not in left]

        def called(**values: Any) -> None:
            others = {parameter.name: values.pop(parameter.name) for parameter in own}
            options = values.pop("options", {})
            function({**shared.given(values), **options}, **others)

        return shared.signed(called, function, [*parameters, *own])

    return decorated


def _kind(annotation: str) -> Any:
    """Return the type on the command line of a parameter with an annotation."""
    if literal := re.search(r"Literal\[(.*?)\]", annotation):
        return Literal[ast.literal_eval(f"({literal[1]},)")]
    return next((kind for word, kind in _KINDS.items() if re.search(rf"\b{word}\b", annotation)), str)
