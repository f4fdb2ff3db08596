"""The settings of a comparison, checked before work starts."""

from dataclasses import dataclass, field
from typing import Any

from likewise.comparison.methods import ComparisonError, Method
from likewise.corpus import CorpusOptions, PreparedCorpus, prepare
from likewise.evaluation.registry import resolve
from likewise.evaluation.suite import read_tasks
from likewise.recipes import find_recipe
from likewise.recipes.options import TrainingOptions
from likewise.runs.options import OptionError, checked_seed, unknown_option
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress

_BUDGET = {"max_steps", "epochs"}


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
    minutes: float | None = None
    preset: str | None = None
    shared: dict[str, Any] = field(default_factory=dict)
    corpus_options: CorpusOptions | None = None

    def __post_init__(self) -> None:
        if not self.methods:
            raise ComparisonError("There is no method to compare. Give one or more, as: simcse, 'arccse margin=0'.")
        for seed in self.seeds:
            checked_seed(seed)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ComparisonError(f"Seeds are one or more different numbers, not {list(self.seeds)}.")
        trained = [method for method in self.methods if method.kind == "recipe"]
        if trained and (self.steps is None) == (self.minutes is None):
            raise ComparisonError("One budget for all: give either steps or minutes.")
        if any(budget is not None and not budget > 0 for budget in (self.steps, self.minutes)):
            raise ComparisonError(f"The budget must be above 0, not {self.steps or self.minutes}.")
        for method in trained:
            find_recipe(method.name).check_base(self.base_of(method), self.options(method))
        resolve(self.tasks)

    def base_of(self, method: Method) -> str:
        """Return the base of a method."""
        return method.base or (self.vectors if method.takes_vectors else self.base)

    def options(self, method: Method) -> Any:
        """Return all options of a method under the budget; None where it has none."""
        return method.chosen({**self.shared, "max_steps": self.steps or 0}, self.preset)

    def runs(self, sentences: int) -> list[tuple[Method, int]]:
        """Return every run, all methods of one seed before the next seed."""
        return [
            (method, seed)
            for seed in self.seeds
            for method in self.methods
            if seed == self.seeds[0] or method.differs_by_seed(sentences)
        ]

    def read_corpus(self, progress: Progress | None = None) -> PreparedCorpus:
        """Read the corpus, which must fill one batch of every method."""
        sizes = [o.batch_size * o.accumulation for m in self.methods if m.kind == "recipe" and (o := self.options(m))]
        return prepare(list(self.corpus), self.corpus_options, progress=progress, at_least=max(sizes, default=1))

    def tasks_found(self) -> list[str]:
        """Return the names of the tasks whose data is there; there must be at least one."""
        found, missing = read_tasks(resolve(self.tasks)[0], self.data)
        if not found:
            reasons = "; ".join(f"{task.title}: {task.reason}" for task in missing)
            raise ComparisonError(f"No task can be scored ({reasons}). Give another --data or --tasks.")
        return [task.name for task, _ in found]

    def to_dict(self) -> dict[str, Any]:
        """Return the settings that all rows of a table share, as plain values; the others may be extended later."""
        return {
            "base": self.base,
            "vectors": self.vectors,
            "corpus_options": (self.corpus_options or CorpusOptions()).to_dict(),
            "tasks": [task.name for task in resolve(self.tasks)[0]],
            "steps": self.steps,
            "minutes": self.minutes,
            "preset": self.preset,
            "shared": self.shared,
        }

    def plan(self, corpus: PreparedCorpus) -> Plan:
        """Return the plan of the table."""
        inputs = {"corpus": corpus.sha256, "set of evaluation files": self.tasks_found()}
        return Plan("compare", self.to_dict(), inputs)


def check_shared(shared: dict[str, Any]) -> None:
    """Raise an OptionError if an option of all recipes is unknown or out of range."""
    known = set(TrainingOptions.model_fields) - _BUDGET
    if unknown := sorted(set(shared) - known):
        raise OptionError(f"{unknown_option(unknown[0], known)}, which all recipes share")
    TrainingOptions(**shared)
