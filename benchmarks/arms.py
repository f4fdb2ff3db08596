"""The frame of the STS tables: arms x seeds, each a process, scored once on the test sets, resumable by its folder.

Not a script: `arccse_sts.py`, `sncse_sts.py` and `gclsr/sts.py` hold the arms. Every arm of a table takes the same
corpus, number of updates and batch size unless it says otherwise, keeps the checkpoint that is best on STS-B dev at the
same steps, and is scored once. A run that is already in --out is not done again; the table is written after each.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from likewise.corpus.downloads import data_folder
from likewise.recipes import Recipe
from likewise.runs.provenance import machine, versions

STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
TITLES = {"sts12": "STS12", "sts13": "STS13", "sts14": "STS14", "sts15": "STS15", "sts16": "STS16", "sts-b": "STS-B"}
TITLES |= {"sick-r": "SICK-R", "semantoneg": "SemAntoNeg", "negation-gap": "gap"}


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


def train(arm: Arm, args: argparse.Namespace, out: Path) -> dict[str, Any]:
    """Train a recipe of this library on the table's budget."""
    import likewise

    assert isinstance(arm.recipe, str | Recipe)
    budget = {"max_steps": args.steps, "batch_size": args.batch_size, "max_length": args.max_length}
    budget = {name: value for name, value in budget.items() if value} | {"eval_steps": args.eval_steps}
    result = likewise.train(
        arm.recipe,
        args.corpus,
        base=args.base,
        out=out,
        seed=args.seed,
        data=args.data,
        overwrite=True,
        preset=args.preset,
        quiet=True,
        **{**budget, **arm.options},
    )
    best = result.best or {"score": None, "step": result.steps}  # None where the last checkpoint is simply taken
    return {"dev": best["score"], "step": best["step"], "options": result.record["options"]}


def as_shipped(args: argparse.Namespace, out: Path) -> dict[str, Any]:
    """The base as it is shipped."""
    import likewise

    return {"model": likewise.load(args.base, precision="fp32")}


def one_run(arms: Mapping[str, Arm], args: argparse.Namespace) -> None:
    """Train one arm with one seed, score it, write its result by rename."""
    import torch

    import likewise

    torch.set_num_threads(args.threads)
    arm = arms[args.arm]
    path = result_path(args.out, args.arm, args.seed)
    folder = path.with_suffix("")
    started = time.monotonic()
    args.base = arm.base or args.base
    facts = train(arm, args, folder) if isinstance(arm.recipe, str | Recipe) else arm.recipe(args, folder)
    model = facts.pop("model", None) or likewise.load(folder, precision="fp32")
    trained = time.monotonic() - started
    report = likewise.evaluate(model, args.tasks, data=args.data, precision=args.precision)
    scores = {result.name: result.score for result in report.results}
    result = record(args, facts, scores, trained)
    path.with_suffix(".part").write_text(json.dumps(result, indent=1))
    path.with_suffix(".part").replace(path)


def record(
    args: argparse.Namespace, facts: Mapping[str, Any], scores: Mapping[str, float], seconds: float
) -> dict[str, Any]:
    """What is kept of a run."""
    options = facts.get("options", {})
    return {
        "arm": args.arm,
        "seed": args.seed,
        "base": args.base,
        "corpus": Path(args.corpus).name,
        "steps": options.get("max_steps", args.steps),
        "batch_size": options.get("batch_size", args.batch_size),
        "max_length": options.get("max_length", args.max_length),
        "scores": scores,
        "average": float(np.mean([scores[task] for task in STS])) if set(STS) <= set(scores) else None,
        "training_seconds": round(seconds, 1),
        "versions": versions(),
        "machine": machine(),
        **({"precision": args.precision} if args.precision else {}),
        **facts,
    }


def result_path(out: Path, arm: str, seed: int) -> Path:
    """Where a run's result lies."""
    return out / f"{re.sub('[^a-z0-9.]+', '-', arm.lower())}-{seed}.json"


def dev_score(model: Any, data: Any, precision: Any = "bf16") -> float:
    """Return the Spearman correlation of a model on STS-B dev, times 100."""
    import likewise

    return float(likewise.evaluate(model, "sts-b-dev", data=data, precision=precision).results[0].score)


def mean_of_seeds(arm: str, seeds: tuple[int, ...] = (1, 2, 3)) -> Any:
    """The model whose weights are the mean of those of an arm's seeds, which must have been trained."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        import torch

        import likewise

        models = [likewise.load(result_path(args.out, arm, seed).with_suffix(""), precision="fp32") for seed in seeds]
        with torch.no_grad():
            for own, *others in zip(*(model.parameters() for model in models), strict=True):
                own.copy_(torch.stack([own, *others]).mean(dim=0))
        return {"model": models[0], "dev": dev_score(models[0], args.data, args.precision), "step": None}

    return make


def table(arms: Mapping[str, Arm], out: Path, seeds: list[int]) -> str:
    """Markdown: mean over the seeds of each task, and mean and spread (standard deviation) of the average."""
    lines: list[str] = []
    for arm in arms:
        found = [json.loads(p.read_text()) for seed in seeds if (p := result_path(out, arm, seed)).exists()]
        if not found:
            continue
        tasks = list(found[0]["scores"])
        if not lines:
            titles = " | ".join(TITLES.get(task, task) for task in tasks)
            lines = [
                f"| arm | {titles} | average of the seven | seeds | STS-B dev |",
                "| --- |" + " ---: |" * (len(tasks) + 3),
            ]
        means = [f"{np.mean([r['scores'][task] for r in found]):.2f}" for task in tasks]
        averages = [r["average"] for r in found if r["average"] is not None]
        spread = f" ± {np.std(averages, ddof=1):.2f}" if len(averages) > 1 else ""
        average = f"**{np.mean(averages):.2f}**{spread}" if averages else ""
        dev = f"{np.mean([r['dev'] for r in found]):.2f}" if found[0].get("dev") is not None else ""
        seen = ", ".join(str(r["seed"]) for r in found)
        lines.append(f"| {arm} | {' | '.join(means)} | {average} | {seen} | {dev} |")
    return "\n".join(lines)


def parser_of(arms: Mapping[str, Arm], about: str | None, /, **defaults: Any) -> argparse.ArgumentParser:
    """The options of a table's script; the defaults make the table as it stands in README.md."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    parser.add_argument("--data", default=data_folder() / "senteval")
    parser.add_argument("--base", default="bundled:minilm")
    parser.add_argument("--preset", default="cpu")
    parser.add_argument("--out", type=Path, help="the folder of the runs: %(default)s")
    parser.add_argument("--arms", nargs="+", choices=arms, metavar="ARM", help="those of the table by default")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--tasks", default="sts")
    parser.add_argument("--precision", choices=["fp32", "bf16"], help="of the scores; fp32 if not given")
    parser.add_argument("--steps", type=int, default=40, help="0: the preset's")
    parser.add_argument("--batch-size", type=int, default=64, help="0: the preset's")
    parser.add_argument("--max-length", type=int, default=32, help="0: the preset's")
    parser.add_argument("--eval-steps", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--threads", type=int, default=0, help="threads a run; 0: cores / jobs")
    parser.add_argument("--arm", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.set_defaults(**{"arms": list(arms)} | defaults)
    return parser


def run(arms: Mapping[str, Arm], args: argparse.Namespace) -> None:
    """Run what is missing of a table and print it."""
    args.threads = args.threads or max(1, (os.cpu_count() or 1) // args.jobs)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.arm:
        one_run(arms, args)
        return
    waiting = [
        (arm, seed)
        for seed in args.seeds
        for arm in args.arms
        if not result_path(args.out, arm, seed).exists() and (arms[arm].seeds or seed == args.seeds[0])
    ]
    running: list[tuple[str, int, subprocess.Popen[bytes]]] = []
    while waiting or running:
        while waiting and len(running) < args.jobs:
            arm, seed = waiting.pop(0)
            # A process a run: nothing of one is left in the next.
            environment = os.environ | {"OMP_NUM_THREADS": str(args.threads)}
            command = [sys.executable, *sys.argv, "--arm", arm, "--seed", str(seed)]
            log = result_path(args.out, arm, seed).with_suffix(".log").open("w")
            running.append((arm, seed, subprocess.Popen(command, env=environment, stdout=log, stderr=log)))
        time.sleep(1)
        for item in [item for item in running if item[2].poll() is not None]:
            running.remove(item)
            print(f"{time.strftime('%H:%M:%S')} {item[0]} seed {item[1]}: exit {item[2].returncode}", flush=True)
            (args.out / "table.md").write_text(table(arms, args.out, args.seeds) + "\n")
    print(table(arms, args.out, args.seeds))
