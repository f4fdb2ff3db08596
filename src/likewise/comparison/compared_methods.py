"""The methods to compare, each written in one line, and the settings that they share.

    arccse margin=0 label="no margin"
    sncse alpha={0.1,0.2} beta={0.2,0.3}

A line is the name of a recipe, a baseline, a model or the untrained base, and options as NAME=VALUE. Values in braces
make a grid: a method for each combination. Three names are not options of the method: `label` (its name in tables),
`preset` and `base` (in place of those of the comparison).
"""

import difflib
import hashlib
import itertools
import json
import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, cast

from likewise.baselines import Baseline, baseline_names, find_baseline
from likewise.corpus import CorpusOptions, PreparedCorpus, prepare
from likewise.errors import LikewiseError
from likewise.evaluation.registry import resolve
from likewise.evaluation.suite import read_tasks
from likewise.recipes import Recipe, TrainingOptions, find_recipe, recipe_names
from likewise.runs.job import Plan
from likewise.runs.options import OptionError, Options, checked_seed, unknown_option
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record, Values, checksum
from likewise.training.training_result import base_fingerprint

MethodKind = Literal["recipe", "baseline", "base", "model", "origin", "bertscore", "made"]

_UNTRAINED: dict[str, str] = {
    "base": "The untrained, unchanged base with its own pooling.",
    "model": "A saved model, named by path=FOLDER.",
    "origin": "Origin, the similarity by contexts, of a workspace, named by path=FOLDER.",
    "bertscore": "BERTScore on the tokens of the base.",
    "made": "Made by a function.",
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
        make: of the kind 'made', a function (folder, seed) that leaves a model in the folder or returns one; or that
            returns facts for the record of the run, which may hold 'model', a model or what `likewise.evaluate` takes.
        seeds: whether a made model depends on the seed.
    """

    label: str
    kind: MethodKind
    name: str
    options: Record = field(default_factory=dict)
    preset: str | None = None
    base: str | None = None
    make: Callable[[Path, int], object] | None = field(default=None, compare=False)
    seeds: bool = True

    @property
    def part(self) -> Recipe | Baseline | None:
        """The recipe or baseline, None for the other kinds."""
        if self.kind == "recipe":
            return find_recipe(self.name)
        return find_baseline(self.name) if self.kind == "baseline" else None

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
        return self.part.summary if self.part else _UNTRAINED[self.kind]

    @cached_property
    def key(self) -> str:
        """The name of its files: readable, and unique for its options.

        >>> Method("ArcCSE!", "recipe", "arccse", {"margin": 0.0}).key
        'arccse-ca7138'
        """
        said = json.dumps([self.kind, self.name, self.options, self.preset, self.base], sort_keys=True, default=str)
        return f"{self.name}-{hashlib.sha256(said.encode()).hexdigest()[:6]}"

    def chosen(self, shared: Values, preset: str | None) -> Any:
        """Return all of its options: the preset's, then the comparison's, then its own; None if it takes none."""
        if isinstance(self.part, Recipe):
            return self.part.options(self.preset or preset, **{**shared, **self.options})
        return self.part and self.part.options(**self.options)

    def differs_by_seed(self, sentences: int) -> bool:
        """Return whether the seed changes the model, for a corpus of that many sentences."""
        if self.kind != "baseline":
            return self.kind in ("recipe", "made") and self.seeds
        drawn = getattr(self.chosen({}, None), "sentences", 0)
        return self.name == "flow" or 0 < drawn < sentences


def parse_methods(
    lines: Sequence[str | Method], *, preset: str | None = None, shared: Values | None = None
) -> tuple[Method, ...]:
    """Read methods as they are written on the command line and in a configuration.

    Args:
        lines: one or more methods each; a `Method` stands for itself.
        preset: of recipes that name none.
        shared: options of all recipes, over the preset's.

    >>> [method.label for method in parse_methods(["simcse", "arccse margin={0,10}"])]
    ['simcse', 'arccse margin=0', 'arccse margin=10']
    """
    methods: dict[str, Method] = {}
    for line in lines:
        parsed = {line.label: line} if isinstance(line, Method) else _grid(line, preset, shared or {})
        methods |= parsed
    labels = [method.label for method in methods.values()]
    if twice := [label for label in labels if labels.count(label) > 1]:
        raise ComparisonError(f"Two methods are called '{twice[0]}'. Give one of them another label=NAME.")
    return tuple(methods.values())


def _grid(line: str, preset: str | None, shared: Values) -> dict[str, Method]:
    """Return the method for each combination of the values in braces, by its line."""
    parts = re.split(r"\{([^{}]*)\}", line)
    choices = [part.split(",") if i % 2 else [part] for i, part in enumerate(parts)]
    lines = [" ".join("".join(choice).split()) for choice in itertools.product(*choices)]
    return {text: _parse(text, preset, shared) for text in lines}


def _parse(line: str, preset: str | None, shared: Values) -> Method:
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise ComparisonError(f"Method '{line}' cannot be read: {error}.") from None
    if not words:
        raise ComparisonError("A method is empty. Give a name, and options as NAME=VALUE.")
    name, options = words[0], dict[str, str]()
    for word in words[1:]:
        key, equals, value = word.partition("=")
        key = key.replace("-", "_")
        if not equals or not key:
            raise ComparisonError(f"Method '{line}': '{word}' is not an option. Write NAME=VALUE.")
        if key in options:
            raise ComparisonError(f"Method '{line}': {key} is given twice.")
        options[key] = value
    kind = "recipe" if name in recipe_names() else "baseline" if name in baseline_names() else name
    if kind == name and (name == "made" or name not in _UNTRAINED):
        names = [*(kind for kind in _UNTRAINED if kind != "made"), *baseline_names(), *recipe_names()]
        near = difflib.get_close_matches(name, names, n=1)
        question = f" Did you mean {near[0]}?" if near else ""
        raise ComparisonError(f"There is no method '{name}'.{question} There are {', '.join(names)}.")
    label = options.pop("label", "") or " ".join(word for word in words if not word.startswith("label="))
    own, base = options.pop("preset", None), options.pop("base", None)
    if kind in ("model", "origin") and (base := options.pop("path", base)) is None:
        raise ComparisonError(f"Method '{line}' names no folder. Write: {kind} path=FOLDER.")
    if own is not None and kind != "recipe":
        raise ComparisonError(f"Method '{line}': only recipes have presets.")
    method = Method(label, cast(MethodKind, kind), name, {}, own, base)
    try:
        part: Options | None = method.chosen(shared, preset)
        if part is None and options:
            raise OptionError(unknown_option(next(iter(options)), ()))
        read = part.updated_from_strings(options).to_dict() if part and options else {}
    except OptionError as error:
        raise ComparisonError(f"Method '{line}': {error}.") from None
    return replace(method, options={key: read[key] for key in options})


@dataclass(frozen=True)
class Settings:
    """The arguments of `likewise.compare` that decide its results, checked."""

    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    corpus: tuple[str, ...]
    base: str = "bundled:minilm"
    vectors: str = "bundled:glove"
    tasks: str = "sts"
    data: str | None = None
    steps: int | None = None
    preset: str | None = None
    shared: Record = field(default_factory=dict)
    corpus_options: CorpusOptions | None = None
    precision: str | None = None

    def __post_init__(self) -> None:
        if not self.methods:
            raise ComparisonError(
                "There is no method to compare. Give one or more, for example simcse or 'arccse margin=0'."
            )
        for seed in self.seeds:
            checked_seed(seed)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ComparisonError(f"Seeds are one or more different numbers, not {list(self.seeds)}.")
        trained = [method for method in self.methods if method.kind == "recipe"]
        free = [method for method in trained if "max_steps" not in method.options]
        if free and self.steps is None:
            raise ComparisonError("All methods share one budget: give steps.")
        needs = [m for m in self.methods if m.kind == "recipe" or getattr(m.part, "corpus", "") == "required"]
        if needs and not self.corpus:
            raise ComparisonError(f"{needs[0].label} learns from text: give a corpus (--corpus FILE).")
        if self.steps is not None and self.steps < 1:
            raise ComparisonError(f"The budget must be above 0, not {self.steps}.")
        for method in trained:
            find_recipe(method.name).check_base(self.base_of(method), self.options(method))
        resolve(self.tasks)

    def base_of(self, method: Method) -> str:
        """Return the base of a method."""
        return method.base or (self.vectors if method.takes_vectors else self.base)

    def options(self, method: Method) -> Any:
        """Return all options of a method under the budget; None where it has none."""
        budget = {} if self.steps is None else {"max_steps": self.steps}
        return method.chosen({**self.shared, **budget}, self.preset)

    def runs(self, sentences: int) -> list[tuple[Method, int]]:
        """Return every run, all methods of one seed before the next seed."""
        return [
            (method, seed)
            for seed in self.seeds
            for method in self.methods
            if seed == self.seeds[0] or method.differs_by_seed(sentences)
        ]

    def read_corpus(self, progress: Progress | None = None) -> PreparedCorpus | None:
        """Read the corpus, which must fill one batch of every method; None if there is none."""
        if not self.corpus:
            return None
        sizes = [o.batch_size * o.accumulation for m in self.methods if m.kind == "recipe" and (o := self.options(m))]
        return prepare(list(self.corpus), self.corpus_options, progress=progress, at_least=max(sizes, default=1))

    def tasks_found(self) -> list[str]:
        """Return the names of the tasks whose data is there; there must be at least one."""
        ready, missing = read_tasks(resolve(self.tasks)[0], self.data)
        if not ready:
            reasons = "; ".join(f"{task.title}: {task.reason}" for task in missing)
            raise ComparisonError(f"No task can be scored ({reasons}). Give another --data or --tasks.")
        return [task.name for task, _ in ready]

    def to_dict(self) -> Record:
        """Return the settings that all rows of a table share, as plain values; the others may be extended later."""
        shown = {name: getattr(self, name) for name in ("base", "vectors", "steps", "preset", "shared")}
        shown |= {"precision": self.precision} if self.precision else {}
        options = (self.corpus_options or CorpusOptions()).to_dict()
        return shown | {"corpus_options": options, "tasks": [task.name for task in resolve(self.tasks)[0]]}

    def plan(self, corpus: PreparedCorpus | None) -> Plan:
        """Return the plan of the table."""
        found = self.tasks_found()
        inputs: Record = {"corpus": corpus and corpus.sha256, "set of evaluation files": found}
        own = {name: state for name in found if (state := _state_of_own(name))}
        inputs |= {"base": base_fingerprint(self.base)} | ({"evaluation files": own} if own else {})
        return Plan("compare", self.to_dict(), inputs)


def _state_of_own(task: str) -> str:
    """Return a checksum of the files of a task of one's own, such as pairs:FILE; "" for any other task."""
    place = task.partition(":")[2]
    path = next((Path(name) for name in (place, place.rpartition(":")[0]) if name and Path(name).exists()), None)
    if path is None:
        return ""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return " ".join(checksum(file) for file in files)


def check_shared(shared: Record) -> None:
    """Raise an OptionError if an option of all recipes is unknown or out of range."""
    known = set(TrainingOptions.model_fields) - {"max_steps", "epochs"}
    if unknown := sorted(set(shared) - known):
        raise OptionError(f"{unknown_option(unknown[0], known)}, which all recipes share")
    TrainingOptions(**shared)
