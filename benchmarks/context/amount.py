"""Tables 6 and 7: the amount of text that Origin reads, and the number of contexts; the whole test set of STS-B.

    python benchmarks/context/amount.py --corpus articles.jsonl.gz
    python benchmarks/context/amount.py --documents 40000 --contexts 50 5 20 200 --keep vectors --epochs 1

A workspace for each number of documents, the first ones of the corpus: index, states of the frozen encoder and the
discriminator, with the default options but for those that are given here. No label is used. What is done is kept in
--out, so that a stopped run goes on. --keep vectors takes 1 KB a sentence.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).parents[1]))

import torch
from origin import STRATEGIES, TEST, parser_of
from pretrained import features

from likewise.context import build_index, read_states, train_discriminator
from likewise.context.stage_options import FEATURES, DiscriminatorOptions, IndexOptions, StatesOptions
from likewise.context.workspace import ContextError, Stage, Workspace
from likewise.evaluation.pairs import correlations
from likewise.runs.cache import data_folder
from likewise.runs.releases import machine
from rows import ResultFile


def made(work: Path, stage: str, make: Callable[[], Stage]) -> dict[str, Any]:
    """The record of a stage, made unless it is there."""
    try:
        return Workspace(work).require(stage).record
    except ContextError:
        return make().record


def row(args: argparse.Namespace, documents: int, contexts: int) -> dict[str, Any]:
    """The row of so many documents, and of so many contexts of a sentence."""
    work = args.out / f"documents-{documents}"
    index = made(work, "index", lambda: build_index(work, str(args.corpus), IndexOptions(documents=documents)))
    made(work, "states", lambda: read_states(work, StatesOptions(precision=args.precision, keep=args.keep)))
    trained = DiscriminatorOptions(epochs=args.epochs, eval_steps=args.eval_steps)
    discriminator = made(work, "discriminator", lambda: train_discriminator(work, trained))
    local = argparse.Namespace(**vars(args) | {"work": work, "out": work, "contexts": contexts})
    values, gold = features(local, TEST)
    found = {name: index[name] for name in ("documents", "sentences", "contexts")}
    found |= {"accuracy": 100 * discriminator["held_out"]["accuracy"], "of_a_sentence": contexts, "pairs": len(gold)}
    return found | {name: correlations(values[:, FEATURES.index(name)], gold)[0] for name in args.terms}


def parser() -> argparse.ArgumentParser:
    found: argparse.ArgumentParser = parser_of(__doc__, "runs/amount")
    found.add_argument("--corpus", default=data_folder() / "wikipedia/articles.jsonl.gz")
    found.add_argument("--documents", nargs="+", type=int, default=[60, 190, 595])
    found.add_argument("--contexts", nargs="+", type=int, default=[50], help="contexts of a sentence")
    found.add_argument("--strategy", choices=STRATEGIES, default="two-step", help="how the contexts are chosen")
    found.add_argument("--terms", nargs="+", choices=FEATURES, default=["cosine", "words", "coherence"])
    found.add_argument("--table", default="context-tables", help="the result file")
    found.add_argument("--keep", choices=["tokens", "vectors"], default="tokens", help="what the states keep")
    found.add_argument("--epochs", type=int, default=4, help="of the discriminator; 0 leaves its head as it starts")
    found.add_argument("--eval-steps", type=int, default=50, help="updates between two looks at held-out text")
    found.add_argument("--limit", type=int, default=0, help="pairs of STS-B test; 0: all")
    found.add_argument("--precision", choices=["fp32", "bf16"], default="fp32", help="of the states of new workspaces")
    return found


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    print(f"machine {machine()}")
    columns = ["documents", "sentences", "contexts", "discriminator", "of a sentence", *args.terms]
    print(f"| {' | '.join(columns)} |\n|{' ---: |' * len(columns)}")
    for documents, contexts in [(documents, contexts) for documents in args.documents for contexts in args.contexts]:
        one = row(args, documents, contexts)
        cells = f"{one['documents']:,} | {one['sentences']:,} | {one['contexts']:,}"
        scores = " | ".join(f"{one[name]:.2f}" for name in args.terms)
        print(f"| {cells} | {one['accuracy']:.1f} | {contexts} | {scores} |", flush=True)
        given = {name: getattr(args, name) for name in ("strategy", "candidates", "keep", "precision", "epochs")}
        ResultFile(args.table).add({"part": "amount"} | given | one)


if __name__ == "__main__":
    main()
