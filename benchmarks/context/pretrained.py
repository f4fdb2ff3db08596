"""Context terms by a pretrained language model, and weights without labels: pairs of STS-B dev and of the seven tasks.

    likewise context index --corpus articles.jsonl.gz --work runs/contexts --set index.documents=595
    likewise context train all --work runs/contexts --preset pretrained
    python benchmarks/context/pretrained.py

Of each task --limit pairs are drawn with seed 1. Nothing is fitted to ratings: each term is divided by its deviation
over pairs of the workspace's own sentences (`likewise.context.origin.own_pairs`), and the rows add them up. --terms
leaves out what is not to be computed: coherence, words and fit take seconds, the terms of the language model most of
the time. Features are kept in --out, a file a task, so that a stopped run goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
import torch
from origin import DEV, SEVEN, STRATEGIES, kept, parser_of
from origin_paper import drawn

from likewise.context.origin import Origin, open_origin, own_pairs
from likewise.context.stage_options import FEATURES, ScoreOptions
from likewise.evaluation.pairs import correlations
from likewise.runs.progress import Progress
from likewise.runs.releases import machine
from rows import ResultFile

OWN = "own text"
MODEL = ("centre", "left", "right")
ROWS: tuple[tuple[str, ...], ...] = (
    ("cosine",),
    ("words",),
    ("coherence",),
    *((term,) for term in MODEL),
    MODEL,
    ("coherence", *MODEL),
    ("cosine", "words"),
    ("cosine", "coherence"),
    *(("cosine", term) for term in MODEL),
    ("cosine", "words", "coherence"),
    ("cosine", *MODEL),
    ("cosine", "coherence", *MODEL),
    ("cosine", "words", "coherence", *MODEL),
)
FITTED = (1.0, 0.58, -0.31, 0.0, 0.0, 0.0, 0.0)
"""Cosine, words and fit by weights that the ratings of STS-B dev chose: for comparison."""


@cache
def opened(work: Path, strategy: str, contexts: int, candidates: int) -> Origin:
    selection = STRATEGIES[strategy].updated(size=contexts, candidates=candidates)
    return open_origin(work, ScoreOptions(weights=(1.0,) * len(FEATURES)), selection, Progress())


def features(args: argparse.Namespace, task: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the features (P, 7) of a task's pairs and their ratings, computed or read; of own text, no ratings."""

    def computed() -> tuple[np.ndarray, np.ndarray]:
        origin = opened(args.work, args.strategy, args.contexts, args.candidates)
        if task == OWN:
            pairs, gold = own_pairs(origin.states), np.zeros(0)
        else:
            pairs, gold = drawn(task, args.data, args.limit)
        return origin.features(pairs, [name in args.terms for name in FEATURES]), gold

    return kept(args.out / f"{part_of(args, task)}.npz", computed)


def part_of(args: argparse.Namespace, *parts: str) -> str:
    """The name of a file of features."""
    chosen = () if args.strategy == "two-step" else (args.strategy,)
    return "-".join([*parts, *chosen, str(args.limit or "all"), str(args.contexts)]).replace(" ", "-")


def row(score: Callable[[np.ndarray], np.ndarray], sets: dict[str, tuple[np.ndarray, np.ndarray]]) -> dict[str, float]:
    found = {task: correlations(score(values), gold)[0] for task, (values, gold) in sets.items()}
    return found | ({"average": float(np.mean([found[task] for task in SEVEN]))} if set(SEVEN) <= set(found) else {})


def parser() -> argparse.ArgumentParser:
    found: argparse.ArgumentParser = parser_of(__doc__, "runs/origin-pretrained")
    found.add_argument("--tasks", nargs="+", default=[DEV, *SEVEN])
    found.add_argument("--terms", nargs="+", choices=FEATURES, default=[name for name in FEATURES if name != "fit"])
    found.add_argument("--table", default="context-pretrained", help="the result file")
    found.add_argument("--contexts", type=int, default=10, help="contexts of a sentence")
    found.add_argument("--strategy", choices=STRATEGIES, default="two-step", help="how the contexts are chosen")
    found.add_argument("--limit", type=int, default=500, help="pairs of a task; 0: all")
    return found


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    print(f"machine {machine()}; {args.contexts} contexts of a sentence, {args.limit or 'all'} pairs of a task")
    own, _ = features(args, OWN)
    spread = own.std(axis=0)
    sets = {task: features(args, task) for task in args.tasks}
    rows = []
    columns_of = [*sets, *(["average"] if set(SEVEN) <= set(sets) else [])]
    print(f"| terms, equal weights | {' | '.join(columns_of)} |\n| --- |{' ---: |' * len(columns_of)}")
    for names in ROWS:
        columns = [FEATURES.index(name) for name in names]
        if not set(args.terms).issuperset(names):
            continue
        found = row(lambda values, at=columns: (values[:, at] / spread[at]).sum(axis=1), sets)
        rows.append({"terms": names, **found})
    if {"words", "fit"} <= set(args.terms):
        found = row(lambda values: values[:, : len(FITTED)] @ FITTED, sets)
        rows.append({"terms": ("cosine, words and fit, fitted to STS-B dev",), **found})
    for one in rows:
        cells = " | ".join(f"{one[task]:.2f}" for task in columns_of)
        print(f"| {' + '.join(one['terms'])} | {cells} |", flush=True)
    names = ("tasks", "terms", "contexts", "strategy", "candidates", "limit")
    settings = {name: getattr(args, name) for name in names}
    spreads = dict(zip(FEATURES, spread.tolist(), strict=True))
    facts = {"part": "settings", "settings": settings, "spread": spreads}
    how = {"contexts": args.contexts, "limit": args.limit}
    scores = [
        {"arm": ", ".join(one["terms"]), "set": task, "score": one[task], **how} for one in rows for task in columns_of
    ]
    ResultFile(args.table).add(facts, *scores)


if __name__ == "__main__":
    main()
