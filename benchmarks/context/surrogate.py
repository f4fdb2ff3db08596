"""What harvested similarity teaches an encoder: the seven STS tasks before, after, and after labelled pairs.

    python benchmarks/context/surrogate.py --corpus runs/contexts/harvest --out runs/surrogate-sts

--corpus is the folder of a harvest (`likewise context harvest`). NLI is SNLI's dev part, as its train part is not among
the files here; STS-B is its train part. Arms that begin from another take the model that the other left in --out, so
run one job at a time. The error on the harvest's own test pairs is in the result of each surrogate.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import likewise
from arms import Arm, main, result_path

BASE, SURROGATE = "all-MiniLM-L6-v2", "surrogate"


def untouched(args: argparse.Namespace, out: Path) -> dict[str, Any]:
    """The base."""
    return {"model": likewise.load(args.base)}


def distilled(structure: str) -> Any:
    """The surrogate: Siamese, or the cross-encoder on the same pairs."""

    def run(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        from likewise.context.surrogate import distill

        cross = structure == "cross"
        result = distill(
            args.corpus,
            base=args.base,
            out=out,
            preset="cpu",
            structure=structure,
            seed=args.seed,
            data=args.data,
            overwrite=True,
            quiet=True,
            eval_steps=args.eval_steps,
            max_length=args.max_length * (2 if cross else 1),
        )
        return facts(result) | ({"model": f"cross-encoder:{out}"} if cross else {})

    return run


def further(objective: str, start: str, **options: Any) -> Any:
    """Fine-tuned on SNLI or STS-B train, one pass, from the base or from an arm's model."""

    def run(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        # STS-B train is found in the data folder.
        files = [Path(args.data) / "SNLI" / "labels.dev"] if objective == "nli" else None
        base, fixed = model_of(start, args), {"seed": args.seed, "data": args.data, "overwrite": True, "quiet": True}
        return facts(likewise.finetune(objective, files, base=base, out=out, epochs=1, **fixed, **options))

    return run


def model_of(arm: str, args: argparse.Namespace) -> str:
    """The model an arm left, or the base."""
    return args.base if arm == BASE else str(result_path(args.out, arm, args.seed).with_suffix(""))


def facts(result: Any) -> dict[str, Any]:
    """For the record: the scores before, how the checkpoint was chosen, and the errors on the harvest's test pairs."""
    record = result.record
    found = {name: record[name] for name in ("before", "best", "options")}
    if "splits" in record["corpus"]:
        found["pairs"] = record["corpus"]["splits"]
    return found | {name: record[name] for name in ("test", "sts") if name in record}


NLI, STS_B = {"objective": "nli", "eval_steps": 200}, {"objective": "sts", "eval_steps": 120}
ARMS = {
    BASE: Arm(untouched, seeds=False),
    SURROGATE: Arm(distilled("siamese")),
    "cross-encoder": Arm(distilled("cross")),
    "surrogate, NLI": Arm(further(start=SURROGATE, **NLI)),
    "surrogate, STS-B": Arm(further(start=SURROGATE, **STS_B)),
    "surrogate, NLI, STS-B": Arm(further(start="surrogate, NLI", **STS_B)),
    "all-MiniLM-L6-v2, NLI": Arm(further(start=BASE, **NLI)),
    "all-MiniLM-L6-v2, STS-B": Arm(further(start=BASE, **STS_B)),
    "all-MiniLM-L6-v2, NLI, STS-B": Arm(further(start="all-MiniLM-L6-v2, NLI", **STS_B)),
}

if __name__ == "__main__":
    main(ARMS, __doc__, corpus="runs/contexts/harvest", max_length=48, eval_steps=50, seeds=[1])
