"""What harvested similarity teaches an encoder: the seven STS tasks before, after, and after labelled pairs.

    likewise context index --corpus articles.jsonl.gz --work runs/contexts --set index.documents=2600
    likewise context train all --work runs/contexts
    likewise context harvest --work runs/contexts --set harvest.pairs=20000 --set score.terms=cosine,words
    python benchmarks/context/surrogate.py
    python benchmarks/context/surrogate.py --preset cpu --corpus runs/contexts-paper/harvest --out runs/surrogate-paper

--corpus is the folder of a harvest (`likewise context harvest`), --preset the surrogate's. NLI is SNLI's dev part, as
its train part is not among the files here; STS-B is its train part. Arms that begin from another take the model that
the other left in --out, so run one job at a time. The error on the harvest's own test pairs is in the result of each
surrogate.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import likewise
from arms import Arm, as_shipped, folder_of, parser_of, run

BASE, SURROGATE = "all-MiniLM-L6-v2", "surrogate"
LIGHT: dict[str, Any] = {"preset": "light", "base": "bundled:glove"}
STUDENTS: dict[str, dict[str, Any]] = {
    SURROGATE: {},
    "light encoder, GloVe": LIGHT,
    "light encoder, GloVe, rate 1e-3": {**LIGHT, "learning_rate": 1e-3, "max_steps": 300},
    "light encoder, GloVe, cosine, rate 1e-3": {**LIGHT, "learning_rate": 1e-3, "max_steps": 300, "scale": "cosine"},
    "[CLS]": {"preset": "cpu", "scale": "cosine", "select_by": "auto", "pooling": "cls"},
    "mask of a prompt": {"preset": "anchored", "anchor": 0.0, "scale": "cosine"},
    "the base's vectors alone": {"preset": "anchored", "anchor": 1000.0},
    "surrogate, own pooling": {"preset": "anchored", "pooling": "own", "learning_rate": 3e-5, "eval_steps": 20},
    "cross-encoder": {"preset": "cpu", "structure": "cross", "max_length": 96},
}
"""Arm to its arguments of `likewise.distill`; the preset is that of --preset where it names none."""


def untrained(student: str) -> Any:
    """The student as it begins."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        from transformers import set_seed

        from likewise.context.harvested import read_harvest
        from likewise.context.stage_options import SURROGATE
        from likewise.context.surrogate import student_of

        given = dict(STUDENTS[student])
        base, options = given.pop("base", args.base), SURROGATE.presets[given.pop("preset")].updated(**given)
        texts = [text for side in read_harvest(args.corpus).splits["train"].texts() for text in side]
        set_seed(args.seed)
        return {"model": student_of(base, options, texts)[0].eval()}

    return make


def distilled(student: str) -> Any:
    """The student after the harvest."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        budget = {"max_steps": args.steps} if args.steps else {}
        given = {"base": args.base, "preset": args.preset} | STUDENTS[student] | budget
        result = likewise.distill(
            args.corpus, out=out, seed=args.seed, data=args.data, overwrite=True, quiet=True, **given
        )
        return facts(result) | ({"model": f"cross-encoder:{out}"} if student == "cross-encoder" else {})

    return make


def further(objective: str, start: str, **options: Any) -> Any:
    """Fine-tuned on SNLI or STS-B train, one pass, from the base or from an arm's model."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        # STS-B train is found in the data folder.
        files = [Path(args.data) / "SNLI" / "labels.dev"] if objective == "nli" else None
        base, fixed = model_of(start, args), {"seed": args.seed, "data": args.data, "overwrite": True, "quiet": True}
        return facts(likewise.finetune(objective, files, base=base, out=out, epochs=1, **fixed, **options))

    return make


def model_of(arm: str, args: argparse.Namespace) -> str:
    """The model an arm left, or the base."""
    return args.base if arm == BASE else str(folder_of(args.out, arm, args.seed))


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
    **{student: Arm(distilled(student), seeds=student == SURROGATE) for student in STUDENTS},
    "[CLS], untrained": Arm(untrained("[CLS]"), seeds=False),
    "mask of a prompt, untrained": Arm(untrained("mask of a prompt"), seeds=False),
    "light encoder, GloVe, untrained": Arm(untrained("light encoder, GloVe"), seeds=False),
    "surrogate, NLI": Arm(further(start=SURROGATE, **NLI), seeds=False),
    "surrogate, STS-B": Arm(further(start=SURROGATE, **STS_B), seeds=False),
    "surrogate, NLI, STS-B": Arm(further(start="surrogate, NLI", **STS_B), seeds=False),
    "all-MiniLM-L6-v2, NLI": Arm(further(start=BASE, **NLI), seeds=False),
    "all-MiniLM-L6-v2, STS-B": Arm(further(start=BASE, **STS_B), seeds=False),
    "all-MiniLM-L6-v2, NLI, STS-B": Arm(further(start="all-MiniLM-L6-v2, NLI", **STS_B), seeds=False),
}


def parser() -> argparse.ArgumentParser:
    made = {
        "corpus": "runs/contexts/harvest",
        "out": Path("runs/surrogate-sts"),
        "table": "context-students",
        "preset": "anchored",
    }
    return parser_of(ARMS, __doc__, **made, steps=0)


if __name__ == "__main__":
    run(ARMS, parser().parse_args())
