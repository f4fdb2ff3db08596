"""`likewise.comparison.compare`: every run of a plan, one after another, and the report after each."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from likewise.comparison.curve_pictures import draw_curves, draw_losses, draw_path
from likewise.comparison.inspection import Material
from likewise.comparison.methods import Method, parse_methods
from likewise.comparison.one_run import FAILED, Runner
from likewise.comparison.outcome import Comparison
from likewise.comparison.page import page
from likewise.comparison.plan import Plan, as_texts, keep_settings
from likewise.comparison.sight_pictures import draw_maps, draw_similarity
from likewise.comparison.tables import markdown
from likewise.corpus import CorpusOptions
from likewise.report.pictures import require_extra
from likewise.report.writing import open_folder
from likewise.runs.whole_files import write_json, write_text
from likewise.transformers_output import only_errors

_DRAWINGS = {
    "curves": draw_curves,
    "losses": draw_losses,
    "path": draw_path,
    "similarity": draw_similarity,
    "maps": draw_maps,
}


def compare(
    methods: str | Sequence[str],
    corpus: str | os.PathLike[str] | Sequence[str],
    out: str | os.PathLike[str],
    *,
    base: str = "bundled:minilm",
    vectors: str = "bundled:glove",
    seeds: Sequence[int] = (1, 2, 3),
    steps: int | None = None,
    minutes: float | None = None,
    preset: str | None = None,
    tasks: str = "sts",
    data: str | os.PathLike[str] | None = None,
    corpus_options: CorpusOptions | None = None,
    mapped: Sequence[str] = (),
    keep_models: bool = False,
    retry_failed: bool = False,
    progress: Callable[[str], None] = print,
    **shared: Any,
) -> Comparison:
    """Make, score and look at every method with every seed, under one budget.

    A comparison that was stopped goes on where it was when it is asked for again, and a finished one grows by the
    methods and seeds that are new. The untrained base is always a row where any method is made of it.

    Args:
        methods: a line each, as "simcse", "arccse margin=0" or "all" (see `likewise.comparison.methods`).
        corpus: text for all methods that take any, as in `likewise.train`.
        out: the folder of the comparison.
        base: a Hugging Face name, a folder, or `bundled:minilm`, for every method that takes a transformer.
        vectors: word vectors, for every method that takes them.
        seeds: each method that has chance in it is made with each; pictures are of the first.
        steps: updates of each training; or
        minutes: of updates for each training (its evaluations not counted), turned into a number of updates that is
            measured once for each method.
        preset: of every recipe that names none itself; the first of each by default.
        tasks: what all are scored on, as in `likewise.evaluate`.
        data: the folder of SentEval's data.
        corpus_options: how the corpus is read.
        mapped: sentences of the map under dropout; by default one of the corpus and two shortened ones.
        keep_models: leave the trained models in the folder, under runs/.
        retry_failed: do runs again that failed before.
        progress: told a line for each run.
        shared: options of training for every recipe, over the presets' (batch_size, max_length, eval_steps ...).

    Returns:
        The comparison; comparison.json, .md and .html and the pictures are in `out`.

    Raises:
        ComparisonError, OptionError, CorpusError, DataError, ReportExtraMissing: before the first run, each with the
            cure. What goes wrong in a run is in the report instead.
        KeyboardInterrupt: it was stopped; the report holds what is done.
    """
    require_extra()
    plan = Plan(
        methods=_with_base(parse_methods([methods] if isinstance(methods, str) else methods)),
        seeds=tuple(seeds),
        corpus=as_texts(corpus),
        base=base,
        vectors=vectors,
        tasks=tasks,
        data=os.fspath(data) if data is not None else None,
        steps=steps,
        minutes=minutes,
        preset=preset,
        shared=shared,
        corpus_options=corpus_options,
    )
    plan.check_tasks()
    read = plan.read_corpus()
    folder = open_folder(out)
    settings = plan.settings(read)
    keep_settings(folder, settings)

    @cache
    def material() -> Material:
        return Material.of(read.dataset, plan.tasks, plan.data, plan.seeds[0], mapped)

    runner = Runner(plan, read, folder, material, keep_models)
    runs = plan.runs(len(read))
    results = {(m.label, seed): found for m, seed in runs if (found := runner.read(m, seed)) is not None}
    if retry_failed:
        results = {key: found for key, found in results.items() if found["status"] != FAILED}

    def so_far() -> Comparison:
        ordered = tuple(results[m.label, seed] for m, seed in runs if (m.label, seed) in results)
        return Comparison(settings, plan.seeds, tuple(runs), ordered)

    progress(f"{len(runs)} runs, {len(results)} of them done")
    started = time.monotonic()
    waiting = [(method, seed) for method, seed in runs if (method.label, seed) not in results]
    try:
        with only_errors():  # warnings come anew with every model: a line for each run is to be read
            for i, (method, seed) in enumerate(waiting, start=1):
                result = results[method.label, seed] = runner.run(method, seed)
                left = (time.monotonic() - started) / i * (len(waiting) - i)
                progress(_line(result, len(results), len(runs), left))
                _write_tables(so_far(), folder)
    finally:
        write_report(so_far(), folder)
    return so_far()


def write_report(found: Comparison, out: str | os.PathLike[str]) -> list[Path]:
    """Write comparison.json, .md and .html and the pictures into a folder; their paths."""
    folder = open_folder(out)
    written = _write_tables(found, folder)
    pictures = {name: drawn for name, draw in _DRAWINGS.items() if (drawn := draw(found, folder / f"{name}.png"))}
    return [*written, *pictures.values(), write_text(folder / "comparison.html", page(found, pictures))]


def _write_tables(found: Comparison, folder: Path) -> list[Path]:
    return [
        write_json(folder / "comparison.json", found.to_dict(), strict=True),
        write_text(folder / "comparison.md", markdown(found)),
    ]


def _with_base(methods: tuple[Method, ...]) -> tuple[Method, ...]:
    """With the untrained base as the first row, where any method is made of it."""
    if any(m.kind == "base" and m.base is None for m in methods):
        return methods
    if not any(m.base is None and not m.takes_vectors for m in methods):
        return methods
    return (*parse_methods(["base"]), *methods)


def _line(result: dict[str, Any], done: int, count: int, left: float) -> str:
    """What is told of a run."""
    name = f"[{done}/{count}] {result['label']}, seed {result['seed']}"
    time_left = f", about {_duration(left)} left" if done < count else ""
    if result["status"] == FAILED:
        return f"{name}: failed, {result['error']} ({_duration(result['seconds'])}{time_left})"
    averages = {f"average {name}": value for name, value in result["averages"].items()}
    scores = averages or {result["titles"][task]: value for task, value in result["scores"].items()}
    shown = ", ".join(f"{title} {value:.2f}" for title, value in scores.items() if value is not None)
    return f"{name}: {shown or 'no score'} ({_duration(result['seconds'])}{time_left})"


def _duration(seconds: float) -> str:
    """Seconds in words.

    >>> _duration(9.4), _duration(130), _duration(7300)
    ('9 s', '2 min', '2 h 2 min')
    """
    if seconds < 100:
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 100 else f"{minutes // 60} h {minutes % 60} min"
