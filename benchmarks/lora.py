"""A low-rank adapter beside training of all weights: STS-B dev, seconds, memory, and what is saved.

    pip install 'likewise[lora]'
    python benchmarks/lora.py

Both train SimCSE on the same sentences with the same seed, each in a process of its own, whose memory is measured.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from likewise.runs.cache import data_folder
from rows import ResultFile
from searching import memory

WAYS = {"all weights": {"learning_rate": 3e-5}, "rank 8": {"lora": 8, "learning_rate": 3e-4}}


def measured(way: str, args: argparse.Namespace) -> dict[str, object]:
    """Train in one of the ways, and return what it took and gave."""
    import likewise

    data = data_folder()
    shared = {"max_steps": args.steps, "eval_steps": args.steps, "batch_size": 64, "max_length": 32}
    with tempfile.TemporaryDirectory() as folder:
        run = likewise.train(
            "simcse",
            data / "wikipedia/sentences-250k.txt.gz",
            base=args.base,
            out=Path(folder) / "model",
            seed=1,
            data=data / "senteval",
            quiet=True,
            **shared,
            **WAYS[way],
        )
        saved = sum(path.stat().st_size for path in run.path.rglob("*.safetensors"))
    return {
        "arm": way,
        "set": "sts-b-dev",
        "seed": 1,
        "score": run.best["score"],
        "before": run.record["before"]["sts_dev_spearman"],
        "seconds": run.record["seconds"],
        "MB": memory(),
        "saved_MB": round(saved / 1e6, 1),
        "base": args.base,
        "updates": args.steps,
    }


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--base", default="bundled:mpnet")
    options.add_argument("--steps", type=int, default=15)
    options.add_argument("--way", choices=WAYS, help=argparse.SUPPRESS)
    return options


def main() -> None:
    args = parser().parse_args()
    if args.way:
        print(json.dumps(measured(args.way, args)))
        return
    for way in WAYS:
        done = subprocess.run([sys.executable, *sys.argv, "--way", way], stdout=subprocess.PIPE, check=True, text=True)
        row = json.loads(done.stdout.splitlines()[-1])
        print(row, flush=True)
        ResultFile("lora").add(row)


if __name__ == "__main__":
    main()
