"""Figure 8 of ArcCSE: alignment and uniformity on STS-B dev in the course of training, read from the logs of runs.

    python benchmarks/raw_start.py --arms simcse arccse --seeds 1
    python benchmarks/alignment.py runs/raw-start/simcse-1 runs/raw-start/arccse-1

The paper measures every 10 steps; `--eval-steps 10` of the first command does so too. Lower is better in both.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from rows import ResultFile

KEYS = {"step": "step", "score": "eval_sts_dev_spearman"}
KEYS |= {name: f"eval_sts_dev_{name}" for name in ("alignment", "uniformity")}


def course(folder: Path) -> list[dict[str, Any]]:
    """The evaluations of a run, in order."""
    entries = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    return [{name: entry[key] for name, key in KEYS.items()} for entry in entries if KEYS["alignment"] in entry]


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("runs", type=Path, nargs="+", help="folders of trained models")
    found.add_argument("--table", default="arccse-path", help="the result file")
    return found


def main() -> None:
    args = parser().parse_args()
    found = {folder.name: course(folder) for folder in args.runs}
    print("| run | step | STS-B dev | alignment | uniformity |\n| --- | ---: | ---: | ---: | ---: |")
    for name, points in found.items():
        for at in points:
            print(f"| {name} | {at['step']} | {at['score']:.2f} | {at['alignment']:.3f} | {at['uniformity']:.3f} |")
    for name, points in found.items():
        arm, _, seed = name.rpartition("-")
        ResultFile(args.table).add(*({"arm": arm, "seed": int(seed), "set": "sts-b-dev"} | at for at in points))


if __name__ == "__main__":
    main()
