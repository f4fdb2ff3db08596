"""SNCSE's figure 4 and table 4: the cosines of related sentences, and the pairs whose two ranks differ most.

    python benchmarks/negation/figures.py cosines runs/sncse --before bundled:minilm --out runs/cosines.png
    python benchmarks/negation/figures.py errors runs/sncse --task sts14

Figure 4: sentences of the STS test sets, each with itself, with its negation and with another one at random. A model
that suppresses features puts a sentence and its negation as close together as a sentence and itself. The cosine of a
sentence with itself is 1 and no distribution, so it is taken of two views under dropout, which training brings close.

Table 4: the pairs of a task with the largest difference of ranks by rating and by cosine (equations 10 and 11).

Letters of the shapes: S sentences, P pairs, D embedding.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import rankdata

import likewise
from likewise.encoder.modules import undisturbed
from likewise.evaluation.pairs import correlations, pair_cosines
from likewise.evaluation.registry import rated_task
from likewise.runs.cache import data_folder

STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
VIEWED = 1000
"""Sentences that are encoded twice under dropout."""


def partners(count: int, seed: int) -> np.ndarray:
    """A random other row for each of some rows, (count,); each is used once: the next one on a ring."""
    ring = np.random.default_rng([seed, 1]).permutation(count)
    following = np.empty(count, dtype=np.int64)
    following[ring] = np.roll(ring, -1)
    return following


def dropout_views(model: Any, sentences: list[str], seed: int, batch_size: int = 64) -> np.ndarray:
    """The vectors (2, S, D) of sentences that are encoded twice with dropout on."""
    views = []
    with undisturbed(model), torch.inference_mode():
        torch.manual_seed(seed)
        model.train()
        for _ in range(2):
            batches = [sentences[start : start + batch_size] for start in range(0, len(sentences), batch_size)]
            views.append(torch.cat([model(model.preprocess(batch))["sentence_embedding"] for batch in batches]).numpy())
    return np.stack(views)


def cosines_of(model: Any, own: list[str], negations: list[str], seed: int) -> dict[str, np.ndarray]:
    """The cosines of S sentences to themselves, to their negations and to others."""
    first, second = np.split(model.encode([*own, *negations]), 2)
    return {
        "itself under dropout": pair_cosines(*dropout_views(model, own[:VIEWED], seed)),
        "its negation": pair_cosines(first, second),
        "another sentence": pair_cosines(first, first[partners(len(own), seed)]),
    }


def equation_10(estimated: np.ndarray, gold: np.ndarray) -> float:
    """Spearman's rho of two rankings (P,) that have no ties."""
    count = len(gold)
    return float(1 - ((estimated - gold) ** 2).sum() / ((count**3 - count) / 6))


def show_cosines(args: argparse.Namespace) -> None:
    from likewise.augment.negation import negate_batch

    texts = sorted({text for task in STS for text in rated_task(task).load(args.data).sentences})
    drawn = [texts[i] for i in np.random.default_rng(args.seed).permutation(len(texts))[: args.sentences]]
    pairs = [(one.sentence, one.negation) for one in negate_batch(drawn) if one.negation]
    own, negations = (list(column) for column in zip(*pairs, strict=True))
    print(
        f"{len(own)} of {len(drawn)} sentences have a negation\n\n| model | a sentence and | mean | 5% | median | 95% |"
    )
    print("| --- | --- | ---: | ---: | ---: | ---: |")
    shown = {}
    for name in [args.before] * bool(args.before) + [args.model]:
        shown[name] = cosines_of(likewise.load(name, device="cpu", precision="fp32"), own, negations, args.seed)
        for kind, values in shown[name].items():
            low, middle, high = np.quantile(values, [0.05, 0.5, 0.95])
            print(f"| {name} | {kind} | {values.mean():.3f} | {low:.3f} | {middle:.3f} | {high:.3f} |", flush=True)
    if args.out:
        draw(shown, args.out)


def draw(shown: dict[str, dict[str, np.ndarray]], path: Path) -> None:
    """Write the picture: a panel for each model, and a shape for each kind of pairs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(1.6 + 3.4 * len(shown), 3.4), layout="constrained")
    panels = figure.subplots(1, len(shown), sharex=True, sharey=True, squeeze=False)[0]
    for panel, (name, kinds) in zip(panels, shown.items(), strict=True):
        for kind, values in kinds.items():
            panel.hist(values, np.linspace(-0.4, 1, 71), density=True, histtype="stepfilled", alpha=0.55, label=kind)
        panel.set_title(name, loc="left", fontsize=9)
        panel.set_xlabel("cosine")
    panels[0].legend(title="a sentence and", frameon=False, fontsize=8)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)


def show_errors(args: argparse.Namespace) -> None:
    rated = rated_task(args.task)
    pairs = rated.load(args.data)
    model = likewise.load(args.model, precision="fp32")
    cosines = pair_cosines(*np.split(model.encode([*pairs.first, *pairs.second]), 2))
    gold, estimated = rankdata(pairs.gold), rankdata(cosines)
    print(
        f"{rated.title}: {len(gold):,} pairs, Spearman {correlations(cosines, pairs.gold)[0]:.2f} "
        f"({100 * equation_10(estimated, gold):.2f} by equation 10, which knows no ties)\n"
    )
    print("| sentences | rank by rating | rank by cosine | |\n| --- | ---: | ---: | --- |")
    for i in np.argsort(-((estimated - gold) ** 2), kind="stable")[: args.worst].tolist():
        side = "overestimated" if estimated[i] > gold[i] else "underestimated"
        print(f"| {pairs.first[i]} / {pairs.second[i]} | {gold[i]:,g} | {estimated[i]:,g} | {side} |")


def parser() -> argparse.ArgumentParser:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("what", choices=["cosines", "errors"])
    options.add_argument("model")
    options.add_argument("--before", help="another model to compare with, such as its base")
    options.add_argument("--sentences", type=int, default=5000)
    options.add_argument("--seed", type=int, default=42)
    options.add_argument("--out", type=Path, help="draw the cosines into this file")
    options.add_argument("--task", default="sts14")
    options.add_argument("--worst", type=int, default=20)
    options.add_argument("--data", default=data_folder() / "senteval")
    return options


if __name__ == "__main__":
    given = parser().parse_args()
    (show_cosines if given.what == "cosines" else show_errors)(given)
