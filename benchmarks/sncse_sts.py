"""SNCSE and the comparisons of its table 3, with what its users feel: SemAntoNeg and the negation gap.

    python benchmarks/sncse_sts.py

Every arm starts at the mask of the paper's prompt, distilled from --base with seed 1 and kept in --out: one mask for
all arms and seeds, but for those arms that say so; see arms.py for what they share. The preset `negation` is this
library's own, and so is its loss on opposites.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from filelock import FileLock

from arms import Arm, parser_of, run, train
from likewise.encoder.build import reads_a_mask
from likewise.recipes import find_recipe

TWO: dict[str, Any] = {
    "template": 'This sentence : " X " means [MASK].',
    "other_template": 'This sentence of " X " means [MASK].',
    "final_stop": True,
}
"""The prompts of the authors' code: of the sentence, in evaluation too, and of its positive and its negation."""


def mask(args: argparse.Namespace, seed: int, **prompts: Any) -> str:
    """The folder of a distilled mask, trained if it is not there; the base itself if it reads a mask already."""
    import likewise

    if reads_a_mask(args.base):
        return str(args.base)
    folder = args.out / f"mask-{seed}{'-two' * bool(prompts)}"
    with FileLock(f"{folder}.lock"):  # another run may be at it
        given = {"base": args.base, "out": folder, "seed": seed, "data": args.data}
        likewise.train("mask-distillation", args.corpus, **given, **prompts)
    return str(folder)


def at_the_mask(own: bool = False, **prompts: Any) -> Any:
    """The mask as it is distilled, with the first seed or with its own."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        import likewise

        args.base = mask(args, args.seed if own else 1, **prompts)
        return {"model": likewise.load(args.base, precision="fp32")}

    return make


def from_the_mask(own: bool = False, recipe: str = "sncse", **options: Any) -> Any:
    """Return a recipe that is trained from the mask of the first seed or of its own."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        prompts = {name: value for name, value in options.items() if name in TWO}
        args.base = mask(args, args.seed if own else 1, **prompts)
        return train(Arm(recipe, options), args, out)

    return make


def _of_preset(name: str) -> dict[str, Any]:
    """A preset's options, less the table's budget."""
    budget = {"batch_size", "max_length", "eval_steps"}
    return {key: value for key, value in find_recipe("sncse").options(name).to_dict().items() if key not in budget}


ARMS = {
    "the base": Arm(at_the_mask(), seeds=False),
    "InfoNCE": Arm(from_the_mask(negation="none")),
    "SNCSE": Arm(from_the_mask()),
    "negation as a positive": Arm(from_the_mask(negation="positive"), seeds=False),
    "negation as a hard negative": Arm(from_the_mask(negation="hard-negative"), seeds=False),
    "SNCSE, preset negation": Arm(from_the_mask(**_of_preset("negation"))),
    "the base, a mask for each seed": Arm(at_the_mask(own=True)),
    "SNCSE, a mask for each seed": Arm(from_the_mask(own=True)),
    "SNCSE in two prompts": Arm(from_the_mask(**TWO), seeds=False),
    "SNCSE, dropout 0.05": Arm(from_the_mask(dropout=0.05), seeds=False),
}

# Not of the table: the paper's tables 2 and 3 with the spread of the whole training, in one prompt and in two.
OTHERS = {"the base in two prompts, a mask for each seed": Arm(at_the_mask(own=True, **TWO))} | {
    f"{name}{words}, a mask for each seed": Arm(from_the_mask(own=True, **prompts, **role))
    for words, prompts in (("", {}), (" in two prompts", TWO))
    for name, role in {
        "InfoNCE": {"negation": "none"},
        "SNCSE": {},
        "negation as a positive": {"negation": "positive"},
        "negation as a hard negative": {"negation": "hard-negative"},
    }.items()
    if name + words != "SNCSE"
}


def parser() -> argparse.ArgumentParser:
    budget = {"table": "sncse", "steps": 20, "eval_steps": 10, "max_length": 48}
    tasks = "sts,semantoneg,negation-gap"
    return parser_of(ARMS | OTHERS, __doc__, arms=list(ARMS), out=Path("runs/sncse-sts"), tasks=tasks, **budget)


if __name__ == "__main__":
    run(ARMS | OTHERS, parser().parse_args())
