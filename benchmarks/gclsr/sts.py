"""GCLSR's tables of STS scores: rows of tables 2 and 4 to 11, each over several seeds.

    python benchmarks/gclsr/sts.py --out runs/gclsr --tables 2 10 --seeds 1 2 3 --jobs 2

The steps are the preset's (20 epochs of 10,000 sentences for `paper`) unless --steps says otherwise; see ../arms.py.
Table 0 is ours: what stands out without the parts that cost, on GloVe and on word vectors distilled from an encoder,
and the same before the first step of training.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from arms import Arm, main

BASE: dict[str, Any] = {"augmentation": "none", "attention": False, "group_size": 0}
ONES: dict[str, Any] = {"attention": False, "regions": "1,1,1,1,1,1"}
EDITS: dict[str, Any] = {"augmentation": "edits", "edits": "no-synonyms"}  # those that need no WordNet
DISTILLED = "distilled:bundled:minilm"
SIZE = 256
TABLES: dict[int, dict[str, dict[str, Any]]] = {
    0: {"regions 1 alone, no attention": ONES},
    2: {
        "GCLSR base": BASE,
        "+ EDA": BASE | EDITS,
        "+ PWVA": BASE | {"augmentation": "partial"},
        "+ PWVA + self-att.": BASE | {"augmentation": "partial", "attention": True},
        "+ EDA + self-att. + GP": EDITS,
        "+ PWVA + self-att. + GP": {},
    },
    4: {f"batch {n}": {"batch_size": n} for n in (64, 128, 256, 512, 1024)},
    5: {f"weight decay {x}": {"weight_decay": x} for x in (1e-4, 1e-3, 1e-2, 1e-1)},
    6: {f"predictor {x or 'decay'}": {"predictor_rate": x} for x in (0.0, 0.08, 0.2, 0.5, 1.0)},
    7: {
        f"momentum {a}, {b}": {"momentum": a, "momentum_after": b}
        for a, b in ((0.8, 0.8), (0.9, 0.9), (0.99, 0.99), (0.9, 0.8))
    },
    8: {f"warm-up {n}": {"warmup_epochs": n} for n in (1, 2, 3, 4, 5)},
    9: {
        f"regions {r}": {"regions": r}
        for r in (
            *("1,2,3,4,5,6", "2,3,4,5,6", "1,1,1,2,3,4", "1,1,1,4,5,6"),
            *("1,1,1,1,1,1", "1,1,1,6,15,20", "1,1,1,20,30,40"),
        )
    },
    # 'partial' is the last row of table 2.
    10: {f"{name} augmentation": {"augmentation": name} for name in ("none", "full")},
    11: {f"groups of {n or 'all'}": {"group_size": n} for n in (0, 4, 8, 16, 32, 128)},
}


def mean_of_words(weighted: bool) -> Callable[[argparse.Namespace, Path], dict[str, Any]]:
    """The average of a sentence's word vectors, as they are or weighted."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        from likewise.baselines import baseline

        size = SIZE if args.base == DISTILLED else 0
        options = {"weighted": weighted, "dimension": size, "overwrite": True, "quiet": True}
        baseline("word-average", args.corpus, base=args.base, out=out, **options)
        return {}

    return make


def untrained(**changes: Any) -> Callable[[argparse.Namespace, Path], dict[str, Any]]:
    """The encoder with a random TextCNN, seed 1, on weighted word vectors."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        import torch

        from likewise.corpus import prepare
        from likewise.encoder.modules import without_training_head
        from likewise.inference.encoder import Encoder
        from likewise.recipes import find_recipe

        recipe = find_recipe("gclsr")
        torch.manual_seed(args.seed)
        options = recipe.options("cpu", **changes)
        encoder = recipe.build_encoder(args.base, options, prepare(args.corpus).dataset["sentence"])
        return {"model": Encoder(modules=list(without_training_head(encoder).children()))}

    return make


ARMS = {
    "mean of word vectors": Arm(mean_of_words(False), seeds=False),
    "mean of weighted word vectors": Arm(mean_of_words(True), seeds=False),
    "untrained, all parts": Arm(untrained()),
    "untrained, no attention": Arm(untrained(attention=False)),
    "untrained, regions 1 alone, no attention": Arm(untrained(**ONES)),
    "mean of distilled word vectors": Arm(mean_of_words(False), seeds=False, base=DISTILLED),
    "untrained, distilled, regions 1 alone, no attention": Arm(untrained(**ONES, dimension=SIZE), base=DISTILLED),
    **{name: Arm("gclsr", changes) for rows in TABLES.values() for name, changes in rows.items()},
    "distilled, regions 1 alone, no attention": Arm("gclsr", {**ONES, "dimension": SIZE}, base=DISTILLED),
}

if __name__ == "__main__":
    # The tables are a short way to name arms.
    tables = argparse.ArgumentParser(add_help=False)
    tables.add_argument("--tables", nargs="+", type=int, choices=TABLES, default=[0, 2, 10])
    wanted, rest = tables.parse_known_args()
    sys.argv = [sys.argv[0], *rest]
    rows = [name for name in ARMS if "mean of" in name or "untrained" in name]
    rows += [name for number in wanted.tables for name in TABLES[number]]
    rows += [name for name in ARMS if name.startswith("distilled")]
    preset = {
        "base": "bundled:glove",
        "preset": "paper",
        "steps": 0,
        "batch_size": 0,
        "max_length": 0,
        "eval_steps": 19,
    }
    main(ARMS, __doc__, arms=rows, **preset)
