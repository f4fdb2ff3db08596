"""`likewise.compare`: methods trained under one budget and evaluated, run by run, and one table of their scores."""

from __future__ import annotations

import math
import os
import shutil
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from likewise.corpus import CorpusOptions, prepare
from likewise.corpus.inputs import GivenTexts, TextSource, given_texts
from likewise.encoder.location import model_fingerprint
from likewise.errors import first_line
from likewise.evaluation.data_folder import OwnTask
from likewise.evaluation.registry import resolve
from likewise.evaluation.report import EvaluationReport, MissingTask, score_table
from likewise.evaluation.score_table import ScoreTable
from likewise.evaluation.suite import evaluate, read_tasks
from likewise.evaluation.task import Items, TaskResult, number, plain
from likewise.recipes import TrainingOptions, find_recipe
from likewise.runs.job import Plan, check_target, open_job
from likewise.runs.options import checked, checked_seed
from likewise.runs.progress import Progress, orderly_stop, spoken
from likewise.runs.whole_files import Parts, Record, checksum, read_json, write_json, write_text
from likewise.training.methods import ComparisonError, Method, parse_methods
from likewise.training.train import train
from likewise.training.training_result import base_fingerprint
from likewise.transformers_output import only_errors

FINISHED, FAILED = "finished", "failed"
_FORMAT = 2


@checked
def compare(
    methods: str | Method | Sequence[str | Method],
    corpus: GivenTexts = (),
    *,
    base: str = "bundled:minilm",
    out: str | os.PathLike[str],
    seeds: Sequence[int] = (1, 2, 3),
    steps: int | None = None,
    preset: str | None = None,
    tasks: str | Sequence[str] = "sts",
    data: str | os.PathLike[str] | None = None,
    precision: str | None = None,
    corpus_options: CorpusOptions | None = None,
    on_result: Callable[[Record], None] | None = None,
    quiet: bool = False,
    **shared: Any,
) -> ScoreTable:
    """Train methods under one budget and evaluate them, with the unchanged base as the first row.

    The same call resumes an interrupted comparison and repeats failed runs. A later call with further methods or seeds
    adds them to the comparison. Models are deleted after their evaluation.

    Args:
        methods: Methods, each a recipe and its options ("simcse", "arccse margin=0", "sncse alpha={0.1,0.2}" for a
            grid), a model that `evaluate` opens ("base", a folder, "origin:WORKSPACE"), or a `Method`.
        corpus: Path to the training text, or the texts, as in `likewise.train`; not needed if no method is trained.
        base: Name or path of the base of every method without its own `base=`: a Hugging Face name, a folder or
            `bundled:NAME`.
        out: Path to the folder of the comparison.
        seeds: Random seeds; each method that depends on a seed runs with each of them.
        steps: Number of updates of each training; optional if each method has max_steps.
        preset: Preset of the recipes without their own preset; by default the first preset of each recipe.
        tasks: Names of the evaluation tasks, as in `likewise.evaluate`.
        data: Path to the folder of SentEval's data.
        precision: Precision of the evaluation, as in `likewise.evaluate`.
        corpus_options: Options of reading the corpus.
        on_result: Function that receives the result of each run, including runs of an earlier call.
        quiet: Whether to print nothing.
        shared: Training options of all recipes, such as batch_size, max_length and eval_steps, which override the
            presets.

    Returns:
        The table of the means over the seeds and of the differences from the first row, with 95% confidence intervals.
        It is saved to `out` as comparison.json, .md, .csv and .tex.

    Raises:
        LikewiseError: If the input is invalid; this is raised before the first run. The table reports the errors of
            runs.
        Stopped: If the comparison is interrupted; the same call resumes it.

    Example:
        >>> import likewise
        >>> from pathlib import Path
        >>> _ = Path("pairs.tsv").write_text("5\\tIt rains.\\tRain falls.\\n0\\tIt rains.\\tHe sold his car.\\n")
        >>> texts = ["The cat sleeps on the sofa.", "Prices rose again in May.", "Nobody shut the window."]
        >>> settings = {"steps": 1, "batch_size": 3, "select_by": "last", "seeds": [1], "quiet": True}
        >>> table = likewise.compare("simcse", texts, out="runs/compared", tasks="pairs:pairs.tsv", **settings)
        >>> table.labels
        ('base', 'simcse')
    """
    TrainingOptions(**shared)
    rows = parse_methods([methods] if isinstance(methods, str | Method) else methods, shared=shared, preset=preset)
    if any(method.recipe for method in rows) and not any(method.is_base for method in rows):
        rows = (Method("base"), *rows)
    text = None if isinstance(corpus, Sized) and not len(corpus) else given_texts(corpus, corpus_options)
    budget = {} if steps is None else {"max_steps": steps}
    loop = _Loop(rows, tuple(seeds), text, base, preset, {**shared, **budget}, tasks, data, precision)
    loop.check()
    check_target(out)
    progress = Progress(quiet)
    with open_job(out, loop.plan(progress), grows=True) as job, orderly_stop(progress) as stop, only_errors():
        parts, results, count = Parts(job.result / "results"), [], len(loop.runs)
        for done, (method, seed) in enumerate(loop.runs):
            name, content = f"{method.key}-seed{seed}", model_fingerprint(method.base_in(base))
            if parts.facts.get(f"{name}.json", {}).get("base") == content:
                result = {**read_json(parts.path(f"{name}.json")), "label": method.label}
            else:
                stop.check(f"after run {done} of {count}")
                result = loop.run(method, seed, job.work / "runs" / name)
                if result["status"] == FINISHED:
                    with parts.new(f"{name}.json", base=content) as path:
                        write_json(path, result, strict=True)
                    shutil.rmtree(job.work / "runs" / name, ignore_errors=True)
                progress.tell(f"[{done + 1}/{count}] {_line(result)}")
            results.append(result)
            if on_result:
                on_result(result)
        table = loop.write(results, job.result)
        job.finish({"runs": count, "failed": sum(result["status"] == FAILED for result in results)})
    return table


@dataclass(frozen=True)
class _Loop:
    """The runs of a comparison. Its fields are the arguments of `compare`."""

    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    text: TextSource | None
    base: str
    preset: str | None
    shared: Record
    tasks: str | Sequence[str]
    data: str | os.PathLike[str] | None
    precision: Any

    @property
    def runs(self) -> list[tuple[Method, int]]:
        """The method and the seed of every run, all methods of one seed before the next seed."""
        return [(m, seed) for seed in self.seeds for m in self.methods if seed == self.seeds[0] or m.is_drawn]

    def options(self, method: Method) -> Any:
        """Return all options of a recipe."""
        return find_recipe(method.recipe).options(method.preset or self.preset, **{**self.shared, **method.options})

    def check(self) -> None:
        """Raise an error for invalid seeds, a missing budget or text, or a base that does not suit its recipe."""
        for seed in self.seeds:
            checked_seed(seed)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ComparisonError(f"seeds must be one or more different numbers, not {list(self.seeds)}.")
        for method in [method for method in self.methods if method.recipe]:
            if "max_steps" not in {**self.shared, **method.options}:
                raise ComparisonError("All methods share one budget: give steps.")
            if self.text is None:
                raise ComparisonError(f"{method.label} needs text: give a corpus (--corpus FILE).")
            find_recipe(method.recipe).check_base(method.base_in(self.base), self.options(method))

    def plan(self, progress: Progress) -> Plan:
        """Return the plan, which all rows share; the corpus must fill one batch of every recipe."""
        chosen = [self.options(method) for method in self.methods if method.recipe]
        least = max((options.batch_size * options.accumulation for options in chosen), default=1)
        inputs: Record = {"base": base_fingerprint(self.base), "corpus": None}
        if self.text:
            text = prepare(self.text.files, self.text.options, progress=progress, at_least=least)
            inputs |= {"corpus": text.sha256}
        every = resolve(self.tasks)[0]
        ready, missing = read_tasks(every, self.data)
        if not ready:
            reasons = "; ".join(f"{task.title}: {task.reason}" for task in missing)
            raise ComparisonError(f"No task can be evaluated ({reasons}). Give another --data or --tasks.")
        inputs |= {"set of evaluation files": [task.name for task, _ in ready]}
        own = {task.name: [task.path, *task.path.rglob("*")] for task in every if isinstance(task, OwnTask)}
        inputs |= {name: [checksum(path) for path in sorted(paths) if path.is_file()] for name, paths in own.items()}
        settings: Record = {"base": self.base, "preset": self.preset, "shared": self.shared}
        settings |= {"precision": self.precision, "tasks": [task.name for task in every]}
        settings |= {"corpus_options": self.text and self.text.options.to_dict()}
        return Plan("compare", settings, inputs, _FORMAT)

    def run(self, method: Method, seed: int, out: Path) -> Record:
        """Make a model in `out` and evaluate it. An error is a result, too."""
        started, base = time.monotonic(), method.base_in(self.base)
        result: Record = {"label": method.label, "recipe": method.recipe, "given": method.options, "base": base}
        try:
            model, facts = self._made(method, seed, out)
            report = evaluate(model, self.tasks, data=self.data, precision=self.precision)
        except Exception as error:
            return result | {"seed": seed, "status": FAILED, "error": f"{type(error).__name__}: {first_line(error)}"}
        result |= {**facts, "seed": seed, "status": FINISHED, "seconds": round(time.monotonic() - started, 1)}
        items = {task.name: [task.items.values, task.items.gold] for task in report.results if task.items}
        items = {task: [None if side is None else side.tolist() for side in sides] for task, sides in items.items()}
        return plain(result | {"report": replace(report, model=method.label).to_dict(), "items": items})

    def write(self, results: Sequence[Record], folder: Path) -> ScoreTable:
        """Write the runs and the table, with failed runs and missing tasks below it, and return the table."""
        runs = [{name: value for name, value in result.items() if name != "items"} for result in results]
        write_json(folder / "comparison.json", {"runs": runs}, strict=True)
        reports: dict[str, dict[int, EvaluationReport]] = {method.label: {} for method in self.methods}
        failed = [result for result in results if result["status"] == FAILED]
        for result in [result for result in results if result["status"] == FINISHED]:
            reports[result["label"]][result["seed"]] = _report_of(result)
        seeds = {label: str(len(row)) for label, row in reports.items()}
        for label, count in Counter(result["label"] for result in failed).items():
            seeds[label] += f", {count} failed"
        table = score_table(reports, "Method", seeds)
        notes = [f"Failed: {result['label']}, seed {result['seed']}: {result['error']}" for result in failed]
        every = [report for row in reports.values() for report in row.values()]
        notes += sorted({f"Missing: {task.title}, {task.reason}" for report in every for task in report.missing})
        text = "\n\n".join([table.table(), *notes]).replace("<", "&lt;")  # a name may hold HTML
        write_text(folder / "comparison.md", f"{text}\n")
        table.to_csv(folder / "comparison.csv")
        table.to_latex(folder / "comparison.tex")
        return table

    def _made(self, method: Method, seed: int, out: Path) -> tuple[Any, Record]:
        """Return a model that `evaluate` takes, and facts for the record. A stopped training is resumed."""
        if method.make is not None:
            made = method.make(out, seed)
            facts = {**made} if isinstance(made, Mapping) else {"model": made}
            return facts.pop("model", None) or str(out), facts
        base = method.base_in(self.base)
        if not method.recipe:
            return base, {}
        assert self.text is not None
        how: Record = {"base": base, "seed": seed, "data": self.data, "preset": method.preset or self.preset}
        how |= {"corpus_options": self.text.options, "quiet": True, **self.shared, **method.options}
        record = train(method.recipe, self.text.files, out=out, **how).record
        return str(out), {name: record[name] for name in ("options", "preset", "selection", "steps", "best")}


def _report_of(result: Record) -> EvaluationReport:
    """Return the report of a saved run, whose results have their main scores alone."""
    results, content = [], result["report"]
    for task in content["results"]:
        score = math.nan if task["score"] is None else task["score"]
        sides = [side and np.array(side, np.float64) for side in result["items"].get(task["name"], ())]
        items = Items(*sides) if sides else None
        results.append(TaskResult(task["name"], task["title"], task["metric"], score, task["n"], items=items))
    missing = tuple(MissingTask(**task) for task in content["missing"])
    return EvaluationReport(result["label"], tuple(results), missing, content["averages"])


def _line(result: Record) -> str:
    """Return the line that reports a run."""
    name = f"{result['label']}, seed {result['seed']}"
    if result["status"] == FAILED:
        return f"{name}: failed, {result['error']}"
    report = result["report"]
    scores = {f"average {group}": average for group, average in report["averages"].items()}
    scores = scores or {task["title"]: task["score"] for task in report["results"]}
    text = ", ".join(f"{title} {number(score)}" for title, score in scores.items())
    return f"{name}: {text} ({spoken(result['seconds'])})"
