"""Table 10: single pairs of STS, scored by people, by contexts, by a student of them, and by the base.

    python benchmarks/context/amount.py --documents 595
    python benchmarks/context/cases.py --student runs/profiles

The pairs are those of the paper that are found in the data, and, of STS-B test, the three that the student brings most
nearer to the ratings than the base does and the three that it takes farthest from them: a rule, not a choice. Every
score is standardised over STS-B test, as the paper's seem to be. Origin's similarities are those by coherence that
`amount.py` kept.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
import torch
from origin import TEST, parser_of
from origin_paper import drawn
from pretrained import features, opened

import likewise
from likewise.context.stage_options import FEATURES
from likewise.evaluation.pairs import correlations
from likewise.runs.provenance import machine
from likewise.runs.whole_files import write_json

PAPERS = {"sts12": "corrective changes before the shuttle", "sts-b-dev": "juli niemann said grant"}
"""Task and words of the paper's pairs. The second, 'they fly 240 miles to the farm', is in none of the files."""
SHOWN = 3


def scores_of(args: argparse.Namespace, pairs: list[tuple[str, str]]) -> dict[str, np.ndarray]:
    """The similarities of pairs by the student and by the base."""
    found = {}
    for name, place in (("student", args.student), ("base", args.base)):
        model = likewise.load(place, precision="fp32")
        one, other = (model.encode([pair[side] for pair in pairs], normalize_embeddings=True) for side in (0, 1))
        found[name] = (one * other).sum(axis=1)
    return found


def parser() -> argparse.ArgumentParser:
    found: argparse.ArgumentParser = parser_of(__doc__, "runs/cases", "runs/amount/documents-595")
    found.add_argument("--student", required=True, help="an encoder that learnt from contexts")
    found.add_argument("--base", default="bundled:minilm")
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
    origin = opened(args.work, args.contexts, args.candidates)
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
    facts = {"machine": machine(), "contexts": args.contexts, "spearman": spearman}
    write_json(args.out / "cases.json", facts | {"nearer": float((nearer[test] > 0).mean()), "rows": rows})


if __name__ == "__main__":
    main()
