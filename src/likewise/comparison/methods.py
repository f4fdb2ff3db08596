"""What is compared: a recipe, a baseline, a model or the untrained base, each written in one line.

    arccse margin=0 label="no margin"
    gclsr augmentation={partial,full,none}

A line is a name and options as NAME=VALUE. Values in braces make a method of each. Three names are no option: `label`
(what tables call it), `preset` and `base` (over those of the comparison).
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shlex
import typing
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from likewise.baselines.table import BASELINES
from likewise.recipes import RECIPES
from likewise.runs.options import Options

Kind = Literal["recipe", "baseline", "base", "model", "bertscore"]

ALL = "all"
_UNTRAINED: dict[str, str] = {
    "base": "The untrained base, as it comes.",
    "model": "A saved model, named by path=FOLDER.",
    "bertscore": "BERTScore on the tokens of the base.",
}
_VECTORS = "bundled:glove"
_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


class ComparisonError(ValueError):
    """A comparison that cannot be made as asked; the message names the cure."""


@dataclass(frozen=True)
class Method:
    """One row of the table.

    Attributes:
        label: what tables and pictures call it.
        kind: how it is made.
        name: of the recipe or baseline, or the kind itself.
        options: what was written over the preset's values.
        preset: of a recipe; None: the comparison's, or the recipe's first.
        base: its own base; None: the comparison's.
    """

    label: str
    kind: Kind
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    preset: str | None = None
    base: str | None = None

    @property
    def takes_vectors(self) -> bool:
        """Whether its base is a file of word vectors, and no transformer."""
        part = RECIPES.get(self.name) or BASELINES.get(self.name)
        return part is not None and part.default_base == _VECTORS

    @property
    def summary(self) -> str:
        """One sentence on what it is."""
        part = RECIPES.get(self.name) or BASELINES.get(self.name)
        return part.summary if part else _UNTRAINED[self.name]

    @cached_property
    def key(self) -> str:
        """The name of its files: readable, and another one for other options.

        >>> Method("ArcCSE!", "recipe", "arccse", {"margin": 0.0}).key
        'arccse-ca7138'
        """
        said = json.dumps([self.kind, self.name, self.options, self.preset, self.base], sort_keys=True)
        return f"{self.name}-{hashlib.sha256(said.encode()).hexdigest()[:6]}"

    def chosen(self, shared: dict[str, Any], preset: str | None) -> Any:
        """All of its options: the preset's, over them the comparison's, over them its own; None where it has none.

        Raises:
            OptionError: a name it does not know, or values that do not go together.
        """
        if self.kind == "recipe":
            return RECIPES[self.name].options(self.preset or preset, **{**shared, **self.options})
        if self.kind == "baseline":
            return BASELINES[self.name].options.updated(**self.options)
        return None

    def has_chance(self, sentences: int) -> bool:
        """Whether another seed gives another model, from a corpus of so many sentences."""
        if self.kind != "baseline":
            return self.kind == "recipe"
        drawn = getattr(self.chosen({}, None), "sentences", 0)
        return self.name == "flow" or 0 < drawn < sentences


def parse_methods(lines: Sequence[str]) -> tuple[Method, ...]:
    """Read methods as they are written on the command line and in a configuration.

    Args:
        lines: one or more methods each; 'all' stands for the base, every baseline and every recipe.

    Raises:
        ComparisonError: an unknown name, option or value, or two methods with one label.

    >>> [method.label for method in parse_methods(["simcse", "arccse margin={0,10}"])]
    ['simcse', 'arccse margin=0', 'arccse margin=10']
    """
    written = [one for line in lines for one in (_everything() if line.strip() == ALL else _expanded(line))]
    methods = [_parse(line) for line in dict.fromkeys(written)]
    labels: set[str] = set()
    for method in methods:
        if method.label in labels:
            raise ComparisonError(f"Two methods are called '{method.label}'. Give one of them another label=NAME.")
        labels.add(method.label)
    return tuple(methods)


def _everything() -> list[str]:
    return ["base", *BASELINES, *RECIPES]


def _expanded(line: str) -> list[str]:
    """The line with each choice of values in braces."""
    parts = re.split(r"\{([^{}]*)\}", line)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    return [" ".join("".join(choice).split()) for choice in itertools.product(*choices)]


def _parse(line: str) -> Method:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ComparisonError(f"Method '{line}' cannot be read: {error}.") from None
    if not words:
        raise ComparisonError("A method is empty. Give a name, and options as NAME=VALUE.")
    name, *rest = words
    kind = _kind(name)
    given: dict[str, str] = {}
    for word in rest:
        key, equals, value = word.partition("=")
        key = key.replace("-", "_")
        if not equals or not key:
            raise ComparisonError(f"Method '{line}': '{word}' is no option. Write NAME=VALUE.")
        if key in given:
            raise ComparisonError(f"Method '{line}': {key} is given twice.")
        given[key] = value
    label = given.pop("label", None) or " ".join(words if "label" not in line else _without_label(words))
    preset, base = given.pop("preset", None), given.pop("base", None)
    if kind == "model":
        base = given.pop("path", base)
        if base is None:
            raise ComparisonError(f"Method '{line}': which model? Write: model path=FOLDER.")
    if preset is not None and kind != "recipe":
        raise ComparisonError(f"Method '{line}': only recipes have presets.")
    part: Options | None = None
    if kind == "recipe":
        recipe = RECIPES[name]
        if preset is not None and preset not in recipe.presets:
            raise ComparisonError(f"Method '{line}': {name} has the presets {', '.join(recipe.presets)}.")
        part = recipe.options(preset)
    elif kind == "baseline":
        part = BASELINES[name].options
    options = {key: _value(line, part, key, text) for key, text in given.items()}
    return Method(label, kind, name, options, preset, base)


def _without_label(words: list[str]) -> list[str]:
    return [word for word in words if not word.startswith("label=")]


def _kind(name: str) -> Kind:
    if name in RECIPES:
        return "recipe"
    if name in BASELINES:
        return "baseline"
    if name in _UNTRAINED:
        return typing.cast(Kind, name)
    known = ", ".join([*_UNTRAINED, *BASELINES, *RECIPES, ALL])
    raise ComparisonError(f"There is no method '{name}'. There are {known}.")


def _value(line: str, options: Options | None, name: str, text: str) -> Any:
    """The text as the type of the option."""
    known = list(type(options).model_fields) if options else []
    if options is None or name not in known:
        there = f"There are {', '.join(sorted(known))}." if known else "It has none."
        raise ComparisonError(f"Method '{line}': there is no option {name}. {there}")
    kind = type(getattr(options, name))  # every option has a default, of its type
    try:
        if kind is bool:
            return _WORDS[text.lower()]
        return float(text) if kind is float else int(text) if kind is int else text
    except (KeyError, ValueError):
        wanted = {bool: "true or false", float: "a number", int: "a whole number"}[kind]
        raise ComparisonError(f"Method '{line}': {name} is {wanted}, not '{text}'.") from None
