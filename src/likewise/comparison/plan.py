"""What all runs of a comparison share, checked before work starts."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.comparison.methods import ComparisonError, Method
from likewise.corpus import CorpusOptions, PreparedCorpus, prepare
from likewise.evaluation.data import find_data
from likewise.evaluation.registry import resolve
from likewise.evaluation.task import TaskMissing
from likewise.recipes import RECIPES
from likewise.recipes.options import TrainingOptions
from likewise.runs.options import OptionError
from likewise.runs.whole_files import write_json

_KEPT = "plan.json"


@dataclass(frozen=True)
class Plan:
    """Methods x seeds, one base, one corpus, one budget.

    Attributes:
        methods: the rows.
        seeds: each method that has chance in it is made with each.
        corpus: files, globs or bundled names, and how they are read.
        base: of every method that takes a transformer.
        vectors: of every method that takes word vectors.
        tasks: what all are scored on.
        data: the folder of SentEval's data.
        steps: updates of each training; None where `minutes` are given, or nothing is trained.
        minutes: of updates for each training, its evaluations not counted.
        preset: of every recipe that names none itself.
        shared: options of training for every recipe, over the presets'.

    Raises:
        ComparisonError, OptionError: no method, no seed, no budget or two, or options that do not go together.
    """

    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    corpus: tuple[str, ...]
    base: str = "bundled:minilm"
    vectors: str = "bundled:glove"
    tasks: str = "sts"
    data: str | None = None
    steps: int | None = None
    minutes: float | None = None
    preset: str | None = None
    shared: dict[str, Any] = field(default_factory=dict)
    corpus_options: CorpusOptions | None = None

    def __post_init__(self) -> None:
        if not self.methods:
            raise ComparisonError("There is no method to compare. Give one or more, as: simcse, 'arccse margin=0'.")
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ComparisonError(f"Seeds are one or more different numbers, not {list(self.seeds)}.")
        trained = [method for method in self.methods if method.kind == "recipe"]
        if trained and (self.steps is None) == (self.minutes is None):
            raise ComparisonError("One budget for all: give either steps or minutes.")
        if (self.steps is not None and self.steps < 1) or (self.minutes is not None and not self.minutes > 0):
            raise ComparisonError(f"The budget must be above 0, not {self.steps or self.minutes}.")
        known = set(TrainingOptions.model_fields) - {"max_steps", "epochs"}
        if unknown := sorted(set(self.shared) - known):
            raise OptionError(
                f"there is no option {', '.join(unknown)} that all recipes share; there are {', '.join(sorted(known))}"
            )
        for method in trained:
            if self.preset and not method.preset and self.preset not in RECIPES[method.name].presets:
                there = ", ".join(RECIPES[method.name].presets)
                raise ComparisonError(f"{method.name} has no preset '{self.preset}'; it has {there}. Name one for it.")
        for method in self.methods:
            chosen = self.options(method)
            if method.kind == "recipe" and (check := RECIPES[method.name].check_base):
                check(self.base_of(method), chosen)
        resolve(self.tasks)

    def base_of(self, method: Method) -> str:
        """What a method is made of."""
        return method.base or (self.vectors if method.takes_vectors else self.base)

    def options(self, method: Method, steps: int | None = None) -> Any:
        """All options of a method under the budget; None where it has none."""
        budget = {"max_steps": steps or self.steps or 0}
        return method.chosen({**self.shared, **budget}, self.preset)

    def runs(self, sentences: int) -> list[tuple[Method, int]]:
        """Every run, all methods of one seed before the next; a method without chance runs with the first seed only."""
        return [
            (method, seed)
            for seed in self.seeds
            for method in self.methods
            if seed == self.seeds[0] or method.has_chance(sentences)
        ]

    def read_corpus(self) -> PreparedCorpus:
        """The corpus, read once and then mapped from disk.

        Raises:
            CorpusError: it cannot be read, or does not fill one batch of every method.
        """
        sizes = [o.batch_size * o.accumulation for m in self.methods if m.kind == "recipe" and (o := self.options(m))]
        return prepare(list(self.corpus), self.corpus_options, at_least=max(sizes, default=1))

    def check_tasks(self) -> None:
        """Tell before the first training if nothing can be scored.

        Raises:
            DataError: there is no data folder, or a file in it is malformed.
            ComparisonError: every task is missing.
        """
        wanted, _ = resolve(self.tasks)
        folder = find_data(self.data) if any(task.needs_data for task in wanted) else None
        reasons = []
        for task in wanted:
            try:
                task.prepare(folder)
                return
            except TaskMissing as reason:
                reasons.append(f"{task.title}: {reason}")
        raise ComparisonError(f"No task can be scored ({'; '.join(reasons)}). Give another --data or --tasks.")

    def settings(self, corpus: PreparedCorpus) -> dict[str, Any]:
        """What must be the same for all rows of one table."""
        return {
            "base": self.base,
            "vectors": self.vectors,
            "corpus": list(corpus.sources),
            "sentences": len(corpus),
            "sha256": corpus.sha256,
            "corpus_options": (self.corpus_options or CorpusOptions()).to_dict(),
            "tasks": [task.name for task in resolve(self.tasks)[0]],
            "steps": self.steps,
            "minutes": self.minutes,
            "preset": self.preset,
            "shared": self.shared,
        }


def keep_settings(folder: Path, settings: dict[str, Any]) -> None:
    """Write the settings into a new folder, or check them against those of the comparison that lies there.

    Methods and seeds are not among them: a table may grow.

    Raises:
        ComparisonError: it is another comparison; the message names the first difference.
    """
    path = folder / _KEPT
    if not path.exists():
        write_json(path, settings, strict=True)
        return
    try:
        old = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ComparisonError(f"'{path}' cannot be read ({error}). Give another --out.") from None
    # The files of a corpus may have moved; what counts is what they say.
    for name in (key for key in settings if key != "corpus"):
        if old.get(name) != settings[name]:
            raise ComparisonError(
                f"The comparison in '{folder}' was started with {name} {old.get(name)!r}, not {settings[name]!r}. Give "
                "another --out, or the settings that it was started with."
            )


def as_texts(value: str | os.PathLike[str] | Sequence[str]) -> tuple[str, ...]:
    """One or several names as a tuple."""
    return (os.fspath(value),) if isinstance(value, (str, os.PathLike)) else tuple(os.fspath(one) for one in value)
