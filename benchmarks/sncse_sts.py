"""SNCSE and the comparisons of its table 3, with what its users feel: SemAntoNeg and the negation gap.

    likewise train mask-distillation --corpus CORPUS --out runs/mask
    python benchmarks/sncse_sts.py --base runs/mask --steps 20 --eval-steps 10 --seeds 1 2 3 --jobs 2

Every arm starts from the same base, at the mask of the paper's prompt; see arms.py for what they share. Without --base
it is all-MiniLM-L6-v2, whose mask each arm distils first, once for all of them. The preset
`negation` is this library's own, and so is its loss on opposites.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from arms import Arm, main
from likewise.recipes import find_recipe


def untrained(args: argparse.Namespace, out: Path) -> dict[str, Any]:
    """The base as it is, at the mask."""
    from likewise.encoder.build import build_mask_prompt_encoder

    return {"model": build_mask_prompt_encoder(args.base, head=False).eval()}


def _of_preset(name: str) -> dict[str, Any]:
    """A preset's options, less the table's budget."""
    budget = {"batch_size", "max_length", "eval_steps"}
    return {key: value for key, value in find_recipe("sncse").options(name).to_dict().items() if key not in budget}


ARMS = {
    "the base": Arm(untrained, seeds=False),
    "InfoNCE": Arm("sncse", {"negation": "none"}),
    "SNCSE": Arm("sncse"),
    "negation as a positive": Arm("sncse", {"negation": "positive"}),
    "negation as a hard negative": Arm("sncse", {"negation": "hard-negative"}),
    "SNCSE, lambda 1": Arm("sncse", {"weight": 1.0}),
    "SNCSE, preset negation": Arm("sncse", _of_preset("negation")),
}

if __name__ == "__main__":
    main(ARMS, __doc__, out=Path("runs/sncse-sts"), tasks="sts,semantoneg,negation-gap", max_length=48)
