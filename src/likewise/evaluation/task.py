"""An evaluation task, its result, and the errors of evaluation.

A family of tasks is a file in `evaluation/tasks/`: a subclass of `Task` and a table of its rows, `TASKS`, which
`registry.py` lists. Another package adds a task by an entry point of the group `likewise.tasks`.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from likewise.errors import LikewiseError, counted
from likewise.runs.progress import Progress
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from likewise.encoder.location import Role

Rows = Callable[[slice], np.ndarray]
"""A function from a slice of the queries to the scores (B, R) of all ranked texts."""


class EvaluationError(LikewiseError):
    """Raised if the arguments of an evaluation are invalid; the message names the cure."""


class DataError(EvaluationError):
    """Raised if evaluation data is malformed or not found; the message names the file, the line and the cure."""


class TaskMissing(EvaluationError):  # noqa: N818 - an outcome that the report names, not a failure
    """Raised if the data of one task is missing: the others are scored, and the report gives the reason."""


@dataclass(frozen=True, eq=False)
class Items:
    """The items from which a score is computed, which allow tests of the difference between two models.

    Attributes:
        values: (N,) value of each scored item: its score, or the cosine of a rated pair.
        gold: (N,) ratings, if the score is their rank correlation with the values; None if the score is the mean of the
            values.
    """

    values: np.ndarray
    gold: np.ndarray | None = None


@dataclass(frozen=True)
class TaskResult:
    """The result of one task.

    Attributes:
        name: Name of the task ("sts12").
        title: Name in a table ("STS12").
        metric: Name of the main metric ("spearman").
        score: Main score, times 100; NaN if it is undefined (all vectors equal).
        n: Number of scored items.
        items: Items from which the score is computed; None if they are unknown, and in JSON.
    """

    COLUMNS: ClassVar[tuple[tuple[str, str], ...]] = (
        ("Task", "title"),
        ("Metric", "metric"),
        ("Score", "score"),
        ("Items", "n"),
    )
    """The columns of its table, each with the attribute that it shows."""

    name: str
    title: str
    metric: str
    score: float
    n: int
    items: Items | None = field(default=None, compare=False, repr=False, kw_only=True)

    def cells(self) -> tuple[str, ...]:
        """Return the table row, in the order of COLUMNS."""
        values = (getattr(self, name) for _, name in self.COLUMNS)
        return tuple(str(value) if isinstance(value, str | int) else number(value) for value in values)

    def to_dict(self) -> Record:
        """Return plain values for JSON; an undefined score is None."""
        return plain({name: value for name, value in asdict(replace(self, items=None)).items() if name != "items"})


class DocumentSearch(Protocol):
    """A search that finds documents for a query, such as an index.

    Its name and its settings (`similarity`, `precision`) are shown in the report.
    """

    name: str
    settings: dict[str, str]

    def documents(self, query: str, limit: int) -> list[tuple[Sequence[str], float]]:
        """Find the documents of the best `limit` passages: the names of each, the most exact first, and its score.

        A document may come several times; the first time counts.
        """


@dataclass(frozen=True)
class Prepared:
    """A task whose data has been read.

    Attributes:
        sentences: S sentences to encode, with repeats.
        score: Function from their vectors, (S, D) float32 in the same order, to the result.
        score_pairs: Function of a pair task from a score for each pair (sentences[i], sentences[i + S / 2]), (S / 2,),
            to the result.
        score_rows: Function of a ranking task from the scores of the first `ranked` sentences for each of the others.
        ranked: Number R of ranked texts, for `score_rows`.
        sides: Whether the ranked texts are documents and the others queries, which some models encode differently.
        score_search: Function of a retrieval task from a search of documents.
    """

    sentences: list[str]
    score: Callable[[np.ndarray], TaskResult]
    score_pairs: Callable[[np.ndarray], TaskResult] | None = None
    score_rows: Callable[[Rows], TaskResult] | None = None
    ranked: int = 0
    sides: bool = False
    score_search: Callable[[DocumentSearch, Progress], TaskResult] | None = None

    @property
    def roles(self) -> list[Role | None]:
        """The role of each sentence, (S,)."""
        if not self.sides:
            return [None] * len(self.sentences)
        documents: list[Role | None] = ["document"] * self.ranked
        queries: list[Role | None] = ["query"] * (len(self.sentences) - self.ranked)
        return documents + queries


@dataclass(frozen=True)
class Task(ABC):
    """An evaluation task, which a subclass defines by `read`.

    Attributes:
        name: Name in lower case for `likewise.evaluate`; a path in it keeps its case.
        title: Name in tables.
        needs_data: Whether the task reads from the folder of SentEval's data.

    >>> class Spread(Task):
    ...     def read(self, data):
    ...         def score(vectors):
    ...             return TaskResult(self.name, self.title, "std", float(vectors.std()), len(vectors))
    ...
    ...         return ["It rains.", "He sold his car."], score
    >>> task = Spread("spread", "Spread", needs_data=False)
    >>> sentences, score = task.read(Path())
    >>> score(np.eye(2)).cells()
    ('Spread', 'std', '0.50', '2')
    """

    name: str
    title: str
    needs_data: bool = field(default=True, kw_only=True)

    @abstractmethod
    def read(self, data: Path) -> Prepared | tuple[list[str], Callable[[np.ndarray], TaskResult]]:
        """Read the task from the data folder, or ignore the folder if the task does not need it.

        Returns:
            The sentences to encode and a function from their vectors to the result, or a `Prepared`.

        Raises:
            TaskMissing: If its data is missing.
            DataError: If its data is malformed.
        """

    def check_count(self, path: Path, count: int, noun: str, size: int | None) -> None:
        """Raise a DataError if the number of items is not the task's; None allows any number."""
        if size is not None and count != size:
            raise DataError(
                f"{path}: {counted(count, noun)}, but {self.title} has {size:,}. Restore the original file."
            )


def number(value: float | None) -> str:
    """Return a value with two decimals, or a dash if it is undefined."""
    return "-" if value is None or math.isnan(value) else f"{value:.2f}"


def plain(value: Any) -> Any:
    """Return the value with tuples converted to lists, and with None for NaN and infinity, which JSON lacks."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
