"""The parameters of a function, read from its source and docstring, so that no help text waits for an import."""

import ast
from inspect import Parameter
from pathlib import Path
from typing import Any, Literal, NamedTuple

from docstring_parser.google import GoogleParser

_KINDS = {"GivenTexts": list[Path], "Sequence": list[str], "bool": bool, "int": int, "float": float}
"""Name in an annotation to the type on the command line; an annotation with none of them is a text there."""
_IN_PYTHON = ("; in Python also", ". In Python also")
"""Beginnings of what a docstring says about Python alone."""


class Described(NamedTuple):
    """A parameter of a function: its type on the command line, its default and its description in the docstring."""

    kind: Any
    default: Any
    text: str


def described(place: str) -> dict[str, Described]:
    """Return the parameters of a function, which is named as "file of the package:name"."""
    file, _, name = place.partition(":")
    module = _parsed(file)
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == name]
    function = functions[-1]  # its overloads come first
    positional, keywords = function.args.args, function.args.kwonlyargs
    required = [None] * (len(positional) - len(function.args.defaults))
    values = [*required, *function.args.defaults, *function.args.kw_defaults]
    texts = _texts_of(ast.get_docstring(function) or "")
    return {
        parameter.arg: Described(_kind(parameter.annotation), _default(node, module), texts.get(parameter.arg, ""))
        for parameter, node in zip([*positional, *keywords], values, strict=True)
    }


def _kind(annotation: ast.expr | None) -> Any:
    nodes = list(ast.walk(annotation)) if annotation else []
    for node in nodes:
        if isinstance(node, ast.Subscript) and ast.unparse(node.value) == "Literal":
            return Literal[ast.literal_eval(node.slice)]
    names = {node.id for node in nodes if isinstance(node, ast.Name)}
    return next((kind for name, kind in _KINDS.items() if name in names), str)


def _default(node: ast.expr | None, module: ast.Module) -> Any:
    """Return a default, which may be the name of a constant; `Parameter.empty` for none, or one of a module."""
    node = _constant(node.id, module) if isinstance(node, ast.Name) else node
    return Parameter.empty if node is None or isinstance(node, ast.Attribute) else ast.literal_eval(node)


def _constant(name: str, module: ast.Module) -> ast.expr | None:
    """Return the value of a constant that a module assigns, or imports from another module of this package."""
    for node in module.body:
        if isinstance(node, ast.Assign) and name in [getattr(target, "id", "") for target in node.targets]:
            return node.value
        if isinstance(node, ast.ImportFrom) and name in [alias.name for alias in node.names]:
            return _constant(name, _parsed("/".join((node.module or "").split(".")[1:]) + ".py"))
    return None


def _parsed(file: str) -> ast.Module:
    return ast.parse((Path(__file__).parents[1] / file).read_text(encoding="utf-8"))


def _texts_of(docstring: str) -> dict[str, str]:
    """Return the description of each parameter, as sentences."""
    texts: dict[str, str] = {}
    for parameter in GoogleParser().parse(docstring).params:
        text = " ".join((parameter.description or "").split())
        for beginning in _IN_PYTHON:
            text = text.partition(beginning)[0]
        text = text.rstrip(".") + "."
        texts |= dict.fromkeys(parameter.arg_name.split(", "), text[:1].upper() + text[1:])
    return texts
