"""One run of a comparison: make the model and score it. The result is plain values for JSON."""

from __future__ import annotations

import json
import shutil
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.baselines import baseline, find_baseline
from likewise.comparison.compared_methods import Method, Settings
from likewise.corpus import PreparedCorpus
from likewise.evaluation import evaluate
from likewise.evaluation.task import Items, TaskResult, plain
from likewise.inference import load
from likewise.recipes.recipe_options import TrainingOptions
from likewise.runs.job import machine, read_record, versions
from likewise.runs.whole_files import Record, written_whole
from likewise.training.selection import choose_selection

FINISHED, FAILED = "finished", "failed"
_NOT_LOSSES = {"step", "seconds", "cpu_seconds", "loss", "grad_norm", "learning_rate", "epoch"}
"""Numbers of a log that are no part of the loss."""


@dataclass(frozen=True)
class RunMaker:
    """The maker of the runs of a comparison.

    Attributes:
        corpus: the text to train on; None if no method learns.
        models: the folder of the models, which are removed after their run; a training found there is resumed.
    """

    settings: Settings
    corpus: PreparedCorpus | None
    models: Path

    def run(self, method: Method, seed: int, items: Path) -> Record:
        """Do a run. An error is recorded as its result and does not end the comparison.

        Args:
            items: the file for what the scores are statistics of (`kept_items`), by which differences are tested.
        """
        started = time.monotonic()
        result: Record = {
            "label": method.label,
            "kind": method.kind,
            "name": method.name,
            "summary": method.summary,
            "preset": method.preset or (self.settings.preset if method.kind == "recipe" else None),
            "given": method.options,
            "base": self.settings.base_of(method),
            "seed": seed,
        }
        try:
            result |= {"status": FINISHED, **self._done(method, seed, items)}
        except Exception as error:
            result |= {
                "status": FAILED,
                "error": f"{type(error).__name__}: {error}",
                "traceback": traceback.format_exc().splitlines()[-12:],
            }
        return plain(result | {"seconds": round(time.monotonic() - started, 1)})

    def _done(self, method: Method, seed: int, items: Path) -> Record:
        settings, base, out = self.settings, self.settings.base_of(method), self.models / f"{method.key}-seed{seed}"
        facts: Record = {}
        model: Any = f"{method.kind}:{base}"  # of bertscore and origin
        if method.kind == "made":
            assert method.make is not None
            made = method.make(out, seed)
            facts = {**made} if isinstance(made, Mapping) else {"model": made}
            model = facts.pop("model", None) or load(out, precision="fp32")
        elif method.kind == "recipe":
            facts = self._trained(method, seed, out)
            model = load(out, precision="fp32")
        elif method.kind not in ("bertscore", "origin"):
            if method.kind == "baseline":
                facts = self._fitted(method, seed, out)
            model = load(out if method.kind == "baseline" else base, precision="fp32")
            facts |= self._selection_score(model, seed)
        report = evaluate(model, settings.tasks, data=settings.data, precision=settings.precision)  # type: ignore[arg-type]
        for key, attribute in (("scores", "score"), ("titles", "title"), ("metrics", "metric")):
            facts[key] = {result.name: getattr(result, attribute) for result in report.results}
        facts["averages"] = dict(report.averages)
        facts["missing"] = {result.title: result.reason for result in report.missing}
        keep_items(items, report.results)
        shutil.rmtree(out, ignore_errors=True)
        return {**facts, "versions": versions(), "machine": machine()}

    def _common(self, method: Method, seed: int, out: Path) -> Record:
        """Return the arguments that fitting and training share."""
        base, options = self.settings.base_of(method), self.settings.corpus_options
        return {"base": base, "out": out, "seed": seed, "corpus_options": options, "quiet": True}

    def _fitted(self, method: Method, seed: int, out: Path) -> Record:
        corpus = None if find_baseline(method.name).corpus == "none" else list(self.settings.corpus) or None
        record = baseline(
            method.name, corpus, overwrite=True, **self._common(method, seed, out), **method.options
        ).record
        return {"options": record["options"], "training_seconds": record["seconds"]}

    def _trained(self, method: Method, seed: int, out: Path) -> Record:
        """Train, or resume a stopped training, and return the facts of it."""
        import likewise

        settings = self.settings
        if not (record := read_record(out)):
            common = self._common(method, seed, out) | {"preset": method.preset or settings.preset}
            budget = {} if settings.steps is None else {"max_steps": settings.steps}
            options = settings.shared | budget | method.options
            record = likewise.train(method.name, list(settings.corpus), data=settings.data, **common, **options).record
        path, best = out / "log.jsonl", record.get("best") or {}
        lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
        entries: list[Record] = [json.loads(line) for line in lines]
        metric = f"eval_{best.get('metric')}"
        kept = next((entry for entry in entries if metric in entry and entry["step"] == best["step"]), {})
        return {
            **{name: record[name] for name in ("options", "preset", "selection", "steps")},
            "training_seconds": record["seconds"],
            "idle": idle_parts(entries),
            "dev": {name: best.get(name) for name in ("metric", "score", "step")},
            **_geometry(kept, metric),
        }

    def _selection_score(self, model: Any, seed: int) -> Record:
        """Score an untrained model by the metric that selects the checkpoints of trained ones."""
        if self.corpus is None:
            return {}
        options = TrainingOptions(**self.settings.shared)
        selection = choose_selection(self.corpus.dataset, options, seed, self.settings.data)
        if selection.evaluator is None:
            return {}
        scores, metric = selection.evaluator(model), selection.evaluator.primary_metric
        dev = {"metric": metric, "score": scores[metric], "step": None}
        return {"selection": selection.description, "dev": dev, **_geometry(scores, metric)}


def keep_items(path: Path, results: tuple[TaskResult, ...]) -> None:
    """Write what the scores of a run are statistics of: 32 bits a value."""
    arrays: dict[str, np.ndarray] = {}
    for result in results:
        if result.items is not None:
            arrays[f"{result.name}/values"] = result.items.values.astype(np.float32)
            if result.items.gold is not None:
                arrays[f"{result.name}/ranked"] = result.items.gold.astype(np.float32)
    with written_whole(path) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def kept_items(path: Path) -> dict[str, Items]:
    """Return what `keep_items` wrote, by task; {} if there is no such file."""
    if not path.is_file():
        return {}
    with np.load(path) as arrays:
        columns = dict(arrays)
    tasks = [name.removesuffix("/values") for name in columns if name.endswith("/values")]
    return {task: Items(columns[f"{task}/values"].astype(np.float64), columns.get(f"{task}/ranked")) for task in tasks}


def idle_parts(entries: list[Record]) -> list[str]:
    """Return the parts of the loss that were 0 in every entry of a training's log."""
    parts: dict[str, float] = {}
    for entry in (entry for entry in entries if "loss" in entry):
        for name, value in entry.items():
            if name not in _NOT_LOSSES and isinstance(value, int | float):
                parts[name] = max(parts.get(name, 0.0), abs(value))
    return [name for name, largest in parts.items() if largest == 0]


def _geometry(scores: Record, metric: str) -> Record:
    """Return the alignment and uniformity that the evaluator of a metric gave."""
    evaluator = metric.rpartition("_")[0]
    return {name: scores.get(f"{evaluator}_{name}") for name in ("alignment", "uniformity")}
