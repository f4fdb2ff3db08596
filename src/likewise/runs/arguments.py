"""The check of a public function's arguments: their names and their plain types, before anything is read."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache, wraps
from numbers import Integral, Real
from os import PathLike
from typing import ParamSpec, TypeVar

from likewise.runs.options import OptionError, Options

_Of = ParamSpec("_Of")
_Result = TypeVar("_Result")
_Types = tuple[tuple[str, ...], type[Options] | None]
_PATH = "a path"
_WORDS = {
    "bool": "true or false",
    "int": "a whole number",
    "float": "a number",
    "str": "a text",
    "os.PathLike[str]": _PATH,
    "PathLike[str]": _PATH,
}


class ArgumentError(OptionError, TypeError):
    """Raised if an argument of a public function is unknown or of the wrong type; the message names the cure."""


def checked(function: Callable[_Of, _Result]) -> Callable[_Of, _Result]:
    """Check the arguments of a public function by its signature.

    An unknown name is an error that says the nearest one. An argument whose annotation is made of bool, int, float,
    str, paths, a list or a class of options has to be of such a type. Whatever else is annotated, such as a model, is
    for the function itself to check.

        >>> @checked
        ... def halved(number: float, *, digits: int = 2) -> float:
        ...     return round(number / 2, digits)
        >>> halved(3, digits="1")
        Traceback (most recent call last):
        ...
        likewise.runs.arguments.ArgumentError: digits must be a whole number, not '1'
        >>> halved(3, digit=1)
        Traceback (most recent call last):
        ...
        likewise.runs.arguments.ArgumentError: halved has no argument digit: did you mean digits?
    """

    @wraps(function)
    def called(*arguments: _Of.args, **named: _Of.kwargs) -> _Result:
        signature = _signature(function)
        _check_names(function.__name__, signature, named)
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            raise ArgumentError(f"{function.__name__}: {error}") from None
        for name, value in bound.arguments.items():
            if wanted := _wanted(function, signature.parameters[name]):
                _check(name, value, *wanted)
        try:
            return function(*arguments, **named)
        except OptionError as error:  # an option that is unknown may be meant for an argument
            for name in named:
                near = difflib.get_close_matches(name, signature.parameters, n=1)
                if str(error).startswith(f"there is no option {name}.") and near:
                    raise ArgumentError(f"there is no option {name}: did you mean {near[0]}?") from None
            raise

    return called


_signature = cache(inspect.signature)


def _check_names(called: str, signature: inspect.Signature, named: Mapping[str, object]) -> None:
    parameters = signature.parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return  # a class of options knows them
    names = [parameter.name for parameter in parameters if parameter.kind is not parameter.POSITIONAL_ONLY]
    for name in named:
        if name not in names:
            near = difflib.get_close_matches(name, names, n=1)
            cure = f"did you mean {near[0]}?" if near else f"there are {', '.join(names)}"
            raise ArgumentError(f"{called} has no argument {name}: {cure}")


@cache
def _wanted(function: Callable[..., object], parameter: inspect.Parameter) -> _Types | None:
    """Return the types that an argument may have, by name, and a class of options if it may be one.

    None if the annotation says more than is checked here.
    """
    annotation = str(parameter.annotation)
    if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
        return None
    if re.fullmatch(r"(?:Sequence|list)\[[^\]]*(?:\[str\])?\](?: \| None)?", annotation):
        return ("a list", "None") if annotation.endswith("None") else ("a list",), None
    parts = annotation.split(" | ")
    others = [part for part in parts if part not in _WORDS and part != "None"]
    if not others:
        return tuple(parts), None
    options = getattr(inspect.unwrap(function), "__globals__", {}).get(others[0])
    if len(others) == 1 and isinstance(options, type) and issubclass(options, Options):
        return tuple(part for part in parts if part != others[0]), options
    return None


def _check(name: str, value: object, types: tuple[str, ...], other: type[Options] | None) -> None:
    if value is None and "None" in types:
        return
    if other is not None:
        if not isinstance(value, other) and not any(_is(value, kind) for kind in types if kind != "None"):
            also = "".join(f"{_WORDS[kind]} or " for kind in types if kind != "None")
            raise ArgumentError(f"{name} must be {also}{other.__name__}(...), not {value!r}")
        return
    if "a list" in types:
        if isinstance(value, str | bytes | PathLike) or not hasattr(value, "__iter__"):
            raise ArgumentError(f"{name} must be a list, not {value!r}: write [{value!r}]")
        return
    if not any(_is(value, kind) for kind in types):
        wanted = " or ".join(dict.fromkeys(_WORDS[kind] for kind in types if kind != "None"))
        wanted = wanted.replace(f"a text or {_PATH}", _PATH)
        raise ArgumentError(f"{name} must be {wanted}, not {value!r}")


def _is(value: object, type_name: str) -> bool:
    if type_name == "bool":
        return isinstance(value, bool) or type(value).__name__ == "bool"  # NumPy's, too
    if type_name in ("int", "float"):
        return isinstance(value, Integral if type_name == "int" else Real) and not isinstance(value, bool)
    if type_name == "str":
        return isinstance(value, str)
    return isinstance(value, PathLike)
