"""Options and arguments of a job.

Options are defined once as a class and read from Python, the command line, `NAME=VALUE` strings and TOML. The arguments
of a public function are checked by its signature, before anything is read.
"""

from __future__ import annotations

import difflib
import inspect
import os
import re
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from numbers import Integral, Real
from typing import Any, Literal, ParamSpec, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from likewise.errors import LikewiseError
from likewise.runs.whole_files import Record, Values

_BOUNDS = {
    "greater_than": ("above {}", "gt"),
    "greater_than_equal": ("{} or more", "ge"),
    "less_than": ("below {}", "lt"),
    "less_than_equal": ("at most {}", "le"),
    "finite_number": ("a finite number", ""),
}
_TYPES: dict[object, str] = {bool: "true or false", int: "an integer", float: "a number", str: "a string"}
_Of = ParamSpec("_Of")
_Result = TypeVar("_Result")
_LIST, _NONE, _PATH = "a list", "None", "a path"
_WORDS = {
    "bool": "true or false",
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "os.PathLike[str]": _PATH,
    "PathLike[str]": _PATH,
}
_MEMBERS = {**_WORDS, "string": "a string", "tuple": _LIST, "list": _LIST}
"""The first words of pydantic's types of faults to what is expected."""


class OptionError(LikewiseError):
    """Raised if an option is unknown, out of range or contradicts another; the message names the cure."""


class ArgumentError(OptionError, TypeError):
    """Raised if an argument of a public function is unknown or of the wrong type; the message names the cure."""


def option(default: object, help: str, **limits: Any) -> Any:
    """Return a field of an options class.

    Args:
        limits: Limits for pydantic: gt, ge, lt, le, min_length and others.
    """
    return Field(default=default, description=help, **limits)


class Options(BaseModel):
    """A frozen set of options with validated ranges.

    A subclass declares its fields by `option(...)` and finds contradictions between them in `_check`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", validate_default=True, allow_inf_nan=False)

    def __init__(self, **values: object) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise OptionError(_sentences(type(self), error)) from None

    @classmethod
    def __pydantic_init_subclass__(cls, **_: object) -> None:
        """Keep the limits of an option that a subclass redeclares with another default."""
        changed = False
        parents = [getattr(parent, "model_fields", {}) for parent in cls.__mro__[1:]]
        for name, item in cls.model_fields.items():
            inherited = next((fields[name] for fields in parents if name in fields), None)
            if inherited is not None and inherited.metadata and not item.metadata:
                item.metadata, changed = inherited.metadata, True
        if changed:
            cls.model_rebuild(force=True)

    @model_validator(mode="after")
    def _contradictions(self) -> Self:
        self._check()
        return self

    def _check(self) -> None:
        """Raise an OptionError if two options contradict each other."""

    def updated(self, **changes: object) -> Self:
        """Return a copy with some options changed."""
        return type(self)(**{**dict(self), **changes})

    def updated_from_strings(self, changes: Mapping[str, str]) -> Self:
        """Return a copy with options changed by text values: '0.5', 'true', 'linear'."""
        if unknown := [name for name in changes if name not in type(self).model_fields]:
            raise OptionError(unknown_option(unknown[0], type(self).model_fields))
        try:
            read = type(self).model_validate_strings(dict(changes))
        except ValidationError as error:
            # A contradiction may be one of the defaults alone: that is for the copy to say.
            if any(fault["loc"] for fault in error.errors()):
                raise OptionError(_sentences(type(self), error)) from None
            read = None
        values = {name: getattr(read, name) for name in changes} if read else dict(changes)
        return self.updated(**values)

    def to_dict(self) -> Record:
        """Return all options by name, as plain values."""
        return self.model_dump(mode="json")

    @classmethod
    def defaults(cls) -> Record:
        """Return the defaults of all options by name, as plain values; they need not go together."""
        return cls.model_construct().model_dump(mode="json")


def checked_seed(seed: int) -> int:
    """Return a seed that is valid for every random generator."""
    if not 0 <= seed < 2**32:
        raise OptionError(f"seed must be an integer from 0 to {2**32 - 1}, not {seed}")
    return seed


def choices_of(kind: type[Options], name: str) -> tuple[str, ...]:
    """Return the allowed values of an option if its type is a Literal, otherwise ()."""
    hint = kind.model_fields[name].annotation
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


def unknown_option(name: str, known: Iterable[str]) -> str:
    """Return the message for an unknown option, with the most similar known one.

    >>> unknown_option("margn", ["margin", "temperature"])
    'there is no option margn: did you mean margin? Choose one of margin, temperature'
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    there = f"Choose one of {', '.join(names)}" if names else "It has no options"
    return f"there is no option {name}{f': did you mean {near[0]}?' if near else '.'} {there}"


def write_toml(content: Mapping[str, object]) -> str:
    """Return values as TOML for `likewise.runs.toml_files.read_toml`.

    Options are tables, and paths texts; None, which TOML lacks, is skipped.
    """
    import tomli_w

    return tomli_w.dumps(_for_toml(content))


_Kind = str | type[Options]


def checked(function: Callable[_Of, _Result]) -> Callable[_Of, _Result]:
    """Check the arguments of a public function by its signature.

    An unknown name is an error that suggests the most similar name. An argument whose annotation consists of bool, int,
    float, str, paths, a list or a class of options must have such a type. The function itself checks other arguments,
    such as a model.

        >>> @checked
        ... def halved(number: float, *, digits: int = 2) -> float:
        ...     return round(number / 2, digits)
        >>> halved(3, digits="1")
        Traceback (most recent call last):
        ...
        likewise.runs.options.ArgumentError: digits must be an integer, not '1'
        >>> halved(3, digit=1)
        Traceback (most recent call last):
        ...
        likewise.runs.options.ArgumentError: halved has no argument digit: did you mean digits?
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
            cure = f"did you mean {near[0]}?" if near else f"choose one of {', '.join(names)}"
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
    expected = " or ".join(dict.fromkeys(said)).replace(f"a string or {_PATH}", _PATH)
    raise ArgumentError(f"{name} must be {expected}, not {value!r}")


def _is(value: object, kind: _Kind) -> bool:
    if isinstance(kind, type):
        return isinstance(value, kind)
    if kind == _NONE:
        return value is None
    if kind == _LIST:
        return hasattr(value, "__iter__") and not isinstance(value, str | bytes | os.PathLike)
    if kind == "bool":
        return isinstance(value, bool) or type(value).__name__ == "bool"  # NumPy's, too
    if kind in ("int", "float"):
        return isinstance(value, Integral if kind == "int" else Real) and not isinstance(value, bool)
    return isinstance(value, str if kind == "str" else os.PathLike)


def _for_toml(value: object) -> Any:
    if isinstance(value, Options):
        value = value.to_dict()
    if isinstance(value, Mapping):
        return {name: _for_toml(item) for name, item in value.items() if item is not None}
    if isinstance(value, (list, tuple)):
        return [_for_toml(item) for item in value]
    return os.fspath(value) if isinstance(value, os.PathLike) else value


def _sentences(kind: type[Options], error: ValidationError) -> str:
    """Return one clause per error, in the order of the fields."""
    return "; ".join(_sentence(kind, fault) for fault in error.errors(include_url=False))


def _sentence(kind: type[Options], fault: Values) -> str:
    if fault["type"] == "value_error":  # of `_check`
        return str(fault["ctx"]["error"])
    name = str(fault["loc"][0])
    if fault["type"] == "extra_forbidden":
        return unknown_option(name, kind.model_fields)
    if fault["type"] == "missing":
        return f"{name} is missing"
    if fault["type"] in _BOUNDS:
        words, limit = _BOUNDS[fault["type"]]
        expected = words.format(_plain(fault.get("ctx", {}).get(limit)))
    elif fault["type"] == "string_too_short":
        expected = f"a string of {fault['ctx']['min_length']} character or more"
    elif fault["type"] == "literal_error":
        expected = f"one of {', '.join(choices_of(kind, name))}"
    else:
        own, member = _TYPES.get(_bare(kind.model_fields[name].annotation)), fault["type"].partition("_")[0]
        expected = own or _MEMBERS.get(member, f"valid ({fault['msg'].lower()})")
        if any(isinstance(place, int) for place in fault["loc"]):
            name = f"each value of {name}"
    return f"{name} must be {expected}, not {fault['input']!r}"


def _plain(number: object) -> object:
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _bare(hint: object) -> object:
    """Return the type inside `X | None`."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint
