"""ArcCSE beside sentence-transformers' SimCSE recipe and its own parts: seven STS tasks, several seeds.

    python benchmarks/arccse_sts.py --corpus ../shared/data/wikipedia/sentences-250k.txt.gz --seeds 1 2 3 --jobs 2

Every arm starts from the same base with [CLS], takes the same number of updates of the same batch size and length,
keeps the checkpoint that is best on STS-B dev at the same steps, and is scored once on the test sets. A run that is
already in --out is not done again; the table is written after each.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

TASKS = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
# The paper's table 1, its ablations, and three things that the paper did not try.
OURS: dict[str, tuple[str, dict]] = {
    "simcse": ("simcse", {}),
    "arccon": ("arccse", {"triplet_weight": 0.0, "sam_rho": 0.0}),
    "nt-xent + triplets": ("arccse", {"contrastive": "nt-xent", "sam_rho": 0.0}),
    "arccse": ("arccse", {"sam_rho": 0.05}),
    "arccse without SAM": ("arccse", {"sam_rho": 0.0}),
    "arccse, triplet margin 0.1 and weight 1": (
        "arccse",
        {"triplet_margin": 0.1, "triplet_weight": 1.0, "sam_rho": 0.0},
    ),
    "arccse, mean pooling": ("arccse", {"pooling": "mean", "sam_rho": 0.0}),
}
ARMS = ("untrained", "sentence-transformers", *OURS)


def train_with_sentence_transformers(args, out: Path) -> dict:
    """MultipleNegativesRankingLoss on pairs of a sentence and itself; everything else at its trainer's defaults."""
    from datasets import Dataset
    from sentence_transformers import (
        SentenceTransformer,
        SentenceTransformerTrainer,
        SentenceTransformerTrainingArguments,
    )
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
    from transformers import set_seed

    from likewise.corpus import prepare
    from likewise.encoder.build import build_encoder
    from likewise.evaluation import StsDevEvaluator

    set_seed(args.seed)
    model: SentenceTransformer = build_encoder(args.base, pooling="cls", head=False)
    longest, model.max_seq_length = model.max_seq_length, args.max_length
    text = prepare(args.corpus).dataset["sentence"]
    evaluator = StsDevEvaluator.from_data(args.data)
    trainer = SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(out / "checkpoints"),
            per_device_train_batch_size=args.batch_size,
            max_steps=args.steps,
            seed=args.seed,
            eval_strategy="steps",
            eval_steps=args.eval_steps,
            save_strategy="steps",
            save_steps=args.eval_steps,
            save_total_limit=1,
            load_best_model_at_end=True,
            metric_for_best_model=f"eval_{evaluator.primary_metric}",
            logging_steps=10,
            report_to="none",
            disable_tqdm=True,
        ),
        train_dataset=Dataset.from_dict({"anchor": text, "positive": text}),
        loss=MultipleNegativesRankingLoss(model),
        evaluator=evaluator,
    )
    trainer.train()
    model.max_seq_length = longest
    model.save_pretrained(str(out), create_model_card=False)
    return {"dev": float(trainer.state.best_metric), "step": trainer.state.best_global_step}


def train_with_likewise(args, out: Path) -> dict:
    """A recipe of this library, on the same budget."""
    import likewise

    recipe, changes = OURS[args.arm]
    result = likewise.train(
        recipe,
        args.corpus,
        args.base,
        out,
        seed=args.seed,
        data=args.data,
        overwrite=True,
        preset="cpu",
        max_steps=args.steps,
        batch_size=args.batch_size,
        max_length=args.max_length,
        eval_steps=args.eval_steps,
        quiet=True,
        **changes,
    )
    return {"dev": result.best["score"], "step": result.best["step"], "options": result.record["options"]}


def one_run(args) -> None:
    """Train one arm with one seed, score it, write its result by rename."""
    import torch

    import likewise
    from likewise.encoder.build import build_encoder
    from likewise.training.provenance import machine, versions

    torch.set_num_threads(args.threads)
    folder = result_path(args.out, args.arm, args.seed).with_suffix("")
    started = time.monotonic()
    facts: dict = {}
    if args.arm == "untrained":
        model = build_encoder(args.base, pooling="cls", head=False).eval()
    else:
        facts = (train_with_sentence_transformers if args.arm == "sentence-transformers" else train_with_likewise)(
            args, folder
        )
        model = likewise.load(folder)
    trained = time.monotonic() - started
    report = likewise.evaluate(model, "sts", args.data, progress=False)
    scores = {result.name: result.score for result in report.results}
    result = {
        "arm": args.arm,
        "seed": args.seed,
        "steps": args.steps,
        "batch_size": args.batch_size,
        "max_length": args.max_length,
        "scores": scores,
        "average": float(np.mean([scores[task] for task in TASKS])),
        "training_seconds": round(trained, 1),
        "versions": versions(),
        "machine": machine(),
        **facts,
    }
    path = result_path(args.out, args.arm, args.seed)
    path.with_suffix(".part").write_text(json.dumps(result, indent=1))
    path.with_suffix(".part").replace(path)


def result_path(out: Path, arm: str, seed: int) -> Path:
    return out / f"{re.sub('[^a-z0-9.]+', '-', arm)}-{seed}.json"


def table(out: Path, seeds: list[int]) -> str:
    """Markdown: mean over the seeds of each task, and mean and spread of the average."""
    lines = [
        "| arm | STS12 | STS13 | STS14 | STS15 | STS16 | STS-B | SICK-R | average | seeds | STS-B dev |",
        "| --- |" + " ---: |" * 10,
    ]
    for arm in ARMS:
        found = [json.loads(p.read_text()) for seed in seeds if (p := result_path(out, arm, seed)).exists()]
        if not found:
            continue
        means = [f"{np.mean([r['scores'][task] for r in found]):.2f}" for task in TASKS]
        averages = [r["average"] for r in found]
        spread = f" ± {np.std(averages, ddof=1):.2f}" if len(found) > 1 else ""
        dev = f"{np.mean([r['dev'] for r in found]):.2f}" if "dev" in found[0] else ""
        lines.append(
            f"| {arm} | {' | '.join(means)} | **{np.mean(averages):.2f}**{spread} | "
            f"{', '.join(str(r['seed']) for r in found)} | {dev} |"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="../shared/data/wikipedia/sentences-250k.txt.gz")
    parser.add_argument("--data", default="../shared/data/senteval")
    parser.add_argument("--base", default="bundled:minilm")
    parser.add_argument("--out", type=Path, default=Path("runs/arccse-sts"))
    parser.add_argument("--arms", nargs="+", default=list(ARMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[1, 2, 3])
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--max-length", type=int, default=32)
    parser.add_argument("--eval-steps", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=1, help="runs at a time")
    parser.add_argument("--threads", type=int, default=0, help="threads a run; 0: cores / jobs")
    parser.add_argument("--arm", help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.threads = args.threads or max(1, (os.cpu_count() or 1) // args.jobs)
    args.out.mkdir(parents=True, exist_ok=True)
    if args.arm:
        one_run(args)
        return
    waiting = [
        (arm, seed)
        for seed in args.seeds
        for arm in args.arms
        if not result_path(args.out, arm, seed).exists() and (arm != "untrained" or seed == args.seeds[0])
    ]
    running: list[tuple[str, int, subprocess.Popen]] = []
    while waiting or running:
        while waiting and len(running) < args.jobs:
            arm, seed = waiting.pop(0)
            # A process a run: nothing of one is left in the next.
            environment = os.environ | {"OMP_NUM_THREADS": str(args.threads)}
            command = [sys.executable, __file__, *sys.argv[1:], "--arm", arm, "--seed", str(seed)]
            log = result_path(args.out, arm, seed).with_suffix(".log").open("w")
            running.append((arm, seed, subprocess.Popen(command, env=environment, stdout=log, stderr=log)))
        time.sleep(1)
        for item in [item for item in running if item[2].poll() is not None]:
            running.remove(item)
            print(f"{time.strftime('%H:%M:%S')} {item[0]} seed {item[1]}: exit {item[2].returncode}", flush=True)
            (args.out / "table.md").write_text(table(args.out, args.seeds) + "\n")
    print(table(args.out, args.seeds))


if __name__ == "__main__":
    main()
