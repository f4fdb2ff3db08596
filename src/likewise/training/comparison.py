"""`likewise.compare`: methods trained under one budget and evaluated, run by run, and one table of their scores."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.corpus import CorpusOptions, prepare
from likewise.encoder.location import model_fingerprint
from likewise.errors import counted, first_line
from likewise.evaluation.registry import GROUPS, resolve
from likewise.evaluation.score_table import Cell, Column, ScoreTable
from likewise.evaluation.suite import evaluate, read_tasks
from likewise.evaluation.task import Items, plain
from likewise.recipes import TrainingOptions, find_recipe
from likewise.runs.job import Job, Plan, check_target, open_job
from likewise.runs.options import OptionError, checked, checked_seed, unknown_option
from likewise.runs.progress import Progress, orderly_stop, spoken
from likewise.runs.releases import machine, versions
from likewise.runs.whole_files import Parts, Record, checksum, read_json, write_json, write_text, written_whole
from likewise.training.methods import ComparisonError, Method, parse_methods
from likewise.training.train import train
from likewise.training.training_result import base_fingerprint
from likewise.transformers_output import only_errors

FINISHED, FAILED = "finished", "failed"


@checked
def compare(
    methods: str | Method | Sequence[str | Method],
    corpus: str | os.PathLike[str] | Sequence[str] = (),
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

    The same call resumes a comparison that was stopped and repeats runs that failed. A finished comparison grows by new
    methods and seeds. Models are removed once they are evaluated.

    Args:
        methods: Methods, each a recipe and its options ("simcse", "arccse margin=0", "sncse alpha={0.1,0.2}" for a
            grid), a model that `evaluate` opens ("base", a folder, "origin:WORKSPACE"), or a `Method`.
        corpus: Path to the training text, as in `likewise.train`; not needed if no method is trained.
        base: Name or path of the base of every method without its own `base=`: a Hugging Face name, a folder or
            `bundled:NAME`.
        out: Path to the folder of the comparison.
        seeds: Random seeds; each method that depends on a seed runs with each of them.
        steps: Number of updates of each training; not needed if each method has max_steps.
        preset: Preset of every recipe that names none itself; the first of each by default.
        tasks: Names of the evaluation tasks, as in `likewise.evaluate`.
        data: Path to the folder of SentEval's data.
        precision: Precision of the evaluation, as in `likewise.evaluate`.
        corpus_options: Options of reading the corpus.
        on_result: Function that is called with the result of each run, including runs of an earlier call.
        quiet: Whether to print nothing.
        shared: Training options of every recipe, over the presets' (batch_size, max_length, eval_steps ...).

    Returns:
        The table of the means over the seeds and of the differences from the first row, with 95% confidence intervals.
        It is saved to `out` as comparison.json, .md, .csv and .tex.

    Raises:
        LikewiseError: If the input is invalid, before the first run. The error of a run is in the table instead.
        Stopped: If the comparison is interrupted; the same call resumes it.

    Example:
        >>> import likewise
        >>> from pathlib import Path
        >>> _ = Path("pairs.tsv").write_text("5\\tIt rains.\\tRain falls.\\n0\\tIt rains.\\tHe sold his car.\\n")
        >>> table = likewise.compare("base", out="runs/compared", tasks="pairs:pairs.tsv", quiet=True)
        >>> table.labels
        ('base',)
        >>> methods = ["simcse", "arccse margin=10"]
        >>> table = likewise.compare(methods, "text.txt", steps=200, out="runs/both")  # doctest: +SKIP
    """
    known = set(TrainingOptions.model_fields) - {"max_steps", "epochs"}
    if unknown := sorted(set(shared) - known):
        raise OptionError(f"{unknown_option(unknown[0], known)}, which all recipes share")
    TrainingOptions(**shared)
    rows = parse_methods([methods] if isinstance(methods, str | Method) else methods, shared=shared, preset=preset)
    if any(method.recipe for method in rows) and not any(method.is_base for method in rows):
        rows = (Method("base"), *rows)
    texts = [os.fspath(corpus)] if isinstance(corpus, str | os.PathLike) else [*map(os.fspath, corpus)]
    budget = {} if steps is None else {"max_steps": steps}
    loop = _Loop(rows, tuple(seeds), texts, base, {**shared, **budget}, preset, tasks, data, precision, corpus_options)
    loop.check(steps)
    check_target(out)
    progress = Progress(quiet)
    with open_job(out, loop.plan(progress), grows=True) as job, orderly_stop(progress) as stop, only_errors():
        parts = Parts(job.result / "results")
        results = loop.known(parts, job)
        progress.tell(f"{counted(len(loop.runs), 'run')}, {len(results)} of them finished")
        for result in results.values():
            if on_result:
                on_result(result)
        waiting, started = [run for run in loop.runs if run not in results], time.monotonic()
        try:
            for count, (label, seed) in enumerate(waiting, start=1):
                results[label, seed] = result = loop.run(label, seed, job.work / "runs", parts)
                left = (time.monotonic() - started) / count * (len(waiting) - count)
                progress.tell(_line(result, len(results), len(loop.runs), left))
                if on_result:
                    on_result(result)
                if count < len(waiting):
                    stop.check(f"after run {len(results)} of {len(loop.runs)}")
        except KeyboardInterrupt:
            loop.write(results, parts, job.result)
            job.publish({"runs": len(loop.runs), "done": len(results)})
            raise
        table = loop.write(results, parts, job.result)
        job.finish({"runs": len(loop.runs), "done": len(results)})
    return table


@dataclass(frozen=True)
class _Loop:
    """The runs of a comparison. Its fields are the arguments of `compare`."""

    methods: tuple[Method, ...]
    seeds: tuple[int, ...]
    corpus: list[str]
    base: str
    shared: Record
    preset: str | None
    tasks: str | Sequence[str]
    data: str | os.PathLike[str] | None
    precision: Any
    corpus_options: CorpusOptions | None

    @property
    def runs(self) -> list[tuple[str, int]]:
        """Label and seed of every run, all methods of one seed before the next seed."""
        drawn = {method.label for method in self.methods if method.seeds and (method.recipe or method.make)}
        return [(m.label, s) for s in self.seeds for m in self.methods if s == self.seeds[0] or m.label in drawn]

    def options(self, method: Method) -> Any:
        """Return all options of a recipe."""
        return find_recipe(method.recipe).options(method.preset or self.preset, **{**self.shared, **method.options})

    def check(self, steps: int | None) -> None:
        """Raise an error for seeds, a budget, a base or options that cannot be."""
        for seed in self.seeds:
            checked_seed(seed)
        if not self.seeds or len(set(self.seeds)) < len(self.seeds):
            raise ComparisonError(f"seeds must be one or more different numbers, not {list(self.seeds)}.")
        trained = [method for method in self.methods if method.recipe]
        if steps is None and any("max_steps" not in method.options for method in trained):
            raise ComparisonError("All methods share one budget: give steps.")
        if trained and not self.corpus:
            raise ComparisonError(f"{trained[0].label} needs text: give a corpus (--corpus FILE).")
        for method in trained:
            find_recipe(method.recipe).check_base(method.base_in(self.base), self.options(method))

    def plan(self, progress: Progress) -> Plan:
        """Return the plan, which all rows share; the corpus must fill one batch of every recipe."""
        chosen = [self.options(method) for method in self.methods if method.recipe]
        least = max((o.batch_size * o.accumulation for o in chosen), default=1)
        text = prepare(self.corpus, self.corpus_options, progress=progress, at_least=least) if self.corpus else None
        every = resolve(self.tasks)[0]
        ready, missing = read_tasks(every, self.data)
        if not ready:
            reasons = "; ".join(f"{task.title}: {task.reason}" for task in missing)
            raise ComparisonError(f"No task can be evaluated ({reasons}). Give another --data or --tasks.")
        names = [task.name for task, _ in ready]
        own = {name: state for name in names if (state := _state_of_own(name))}
        settings = {"base": self.base, "preset": self.preset, "shared": self.shared, "precision": self.precision}
        settings |= {"tasks": [task.name for task in every]}
        settings |= {"corpus_options": (self.corpus_options or CorpusOptions()).to_dict()}
        inputs: Record = {"corpus": text and text.sha256, "set of evaluation files": names, "evaluation files": own}
        return Plan("compare", settings, inputs | {"base": base_fingerprint(self.base)})

    def known(self, parts: Parts, job: Job) -> dict[tuple[str, int], Record]:
        """Return the finished runs of an earlier call."""
        results: dict[tuple[str, int], Record] = {}
        for label, seed in self.runs:
            if (name := _part(method := self._method(label), seed)) in parts:
                result = {**read_json(parts.path(name)), "label": label}
                if result["base_content"] != model_fingerprint(base := method.base_in(self.base)):
                    raise ComparisonError(
                        f"{job.target} contains results of {label} from an earlier version of {base}: give another "
                        f"--out "
                        f"to compare with the current version"
                    )
                if result["status"] == FINISHED:
                    results[label, seed] = result
        return results

    def run(self, label: str, seed: int, models: Path, parts: Parts) -> Record:
        """Make and evaluate a model, and keep the result. An error is a result, too."""
        method, started = self._method(label), time.monotonic()
        out, base = models / f"{method.key}-seed{seed}", method.base_in(self.base)
        result: Record = {"label": label, "recipe": method.recipe, "preset": method.preset, "given": method.options}
        result |= {"base": base, "base_content": model_fingerprint(base), "seed": seed}
        try:
            model, facts = self._made(method, seed, out)
            report = evaluate(model, self.tasks, data=self.data, precision=self.precision)
            items = {one.name: one.items for one in report.results if one.items is not None}
            _keep_items(parts.path(_part(method, seed)).with_suffix(".npz"), items)
            content = report.to_dict()
            for name, attribute in (("scores", "score"), ("titles", "title"), ("metrics", "metric")):
                facts[name] = {one["name"]: one[attribute] for one in content["results"]}
            facts |= {
                "averages": content["averages"],
                "missing": {one["title"]: one["reason"] for one in content["missing"]},
            }
            result |= {"status": FINISHED, **facts, "versions": versions(), "machine": machine()}
            shutil.rmtree(out, ignore_errors=True)
        except Exception as error:
            result |= {"status": FAILED, "error": f"{type(error).__name__}: {first_line(error)}"}
        result = plain(result | {"seconds": round(time.monotonic() - started, 1)})
        with parts.new(_part(method, seed)) as path:
            write_json(path, result, strict=True)
        return result

    def table(self, results: Mapping[tuple[str, int], Record], parts: Parts) -> ScoreTable:
        """Return the table of the finished runs: a cell is there if every finished run of its row has that score."""
        finished = {run: result for run, result in results.items() if result["status"] == FINISHED}
        titles = {name: title for result in finished.values() for name, title in result["titles"].items()}
        groups = dict.fromkeys(name for result in finished.values() for name in result["averages"])
        columns = [Column(f"average {name}", f"Average of {name}", GROUPS.get(name, ())) for name in groups]
        columns += [Column(name, title, (name,)) for name, title in titles.items()]
        cells: dict[tuple[str, str], Cell] = {}
        notes: dict[str, str] = {}
        items: dict[tuple[str, int, str], Items] = {}
        for method in self.methods:
            mine = [run for run in self.runs if run[0] == method.label]
            rows = {seed: _scores(finished[label, seed]) for label, seed in mine if (label, seed) in finished}
            for column in columns:
                values = {seed: scores.get(column.name) for seed, scores in rows.items()}
                if values and None not in values.values():
                    cells[method.label, column.name] = Cell(values)  # type: ignore[arg-type]
            failed = sum(results[run]["status"] == FAILED for run in mine if run in results)
            left = sum(run not in results for run in mine)
            said = [str(len(rows))] + [f"{failed} failed"] * bool(failed) + [f"{left} to do"] * bool(left)
            notes[method.label] = ", ".join(said)
            for seed in rows:
                saved_items = _kept_items(parts.path(_part(method, seed)).with_suffix(".npz"))
                items |= {(method.label, seed, task): one for task, one in saved_items.items()}
        return ScoreTable(tuple(m.label for m in self.methods), tuple(columns), cells, items, "Method", notes)

    def write(self, results: Mapping[tuple[str, int], Record], parts: Parts, folder: Path) -> ScoreTable:
        """Write the runs and the table, with failed runs below it, and return the table."""
        table, every = self.table(results, parts), [results[run] for run in self.runs if run in results]
        write_json(folder / "comparison.json", {"runs": every}, strict=True)
        text = "\n\n".join([table.table(), *failures(every)]).replace("<", "&lt;")  # a name may hold HTML
        write_text(folder / "comparison.md", f"{text}\n")
        table.to_csv(folder / "comparison.csv")
        table.to_latex(folder / "comparison.tex")
        return table

    def _method(self, label: str) -> Method:
        return next(method for method in self.methods if method.label == label)

    def _made(self, method: Method, seed: int, out: Path) -> tuple[Any, Record]:
        """Return a model that `evaluate` takes, and facts for the record. A stopped training is resumed."""
        if method.make is not None:
            made = method.make(out, seed)
            facts = {**made} if isinstance(made, Mapping) else {"model": made}
            return facts.pop("model", None) or str(out), facts
        base = method.base_in(self.base)
        if not method.recipe:
            return base, {}
        how: Record = {"base": base, "seed": seed, "data": self.data, "preset": method.preset or self.preset}
        how |= {"corpus_options": self.corpus_options, "quiet": True, **self.shared, **method.options}
        record = train(method.recipe, self.corpus, out=out, **how).record
        best = {name: (record.get("best") or {}).get(name) for name in ("metric", "score", "step")}
        details = {name: record[name] for name in ("options", "preset", "selection", "steps")}
        return str(out), details | {"training_seconds": record["seconds"], "dev": best}


def _part(method: Method, seed: int) -> str:
    return f"{method.key}-seed{seed}.json"


def _scores(result: Record) -> dict[str, float | None]:
    return {f"average {name}": value for name, value in result["averages"].items()} | result["scores"]


def _state_of_own(task: str) -> str:
    """Return a checksum of the files of a task of your own, such as pairs:FILE; "" for any other task."""
    place = task.partition(":")[2]
    path = next((Path(name) for name in (place, place.rpartition(":")[0]) if name and Path(name).exists()), None)
    if path is None:
        return ""
    files = sorted(file for file in path.rglob("*") if file.is_file()) if path.is_dir() else [path]
    return " ".join(checksum(file) for file in files)


def _keep_items(path: Path, items: Mapping[str, Items]) -> None:
    """Write what the scores of a run are statistics of, in float32; `_kept_items` reads it."""
    arrays = {f"{task}/values": one.values.astype(np.float32) for task, one in items.items()}
    arrays |= {f"{task}/ranked": one.gold.astype(np.float32) for task, one in items.items() if one.gold is not None}
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as unfinished, unfinished.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _kept_items(path: Path) -> dict[str, Items]:
    with np.load(path) as arrays:
        columns = dict(arrays)
    tasks = [name.removesuffix("/values") for name in columns if name.endswith("/values")]
    return {task: Items(columns[f"{task}/values"].astype(np.float64), columns.get(f"{task}/ranked")) for task in tasks}


def failures(results: Iterable[Record]) -> list[str]:
    """Return a line for each failed run and for each task whose data is missing."""
    every = list(results)
    lines = [f"Failed: {one['label']}, seed {one['seed']}: {one['error']}" for one in every if one["status"] == FAILED]
    missing = {f"Missing: {title}, {reason}" for one in every for title, reason in one.get("missing", {}).items()}
    return [*lines, *sorted(missing)]


def _line(result: Record, done: int, count: int, left: float) -> str:
    """Return the line that reports a run."""
    name = f"[{done}/{count}] {result['label']}, seed {result['seed']}"
    time_left = f", {spoken(left)} left" if done < count else ""
    if result["status"] == FAILED:
        return f"{name}: failed, {result['error']} ({spoken(result['seconds'])}{time_left})"
    averages = {f"average {name}": value for name, value in result["averages"].items()}
    scores = averages or {result["titles"][task]: value for task, value in result["scores"].items()}
    text = ", ".join(f"{title} {value:.2f}" for title, value in scores.items() if value is not None)
    return f"{name}: {text or 'no score'} ({spoken(result['seconds'])}{time_left})"
