"""`likewise.compare`: the runs of a comparison, one after another, with a report after each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from likewise.comparison.compared_methods import ComparisonError, Method, Settings, check_shared, parse_methods
from likewise.comparison.comparison_result import Comparison, page
from likewise.comparison.one_run import FAILED, RunMaker
from likewise.corpus import CorpusOptions
from likewise.encoder.location import model_fingerprint
from likewise.errors import counted
from likewise.runs.job import check_target, open_job
from likewise.runs.options import checked
from likewise.runs.progress import Progress, orderly_stop, spoken
from likewise.runs.whole_files import Parts, Record, read_json, write_json, write_text
from likewise.transformers_output import only_errors


@checked
def compare(
    methods: str | Method | Sequence[str | Method],
    corpus: str | os.PathLike[str] | Sequence[str] = (),
    *,
    base: str = "bundled:minilm",
    vectors: str = "bundled:glove",
    out: str | os.PathLike[str],
    seeds: Sequence[int] = (1, 2, 3),
    steps: int | None = None,
    preset: str | None = None,
    tasks: str | Sequence[str] = "sts",
    data: str | os.PathLike[str] | None = None,
    precision: str | None = None,
    corpus_options: CorpusOptions | None = None,
    retry_failed: bool = False,
    on_result: Callable[[Record], None] | None = None,
    quiet: bool = False,
    **shared: object,
) -> Comparison:
    """Train and evaluate methods under one budget, and write a table and a page.

    A stopped comparison is resumed by the same call, and a finished one grows by new methods and seeds. The bases that
    the methods start from are always rows, unchanged.

    Args:
        methods: a method and its options: "simcse", "arccse margin=0", "sncse alpha={0.1,0.2}" (a grid); or a
            `Method`, such as one with a function that makes the model.
        corpus: text to train on, as in `likewise.train`; may be left out if no method learns.
        base: a Hugging Face name, a folder, or `bundled:NAME`, for every method that takes a transformer.
        vectors: word vectors, for every method that takes them.
        out: the folder of the comparison.
        seeds: each method that a seed changes is made with each of them.
        steps: updates of each training; or give max_steps with each method.
        preset: the preset of every recipe that names none itself; the first of each by default.
        tasks: the evaluation tasks, as `likewise.evaluate` takes them.
        data: the folder of SentEval's data.
        precision: of the evaluation, as in `likewise.evaluate`.
        corpus_options: how the corpus is read.
        retry_failed: repeat runs that failed before.
        on_result: called with the result of each run as soon as it is done, and of those that were done before.
        quiet: print nothing.
        shared: training options of every recipe, over the presets' (batch_size, max_length, eval_steps ...).

    Returns:
        The comparison, which prints as a table; comparison.json, .md, .html, .csv and .tex are in `out`.

    Raises:
        LikewiseError: before the first run. What goes wrong in a run is in the report instead.
        Stopped: it was interrupted; the report holds what is done.
    """
    check_shared(shared)
    lines = [methods] if isinstance(methods, str | Method) else methods
    settings = Settings(
        methods=_with_bases(parse_methods(lines, preset=preset, shared=shared)),
        seeds=tuple(seeds),
        corpus=(os.fspath(corpus),) if isinstance(corpus, (str, os.PathLike)) else tuple(map(os.fspath, corpus)),
        base=base,
        vectors=vectors,
        tasks=tasks if isinstance(tasks, str) else ",".join(tasks),
        data=os.fspath(data) if data is not None else None,
        steps=steps,
        preset=preset,
        shared=shared,
        corpus_options=corpus_options,
        precision=precision,
    )
    check_target(out)
    progress = Progress(quiet)
    read = settings.read_corpus(progress)
    plan = settings.plan(read)
    runs = settings.runs(len(read) if read else 0)
    text = {"corpus": list(read.sources), "sentences": len(read), "sha256": read.sha256} if read else {"sentences": 0}
    shown = settings.to_dict() | text

    with open_job(out, plan, grows=True) as job, orderly_stop(progress) as stop, only_errors():
        parts = Parts(job.result / "results")
        maker = RunMaker(settings, read, job.work / "runs")
        files = {(method.label, seed): f"{method.key}-seed{seed}.json" for method, seed in runs}
        results = {
            (method.label, seed): {**read_json(parts.path(name)), "label": method.label}
            for method, seed in runs
            if (name := files[method.label, seed]) in parts
        }
        contents = {base: model_fingerprint(base) for base in set(map(settings.base_of, settings.methods))}
        for method, seed in runs:
            content = contents[base := settings.base_of(method)]
            if results.get((method.label, seed), {}).get("base_content", content) != content:
                raise ComparisonError(
                    f"{job.target} holds results of {method.label} from another content of {base}: give another --out "
                    "to compare by what it is now"
                )
        if retry_failed:
            results = {run: result for run, result in results.items() if result["status"] != FAILED}

        def so_far() -> Comparison:
            ordered = tuple(results[m.label, seed] for m, seed in runs if (m.label, seed) in results)
            return Comparison(job.target, shown, settings.seeds, tuple(runs), ordered)

        progress.tell(f"{counted(len(runs), 'run')}, {len(results)} of them done")
        if on_result:
            for result in results.values():
                on_result(result)
        started = time.monotonic()
        waiting = [(method, seed) for method, seed in runs if (method.label, seed) not in results]
        try:
            for i, (method, seed) in enumerate(waiting, start=1):
                items = parts.path(files[method.label, seed]).with_suffix(".npz")
                items.parent.mkdir(parents=True, exist_ok=True)
                result = maker.run(method, seed, items) | {"base_content": contents[settings.base_of(method)]}
                results[method.label, seed] = result
                with parts.new(files[method.label, seed]) as path:
                    write_json(path, result, strict=True)
                if on_result:
                    on_result(result)
                left = (time.monotonic() - started) / i * (len(waiting) - i)
                progress.tell(_line(result, len(results), len(runs), left))
                _write(so_far(), job.result, final=False)
                job.publish({"runs": len(runs), "done": len(results)})
                if i < len(waiting):
                    stop.check(f"after run {len(results)} of {len(runs)}")
        except KeyboardInterrupt:
            _write(so_far(), job.result)
            job.publish({"runs": len(runs), "done": len(results)})
            raise
        _write(so_far(), job.result)
        job.finish({"runs": len(runs), "done": len(results)})
    return so_far()


def _write(comparison: Comparison, folder: Path, final: bool = True) -> None:
    """Write comparison.json; at the end also .md, .csv, .tex and .html."""
    write_json(folder / "comparison.json", comparison.to_dict(differences=final), strict=True)
    if final:  # the differences take seconds
        text = comparison.table().replace("<", "&lt;")  # a name may hold HTML
        write_text(folder / "comparison.md", f"{text}\n")
        comparison.to_csv(folder / "comparison.csv")
        comparison.to_latex(folder / "comparison.tex")
        write_text(folder / "comparison.html", page(comparison))


def _with_bases(methods: tuple[Method, ...]) -> tuple[Method, ...]:
    """Put the unchanged bases first: the transformer and the word vectors, where methods use them."""
    missing = []
    for name, vectors in (("base", False), ("word-average", True)):
        own = [m for m in methods if m.kind not in ("model", "origin", "made") and m.base is None]
        members = [m for m in own if m.takes_vectors == vectors]
        if members and not any(m.is_base for m in members):
            missing.append(name)
    return (*parse_methods(missing), *methods)


def _line(result: Record, done: int, count: int, left: float) -> str:
    """Return the line that reports a finished run."""
    name = f"[{done}/{count}] {result['label']}, seed {result['seed']}"
    time_left = f", {spoken(left)} left" if done < count else ""
    if result["status"] == FAILED:
        return f"{name}: failed, {result['error']} ({spoken(result['seconds'])}{time_left})"
    averages = {f"average {name}": value for name, value in result["averages"].items()}
    scores = averages or {result["titles"][task]: value for task, value in result["scores"].items()}
    shown = ", ".join(f"{title} {value:.2f}" for title, value in scores.items() if value is not None)
    return f"{name}: {shown or 'no score'} ({spoken(result['seconds'])}{time_left})"
