"""Evaluation of a model on tasks, with each distinct sentence encoded once."""

from __future__ import annotations

import inspect
import math
import os
import time
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, overload

import numpy as np

from likewise.evaluation.data_folder import find_data
from likewise.evaluation.registry import GROUPS, resolve
from likewise.evaluation.report import EvaluationReport, EvaluationReports, MissingTask
from likewise.evaluation.task import DocumentSearch, EvaluationError, Prepared, Task, TaskMissing, TaskResult
from likewise.evaluation.tasks import sts
from likewise.runs.options import checked
from likewise.runs.plugins import COMPARED_SCORERS, SCORERS_GROUP, entry_points_of, not_installed
from likewise.runs.progress import Progress
from likewise.runs.results import job_of
from likewise.runs.whole_files import Record

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.encoder.location import Role
    from likewise.inference.vectors import Precision

_BATCH = 64  # sentences; another size changes the last bits of a score
Scored: TypeAlias = "SentenceTransformer | PairScorer | DocumentSearch | str | os.PathLike[str]"


class PairScorer(Protocol):
    """A model that scores the similarity of two sentences directly, without sentence vectors.

    The report contains its name and its settings (`similarity`, `precision`). A scorer that can also rank texts for a
    query, for retrieval and nearest neighbors, has a method `rows(ranked, queries, progress)`, which returns a
    function from a slice of the `queries` to the scores (B, R) of all ranked texts.
    """

    name: str
    settings: dict[str, str]

    def score_pairs(self, first: Sequence[str], second: Sequence[str], progress: Progress) -> np.ndarray:
        """Return a score for each of P pairs, (P,); higher is more similar."""


@overload
def evaluate(  # type: ignore[overload-overlap]  # a name is a sequence of names, too
    model: Scored,
    tasks: str | Task | Iterable[str | Task] = "sts",
    *,
    data: str | os.PathLike[str] | None = None,
    precision: Precision | None = None,
    without_overlap: bool = False,
    quiet: bool = True,
) -> EvaluationReport: ...


@overload
def evaluate(
    model: Sequence[Scored],
    tasks: str | Task | Iterable[str | Task] = "sts",
    *,
    data: str | os.PathLike[str] | None = None,
    precision: Precision | None = None,
    without_overlap: bool = False,
    quiet: bool = True,
) -> EvaluationReports: ...


@checked
def evaluate(
    model: Scored | Sequence[Scored],
    tasks: str | Task | Iterable[str | Task] = "sts",
    *,
    data: str | os.PathLike[str] | None = None,
    precision: Precision | None = None,
    without_overlap: bool = False,
    quiet: bool = True,
) -> EvaluationReport | EvaluationReports:
    """Evaluate a model, or compare several models, on tasks.

    Args:
        model: Encoder, or its path or name as in `likewise.load`; a `PairScorer`; "origin:WORKSPACE" for the similarity
            by contexts; NAME:PLACE for a scorer of another package (entry points `likewise.scorers`); or, for
            retrieval, a `likewise.Index` or its path. A list gives one table with the differences from the first.
        tasks: Names of tasks, separated by commas (sts12, sts-b-dev, mr, trec, wiki-sections and others): "sts" for the
            seven test sets of the papers, "transfer" for SentEval's seven transfer tasks, and retrieval:FOLDER,
            pairs:FILE or classes:FOLDER for your own data (docs/guides/evaluate.md); or a `Task`, or a sequence.
        data: Path to SentEval's data; see `find_data`.
        precision: Precision of encoding: "fp32", the default, as in published scores, or "bf16" for bfloat16 autocast.
        without_overlap: Whether to exclude the pairs of STS-B train and dev from the other STS tests; the report states
            their number.
        quiet: Whether to show no progress on standard error.

    Returns:
        The report, or the reports of several models in their order. A report names each task whose files are missing;
        an average that needs such a task is None.

    Raises:
        EvaluationError: If a task is unknown.
        DataError: If there is no data folder, or a file in it is malformed.
        LoadError: If the model cannot be loaded.

    Example:
        Your own rated pairs are a file of scores and sentences:

        >>> import likewise
        >>> from pathlib import Path
        >>> _ = Path("pairs.tsv").write_text("5\\tIt rains.\\tRain falls.\\n0\\tIt rains.\\tHe sold his car.\\n")
        >>> report = likewise.evaluate("bundled:minilm", "pairs:pairs.tsv")
        >>> report["pairs:pairs.tsv"].n
        2
    """
    if isinstance(model, list | tuple):
        how: Record = {"data": data, "precision": precision, "quiet": quiet}
        chosen = tuple(tasks) if not isinstance(tasks, str | Task) else tasks
        reports = tuple(evaluate(one, chosen, without_overlap=without_overlap, **how) for one in model)
        return EvaluationReports(reports)
    start = time.perf_counter()
    progress = Progress(quiet)
    selected, groups = resolve(tasks)
    if without_overlap:
        selected = tuple(sts.without_overlap(selected))
    named = os.fspath(model) if isinstance(model, (str, os.PathLike)) else ""
    # The data is read first: it takes a moment, and a model may take minutes.
    prepared, missing = read_tasks(selected, data)
    scorer: Any = model if hasattr(model, "score_pairs") or hasattr(model, "documents") else None
    if named:
        scorer = _named_scorer(named, precision)
    results: list[TaskResult] = []
    if scorer is not None:
        reason = f"it needs sentence vectors, which {scorer.name} does not have"
        if hasattr(scorer, "documents"):
            reason = f"{scorer.name} is an index, which is scored on retrieval:FOLDER"
        ways = [_way(scorer, ready) for _, ready in prepared]
        both = list(zip(prepared, ways, strict=True))
        missing += [MissingTask(task.name, task.title, reason) for (task, _), way in both if way is None]
        prepared = [one for one, way in both if way is not None]
        results = [way(progress) for way in ways if way is not None]
        named, settings = scorer.name, dict(scorer.settings)
    else:
        from likewise.encoder.settings import ModelSettings  # imported here, as torch is not needed above
        from likewise.inference.load_model import load
        from likewise.inference.text_encoder import cosine_note

        encoder: Any = load(model, precision="fp32") if isinstance(model, (str, os.PathLike)) else model
        if other := ModelSettings.of(encoder).other_similarity:
            progress.tell(cosine_note(other))
        vectors = _vectors_of(encoder, [ready for _, ready in prepared], precision, progress)
        with progress.bar("scoring", len(prepared)) as bar:
            for task, ready in prepared:
                bar.update(note=task.title)
                results.append(ready.score(vectors(ready)))
                bar.advance()
        named, settings = named or type(model).__name__, _settings(encoder, precision)
    return EvaluationReport(
        model=named,
        results=tuple(results),
        missing=tuple(missing),
        averages={group: _average(GROUPS[group], results) for group in groups},
        settings=settings | {"sentences": len({text for _, ready in prepared for text in ready.sentences})},
        seconds=time.perf_counter() - start,
    )


def read_tasks(
    tasks: Iterable[Task], data: str | os.PathLike[str] | None
) -> tuple[list[tuple[Task, Prepared]], list[MissingTask]]:
    """Read the data of tasks; return the ready tasks, and the tasks whose data is missing."""
    folder = None
    prepared: list[tuple[Task, Prepared]] = []
    missing: list[MissingTask] = []
    for task in tasks:
        try:
            if task.needs_data and folder is None:
                folder = find_data(data)
            ready = task.read(folder or Path())
            prepared.append((task, ready if isinstance(ready, Prepared) else Prepared(*ready)))
        except TaskMissing as reason:
            missing.append(MissingTask(task.name, task.title, str(reason)))
    return prepared, missing


def _named_scorer(name: str, precision: Precision | None) -> Any:
    """Return the scorer or the search of a name; None for a model."""
    kind_of_name, colon, place = name.partition(":")
    kind = kind_of_name if colon else job_of(name)  # an index is a folder like any other
    for entry in entry_points_of(SCORERS_GROUP):
        if entry.name == kind:
            opens = entry.load()
            takes_precision = precision is not None and "precision" in inspect.signature(opens).parameters
            return opens(place if colon else name, **({"precision": precision} if takes_precision else {}))
    if colon and kind_of_name in COMPARED_SCORERS:
        raise EvaluationError(not_installed(kind_of_name))
    return None


def _way(scorer: Any, ready: Prepared) -> Callable[[Progress], TaskResult] | None:
    """Return a function that scores a task by a scorer without sentence vectors; None if it cannot."""
    pairs, rows, search = ready.score_pairs, ready.score_rows, ready.score_search
    if hasattr(scorer, "documents"):
        return None if search is None else partial(search, scorer)
    if rows is not None and hasattr(scorer, "rows"):
        ranked, queries = ready.sentences[: ready.ranked], ready.sentences[ready.ranked :]
        return lambda progress: rows(scorer.rows(ranked, queries, progress))
    if pairs is not None:
        count = len(ready.sentences) // 2
        first, second = ready.sentences[:count], ready.sentences[count:]
        return lambda progress: pairs(scorer.score_pairs(first, second, progress))
    return None


def _average(members: Sequence[str], results: Sequence[TaskResult]) -> float | None:
    """Return the mean of a group's main scores; None if one is missing or undefined."""
    scores = {result.name: result.score for result in results}
    if any(math.isnan(scores.get(name, math.nan)) for name in members):
        return None
    return float(np.mean([scores[name] for name in members]))


def _settings(model: SentenceTransformer, precision: str | None) -> dict[str, object]:
    from likewise.runs.releases import versions

    releases = versions()
    return {
        "similarity": "cosine",
        "precision": precision or str(next((p.dtype for p in model.parameters()), "none")).removeprefix("torch."),
        "max_seq_length": model.max_seq_length,
        "device": str(model.device),
        **{
            name.replace("-", "_"): releases[name]
            for name in ("likewise", "sentence-transformers", "transformers", "torch")
        },
    }


def _vectors_of(
    encoder: SentenceTransformer, tasks: Sequence[Prepared], precision: Any, progress: Progress
) -> Callable[[Prepared], np.ndarray]:
    """Encode the sentences of all tasks, each once, and return a function from a task to its vectors (S, D).

    The queries and documents of a retrieval task are encoded as such if the model does that in another way.
    """
    from likewise.encoder.settings import ModelSettings
    from likewise.inference.text_encoder import all_finite, float32
    from likewise.inference.vectors import autocast, encode

    sides = ModelSettings.of(encoder).has_sides

    def keys(task: Prepared) -> list[tuple[Role | None, str]]:
        return list(zip(task.roles if sides else [None] * len(task.sentences), task.sentences, strict=True))

    place: dict[tuple[Role | None, str], int] = {}
    parts: list[np.ndarray] = []
    every = dict.fromkeys(key for task in tasks for key in keys(task))
    for role in dict.fromkeys(role for role, _ in every):
        texts = [text for other, text in every if other == role]
        place |= {(role, text): len(place) + i for i, text in enumerate(texts)}
        if role is None:
            rows = encode(encoder, texts, batch_size=_BATCH, precision=precision, progress=progress)  # (U, D)
        else:
            method = encoder.encode_query if role == "query" else encoder.encode_document
            with autocast(encoder, precision), progress.bar(f"encoding {role} texts"):
                made = method(texts, batch_size=_BATCH, convert_to_tensor=True, show_progress_bar=False)
            rows = all_finite(float32(made))
        parts.append(rows)
    table = np.concatenate(parts) if parts else np.zeros((0, 0), dtype=np.float32)
    return lambda task: table[np.array([place[key] for key in keys(task)])]
