"""What the recipe `exclusion` does to similarity: the seven STS tasks, SemAntoNeg and the negation gap.

    python benchmarks/exclusion.py --out runs/exclusion --seeds 1 2 3

Exclusions themselves, and what it does to other domains, are rows of `domains.py`:

    python benchmarks/domains.py --sets exclusion --model exclusion=runs/exclusion/exclusion-1
"""

from __future__ import annotations

from arms import Arm, as_shipped, main

ARMS = {"the base": Arm(as_shipped, seeds=False), "exclusion": Arm("exclusion")}

if __name__ == "__main__":
    preset = {"steps": 0, "batch_size": 0, "max_length": 0, "eval_steps": 75}
    main(ARMS, __doc__, tasks="sts,semantoneg,negation-gap", **preset)
