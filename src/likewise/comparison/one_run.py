"""One run of a comparison: make the model, score it, look at it, and write what came of it by rename."""

from __future__ import annotations

import json
import math
import shutil
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.comparison.inspection import Material, inspect
from likewise.comparison.methods import ComparisonError, Method
from likewise.comparison.pace import steps_of
from likewise.comparison.plan import Plan
from likewise.corpus import PreparedCorpus
from likewise.recipes.options import TrainingOptions
from likewise.runs.whole_files import write_json

FINISHED, FAILED = "finished", "failed"


@dataclass(frozen=True)
class Runner:
    """What does the runs of a plan.

    Attributes:
        plan: what is compared.
        corpus: read.
        folder: of the comparison.
        material: gives what models are looked at with; it is called when the first one is.
        keep_models: leave the trained models in the folder.
    """

    plan: Plan
    corpus: PreparedCorpus
    folder: Path
    material: Callable[[], Material]
    keep_models: bool = False

    def path(self, method: Method, seed: int) -> Path:
        """Where the result of a run lies."""
        return self.folder / "results" / f"{method.key}-seed{seed}.json"

    def read(self, method: Method, seed: int) -> dict[str, Any] | None:
        """The result of a run that is done, under the label that its method has now; None where it is not done.

        Raises:
            ComparisonError: the file cannot be read.
        """
        path = self.path(method, seed)
        if not path.is_file():
            return None
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            if found["status"] not in (FINISHED, FAILED):
                raise ValueError(f"its status is {found['status']!r}")
        except (ValueError, KeyError, TypeError) as error:
            raise ComparisonError(
                f"'{path}' cannot be read ({error!r}). Remove it, and the run is done again."
            ) from None
        return {**found, "label": method.label}

    def run(self, method: Method, seed: int) -> dict[str, Any]:
        """Do a run. An error in it is its result, and no error of the comparison."""
        started = time.monotonic()
        result: dict[str, Any] = {
            "label": method.label,
            "kind": method.kind,
            "name": method.name,
            "summary": method.summary,
            "preset": method.preset or (self.plan.preset if method.kind == "recipe" else None),
            "given": method.options,
            "base": self.plan.base_of(method),
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
        result["seconds"] = round(time.monotonic() - started, 1)
        result = _plain(result)
        path = self.path(method, seed)
        path.parent.mkdir(exist_ok=True)
        write_json(path, result, strict=True)
        return result

    def _done(self, method: Method, seed: int) -> dict[str, Any]:
        from likewise.evaluation import evaluate
        from likewise.runs.provenance import machine, versions

        out = self.folder / "runs" / f"{method.key}-seed{seed}"
        found: dict[str, Any] = {}
        model: Any = None
        if method.kind == "bertscore":
            report = evaluate(f"bertscore:{self.plan.base_of(method)}", self.plan.tasks, data=self.plan.data)
        else:
            found, model = self._made(method, seed, out)
            report = evaluate(model, self.plan.tasks, data=self.plan.data)
        found["scores"] = {one.name: one.score for one in report.results}
        found["titles"] = {one.name: one.title for one in report.results}
        found["metrics"] = {one.name: one.metric for one in report.results}
        found["averages"] = dict(report.averages)
        found["missing"] = {one.title: one.reason for one in report.missing}
        if model is not None and seed == self.plan.seeds[0]:
            found["inspection"] = inspect(model, method.label, self.material())
        if not self.keep_models:
            shutil.rmtree(out, ignore_errors=True)
        return {**found, "versions": versions(), "machine": machine()}

    def _made(self, method: Method, seed: int, out: Path) -> tuple[dict[str, Any], Any]:
        """The model of a run, and how it was made."""
        from likewise.baselines import build_baseline
        from likewise.inference import load

        plan, base = self.plan, self.plan.base_of(method)
        if method.kind == "recipe":
            return self._trained(method, seed, out), load(out)
        started = time.monotonic()
        found: dict[str, Any] = {}
        if method.kind == "baseline":
            from likewise.baselines import find_baseline

            fitted = find_baseline(method.name).corpus != "none"
            made = build_baseline(
                method.name,
                base,
                out,
                list(plan.corpus) if fitted else None,
                corpus_options=plan.corpus_options if fitted else None,
                seed=seed,
                overwrite=True,
                quiet=True,
                **method.options,
            )
            found["options"] = made.record["options"]
            model = load(out)
        else:
            model = load(base)
        found["training_seconds"] = round(time.monotonic() - started, 1) if method.kind == "baseline" else 0.0
        return {**found, **self._selection_score(model, seed)}, model

    def _trained(self, method: Method, seed: int, out: Path) -> dict[str, Any]:
        """Train, or go on where a run was stopped."""
        import likewise
        from likewise.runs.job import read_record

        plan = self.plan
        steps, seconds = steps_of(method, plan, self.folder)
        record = read_record(out) or likewise.train(
            method.name,
            list(plan.corpus),
            base=plan.base_of(method),
            out=out,
            preset=method.preset or plan.preset,
            seed=seed,
            data=plan.data,
            corpus_options=plan.corpus_options,
            quiet=True,
            **{**plan.shared, "max_steps": steps, **method.options},
        ).record
        curve, losses = read_log(out / "log.jsonl")
        best = record.get("best") or {}
        at_best = next((point for point in curve if point["step"] == best.get("step")), {})
        return {
            "options": record["options"],
            "preset": record["preset"],
            "selection": record["selection"],
            "steps": record["steps"],
            "seconds_an_update": seconds,
            "training_seconds": record["seconds"],
            "dev": {"metric": best.get("metric"), "score": best.get("score"), "step": best.get("step")},
            "alignment": at_best.get("alignment"),
            "uniformity": at_best.get("uniformity"),
            "curve": curve,
            "losses": losses,
        }

    def _selection_score(self, model: Any, seed: int) -> dict[str, Any]:
        """What the checkpoints of the trained ones are selected by, for a model that has no training."""
        from likewise.training.selection import choose_selection

        options = TrainingOptions(**self.plan.shared)
        selection = choose_selection(self.corpus.dataset, options, seed, self.plan.data)
        if selection.evaluator is None:
            return {}
        scores = {name: float(value) for name, value in selection.evaluator(model).items()}
        metric = selection.evaluator.primary_metric
        return {
            "selection": selection.description,
            "dev": {"metric": metric, "score": scores[metric], "step": None},
            "alignment": _ending(scores, "alignment"),
            "uniformity": _ending(scores, "uniformity"),
        }


def read_log(path: Path) -> tuple[list[dict[str, Any]], list[list[float]]]:
    """The evaluations and the losses of a run's log.jsonl.

    Returns:
        A list of {'step', 'seconds', 'score', 'alignment', 'uniformity'} (the score is what selects the checkpoint),
        and one of [step, loss].
    """
    curve: dict[int, dict[str, Any]] = {}
    losses: dict[int, float] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        entry = json.loads(line)
        step = int(entry["step"])
        if "loss" in entry:
            losses[step] = float(entry["loss"])
        score = _ending(entry, "spearman", "separation")
        if score is not None:
            # The last one of a step counts: a resumed run may have written it twice.
            curve[step] = {
                "step": step,
                "seconds": entry["seconds"],
                "score": score,
                "alignment": _ending(entry, "alignment"),
                "uniformity": _ending(entry, "uniformity"),
            }
    return [curve[step] for step in sorted(curve)], [[step, losses[step]] for step in sorted(losses)]


def _ending(entry: dict[str, Any], *endings: str) -> float | None:
    """The value whose name ends so, whatever the evaluator is called."""
    for name, value in entry.items():
        if any(name == ending or name.endswith(f"_{ending}") for ending in endings):
            return float(value)
    return None


def _plain(value: Any) -> Any:
    """The same value with numbers that JSON has no words for as None."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
