"""The sweep of alpha, beta and lambda of SNCSE's bidirectional margin loss (Wang et al. 2022, section 4.2, figure 3).

Each combination is a training run; its score is that of the checkpoint that the run selects, on STS-B dev where there
is a data folder. What is done is in one small file each, so that a sweep that was stopped goes on where it was.
"""

from __future__ import annotations

import itertools
import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.report.pictures import require_extra
from likewise.report.writing import ReportError, markdown_table, open_folder
from likewise.runs.whole_files import write_json, write_text

# Section 4.2 names alpha 0.1 and 0.2 and beta 0.2, 0.3, 0.4 and 2.0; the two weights are those of section 3.2.
ALPHAS, BETAS, WEIGHTS = (0.1, 0.2), (0.2, 0.3, 0.4, 2.0), (5e-4, 1e-3)


@dataclass(frozen=True, order=True)
class Setting:
    """One run of the sweep."""

    weight: float
    beta: float
    alpha: float
    seed: int

    @property
    def name(self) -> str:
        """Its file's name.

        >>> Setting(0.001, 2.0, 0.1, 1).name
        'alpha0.1-beta2-weight0.001-seed1'
        """
        return f"alpha{self.alpha:g}-beta{self.beta:g}-weight{self.weight:g}-seed{self.seed}"


@dataclass(frozen=True)
class SweepReport:
    """What a sweep found.

    Attributes:
        settings: what all runs share: recipe, corpus, base, options.
        metric: what the score is ("sts_dev_spearman").
        before: the score of the untrained encoder.
        scores: of each run, the selected checkpoint's score.
        skipped: the combinations (alpha, beta) that contradict themselves, as alpha is above beta.
    """

    settings: dict[str, Any]
    metric: str
    before: float | None
    scores: dict[Setting, float]
    skipped: tuple[tuple[float, float], ...]

    def means(self) -> dict[tuple[float, float, float], tuple[float, float, int]]:
        """(mean, standard deviation, seeds) for each (weight, beta, alpha), in their order; 0 spread for one seed."""
        groups: dict[tuple[float, float, float], list[float]] = {}
        for key, score in sorted(self.scores.items()):
            groups.setdefault((key.weight, key.beta, key.alpha), []).append(score)
        return {
            key: (float(np.mean(found)), float(np.std(found, ddof=1)) if len(found) > 1 else 0.0, len(found))
            for key, found in groups.items()
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON."""
        runs = [
            {"alpha": key.alpha, "beta": key.beta, "weight": key.weight, "seed": key.seed, "score": score}
            for key, score in sorted(self.scores.items())
        ]
        skipped = [{"alpha": alpha, "beta": beta, "reason": "alpha is above beta"} for alpha, beta in self.skipped]
        return {
            "settings": self.settings,
            "metric": self.metric,
            "before": self.before,
            "runs": runs,
            "skipped": skipped,
        }

    def table(self) -> str:
        """The Markdown of the mean score by lambda, beta and alpha, the best in bold."""
        means = self.means()
        best = max(mean for mean, _, _ in means.values())
        rows = []
        for (weight, beta, alpha), (mean, spread, seeds) in means.items():
            shown = f"{mean:.2f}" if mean < best else f"**{mean:.2f}**"
            bound = "2 (no bound)" if beta >= 2 else f"{beta:g}"
            rows.append((f"{weight:g}", bound, f"{alpha:g}", shown, f"{spread:.2f}" if seeds > 1 else "-", str(seeds)))
        columns = ("lambda", "beta", "alpha", "Score", "Spread", "Seeds")
        before = "" if self.before is None else f" Before training: {self.before:.2f}."
        skipped = ", ".join(f"alpha {alpha:g} with beta {beta:g}" for alpha, beta in self.skipped)
        left_out = f"\n\nLeft out, as alpha is above beta: {skipped}." if skipped else ""
        shared = ", ".join(f"{name} {value}" for name, value in self.settings.items() if value is not None)
        return (
            f"# Sweep of alpha, beta and lambda\n\nScore: {self.metric} of the selected checkpoint, mean over the "
            f"seeds; spread is the standard deviation.{before}\n\nAll runs: {shared}.\n\n"
            f"{markdown_table(columns, rows, left=0)}{left_out}\n"
        )


def sweep(
    corpus: str | os.PathLike[str] | list[str],
    base: str,
    out: str | os.PathLike[str],
    *,
    alphas: Sequence[float] = ALPHAS,
    betas: Sequence[float] = BETAS,
    weights: Sequence[float] = WEIGHTS,
    seeds: Sequence[int] = (1,),
    preset: str | None = None,
    data: str | os.PathLike[str] | None = None,
    progress: Callable[[str], None] = lambda line: None,
    **options: Any,
) -> SweepReport:
    """Train `sncse` for each combination and write sweep.json, .md and .png after every run.

    Args:
        corpus, base, preset, data: as in `likewise.train`.
        out: the folder; `results/` in it holds a file for each run that is done, which is not done again.
        alphas, betas, weights, seeds: the grid. Combinations with alpha above beta are left out.
        progress: told in a line what starts and what is done.
        options: options of the recipe that all runs share (max_steps=200, ...).

    Raises:
        ReportError: the grid is empty, `out` holds runs of other settings, or nothing scores the runs.
        KeyboardInterrupt: a run was stopped; the same call goes on with it.
        OptionError, CorpusError, DataError, LoadError: as in `likewise.train`.
    """
    require_extra()
    grid, skipped = _grid(alphas, betas, weights, seeds)
    if options.get("select_by") == "last":
        raise ReportError("select_by 'last' gives no score to compare; use sts-b-dev or held-out.")
    folder = open_folder(out)
    (folder / "results").mkdir(exist_ok=True)
    sources = [os.fspath(source) for source in (corpus if isinstance(corpus, list) else [corpus])]
    shared = {"recipe": "sncse", "corpus": sources, "base": base, "preset": preset, **options}
    done = {key: found for key in grid if (found := _read(folder, key, shared)) is not None}
    progress(f"{len(grid)} runs, {len(done)} of them done")
    for key in grid:
        if key not in done:
            done[key] = _run(key, sources, base, folder, preset, data, shared, options)
            progress(f"{key.name}: {done[key]['score']:.2f} ({len(done)} of {len(grid)})")
            _write(_report(shared, done, skipped), folder)
    report = _report(shared, done, skipped)
    _write(report, folder)
    return report


def _grid(
    alphas: Sequence[float], betas: Sequence[float], weights: Sequence[float], seeds: Sequence[int]
) -> tuple[list[Setting], tuple[tuple[float, float], ...]]:
    """The runs, all of one seed before the next, and the contradictions (alpha, beta)."""
    axes = [sorted(dict.fromkeys(axis)) for axis in (alphas, betas, weights)]
    pairs = list(itertools.product(axes[0], axes[1]))
    allowed = [(alpha, beta) for alpha, beta in pairs if alpha <= beta]
    grid = [
        Setting(weight, beta, alpha, seed)
        for seed in dict.fromkeys(seeds)
        for weight in axes[2]
        for alpha, beta in allowed
    ]
    if not grid:
        raise ReportError("The sweep has no run: give an alpha, a beta that is not below it, a weight and a seed.")
    return grid, tuple((alpha, beta) for alpha, beta in pairs if alpha > beta)


def _read(folder: Path, key: Setting, shared: dict[str, Any]) -> dict[str, Any] | None:
    """The result of a run that is done, None where it is not."""
    path = folder / "results" / f"{key.name}.json"
    if not path.is_file():
        return None
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        settings, score = found["settings"], float(found["score"])
    except (ValueError, KeyError, TypeError) as error:
        raise ReportError(f"'{path}' cannot be read ({error!r}). Remove it, and the run is done again.") from None
    for name in sorted({*settings, *shared}):
        if settings.get(name) != shared.get(name):
            raise ReportError(
                f"'{path}' is of a sweep with {name} {settings.get(name)!r}, not {shared.get(name)!r}. "
                "Give another --out, or the settings that it was started with."
            )
    return {**found, "score": score}


def _run(
    key: Setting,
    corpus: list[str],
    base: str,
    folder: Path,
    preset: str | None,
    data: str | os.PathLike[str] | None,
    shared: dict[str, Any],
    options: dict[str, Any],
) -> dict[str, Any]:
    """Train one combination, write its result file, and remove the model."""
    import likewise
    from likewise.training.folder import RunFolder

    run = RunFolder(folder / "runs" / key.name)
    # A run that was stopped goes on from its checkpoint; one that has none, or no result file, starts anew.
    resume = not run.is_finished and run.last_checkpoint() is not None
    result = likewise.train(
        "sncse",
        corpus,
        base,
        run.path,
        preset=preset,
        seed=key.seed,
        data=data,
        resume=resume,
        overwrite=not resume,
        quiet=True,
        alpha=key.alpha,
        beta=key.beta,
        weight=key.weight,
        **options,
    )
    if not result.finished:
        raise KeyboardInterrupt
    if result.best is None:
        raise ReportError("Nothing scores the runs: give --data with STS-B dev, or a corpus of more sentences.")
    metric = result.best["metric"]
    found = {
        "settings": shared,
        "alpha": key.alpha,
        "beta": key.beta,
        "weight": key.weight,
        "seed": key.seed,
        "metric": metric,
        "score": result.best["score"],
        "step": result.best["step"],
        "steps": result.steps,
        "before": result.before.get(metric),
    }
    write_json(folder / "results" / f"{key.name}.json", found, strict=True)
    shutil.rmtree(run.path)  # a sweep of many models would fill a disk; what is compared is their score
    return found


def _report(
    shared: dict[str, Any], done: dict[Setting, dict[str, Any]], skipped: tuple[tuple[float, float], ...]
) -> SweepReport:
    metrics = sorted({found["metric"] for found in done.values()})
    if len(metrics) > 1:
        raise ReportError(
            f"Some runs were scored by {metrics[0]} and some by {metrics[1]}: give the same --data, another --out."
        )
    before = next(iter(done.values())).get("before")
    return SweepReport(shared, metrics[0], before, {key: found["score"] for key, found in done.items()}, skipped)


def _write(report: SweepReport, folder: Path) -> None:
    from likewise.report.sweep_picture import draw_sweep

    write_json(folder / "sweep.json", report.to_dict(), strict=True)
    write_text(folder / "sweep.md", report.table())
    draw_sweep(report, folder / "sweep.png")
