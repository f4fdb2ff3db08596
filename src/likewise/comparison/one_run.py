"""One run of a comparison: make the model, score it and inspect it. The result is plain values for JSON."""

import json
import shutil
import time
import traceback
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from likewise.comparison.inspection import Material, inspect
from likewise.comparison.methods import Method, Settings
from likewise.corpus import PreparedCorpus
from likewise.evaluation.task import plain
from likewise.recipes.training_options import TrainingOptions
from likewise.runs.whole_files import read_json, write_json

FINISHED, FAILED = "finished", "failed"
_PACE_UPDATES = 20  # of the training that measures the pace; the first half of them is slower, and not counted


@dataclass(frozen=True)
class RunMaker:
    """The maker of the runs of a comparison.

    Attributes:
        models: the folder of the models, which are removed after their run; a training found there is resumed.
        pace: the file of the measured seconds an update, by the key of the method.
    """

    settings: Settings
    corpus: PreparedCorpus
    models: Path
    keep_models: bool
    pace: Path

    @cached_property
    def material(self) -> Material:
        """The sentences that models are inspected with."""
        return Material.of(self.corpus.dataset, self.settings.tasks, self.settings.data, self.settings.seeds[0])

    def run(self, method: Method, seed: int) -> dict[str, Any]:
        """Do a run. An error is recorded as its result and does not end the comparison."""
        started = time.monotonic()
        result: dict[str, Any] = {
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
            result |= {"status": FINISHED, **self._done(method, seed)}
        except Exception as error:
            result |= {
                "status": FAILED,
                "error": f"{type(error).__name__}: {error}",
                "traceback": traceback.format_exc().splitlines()[-12:],
            }
        return plain(result | {"seconds": round(time.monotonic() - started, 1)})

    def steps_of(self, method: Method) -> tuple[int, float | None]:
        """Return the number of updates of a method, and the seconds per update if they had to be measured.

        A budget of minutes is turned into updates beforehand, instead of stopping by the clock: so the learning rate
        ends where its schedule says, and all seeds of a method have the same number.
        """
        if self.settings.steps is not None:
            return self.settings.steps, None
        assert self.settings.minutes is not None
        known = read_json(self.pace) if self.pace.is_file() else {}
        if method.key not in known:
            write_json(self.pace, known | {method.key: self._measured(method)}, strict=True)
            return self.steps_of(method)
        return max(1, int(60 * self.settings.minutes / known[method.key])), known[method.key]

    def _measured(self, method: Method) -> float:
        """Return the seconds per update, over the last half of a short training that is then discarded."""
        out = self.models / f"{method.key}-pace"
        shutil.rmtree(out, ignore_errors=True)
        short = {"max_steps": _PACE_UPDATES, "eval_steps": _PACE_UPDATES, "select_by": "last"}
        self._train(method, self.settings.seeds[0], out, short)
        # The first entry of a step counts: the next one is written after saving.
        at = {entry["step"]: entry["seconds"] for entry in reversed(_entries(out))}
        shutil.rmtree(out)
        middle = max(step for step in at if step <= _PACE_UPDATES // 2)
        return float(max((at[_PACE_UPDATES] - at[middle]) / (_PACE_UPDATES - middle), 1e-6))

    def _done(self, method: Method, seed: int) -> dict[str, Any]:
        from likewise.evaluation import evaluate
        from likewise.inference import load
        from likewise.runs.provenance import machine, versions

        settings, base = self.settings, self.settings.base_of(method)
        out = self.models / f"{method.key}-seed{seed}"
        found: dict[str, Any] = {"training_seconds": 0.0}
        model: Any = f"bertscore:{base}"
        if method.kind == "recipe":
            found = self._trained(method, seed, out)
            model = load(out, precision="fp32")
        elif method.kind == "origin":
            from likewise.context import open_origin

            model = open_origin(base)
        elif method.kind != "bertscore":
            if method.kind == "baseline":
                found = self._fitted(method, seed, out)
            model = load(out if method.kind == "baseline" else base, precision="fp32")
            found |= self._selection_score(model, seed)
        report = evaluate(model, settings.tasks, data=settings.data)
        for key, attribute in (("scores", "score"), ("titles", "title"), ("metrics", "metric")):
            found[key] = {one.name: getattr(one, attribute) for one in report.results}
        found["averages"] = dict(report.averages)
        found["missing"] = {one.title: one.reason for one in report.missing}
        if not isinstance(model, str) and hasattr(model, "encode") and seed == settings.seeds[0]:
            found["inspection"] = inspect(model, method.label, self.material)
        if not self.keep_models:
            shutil.rmtree(out, ignore_errors=True)
        return {**found, "versions": versions(), "machine": machine()}

    def _common(self, method: Method, seed: int, out: Path) -> dict[str, Any]:
        """Return the arguments that fitting and training share."""
        base, options = self.settings.base_of(method), self.settings.corpus_options
        return {"base": base, "out": out, "seed": seed, "corpus_options": options, "quiet": True}

    def _fitted(self, method: Method, seed: int, out: Path) -> dict[str, Any]:
        from likewise.baselines import baseline, find_baseline

        corpus = None if find_baseline(method.name).corpus == "none" else self.settings.corpus
        record = baseline(
            method.name, corpus, overwrite=True, **self._common(method, seed, out), **method.options
        ).record
        return {"options": record["options"], "training_seconds": record["seconds"]}

    def _train(self, method: Method, seed: int, out: Path, options: dict[str, Any]) -> dict[str, Any]:
        """Train, or resume a stopped training; return the record."""
        import likewise
        from likewise.runs.job import read_record

        if record := read_record(out):
            return record
        settings = self.settings
        given = self._common(method, seed, out) | {"preset": method.preset or settings.preset, "data": settings.data}
        return likewise.train(method.name, list(settings.corpus), **given, **{**settings.shared, **options}).record

    def _trained(self, method: Method, seed: int, out: Path) -> dict[str, Any]:
        steps, seconds = self.steps_of(method)
        record = self._train(method, seed, out, {"max_steps": steps, **method.options})
        curve, losses = _course(out)
        best = record.get("best") or {}
        at_best = next((point for point in curve if point["step"] == best.get("step")), {})
        return {
            **{name: record[name] for name in ("options", "preset", "selection", "steps")},
            "seconds_an_update": seconds,
            "training_seconds": record["seconds"],
            "dev": {name: best.get(name) for name in ("metric", "score", "step")},
            **_geometry(at_best),
            "curve": curve,
            "losses": losses,
        }

    def _selection_score(self, model: Any, seed: int) -> dict[str, Any]:
        """Score an untrained model by the metric that selects the checkpoints of trained ones."""
        from likewise.training.selection import choose_selection

        options = TrainingOptions(**self.settings.shared)
        selection = choose_selection(self.corpus.dataset, options, seed, self.settings.data)
        if selection.evaluator is None:
            return {}
        scores, metric = selection.evaluator(model), selection.evaluator.primary_metric
        dev = {"metric": metric, "score": scores[metric], "step": None}
        return {"selection": selection.description, "dev": dev, **_geometry(scores)}


def _entries(out: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (out / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def _course(out: Path) -> tuple[list[dict[str, Any]], list[list[float]]]:
    """Return the evaluations and the losses of a run.

    Returns:
        A list of {'step', 'seconds', 'score', 'alignment', 'uniformity'} (the score is what selects the checkpoint),
        and one of [step, loss]. The last entry of a step counts: a resumed run may have written it twice.
    """
    curve: dict[int, dict[str, Any]] = {}
    losses: dict[int, float] = {}
    for entry in _entries(out):
        step = int(entry["step"])
        if "loss" in entry:
            losses[step] = float(entry["loss"])
        if (score := _ending(entry, "spearman", "separation")) is not None:
            curve[step] = {"step": step, "seconds": entry["seconds"], "score": score, **_geometry(entry)}
    return [curve[step] for step in sorted(curve)], [[step, losses[step]] for step in sorted(losses)]


def _geometry(scores: dict[str, Any]) -> dict[str, float | None]:
    return {name: _ending(scores, name) for name in ("alignment", "uniformity")}


def _ending(entry: dict[str, Any], *endings: str) -> float | None:
    """Return the value whose name ends so, whatever the name of the evaluator."""
    for name, value in entry.items():
        if value is not None and any(name == ending or name.endswith(f"_{ending}") for ending in endings):
            return float(value)
    return None
