"""The methods of a comparison, each a line such as `arccse margin=0 label="no margin"`.

A line has the name of a recipe, or a model that `evaluate` opens, and options as NAME=VALUE. Values in braces make a
grid: a method for each combination.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from likewise.errors import LikewiseError
from likewise.recipes import find_recipe, recipe_names
from likewise.runs.options import OptionError
from likewise.runs.whole_files import Record, Values

_WORD_VECTORS = "bundled:glove"


class ComparisonError(LikewiseError):
    """Raised if methods cannot be compared; the message names the cure."""


@dataclass(frozen=True)
class Method:
    """A method of a comparison, which is a row of the table.

    Attributes:
        label: Name of the row.
        recipe: Name of a recipe; "" for a model that is evaluated without training.
        options: Options of the recipe, which override the preset.
        preset: Preset of the recipe; the comparison's, or the recipe's first, by default.
        base: Base of the recipe, or the model that is evaluated; the comparison's base by default.
        make: Function from a folder and a seed to a model that `evaluate` accepts, or to a mapping with that model as
            'model' and further facts for the record of the run.
        seeds: Whether a model built by `make` depends on the seed.
    """

    label: str
    recipe: str = ""
    options: Record = field(default_factory=dict)
    preset: str | None = None
    base: str | None = None
    make: Callable[[Path, int], object] | None = field(default=None, compare=False)
    seeds: bool = True

    @property
    def is_base(self) -> bool:
        """Whether the method is the unchanged base of the comparison."""
        return not self.recipe and self.base is None and self.make is None

    @property
    def is_drawn(self) -> bool:
        """Whether the model of the method depends on the seed."""
        return self.seeds and bool(self.recipe or self.make)

    @property
    def key(self) -> str:
        """Name of the method's files, unique for its options.

        >>> Method("ArcCSE!", "arccse", {"margin": 0.0}).key
        'arccse-325fb5'
        """
        parts = [self.recipe, self.label if self.make else "", self.options, self.preset, self.base]
        name = re.sub(r"[^\w.-]+", "-", self.recipe or self.base or self.label)[-40:]
        return f"{name}-{hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()[:6]}"

    def base_in(self, base: str) -> str:
        """Return the base of the method in a comparison; a recipe that uses word vectors has its own base."""
        own = find_recipe(self.recipe).default_base if self.recipe else ""
        return self.base or (own if own == _WORD_VECTORS else base)


def parse_methods(
    lines: Sequence[str | Method], *, preset: str | None = None, shared: Values | None = None
) -> tuple[Method, ...]:
    """Parse methods from the command line or a configuration.

    Args:
        lines: Lines of one or more methods each; a `Method` is used unchanged.
        preset: Preset of recipes without their own preset.
        shared: Options of all recipes, which override the preset.

    >>> [method.label for method in parse_methods(["simcse", "arccse margin={0,10}"])]
    ['simcse', 'arccse margin=0', 'arccse margin=10']
    """
    methods: dict[str, Method] = {}
    for line in lines:
        if isinstance(line, Method):
            methods[line.label] = line
            continue
        parts = re.split(r"\{([^{}]*)\}", line)
        choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
        every = [" ".join("".join(choice).split()) for choice in itertools.product(*choices)]
        methods |= {text: _parsed(text, preset, shared or {}) for text in every}
    labels = [method.label for method in methods.values()]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise ComparisonError(f"Two methods are named '{twice[0]}'. Give one of them another label=NAME.")
    if not methods:
        raise ComparisonError("There is no method to compare. Give one or more, such as simcse or 'arccse margin=0'.")
    return tuple(methods.values())


def _parsed(line: str, preset: str | None, shared: Values) -> Method:
    """Return the method of one line without braces."""
    try:
        name, *words = shlex.split(line) or [""]
    except ValueError as error:
        raise ComparisonError(f"Method '{line}' cannot be read ({error}): correct its quotes.") from None
    if not name:
        raise ComparisonError("A method is empty. Give a name, such as simcse, or omit it.")
    try:
        options = _options(words)
        label = options.pop("label", None) or " ".join(word for word in [name, *words] if not word.startswith("label="))
        if name == "base" or (name not in recipe_names() and (re.search(r"[:/\\]", name) or Path(name).exists())):
            if options:
                raise OptionError(f"only recipes have options, a preset and a base, but {name} is not a recipe")
            return Method(label, base=None if name == "base" else name)
        own, base = options.pop("preset", None), options.pop("base", None)
        read = find_recipe(name).options(own or preset, **shared).updated_from_strings(options).to_dict()
    except OptionError as error:
        others = ", base, or the path of a model" if str(error).startswith("there is no recipe") else ""
        raise ComparisonError(f"Method '{line}': {error}{others}.") from None
    return Method(label, name, {key: read[key] for key in options}, own, base)


def _options(words: Sequence[str]) -> dict[str, str]:
    options: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise OptionError(f"'{word}' is not an option. Write NAME=VALUE")
        if (key := key.replace("-", "_")) in options:
            raise OptionError(f"{key} is given twice")
        options[key] = value
    return options
