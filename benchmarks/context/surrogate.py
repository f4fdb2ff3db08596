"""What harvested similarity teaches an encoder: the seven STS tasks before, after, and after labelled pairs.

    python benchmarks/context/surrogate.py --corpus runs/contexts/harvest --out runs/surrogate-sts --arms ...

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
from arms import Arm, as_shipped, main, result_path

BASE, SURROGATE = "all-MiniLM-L6-v2", "surrogate"
STUDENTS: dict[str, dict[str, Any]] = {
    SURROGATE: {"preset": "anchored"},
    "light encoder, GloVe": {"preset": "light", "base": "bundled:glove"},
    "light encoder, GloVe, rate 1e-3": {"preset": "light", "base": "bundled:glove", "learning_rate": 1e-3},
    "[CLS]": {"preset": "cpu", "scale": "cosine", "select_by": "auto", "pooling": "cls"},
    "mask of a prompt": {"preset": "anchored", "anchor": 0.0, "scale": "cosine"},
    "the base's vectors alone": {"preset": "anchored", "anchor": 1000.0},
    "surrogate, own pooling": {"preset": "anchored", "pooling": "own", "learning_rate": 3e-5, "eval_steps": 20},
    "cross-encoder": {"preset": "cpu", "structure": "cross", "max_length": 96},
}
"""Arm to its arguments of `likewise.distill`."""


def untrained(student: str) -> Any:
    """The student as it begins."""

    def run(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        from transformers import set_seed

        from likewise.context.harvested import read_harvest
        from likewise.context.surrogate import SURROGATE, student_of

        given = dict(STUDENTS[student])
        base, options = given.pop("base", args.base), SURROGATE.presets[given.pop("preset")].updated(**given)
        set_seed(args.seed)
        return {"model": student_of(base, options, read_harvest(args.corpus).splits["train"])[0].eval()}

    return run


def distilled(student: str) -> Any:
    """The student after the harvest."""

    def run(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        given = {"base": args.base} | STUDENTS[student] | ({"max_steps": args.steps} if args.steps else {})
        result = likewise.distill(
            args.corpus, out=out, seed=args.seed, data=args.data, overwrite=True, quiet=True, **given
        )
        return facts(result) | ({"model": f"cross-encoder:{out}"} if student == "cross-encoder" else {})

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
    found |= {"dev": record["best"]["score"] if record["best"] else None}
    if "splits" in record["corpus"]:
        found["pairs"] = record["corpus"]["splits"]
    return found | ({"test": record["test"]} if "test" in record else {})


NLI, STS_B = {"objective": "nli", "eval_steps": 200}, {"objective": "sts", "eval_steps": 120}
ARMS = {
    BASE: Arm(as_shipped, seeds=False),
    **{student: Arm(distilled(student)) for student in STUDENTS},
    "[CLS], untrained": Arm(untrained("[CLS]"), seeds=False),
    "mask of a prompt, untrained": Arm(untrained("mask of a prompt"), seeds=False),
    "light encoder, GloVe, untrained": Arm(untrained("light encoder, GloVe")),
    "surrogate, NLI": Arm(further(start=SURROGATE, **NLI)),
    "surrogate, STS-B": Arm(further(start=SURROGATE, **STS_B)),
    "surrogate, NLI, STS-B": Arm(further(start="surrogate, NLI", **STS_B)),
    "all-MiniLM-L6-v2, NLI": Arm(further(start=BASE, **NLI)),
    "all-MiniLM-L6-v2, STS-B": Arm(further(start=BASE, **STS_B)),
    "all-MiniLM-L6-v2, NLI, STS-B": Arm(further(start="all-MiniLM-L6-v2, NLI", **STS_B)),
}

if __name__ == "__main__":
    main(ARMS, __doc__, corpus="runs/contexts/harvest", steps=0, seeds=[1])
