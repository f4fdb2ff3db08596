"""Equation 4 on STS-B: the number of contexts (table 7), the terms (table 9), the choice of contexts (5.4).

    python benchmarks/context/origin_paper.py --sizes 1 2 5 10 20

The workspace holds index, discriminator and generators (`likewise context index`, `likewise context train all`). All
rows take the same test pairs. The weights of a row are chosen on the dev pairs alone, over the same kind of
contexts. The terms of equation 3 are kept in --out, a file a strategy and split, so that a stopped run goes on.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from typing import NamedTuple

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
import torch
from origin import STRATEGIES, parser_of

from likewise.context.origin import open_origin
from likewise.context.stage_options import TERMS, ScoreOptions
from likewise.context.weights import choose_even, similarities
from likewise.context.workspace import Stage, Workspace
from likewise.evaluation.pairs import correlations
from likewise.evaluation.registry import TASKS
from likewise.evaluation.tasks.sts import StsTask
from likewise.runs.releases import machine
from likewise.runs.whole_files import written_whole
from rows import ResultFile


class Scored(NamedTuple):
    """The terms of P pairs (2, C, 4), each over the contexts of its first and then of its second sentence."""

    terms: list[np.ndarray]
    of_first: np.ndarray  # [P]: how many contexts are the first sentence's
    gold: np.ndarray  # [P]

    def cut(self, most: int) -> list[np.ndarray]:
        """The terms over the best `most` contexts of either sentence: sets are chosen one at a time, the best first."""
        found = []
        for pair, n in zip(self.terms, self.of_first, strict=True):
            found.append(pair[:, np.r_[0 : min(n, most), n : min(n + most, pair.shape[1])]])
        return found


def drawn(task: str, data: Path, limit: int) -> tuple[list[tuple[str, str]], np.ndarray]:
    """So many pairs of a task and their ratings, drawn with seed 1; 0: all."""
    found = TASKS[task]
    assert isinstance(found, StsTask)
    rated = found.load(data)
    rows = np.random.default_rng(1).permutation(len(rated.gold))[: limit or None]
    rows.sort()
    return [(rated.first[i], rated.second[i]) for i in rows], rated.gold[rows]


def scored(args: argparse.Namespace, strategy: str, task: str, limit: int) -> Scored:
    """The terms of a task's pairs, computed or read."""
    pairs, gold = drawn(task, args.data, limit)
    path = args.out / f"{strategy.replace(' ', '-')}-{task}-{len(pairs)}-{args.contexts}.npz"
    if not path.exists():
        selection = STRATEGIES[strategy].updated(size=args.contexts, candidates=args.candidates)
        began = time.process_time()
        origin = open_origin(args.work, ScoreOptions(form="paper"), selection)
        texts = list(dict.fromkeys(text for pair in pairs for text in pair))
        sets = origin.contexts(texts)
        middle = time.process_time()
        terms = origin.terms(pairs, contexts=sets)
        last = time.process_time()
        with written_whole(path) as unfinished, unfinished.open("wb") as file:
            np.savez(
                file,
                terms=np.concatenate(terms, axis=1),
                counts=[pair.shape[1] for pair in terms],
                of_first=[len(sets[first]) for first, _ in pairs],
                seconds=[middle - began, last - middle],
            )
    with np.load(path) as kept:
        ends = np.cumsum(kept["counts"])[:-1]
        seconds = [round(float(s)) for s in kept["seconds"]]
        print(f"{path.name}: contexts found in {seconds[0]} s, {sum(kept['counts']):,} rows scored in {seconds[1]} s")
        return Scored(np.split(kept["terms"], ends, axis=1), kept["of_first"], gold)


def row(name: str, dev: Scored, test: Scored, most: int, without: tuple[str, ...] = ()) -> dict[str, object]:
    """Weights by dev, Spearman on test; printed as a row of the table."""
    told = test.cut(most)
    weights, dev_value = choose_even(dev.cut(most), dev.gold, without)
    value, even = (
        correlations(similarities(told, tried), test.gold)[0]
        for tried in (weights, [float(term not in without) for term in TERMS])
    )
    shown = ", ".join(f"{w:g}" for w in weights)
    print(f"| {name} | {dev_value:.2f} | {value:.2f} | {even:.2f} | {shown} |", flush=True)
    return {"row": name, "contexts": most, "dev": dev_value, "test": value, "even": even, "weights": weights}


def facts_of(stage: Stage) -> dict[str, object]:
    """What a stage's record says of its content."""
    return {name: value for name, value in stage.record.items() if name not in ("versions", "files", "sources")}


def parser() -> argparse.ArgumentParser:
    found: argparse.ArgumentParser = parser_of(__doc__, "runs/origin-paper", "runs/contexts-paper", 20_000)
    found.add_argument("--table", default="context-origin", help="the result file")
    found.add_argument("--contexts", type=int, default=50, help="contexts of a sentence")
    found.add_argument("--sizes", nargs="*", type=int, default=[1, 2, 5, 10, 20, 50, 100, 200, 500])
    found.add_argument("--dev", type=int, default=300, help="pairs of STS-B dev, which choose; 0: all")
    found.add_argument("--test", type=int, default=0, help="pairs of STS-B test; 0: all")
    found.add_argument("--strategies", nargs="*", choices=STRATEGIES, default=list(STRATEGIES))
    return found


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    workspace = Workspace(args.work)
    stages = {name: facts_of(workspace.require(name)) for name in ("index", "discriminator", "generators")}
    index = stages["index"]
    print(f"machine {machine()}")
    print(f"{index['documents']:,} documents, {index['sentences']:,} sentences")
    print(f"discriminator {stages['discriminator']['held_out']}, generators {stages['generators']['steps']} steps")
    both = {
        name: (scored(args, name, "sts-b-dev", args.dev), scored(args, name, "sts-b", args.test))
        for name in args.strategies
    }
    rows = []
    titles = ("dev", "test", "even weights, test")
    print(f"\n| row | {' | '.join(titles)} | chosen on dev |")
    print("| --- |" + " ---: |" * len(titles) + " --- |")
    for name, (dev, test) in both.items():
        rows.append(row(f"{name}, {args.contexts} contexts", dev, test, args.contexts))
    dev, test = both[args.strategies[0]]
    rows += [row(f"{n} contexts", dev, test, n) for n in args.sizes if n < args.contexts]
    for term in TERMS:
        rows.append(row(f"without {term}", dev, test, args.contexts, (term,)))
        rows.append(row(f"{term} alone", dev, test, args.contexts, tuple(other for other in TERMS if other != term)))
    facts = {"part": "stages", "stages": stages, "dev": len(dev.gold), "test": len(test.gold)}
    facts["options"] = {k: str(v) for k, v in vars(args).items() if k not in ("work", "out", "data")}
    name = f"{args.work.name}, {', '.join(args.strategies)}, {args.contexts} contexts"
    ResultFile(args.table).add(facts, *({"part": name} | one for one in rows))


if __name__ == "__main__":
    main()
