"""What the recipe `exclusion` does to similarity: the seven STS tasks, SemAntoNeg and the negation gap.

    python benchmarks/exclusion.py

Exclusions themselves, and what it does to other domains, are rows of `domains.py`:

    python benchmarks/domains.py --sets exclusion --model exclusion=runs/exclusion/exclusion-1
"""

from __future__ import annotations

import argparse
from pathlib import Path

from arms import Arm, as_shipped, parser_of, run

ARMS = {"the base": Arm(as_shipped, seeds=False), "exclusion": Arm("exclusion")}


def parser() -> argparse.ArgumentParser:
    preset = {"steps": 0, "batch_size": 0, "max_length": 0, "eval_steps": 75}
    tasks = "sts,semantoneg,negation-gap"
    return parser_of(ARMS, __doc__, out=Path("runs/exclusion"), table="exclusion", seeds=[1, 2], tasks=tasks, **preset)


if __name__ == "__main__":
    run(ARMS, parser().parse_args())
