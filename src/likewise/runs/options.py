"""Options: defined once as a class, read from Python, the command line, `NAME=VALUE` strings and TOML."""

import difflib
import os
import tomllib
import types
import typing
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from likewise.errors import LikewiseError
from likewise.runs.whole_files import Record, Values


class OptionError(LikewiseError):
    """Raised if an option is unknown, out of range or contradicts another; the message names the cure."""


class ContradictionError(OptionError):
    """Raised if two options, each valid by itself, contradict each other."""


def option(default: object, help: str, **limits: Any) -> Any:
    """Return a field of an options class.

    Args:
        limits: what pydantic checks: gt, ge, lt, le, min_length ...
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
            alone = any(fault["loc"] for fault in error.errors())
            raise (OptionError if alone else ContradictionError)(_sentences(type(self), error)) from None

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
        raise OptionError(f"seed must be a whole number from 0 to {2**32 - 1}, not {seed}")
    return seed


def choices_of(kind: type[Options], name: str) -> tuple[str, ...]:
    """Return the allowed values of an option if its type is a Literal, otherwise ()."""
    hint = kind.model_fields[name].annotation
    return typing.get_args(hint) if typing.get_origin(hint) is Literal else ()


def unknown_option(name: str, known: Iterable[str]) -> str:
    """Return the message for an unknown option, with the most similar known one.

    >>> unknown_option("margn", ["margin", "temperature"])
    'there is no option margn: did you mean margin? There are margin, temperature'
    """
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1)
    there = f"There are {', '.join(names)}" if names else "There are none"
    return f"there is no option {name}{f': did you mean {near[0]}?' if near else '.'} {there}"


def read_toml(path: Path, known: Iterable[str] | None = None) -> Record:
    """Return the content of a TOML file whose top-level names are all known, if these are given."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except FileNotFoundError:
        raise OptionError(f"there is no file {path}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, OSError) as error:
        raise OptionError(f"{path} is not TOML: {error}") from None
    names = list(content if known is None else known)
    if unknown := [name for name in content if name not in names]:
        raise OptionError(f"{path}: {unknown_option(unknown[0], names)}")
    return content


def write_toml(content: Mapping[str, object]) -> str:
    """Return values as TOML for `read_toml`: options as tables, paths as texts; None, which TOML lacks, is left out."""
    import tomli_w

    return tomli_w.dumps(_for_toml(content))


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


_BOUNDS = {
    "greater_than": ("above {}", "gt"),
    "greater_than_equal": ("{} or more", "ge"),
    "less_than": ("below {}", "lt"),
    "less_than_equal": ("at most {}", "le"),
    "finite_number": ("a finite number", ""),
}
_TYPES: dict[object, str] = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}


def _sentence(kind: type[Options], fault: Values) -> str:
    if fault["type"] == "value_error":  # of `_check`
        return str(fault["ctx"]["error"])
    name = str(fault["loc"][0])
    if fault["type"] == "extra_forbidden":
        return unknown_option(name, kind.model_fields)
    if fault["type"] in _BOUNDS:
        words, limit = _BOUNDS[fault["type"]]
        wanted = words.format(_plain(fault.get("ctx", {}).get(limit)))
    elif fault["type"] == "string_too_short":
        wanted = f"a text of {fault['ctx']['min_length']} character or more"
    elif fault["type"] == "literal_error":
        wanted = f"one of {', '.join(choices_of(kind, name))}"
    else:
        wanted = _TYPES.get(_bare(kind.model_fields[name].annotation), fault["msg"].lower())
    return f"{name} must be {wanted}, not {fault['input']!r}"


def _plain(number: object) -> object:
    return int(number) if isinstance(number, float) and number.is_integer() else number


def _bare(hint: object) -> object:
    """Return the type inside `X | None`."""
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        return next(part for part in typing.get_args(hint) if part is not type(None))
    return hint
