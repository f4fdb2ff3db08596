"""Run evaluation tasks on a model: every sentence is encoded once, whichever tasks it belongs to."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from likewise.evaluation.registry import GROUPS, resolve
from likewise.evaluation.report import EvaluationReport, MissingTask
from likewise.evaluation.tasks import Prepared, Task, TaskMissing, TaskResult, find_data

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer

    from likewise.evaluation.pair_scoring import PairScorer
    from likewise.inference.encoding import Precision

BERTSCORE = "bertscore:"
"""Before a model's name: BERTScore on its tokens, in the place of its sentence vectors."""

CROSS_ENCODER = "cross-encoder:"
"""Before a model's name: it scores pairs and has no sentence vectors."""


def _pair_scorer(name: str, batch_size: int, precision: Precision | None) -> PairScorer:
    if name.startswith(CROSS_ENCODER):
        from likewise.evaluation.cross_encoder import CrossEncoderScorer

        return CrossEncoderScorer(name.removeprefix(CROSS_ENCODER), batch_size=batch_size, precision=precision)
    from likewise.evaluation.bertscore import BertScore

    return BertScore(name.removeprefix(BERTSCORE), batch_size=batch_size, precision=precision)


def evaluate(
    model: SentenceTransformer | PairScorer | str | os.PathLike[str],
    tasks: str | Sequence[str] = "sts",
    data: str | os.PathLike[str] | None = None,
    *,
    batch_size: int = 64,
    precision: Precision | None = None,
    progress: bool = True,
) -> EvaluationReport:
    """Score a model on evaluation tasks.

    Args:
        model: a SentenceTransformer, or what `likewise.load` takes (a folder, a hub name, "bundled:minilm"); or a
            pair scorer: one in memory, "bertscore:MODEL" for BERTScore on the tokens of a model, or
            "cross-encoder:MODEL".
        tasks: "sts" for the seven test sets of the papers, "transfer" for SentEval's seven transfer tasks, or names
            with commas or in a sequence: sts12, sts-b-dev, mr, trec, news, afs, wiki-sections ...
        data: the folder of SentEval's data; None looks at LIKEWISE_DATA and ../shared/data.
        batch_size: sentences a batch.
        precision: None or "fp32", or "bf16" for bfloat16 autocast. Published scores are of fp32.
        progress: show a bar on standard error.

    Returns:
        The report. A task whose files are not there is named in it, and an average that needs it is None.

    Raises:
        UnknownTaskError: a task is unknown.
        DataError: there is no data folder, or a file in it is malformed.
        LoadError: the model cannot be loaded.
    """
    if isinstance(model, str) and model.startswith((BERTSCORE, CROSS_ENCODER)):
        resolve(tasks)  # a misspelt task is told before the model is loaded
        model = _pair_scorer(model, batch_size, precision)
    if not isinstance(model, str) and hasattr(model, "score_pairs"):
        from likewise.evaluation.pair_scoring import evaluate_pairs

        scorer: Any = model
        return evaluate_pairs(scorer, tasks, data, progress=progress)
    start = time.perf_counter()
    wanted, groups = resolve(tasks)
    # The data first: it takes a moment, and a model may take minutes.
    folder = find_data(data) if any(task.needs_data for task in wanted) else None
    prepared: list[tuple[Task, Prepared]] = []
    missing: list[MissingTask] = []
    for task in wanted:
        try:
            prepared.append((task, task.prepare(folder)))
        except TaskMissing as reason:
            missing.append(MissingTask(task.name, task.title, str(reason)))

    # Imported only here: nothing above needs torch.
    from likewise.inference.encoding import encode
    from likewise.inference.loading import load

    encoder = load(model) if isinstance(model, (str, os.PathLike)) else model
    place = {text: i for i, text in enumerate(dict.fromkeys(s for _, p in prepared for s in p.sentences))}
    vectors = encode(encoder, list(place), batch_size=batch_size, precision=precision, progress=progress)  # (U, D)
    results = tuple(
        ready.score(vectors[np.array([place[s] for s in ready.sentences])]) for ready in _shown(prepared, progress)
    )
    return EvaluationReport(
        model=os.fspath(model) if isinstance(model, (str, os.PathLike)) else type(model).__name__,
        results=results,
        missing=tuple(missing),
        averages={group: average(GROUPS[group], results) for group in groups},
        settings=_settings(encoder, precision, len(place)),
        seconds=time.perf_counter() - start,
    )


def _shown(prepared: Sequence[tuple[Task, Prepared]], progress: bool) -> Iterator[Prepared]:
    """The tasks one by one, under a bar: to probe vectors takes a while."""
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True, disable=not progress) as bar:
        line = bar.add_task("scoring", total=len(prepared))
        for task, ready in prepared:
            bar.update(line, description=f"scoring {task.title}")
            yield ready
            bar.advance(line)


def average(members: Sequence[str], results: Sequence[TaskResult]) -> float | None:
    """The mean of a group's main scores, or None if one is not there or undefined: never a 0 in its place."""
    scores = {result.name: result.score for result in results}
    if any(math.isnan(scores.get(name, math.nan)) for name in members):
        return None
    return float(np.mean([scores[name] for name in members]))


def _settings(model: SentenceTransformer, precision: str | None, sentences: int) -> dict[str, object]:
    import sentence_transformers
    import torch
    import transformers

    from likewise.version import __version__

    return {
        "similarity": "cosine",
        "precision": precision or str(next((p.dtype for p in model.parameters()), "none")).removeprefix("torch."),
        "max_seq_length": model.max_seq_length,
        "sentences": sentences,
        "device": str(model.device),
        "likewise": __version__,
        "sentence_transformers": sentence_transformers.__version__,
        "transformers": transformers.__version__,
        "torch": str(torch.__version__),
    }
