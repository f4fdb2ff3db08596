"""Origin on the states of a frozen encoder: the seven STS tasks, table 9 (terms), table 7 (contexts), section 5.4.

    likewise context index --corpus articles.jsonl.gz --work runs/contexts --set index.documents=595
    likewise context train all --work runs/contexts
    python benchmarks/context/origin.py

The workspace holds the stages of the preset `frozen`, the default. Weights are chosen on STS-B dev alone: for the seven
tasks on the whole of it and of the features that need no contexts, for the other tables on pairs drawn from it.
Features are kept in --out, a file a setting, so that a stopped run goes on.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import numpy as np
import torch

from likewise.context.origin import Origin, open_origin
from likewise.context.stage_options import FEATURES, TERMS, ScoreOptions, SelectionOptions
from likewise.context.weights import choose_signed
from likewise.evaluation.pairs import correlations
from likewise.evaluation.registry import rated_task
from likewise.runs.cache import data_folder
from likewise.runs.releases import machine
from likewise.runs.whole_files import written_whole
from rows import ResultFile

SEVEN = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
DEV, TEST = "sts-b-dev", "sts-b"
ENCODER = FEATURES[: -len(TERMS)]
GONE = (("coherence",), ("centre",), ("left",), ("right",), ("left", "right"))
"""What table 9 of the paper leaves out, and the sentence itself, which it does not."""
STRATEGIES = {
    "two-step": SelectionOptions(),
    "without diversity": SelectionOptions(diversity=False),
    "random": SelectionOptions(strategy="random"),
}


@cache
def opened(work: Path, strategy: str, contexts: int, candidates: int) -> Origin:
    """Return Origin, which remembers the sentences of one task for the next."""
    selection = STRATEGIES[strategy].updated(size=contexts or 1, candidates=candidates)
    return open_origin(work, ScoreOptions(weights=(1.0,) * len(FEATURES)), selection)


def features(args: argparse.Namespace, strategy: str, contexts: int, task: str, limit: int) -> tuple[np.ndarray, ...]:
    """Return the features of a task's pairs and their ratings, computed or read; contexts 0: those of the encoder."""

    def computed() -> tuple[np.ndarray, np.ndarray]:
        rated = rated_task(task).load(args.data)
        rows = np.arange(len(rated.gold))
        if limit:
            rng = np.random.default_rng(1)
            dev = rng.permutation(len(rated_task(DEV).load(args.data).gold))
            rows = np.sort((dev if task == DEV else rng.permutation(len(rows)))[:limit])
        origin = opened(args.work, strategy, contexts, args.candidates)
        pairs = [(rated.first[i], rated.second[i]) for i in rows]
        found = origin.features(pairs, [True] * len(ENCODER) + [contexts > 0] * len(TERMS))
        return found, np.asarray(rated.gold)[rows]

    return kept(args.out / f"{strategy.replace(' ', '-')}-{contexts}-{task}-{limit or 'all'}.npz", computed)


def kept(path: Path, compute: Callable[[], tuple[np.ndarray, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """The features of pairs and their ratings, computed unless the file is there."""
    if not path.exists():
        features, gold = compute()
        with written_whole(path) as unfinished, unfinished.open("wb") as file:
            np.savez(file, f=features, g=gold)
    with np.load(path) as found:
        return found["f"], found["g"]


def seven(args: argparse.Namespace) -> list[dict[str, object]]:
    """Print the seven tasks by the features that need no contexts, with weights by the whole of STS-B dev."""
    dev, gold = features(args, "two-step", 0, DEV, 0)
    sets = {task: features(args, "two-step", 0, task, 0) for task in SEVEN}
    print(f"\n| features | weights | dev | {' | '.join(SEVEN)} | average |")
    print("| --- | --- | ---: |" + " ---: |" * (len(SEVEN) + 1))
    rows = []
    for names in (("cosine",), ("cosine", "words"), ("cosine", "fit"), ENCODER):
        weights, spearman = choose_signed(dev * np.isin(FEATURES, names), gold)
        scores = [correlations(found @ weights, rated)[0] for found, rated in sets.values()]
        cells = " | ".join(f"{score:.2f}" for score in [spearman, *scores, float(np.mean(scores))])
        print(f"| {' + '.join(names)} | {', '.join(f'{w:g}' for w in weights[:3])} | {cells} |", flush=True)
        arm = ", ".join(names)
        rows.append({"arm": arm, "set": DEV, "score": spearman, "weights": weights})
        rows += [{"arm": arm, "set": task, "score": score} for task, score in zip(SEVEN, scores, strict=True)]
    return rows


def table(
    args: argparse.Namespace, strategy: str, contexts: int, arms: dict[str, tuple[str, ...]]
) -> list[dict[str, object]]:
    """Print STS-B dev and test of some choices of features over one kind of contexts."""
    dev, gold = features(args, strategy, contexts, DEV, args.dev)
    test, rated = features(args, strategy, contexts, TEST, args.test)
    rows = []
    for name, names in arms.items():
        weights, spearman = choose_signed(dev * np.isin(FEATURES, names), gold)
        score = correlations(test @ weights, rated)[0]
        shown = ", ".join(f"{n} {w:g}" for n, w in zip(FEATURES, weights, strict=True) if w)
        print(f"| {strategy}, {contexts} | {name} | {spearman:.2f} | {score:.2f} | {shown} |", flush=True)
        rows.append(
            {
                "part": "terms",
                "strategy": strategy,
                "contexts": contexts,
                "row": name,
                "dev": spearman,
                "test": score,
                "weights": weights,
            }
        )
    return rows


def parser_of(about: str | None, out: str, work: str = "runs/contexts", candidates: int = 2_000) -> Any:
    """The options of every table of Origin."""
    found = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--work", type=Path, default=Path(work))
    found.add_argument("--out", type=Path, default=Path(out))
    found.add_argument("--data", type=Path, default=data_folder() / "senteval")
    found.add_argument("--candidates", type=int, default=candidates, help="chunks that retrieval brings")
    found.add_argument("--threads", type=int, default=1)
    found.set_defaults(strategy="two-step")
    return found


def parser() -> argparse.ArgumentParser:
    found: argparse.ArgumentParser = parser_of(__doc__, "runs/origin")
    found.add_argument("--table", default="context-frozen", help="the result file")
    found.add_argument(
        "--contexts", nargs="*", type=int, default=[20], help="contexts of a sentence; the first is used for table 9"
    )
    found.add_argument("--dev", type=int, default=400, help="pairs of STS-B dev over contexts; 0: all")
    found.add_argument("--test", type=int, default=500, help="pairs of STS-B test over contexts; 0: all")
    return found


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    print(f"machine {machine()}")
    found = seven(args)
    arms = {"all": FEATURES, "the encoder's": ENCODER, "the four of equation 3": TERMS}
    for gone in GONE:
        arms[f"the four without {' and '.join(gone)}"] = tuple(term for term in TERMS if term not in gone)
    arms |= {f"{name} alone": (name,) for name in FEATURES}
    arms |= {f"cosine + {name}": ("cosine", name) for name in FEATURES[1:]}
    print("\n| contexts | features | dev | test | weights |\n| --- | --- | ---: | ---: | --- |")
    found += table(args, "two-step", args.contexts[0], arms)
    few = {name: arms[name] for name in ("all", "the four of equation 3", *(f"{term} alone" for term in TERMS))}
    for strategy in ("without diversity", "random"):
        found += table(args, strategy, args.contexts[0], few)
    for contexts in args.contexts[1:]:
        found += table(args, "two-step", contexts, few)
    ResultFile(args.table).add(*found)


if __name__ == "__main__":
    main()
