"""The methods to compare: a recipe, a baseline, a model or the untrained base, each written in one line.

    arccse margin=0 label="no margin"
    sncse alpha={0.1,0.2} beta={0.2,0.3}

A line is a name and options as NAME=VALUE. Values in braces make a grid: a method for each combination. Three names are
not options of the method: `label` (its name in tables), `preset` and `base` (in place of those of the comparison).
"""

import hashlib
import itertools
import json
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal, cast

from likewise.baselines.building import BASELINES
from likewise.baselines.method import Baseline
from likewise.errors import LikewiseError
from likewise.recipes import RECIPES, Recipe, find_recipe, recipe_names
from likewise.runs.options import ContradictionError, OptionError, Options, unknown_option

MethodKind = Literal["recipe", "baseline", "base", "model", "origin", "bertscore"]

ALL = "all"
_UNTRAINED: dict[str, str] = {
    "base": "The untrained, unchanged base with its own pooling.",
    "model": "A saved model, named by path=FOLDER.",
    "origin": "Origin, the similarity by contexts, of a workspace, named by path=FOLDER.",
    "bertscore": "BERTScore on the tokens of the base.",
}
_VECTORS = "bundled:glove"


class ComparisonError(LikewiseError):
    """Raised if a comparison or report cannot be made as asked; the message names the cure."""


@dataclass(frozen=True)
class Method:
    """A method, one row of the table.

    Attributes:
        name: of the recipe or baseline, or the kind itself.
        options: those that were written, over the preset's values.
        preset: of a recipe; None: the comparison's, or the recipe's first.
        base: its own base; None: the comparison's.
        grid: the line with braces that it comes from, "" for none.
        varied: its values of the options in braces.
        contradiction: why this combination of a grid cannot be made, "" where it can.
    """

    label: str
    kind: MethodKind
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    preset: str | None = None
    base: str | None = None
    grid: str = ""
    varied: dict[str, Any] = field(default_factory=dict)
    contradiction: str = ""

    @property
    def part(self) -> Recipe | Baseline | None:
        """The recipe or baseline, None for the other kinds."""
        return find_recipe(self.name) if self.kind == "recipe" else BASELINES.get(self.name)

    @property
    def takes_vectors(self) -> bool:
        """True if its base is a file of word vectors instead of a transformer."""
        return self.part is not None and self.part.default_base == _VECTORS

    @property
    def is_base(self) -> bool:
        """True for an unchanged base: a transformer, or the average of word vectors."""
        return self.kind == "base" or (self.name == "word-average" and not self.options)

    @property
    def summary(self) -> str:
        """A description in one sentence."""
        return self.part.summary if self.part else _UNTRAINED[self.name]

    @cached_property
    def key(self) -> str:
        """The name of its files: readable, and unique for its options.

        >>> Method("ArcCSE!", "recipe", "arccse", {"margin": 0.0}).key
        'arccse-ca7138'
        """
        said = json.dumps([self.kind, self.name, self.options, self.preset, self.base], sort_keys=True)
        return f"{self.name}-{hashlib.sha256(said.encode()).hexdigest()[:6]}"

    def chosen(self, shared: Mapping[str, Any], preset: str | None) -> Any:
        """Return all of its options: the preset's, then the comparison's, then its own; None if it takes none."""
        if self.kind == "recipe":
            return find_recipe(self.name).options(self.preset or preset, **{**shared, **self.options})
        return BASELINES[self.name].options(**self.options) if self.kind == "baseline" else None

    def differs_by_seed(self, sentences: int) -> bool:
        """Return whether the seed changes the model, for a corpus of that many sentences."""
        if self.kind != "baseline":
            return self.kind == "recipe"
        drawn = getattr(self.chosen({}, None), "sentences", 0)
        return self.name == "flow" or 0 < drawn < sentences


def parse_methods(
    lines: Sequence[str], *, preset: str | None = None, shared: Mapping[str, Any] | None = None
) -> tuple[Method, ...]:
    """Read methods as they are written on the command line and in a configuration.

    Args:
        lines: one or more methods each; 'all' stands for the base, every baseline and every recipe.
        preset: of recipes that name none.
        shared: options of all recipes, over the preset's.

    Raises:
        ComparisonError: an unknown name, option or value, or two methods with one label.

    >>> [method.label for method in parse_methods(["simcse", "arccse margin={0,10}"])]
    ['simcse', 'arccse margin=0', 'arccse margin=10']
    """
    methods: dict[str, Method] = {}
    for line in itertools.chain(*(["base", *BASELINES, *RECIPES] if x.strip() == ALL else [x] for x in lines)):
        for text, method in _grid(line, preset, shared or {}).items():
            methods.setdefault(text, method)
    labels = [method.label for method in methods.values()]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise ComparisonError(f"Two methods are called '{twice[0]}'. Give one of them another label=NAME.")
    return tuple(methods.values())


def _grid(line: str, preset: str | None, shared: Mapping[str, Any]) -> dict[str, Method]:
    """Return the method for each combination of the values in braces, by its line."""
    parts = re.split(r"\{([^{}]*)\}", line)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    lines = [" ".join("".join(choice).split()) for choice in itertools.product(*choices)]
    if len(lines) == 1:
        method = _parse(lines[0], preset, shared)
        if method.contradiction:
            raise ComparisonError(f"Method '{line}': {method.contradiction}.")
        return {lines[0]: method}
    found = {text: _parse(text, preset, shared) for text in lines}
    if all(method.contradiction for method in found.values()):
        raise ComparisonError(f"Method '{line}': {next(iter(found.values())).contradiction}.")
    written = {text: _given(text)[1] for text in lines}
    varied = [n for n in written[lines[0]] if n != "label" and len({given.get(n) for given in written.values()}) > 1]
    return {
        text: replace(method, grid=line, varied={n: method.options.get(n, written[text].get(n)) for n in varied})
        for text, method in found.items()
    }


def _given(line: str) -> tuple[list[str], dict[str, str]]:
    """Split a line into its words, and its options; the name of the method is under 'method'."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ComparisonError(f"Method '{line}' cannot be read: {error}.") from None
    if not words:
        raise ComparisonError("A method is empty. Give a name, and options as NAME=VALUE.")
    given = {"method": words[0]}
    for word in words[1:]:
        name, equals, value = word.partition("=")
        name = name.replace("-", "_")
        if not equals or not name:
            raise ComparisonError(f"Method '{line}': '{word}' is not an option. Write NAME=VALUE.")
        if name in given:
            raise ComparisonError(f"Method '{line}': {name} is given twice.")
        given[name] = value
    return words, given


def _parse(line: str, preset: str | None, shared: Mapping[str, Any]) -> Method:
    words, given = _given(line)
    name = given.pop("method")
    kind = "recipe" if name in recipe_names() else "baseline" if name in BASELINES else name
    if kind == name and name not in _UNTRAINED:
        known = ", ".join([*_UNTRAINED, *BASELINES, *recipe_names(), ALL])
        raise ComparisonError(f"There is no method '{name}'. There are {known}.")
    label = given.pop("label", "") or " ".join(word for word in words if not word.startswith("label="))
    own, base = given.pop("preset", None), given.pop("base", None)
    if kind in ("model", "origin") and (base := given.pop("path", base)) is None:
        raise ComparisonError(f"Method '{line}' names no folder. Write: {kind} path=FOLDER.")
    if own is not None and kind != "recipe":
        raise ComparisonError(f"Method '{line}': only recipes have presets.")
    method = Method(label, cast(MethodKind, kind), name, {}, own, base)
    try:
        part: Options | None = method.chosen(shared, preset)
        if part is None and given:
            raise OptionError(unknown_option(next(iter(given)), ()))
        read = part.updated_from_strings(given).to_dict() if part and given else {}
    except ContradictionError as error:
        return replace(method, contradiction=str(error))
    except OptionError as error:
        raise ComparisonError(f"Method '{line}': {error}.") from None
    return replace(method, options={key: read[key] for key in given})
