"""Table 10: single pairs of STS, scored by people, by contexts, by a student of them, and by the base.

    python benchmarks/context/amount.py --documents 595
    python benchmarks/context/cases.py --student runs/profiles

The pairs are those of the paper that are found in the data, and, of STS-B test, the three that the student brings most
nearer to the ratings than the base does and the three that it takes farthest from them: a rule, not a choice. Every
score is standardised over STS-B test, as the paper's seem to be. Origin's similarities are those by coherence that
`amount.py` kept.

Two more tables say where coherence is better than the base's cosine: Spearman's correlation of both on kinds of pairs,
and the three pairs on which coherence is nearest to people beside the cosine, both by their place among all pairs.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
import torch
from origin import TEST, parser_of
from origin_paper import drawn
from pretrained import features, opened
from scipy.stats import rankdata

import likewise
from likewise.context.context_sets import jaccard, words_of
from likewise.context.stage_options import FEATURES
from likewise.evaluation.pairs import correlations
from rows import ResultFile

PAPERS = {"sts12": "corrective changes before the shuttle", "sts-b-dev": "juli niemann said grant"}
"""Task and words of the paper's pairs. The second, 'they fly 240 miles to the farm', is in none of the files."""
SHOWN = 3
NUMBER, NEGATION = re.compile(r"\d"), re.compile(r"\b(?:not?|never|none|nothing)\b|n ?' ?t\b", re.IGNORECASE)
"""STS-B writes "don ' t"."""


def scores_of(args: argparse.Namespace, pairs: list[tuple[str, str]]) -> dict[str, np.ndarray]:
    """The similarities of pairs by the student and by the base."""
    found = {}
    for name, place in (("student", args.student), ("base", args.base)):
        model = likewise.load(place, precision="fp32")
        one, other = (model.encode([pair[side] for pair in pairs], normalize_embeddings=True) for side in (0, 1))
        found[name] = (one * other).sum(axis=1)
    return found


def kinds_of(pairs: list[tuple[str, str]]) -> dict[str, np.ndarray]:
    """Which of P pairs are of a kind: bool (P,) by name."""
    words = [tuple(map(words_of, pair)) for pair in pairs]
    common = np.array([jaccard(one, other) for one, other in words])
    length = np.array([(len(one) + len(other)) / 2 for one, other in words])
    numbers, negated = (np.array([any(map(mark.search, pair)) for pair in pairs]) for mark in (NUMBER, NEGATION))
    return {
        "all": common >= 0,
        "less than 30% of the words in common": common < 0.3,
        "30 to 70%": (common >= 0.3) & (common < 0.7),
        "70% or more": common >= 0.7,
        "up to 10 words": length <= 10,
        "more than 10 words": length > 10,
        "with a number": numbers,
        "with a negation": negated,
    }


def where_better(found: dict[str, np.ndarray], gold: np.ndarray, pairs: list[tuple[str, str]]) -> dict[str, Any]:
    """Where coherence is better than the base on the pairs of STS-B test: by kind, and the three most."""
    places = {name: rankdata(values[: len(pairs)]) / len(pairs) for name, values in (found | {"people": gold}).items()}
    away = {name: np.abs(places[name] - places["people"]) for name in ("base", "coherence")}
    gained = away["base"] - away["coherence"]
    by_kind, best = [], []
    print("\n| pairs of STS-B test | | cosine | coherence |\n| --- | ---: | ---: | ---: |")
    for name, rows in kinds_of(pairs).items():
        one = {score: correlations(found[score][: len(pairs)][rows], gold[rows])[0] for score in away}
        by_kind.append({"kind": name, "pairs": int(rows.sum()), **one})
        print(f"| {name} | {rows.sum():,} | {one['base']:.1f} | {one['coherence']:.1f} |")
    print("\n| pair | people | cosine | coherence |\n| --- | ---: | ---: | ---: |")
    for i in np.argsort(-gained, kind="stable")[:SHOWN]:
        at = {name: float(places[name][i]) for name in ("people", "base", "coherence")}
        best.append({"pair": pairs[i], "rating": float(gold[i]), **at})
        print(f"| {' / '.join(pairs[i])} | {' | '.join(f'{100 * value:.0f}' for value in at.values())} |")
    return {"nearer": float((gained > 0).mean()), "kinds": by_kind, "best": best}


def parser() -> argparse.ArgumentParser:
    found: argparse.ArgumentParser = parser_of(__doc__, "runs/cases", "runs/amount/documents-595")
    found.add_argument("--student", required=True, help="an encoder that learnt from contexts")
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--table", default="context-tables", help="the result file")
    found.add_argument("--contexts", type=int, default=50, help="contexts of a sentence")
    found.add_argument("--limit", type=int, default=0, help=argparse.SUPPRESS)
    found.add_argument("--terms", nargs="*", default=["coherence"], help=argparse.SUPPRESS)
    return found


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    pairs, gold = drawn(TEST, args.data, 0)
    also: list[tuple[str, tuple[str, str], float]] = []
    for task, words in PAPERS.items():
        rated = zip(*drawn(task, args.data, 0), strict=True)
        also.append(next((task, pair, float(rating)) for pair, rating in rated if words in pair[0].lower()))
    every = pairs + [pair for _, pair, _ in also]
    origin = opened(args.work, args.strategy, args.contexts, args.candidates)
    at = FEATURES.index("coherence")
    coherence = features(argparse.Namespace(**vars(args) | {"out": args.work}), TEST)[0][:, at]
    more = origin.features([pair for _, pair, _ in also], [name == "coherence" for name in FEATURES])[:, at]
    found = {"gold": np.append(gold, [rating for *_, rating in also]), "coherence": np.append(coherence, more)}
    found |= scores_of(args, every)
    test = slice(0, len(pairs))
    scaled = {name: (values - values[test].mean()) / values[test].std() for name, values in found.items()}
    nearer = np.abs(scaled["base"] - scaled["gold"]) - np.abs(scaled["student"] - scaled["gold"])
    order = np.argsort(-nearer[test], kind="stable")
    kinds = [("the paper's", len(pairs) + i) for i in range(len(also))]
    kinds += [("nearer", i) for i in order[:SHOWN]] + [("farther", i) for i in order[::-1][:SHOWN]]
    rows: list[dict[str, Any]] = []
    print("| | pair | rating | people | coherence | student | base |\n| --- | --- | ---: | ---: | ---: | ---: | ---: |")
    for kind, i in kinds:
        values = {name: float(some[i]) for name, some in scaled.items()}
        rows.append({"kind": kind, "pair": every[i], "rating": float(found["gold"][i]), **values})
        cells = " | ".join(f"{value:.2f}" for value in values.values())
        print(f"| {kind} | {' / '.join(every[i])} | {found['gold'][i]:.1f} | {cells} |")
    spearman = {name: correlations(found[name][test], gold)[0] for name in ("coherence", "student", "base")}
    facts = {"part": "cases", "contexts": args.contexts, "spearman": spearman}
    facts["coherence_and_base"] = where_better(found, gold, pairs)
    facts["nearer"] = float((nearer[test] > 0).mean())
    ResultFile(args.table).add(facts, *({"part": "cases"} | one for one in rows))


if __name__ == "__main__":
    main()
