"""Where the seconds of a training run go: tokenising, forward, backward, optimizer, evaluation, and the rest.

    python benchmarks/step_shares.py

A run of `likewise.train` as it is, with clocks around its parts. A recipe whose optimizer makes two passes (SAM) has
both in 'forward' and 'backward'. The first step is not counted: it warms up.
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time
from collections.abc import Callable
from typing import Any

import torch

import likewise
from likewise.corpus.downloads import data_folder
from likewise.evaluation.checkpoint import CheckpointEvaluator
from likewise.recipes import find_recipe
from likewise.runs.provenance import machine

PARTS = ("tokenising", "forward", "backward", "optimizer", "evaluation")


class Clocks:
    """Seconds by part, of calls that are not inside another part's."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self.steps = 0
        self.running = False
        self.started = 0.0

    def around(self, part: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            if self.running:  # inside another part
                return function(*args, **kwargs)
            self.running = True
            start = time.perf_counter()
            try:
                return function(*args, **kwargs)
            finally:
                self.seconds[part] += time.perf_counter() - start
                self.running = False
                if part == "optimizer":
                    self.steps += 1
                    if self.steps == 1:
                        self.seconds = dict.fromkeys(PARTS, 0.0)
                        self.started = time.perf_counter()

        return timed


def shares(name: str, args: argparse.Namespace, changes: dict[str, Any]) -> tuple[float, dict[str, float]]:
    """Seconds a step, and the share of each part."""
    clocks = Clocks()
    recipe = find_recipe(name)

    def collator(*given: Any) -> Any:
        made = recipe.build_collator(*given)
        kind = type(made)
        timed = type(kind.__name__, (kind,), {"__call__": clocks.around("tokenising", kind.__call__)})
        made.__class__ = timed
        return made

    def loss(*given: Any) -> Any:
        made = recipe.build_loss(*given)
        made.forward = clocks.around("forward", made.forward)
        return made

    patched = [
        (torch.Tensor, "backward", "backward"),
        (CheckpointEvaluator, "__call__", "evaluation"),
        *((kind, "step", "optimizer") for kind in (torch.optim.AdamW, torch.optim.SGD)),
    ]
    before = [(owner, method, getattr(owner, method)) for owner, method, _ in patched]
    timed = dataclasses.replace(recipe, build_collator=collator, build_loss=loss)
    try:
        for owner, method, part in patched:
            setattr(owner, method, clocks.around(part, getattr(owner, method)))
        with tempfile.TemporaryDirectory() as folder:
            base = "bundled:glove" if name == "gclsr" else args.base
            likewise.train(
                timed,
                args.corpus,
                base=base,
                out=folder,
                data=args.data,
                overwrite=True,
                quiet=True,
                seed=1,
                max_steps=args.steps,
                eval_steps=args.eval_steps,
                **changes,
            )
            whole = time.perf_counter() - clocks.started
    finally:
        for owner, method, function in before:
            setattr(owner, method, function)
    steps = clocks.steps - 1
    found = {part: seconds / whole for part, seconds in clocks.seconds.items()}
    return whole / max(1, steps), found | {"rest": 1 - sum(found.values())}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--corpus", default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    found.add_argument("--data", default=data_folder() / "senteval")
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--recipes", nargs="+", default=["simcse", "arccse", "sncse", "gclsr"])
    found.add_argument("--steps", type=int, default=20)
    found.add_argument("--eval-steps", type=int, default=20)
    return found


def main() -> None:
    args = parser().parse_args()
    print(f"machine: {machine()}; an evaluation on STS-B dev every {args.eval_steps} steps\n")
    titles = (*PARTS, "rest")
    print(f"| recipe | seconds a step | {' | '.join(titles)} |\n| --- | ---: |" + " ---: |" * len(titles))
    for name in args.recipes:
        changes = {} if name == "gclsr" else {"batch_size": 64, "max_length": 48 if name == "sncse" else 32}
        seconds, found = shares(name, args, changes)
        print(f"| {name} | {seconds:.2f} | {' | '.join(f'{found[part]:.1%}' for part in titles)} |", flush=True)


if __name__ == "__main__":
    main()
