"""The frame of the STS tables: arms x seeds, run by `likewise.compare`, each scored once on the test sets.

Not a script: `arccse_sts.py`, `sncse_sts.py` and `gclsr/sts.py` hold the arms. Every arm of a table takes the same
corpus, number of updates and batch size unless it says otherwise, and keeps the checkpoint that is best on STS-B dev at
the same steps. An arm whose rows are all in the result file is not run again; the others go on where they were, and
their table, with intervals, is comparison.md in --out.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from likewise.recipes import Recipe
from likewise.runs.cache import data_folder
from likewise.training import Method
from likewise.training.trainer import use_bf16
from rows import ResultFile

STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
TITLES = {"sts12": "STS12", "sts13": "STS13", "sts14": "STS14", "sts15": "STS15", "sts16": "STS16", "sts-b": "STS-B"}
TITLES |= {"sick-r": "SICK-R", "semantoneg": "SemAntoNeg", "negation-gap": "gap"}
OF_COMPARE = {"label", "recipe", "given", "status", "seconds", "seed", "report", "items", "dev"}
"""What stands in a result of `compare`, and not among the facts of a row."""


@dataclass(frozen=True)
class Arm:
    """One row: a recipe with changed options, or a function that makes the model.

    Args:
        recipe: a recipe or its name, or a function (arguments, run folder) to facts for the record that leaves a model
            in the folder, or gives it as facts['model'].
        options: over the preset's.
        seeds: False for a row that is run once, by the first seed: there is no chance in it, or one seed has to do.
        base: over the table's.
    """

    recipe: str | Recipe | Callable[[argparse.Namespace, Path], dict[str, Any]]
    options: dict[str, Any] = field(default_factory=dict)
    seeds: bool = True
    base: str = ""

    def method(self, name: str, given: argparse.Namespace) -> Method:
        """Return the arm as a method of `likewise.compare`."""

        def make(_: Path, seed: int) -> dict[str, Any]:
            import likewise

            args = argparse.Namespace(**vars(given) | {"seed": seed, "base": self.base or given.base})
            out = folder_of(args.out, name, seed)
            facts = train(self, args, out) if isinstance(self.recipe, str | Recipe) else self.recipe(args, out)
            about = {"base": args.base, "corpus": Path(args.corpus).name}
            return about | facts | {"model": facts.get("model") or likewise.load(out, precision="fp32")}

        return Method(name, seeds=self.seeds, make=make)


def train(arm: Arm, args: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Train a recipe of this library on the table's budget."""
    import likewise

    assert isinstance(arm.recipe, str | Recipe)
    budget = {"max_steps": args.steps, "batch_size": args.batch_size, "max_length": args.max_length}
    budget = {name: value for name, value in budget.items() if value} | {"eval_steps": args.eval_steps}
    shared = {"base": args.base, "out": out, "seed": args.seed, "data": args.data, "preset": args.preset}
    result = likewise.train(arm.recipe, args.corpus, **shared, overwrite=True, quiet=True, **{**budget, **arm.options})
    best = result.best or {"score": None, "step": result.steps}  # None where the last checkpoint is simply taken
    return {"dev": best["score"], "step": best["step"], "options": result.record["options"]}


def as_shipped(args: argparse.Namespace, out: Path) -> dict[str, Any]:
    """The base as it is shipped."""
    import likewise

    return {"model": likewise.load(args.base, precision="fp32")}


def folder_of(out: Path, arm: str, seed: int) -> Path:
    """Where a run's model lies."""
    return out / f"{re.sub('[^a-z0-9.]+', '-', arm.lower())}-{seed}"


def own_precision() -> str:
    """Return bfloat16 where this machine is made for it; asked after --device has hidden a GPU."""
    return "bf16" if use_bf16("auto") else "fp32"


def dev_score(model: Any, data: Any, precision: Any = None) -> float:
    """Return the Spearman correlation of a model on STS-B dev, times 100, by the machine's own precision by default."""
    import likewise

    precision = precision or own_precision()
    return float(likewise.evaluate(model, "sts-b-dev", data=data, precision=precision).results[0].score)


def rows_of(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of a run: STS-B dev with what is known of the run, each task, and the average of the seven."""
    run = {"arm": result["label"], "seed": result["seed"]}
    facts = {name: value for name, value in result.items() if name not in OF_COMPARE}
    scores = {task["name"]: task["score"] for task in result["report"]["results"]}
    averages = result["report"]["averages"]
    scores |= {"average": averages["sts"]} if "sts" in averages else {}
    dev = {"set": "sts-b-dev", "score": result.get("dev", scores.pop("sts-b-dev", None)), "seconds": result["seconds"]}
    return [run | dev | facts, *(run | {"set": name, "score": score} for name, score in scores.items())]


def table(results: ResultFile, arms: list[str]) -> str:
    """Markdown: mean over the seeds of each task, and mean and spread (standard deviation) of the average."""
    scores: dict[str, dict[str, list[float]]] = {}
    for row in results.rows():
        if row.get("arm") in arms and row["score"] is not None:
            scores.setdefault(row["arm"], {}).setdefault(row["set"], []).append(row["score"])
    tasks = list(dict.fromkeys(name for found in scores.values() for name in found))
    lines = [f"| arm | {' | '.join(TITLES.get(task, task) for task in tasks)} |", f"| --- |{' ---: |' * len(tasks)}"]
    for arm, found in scores.items():
        cells = [f"{np.mean(found[task]):.2f}" if task in found else "" for task in tasks]
        if "average" in found and len(found["average"]) > 1:
            cells[tasks.index("average")] += f" ± {np.std(found['average'], ddof=1):.2f}"
        lines.append(f"| {arm} | {' | '.join(cells)} |")
    return "\n".join(lines)


def parser_of(arms: Mapping[str, Arm], about: str | None, /, **defaults: Any) -> argparse.ArgumentParser:
    """The options of a table's script; the defaults make the table as it stands."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    parser.add_argument("--data", default=data_folder() / "senteval")
    parser.add_argument("--base", default="bundled:minilm")
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--out", type=Path, help="the folder of the models and of the report: %(default)s")
    parser.add_argument("--table", help="the result file: %(default)s")
    parser.add_argument("--arms", nargs="+", choices=arms, metavar="ARM", help="those of the table by default")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--tasks", default="sts")
    parser.add_argument("--precision", choices=["fp32", "bf16"], help="of the scores; fp32 if not given")
    parser.add_argument("--steps", type=int, default=40, help="0: the preset's")
    parser.add_argument("--batch-size", type=int, default=64, help="0: the preset's")
    parser.add_argument("--max-length", type=int, default=32, help="0: the preset's")
    parser.add_argument("--eval-steps", type=int, default=20)
    parser.add_argument("--threads", type=int, default=1)
    parser.set_defaults(**{"arms": list(arms)} | defaults)
    return parser


def run(arms: Mapping[str, Arm], args: argparse.Namespace) -> None:
    """Run what is missing of a table and print it."""
    import torch

    import likewise

    torch.set_num_threads(args.threads)
    results = ResultFile(args.table)
    seeds = {name: args.seeds if arms[name].seeds else args.seeds[:1] for name in args.arms}
    missing = [name for name in args.arms if not all(results.has(arm=name, seed=seed) for seed in seeds[name])]

    def keep(result: Mapping[str, Any]) -> None:
        if result["status"] == "finished" and not results.has(arm=result["label"], seed=result["seed"]):
            results.add(*rows_of(result))

    if missing:
        likewise.compare(
            [arms[name].method(name, args) for name in missing],
            out=args.out / "comparison" / results.path.stem,
            seeds=args.seeds,
            tasks=args.tasks,
            data=args.data,
            precision=args.precision,
            on_result=keep,
        )
    print(table(results, args.arms))
