"""The claims of the papers, one after the other: a queue of trainings that can be stopped and resumed.

    python benchmarks/papers_queue.py --list
    nice python benchmarks/papers_queue.py --tables sncse-margin arccse-parts --out runs/papers
    python benchmarks/papers_queue.py --device cuda --updates 15600

Each run is a process of its own. It trains one arm with one seed, scores the seven STS tasks and writes one row into
`benchmarks/results/papers-TABLE.jsonl`; a row that is there is not run again, and a training that was stopped goes on
where it was. Arms of a table share corpus, updates, batch size, seeds and the steps at which STS-B dev chooses a
checkpoint, so that the differences of two arms can be paired by seed.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from rows import ResultFile

STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")


@dataclass(frozen=True)
class Arm:
    """A row of a table: a recipe, its options, and what it starts from.

    Args:
        start: 'base' for --base, 'mask' for its distilled mask, 'raw' for the start of raw_start.py.
    """

    recipe: str
    options: dict[str, Any] = field(default_factory=dict)
    start: str = "base"
    seeds: tuple[int, ...] = (1, 2, 3)


SNCSE: dict[str, Any] = {
    "learning_rate": 3e-5,
    "max_steps": 300,
    "eval_steps": 75,
    "batch_size": 64,
    "max_length": 48,
    "head": False,
    "distil_mask": "never",
    "precision": "bf16",
}
ARCCSE: dict[str, Any] = {
    "learning_rate": 3e-5,
    "max_steps": 300,
    "eval_steps": 60,
    "batch_size": 64,
    "max_length": 32,
    "precision": "bf16",
}


def _sncse(start: str, **more: Any) -> dict[str, Arm]:
    shared = SNCSE | more
    return {
        "InfoNCE alone": Arm("sncse", shared | {"negation": "none"}, start),
        "SNCSE, weight 1e-3": Arm("sncse", shared, start),
        "SNCSE, weight 1e-1": Arm("sncse", shared | {"weight": 0.1}, start),
    }


TABLES: dict[str, dict[str, Arm]] = {
    # Length and rate, one seed, by STS-B dev.
    "sncse-length": {
        f"{steps} updates at {rate:g}": Arm(
            "sncse", SNCSE | {"max_steps": steps, "learning_rate": rate, "eval_steps": steps // 4}, "mask", (1,)
        )
        for steps, rate in ((300, 1e-5), (300, 1e-4), (1000, 3e-5))
    },
    "sncse-margin": _sncse("mask"),
    "sncse-margin-raw": _sncse("raw", learning_rate=1e-4, head=True),
    "arccse-length": {
        f"{steps} updates at {rate:g}": Arm(
            "arccse", ARCCSE | {"max_steps": steps, "learning_rate": rate, "eval_steps": steps // 5}, "base", (1,)
        )
        for steps, rate in ((300, 1e-4), (300, 3e-5), (500, 3e-5))
    },
    "arccse-parts": {
        "SimCSE": Arm("simcse", ARCCSE),
        "ArcCSE": Arm("arccse", ARCCSE),
        "ArcCSE without triplets": Arm("arccse", ARCCSE | {"triplet_weight": 0.0}),
        "ArcCSE without the margin": Arm("arccse", ARCCSE | {"margin": 0.0}),
        "ArcCSE, margin of the triplets 0.1": Arm("arccse", ARCCSE | {"triplet_margin": 0.1}),
        "ArcCSE with SAM": Arm("arccse", ARCCSE | {"sam_rho": 0.05}),
    },
    "gclsr-moves": {
        f"{view}, rate x{rate}": Arm(
            "gclsr", {"augmentation": view, "learning_rate": 0.03 * rate, "max_steps": 100, "eval_steps": 25}, "", (1,)
        )
        for view in ("partial", "full", "edits")
        for rate in (1, 20, 100)
    },
}


def results_of(table: str) -> ResultFile:
    """Return the result file of a table."""
    return ResultFile(f"papers-{table}", command=f"python benchmarks/papers_queue.py --tables {table}")


def slug(name: str) -> str:
    """Return a name of an arm as a name of a file."""
    return "-".join("".join(sign if sign.isalnum() else " " for sign in name).split())


def start_of(arm: Arm, args: argparse.Namespace) -> str | None:
    """Return the folder or name that an arm is trained from; the distilled mask is made if it is not there."""
    import likewise

    if arm.start == "raw":
        if not args.raw.exists():
            raise SystemExit(
                f"{args.raw}: make the raw start first: python benchmarks/raw_start.py --out {args.raw.parent}"
            )
        return str(args.raw)
    if arm.start == "mask":
        folder = args.out / "mask"
        likewise.train("mask-distillation", args.corpus, base=args.base, out=folder, seed=1, data=args.data)
        return str(folder)
    return args.base if arm.start == "base" else None


def one_run(args: argparse.Namespace) -> None:
    """Train one arm with one seed, score it, and append its row."""
    import likewise

    table, name = args.run
    arm = TABLES[table][name]
    options = arm.options | ({"max_steps": args.updates, "eval_steps": args.updates // 20} if args.updates else {})
    folder = args.out / table / f"{slug(name)}-{args.seed}"
    started = time.process_time()
    result = likewise.train(
        arm.recipe,
        args.corpus,
        base=start_of(arm, args),
        out=folder,
        seed=args.seed,
        data=args.data,
        quiet=True,
        **options,
    )
    seconds = round(time.process_time() - started)
    model = likewise.load(folder, precision="fp32")
    shared = {"arm": name, "seed": args.seed}
    about = {"base": args.base, "start": arm.start, "recipe": arm.recipe, "options": options}
    best = result.best or {"score": None, "step": result.steps}
    measured: list[dict[str, Any]] = [
        {
            **shared,
            "set": "sts-b-dev",
            "score": best["score"],
            "step": best["step"],
            "processor_seconds": seconds,
            **about,
        }
    ]
    for suffix, without in (("", False), (", without overlap", True)):
        report = likewise.evaluate(model, "sts", data=args.data, without_overlap=without)
        scores = {score.name: score.score for score in report.results} | {"average": report.average}
        measured += [{**shared, "set": f"{task}{suffix}", "score": score} for task, score in scores.items()]
    results_of(table).add(*measured)


def compare(table: str, first: str, second: str) -> str:
    """Return the mean of the differences of two arms' averages, paired by seed, with Student's 95% interval."""
    from scipy.stats import t

    found = {arm: results_of(table).rows(arm=arm, set="average") for arm in (first, second)}
    scores = {arm: {row["seed"]: row["score"] for row in rows} for arm, rows in found.items()}
    seeds = sorted(scores[first].keys() & scores[second].keys())
    gaps = np.array([scores[second][seed] - scores[first][seed] for seed in seeds])
    said = f"{second} - {first}: {gaps.mean():+.2f}" if len(gaps) else f"{second} - {first}: no seed in common"
    if len(gaps) < 2:
        return said
    half = t.ppf(0.975, len(gaps) - 1) * gaps.std(ddof=1) / np.sqrt(len(gaps))
    return f"{said} ({gaps.mean() - half:+.2f} to {gaps.mean() + half:+.2f}), seeds {', '.join(map(str, seeds))}"


def parser() -> argparse.ArgumentParser:
    data = Path(os.environ.get("LIKEWISE_DATA", "../shared/data"))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES), metavar="TABLE")
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--base", default="bundled:minilm")
    parser.add_argument("--corpus", default=data / "wikipedia/sentences-250k.txt.gz")
    parser.add_argument("--data", default=data / "senteval")
    parser.add_argument("--raw", type=Path, default=Path("runs/raw-start/start"), help="the raw start of raw_start.py")
    parser.add_argument("--out", type=Path, default=Path("runs/papers"), help="the folder of the models")
    parser.add_argument("--updates", type=int, default=0, help="for every arm, over its own number")
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    parser.add_argument("--list", action="store_true", help="print what is done and what is to do, and stop")
    parser.add_argument(
        "--compare",
        nargs=2,
        metavar="ARM",
        help="print the difference of two arms of --tables, paired by seed, and stop",
    )
    parser.add_argument("--run", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    return parser


def main() -> None:
    args = parser().parse_args()
    if args.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    if args.run:
        one_run(args)
        return
    if args.compare:
        print(compare(args.tables[0], *args.compare))
        return
    waiting = [
        (table, name, seed)
        for table in args.tables
        for seed in args.seeds
        for name, arm in TABLES[table].items()
        if seed in arm.seeds
    ]
    for table, name, seed in waiting:
        results = results_of(table)
        done = results.has(arm=name, seed=seed)
        if args.list or done:
            print(f"{'done' if done else 'to do':6} {table}: {name}, seed {seed}", flush=True)
            continue
        log = args.out / "logs" / f"{table}-{slug(name)}-{seed}.log"
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("a") as file:
            command = [sys.executable, *sys.argv, "--run", table, name, "--seed", str(seed)]
            code = subprocess.run(command, stdout=file, stderr=file, check=False).returncode
        average = results.rows(arm=name, seed=seed, set="average")
        said = f"average {average[-1]['score']:.2f}" if code == 0 else f"failed ({code}): see {log}"
        print(f"{time.strftime('%H:%M:%S')} {table}: {name}, seed {seed}: {said}", flush=True)


if __name__ == "__main__":
    main()
