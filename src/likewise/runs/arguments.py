"""The check of a public function's arguments: their names and their plain types, before anything is read."""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Mapping
from functools import wraps
from numbers import Integral, Real
from os import PathLike
from typing import ParamSpec, TypeVar

from likewise.runs.options import OptionError, Options

_Of = ParamSpec("_Of")
_Result = TypeVar("_Result")
_Kind = str | type[Options]
_LIST, _NONE, _PATH = "a list", "None", "a path"
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

    signature = inspect.signature(function)
    kinds = {name: _kinds(function, parameter) for name, parameter in signature.parameters.items()}

    @wraps(function)
    def called(*arguments: _Of.args, **named: _Of.kwargs) -> _Result:
        _check_names(function.__name__, signature, named)
        try:
            bound = signature.bind(*arguments, **named)
        except TypeError as error:
            raise ArgumentError(f"{function.__name__}: {error}") from None
        for name, value in bound.arguments.items():
            _check(name, value, kinds[name])
        try:
            return function(*arguments, **named)
        except OptionError as error:  # an option that is unknown may be meant for an argument
            for name in named:
                near = difflib.get_close_matches(name, signature.parameters, n=1)
                if str(error).startswith(f"there is no option {name}.") and near:
                    raise ArgumentError(f"there is no option {name}: did you mean {near[0]}?") from None
            raise

    return called


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


def _kinds(function: Callable[..., object], parameter: inspect.Parameter) -> tuple[_Kind, ...]:
    """Return the kinds of values that an argument may have; () if its annotation says more than is checked here."""
    annotation = str(parameter.annotation)
    if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
        return ()
    if re.fullmatch(r"(?:Sequence|list)\[[^\]]*(?:\[str\])?\](?: \| None)?", annotation):
        return (_LIST, _NONE) if annotation.endswith(_NONE) else (_LIST,)
    known = getattr(inspect.unwrap(function), "__globals__", {})
    kinds: list[_Kind] = []
    for part in annotation.split(" | "):
        options = known.get(part)
        if part in _WORDS or part == _NONE:
            kinds.append(part)
        elif isinstance(options, type) and issubclass(options, Options):
            kinds.append(options)
        else:
            return ()
    return tuple(kinds)


def _check(name: str, value: object, kinds: tuple[_Kind, ...]) -> None:
    if not kinds or any(_is(value, kind) for kind in kinds):
        return
    if _LIST in kinds:
        raise ArgumentError(f"{name} must be a list, not {value!r}: write [{value!r}]")
    said = [_WORDS[kind] if isinstance(kind, str) else f"{kind.__name__}(...)" for kind in kinds if kind != _NONE]
    wanted = " or ".join(dict.fromkeys(said)).replace(f"a text or {_PATH}", _PATH)
    raise ArgumentError(f"{name} must be {wanted}, not {value!r}")


def _is(value: object, kind: _Kind) -> bool:
    if isinstance(kind, type):
        return isinstance(value, kind)
    if kind == _NONE:
        return value is None
    if kind == _LIST:
        return hasattr(value, "__iter__") and not isinstance(value, str | bytes | PathLike)
    if kind == "bool":
        return isinstance(value, bool) or type(value).__name__ == "bool"  # NumPy's, too
    if kind in ("int", "float"):
        return isinstance(value, Integral if kind == "int" else Real) and not isinstance(value, bool)
    return isinstance(value, str if kind == "str" else PathLike)
