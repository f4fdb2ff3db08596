"""GCLSR's tables of STS scores: rows of tables 2 and 4 to 11, each over several seeds.

    python benchmarks/gclsr/sts.py
    python benchmarks/gclsr/sts.py --preset paper --steps 0 --tables 4 5 6 7 8 9 11

58 updates of 512 are three epochs of 10,000 sentences; with --steps 0 they are the preset's (20 epochs for `paper`);
see ../arms.py.
Table 0 is ours: what stands out without the parts that cost, on GloVe and on word vectors distilled from an encoder,
and the same before the first step of training. So are table 12, what may keep the training from moving the score, and
14, what stands out for 300 dimensions (spacy_vectors.py):

    python benchmarks/gclsr/sts.py --tables 12 --seeds 1
    python benchmarks/gclsr/sts.py --tables 14 --seeds 1 --steps 19 --base runs/spacy-300.bin --table gclsr-words-300

Table 15 holds the rows of table 2 on sentences that have a paraphrase (paraphrases.py), with those named TransL:

    python benchmarks/gclsr/sts.py --tables 15 --seeds 1 --steps 19 --corpus runs/paraphrases.tsv.txt \\
        --paraphrases runs/paraphrases.tsv --table gclsr-paraphrases --out runs/gclsr-paraphrases
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from arms import Arm, parser_of, run, train

BASE: dict[str, Any] = {"augmentation": "none", "attention": False, "group_size": 0}
ONES: dict[str, Any] = {"attention": False, "regions": "1,1,1,1,1,1"}
EDITS: dict[str, Any] = {"augmentation": "edits", "edits": "no-synonyms"}  # those that need no WordNet
DISTILLED = "distilled:bundled:minilm"
SIZE = 256
RAW: dict[str, Any] = {"weighted": False}  # word vectors as they are: the paper's
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
    # Ours: what may keep the training from moving the score.
    12: {
        "projector of 256": ONES | {"projection": 256, "bottleneck": 64},
        "unknown words drawn": ONES | {"unknown_drawn": 0.01},
        "words as they are": ONES | RAW,
    },
    14: {
        "regions 1 alone, no attention": ONES,
        "+ PWVA": BASE | {"augmentation": "partial"},
        "+ PWVA + self-att. + GP": {},
        "words as they are": ONES | RAW,
        "paper's sizes": RAW,
    },
    15: {"GCLSR base": BASE, "+ EDA": BASE | EDITS, "+ PWVA + self-att. + GP": {}},
    11: {f"groups of {n or 'all'}": {"group_size": n} for n in (0, 4, 8, 16, 32, 128)},
}


def mean_of_words(weighted: bool) -> Callable[[argparse.Namespace, Path], dict[str, Any]]:
    """The average of a sentence's word vectors, as they are or weighted."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        from compared.baselines import baseline

        size = SIZE if args.base == DISTILLED else 0
        options = {"weighted": weighted, "dimension": size, "overwrite": True, "quiet": True}
        baseline("word-average", args.corpus, base=args.base, out=out, **options)
        return {}

    return make


def untrained(**changes: Any) -> Callable[[argparse.Namespace, Path], dict[str, Any]]:
    """The encoder of a run before its first step: the TextCNN random, and the words those of the run's own sample."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        import torch

        from likewise.corpus import prepare
        from likewise.encoder.modules import without_training_head
        from likewise.inference.load_model import Encoder
        from likewise.recipes import find_recipe
        from likewise.recipes.recipe import sample_rows

        recipe = find_recipe("gclsr")
        options, rows = recipe.options("cpu", **changes), prepare(args.corpus).dataset
        rows = rows.select(sample_rows(len(rows), options.sentences, args.seed, 2))
        torch.manual_seed(args.seed)
        encoder = recipe.build_encoder(args.base, options, rows["sentence"])
        return {"model": Encoder(modules=list(without_training_head(encoder).children()))}

    return make


def paraphrased(changes: dict[str, Any]) -> Callable[[argparse.Namespace, Path], dict[str, Any]]:
    """A run whose second view is the paraphrase of a sentence: TransL."""

    def make(args: argparse.Namespace, out: Path) -> dict[str, Any]:
        changes_of_views = {"augmentation": "paraphrases", "paraphrases": str(args.paraphrases)}
        return train(Arm("gclsr", changes | changes_of_views), args, out)

    return make


TRANSLATED = {
    "+ TransL": Arm(paraphrased(BASE)),
    "+ TransL + self-att. + GP": Arm(paraphrased({})),
}
ARMS = {
    "mean of word vectors": Arm(mean_of_words(False), seeds=False),
    "mean of weighted word vectors": Arm(mean_of_words(True), seeds=False),
    "untrained, all parts": Arm(untrained()),
    "untrained, no attention": Arm(untrained(attention=False)),
    "untrained, regions 1 alone, no attention": Arm(untrained(**ONES)),
    "untrained, words as they are": Arm(untrained(**ONES, **RAW)),
    "untrained, paper's sizes": Arm(untrained(**RAW)),
    "mean of distilled word vectors": Arm(mean_of_words(False), seeds=False, base=DISTILLED),
    "untrained, distilled, regions 1 alone, no attention": Arm(untrained(**ONES, dimension=SIZE), base=DISTILLED),
    **{name: Arm("gclsr", changes) for rows in TABLES.values() for name, changes in rows.items()},
    "distilled, regions 1 alone, no attention": Arm("gclsr", {**ONES, "dimension": SIZE}, base=DISTILLED),
    **TRANSLATED,
}


def parser() -> argparse.ArgumentParser:
    budget = {"table": "gclsr", "steps": 58, "batch_size": 0, "max_length": 0, "eval_steps": 19}
    found = parser_of(ARMS, __doc__, arms=None, out=Path("runs/gclsr-sts"), base="bundled:glove", **budget)
    found.add_argument("--tables", nargs="+", type=int, choices=TABLES, default=[0, 2, 10], help="names of arms, short")
    found.add_argument("--paraphrases", type=Path, help="of table 15: lines of 'sentence TAB paraphrase'")
    return found


def main() -> None:
    args = parser().parse_args()
    if args.arms is None:
        args.arms = [name for name in ARMS if "mean of" in name or "untrained" in name]
        args.arms += [name for number in args.tables for name in TABLES[number]]
        args.arms += TRANSLATED if args.paraphrases else [name for name in ARMS if name.startswith("distilled")]
    run(ARMS, args)


if __name__ == "__main__":
    main()
