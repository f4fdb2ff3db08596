"""Seconds of a training step, and of sentence-transformers' trainer at its defaults, in alternation, in one run.

    python benchmarks/step_time.py

Both train the same base with [CLS] on the same sentences, the same batch size and the same maximal length:
sentence-transformers with MultipleNegativesRankingLoss on pairs of a sentence and itself, likewise with its recipes.
Where the processor has bfloat16 instructions, sentence-transformers runs with bf16=True too, and the faster one counts.
A turn is one epoch over as many sentences as its steps hold, so that both see each sentence once, whatever batches they
put them in. ArcCSE is timed as it runs once its triplets are in order: in the first of every eight steps it looks at
them, which it does in every step at the beginning of a training (`triplet_every`). Prints the mean over all steps and
the ratio to sentence-transformers.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from datasets import Dataset
from sentence_transformers import SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
from transformers import TrainerCallback

from claims import Claim, finish, with_claims
from likewise.corpus import prepare
from likewise.encoder import TripletWatch, find_part
from likewise.encoder.build import build_encoder
from likewise.recipes import find_recipe
from likewise.runs.cache import data_folder
from likewise.runs.releases import machine
from likewise.training.selection import last_checkpoint
from likewise.training.trainer import LikewiseTrainer, trainer_arguments, use_bf16

OURS = {
    "likewise simcse": ("simcse", {"pooling": "cls"}),
    "likewise arccse": ("arccse", {"pooling": "cls", "sam_rho": 0.0}),
    "likewise arccse with SAM": ("arccse", {"pooling": "cls", "sam_rho": 0.05}),
}


class Clock(TrainerCallback):
    """Seconds between the beginnings of steps."""

    def __init__(self) -> None:
        self.times: list[float] = []

    def on_step_begin(self, *_, **__) -> None:
        self.times.append(time.perf_counter())

    def on_step_end(self, args, state, *_, **__) -> None:
        if state.global_step == state.max_steps:
            self.times.append(time.perf_counter())


def theirs(base: str, text: list[str], batch: int, length: int, steps: int, folder: Path, bf16: bool) -> list[float]:
    model = build_encoder(base, pooling="cls", head=False)
    model.max_seq_length = length
    clock = Clock()
    SentenceTransformerTrainer(
        model=model,
        args=SentenceTransformerTrainingArguments(
            output_dir=str(folder), per_device_train_batch_size=batch, max_steps=steps, save_strategy="no",
            report_to="none", disable_tqdm=True, logging_strategy="no", bf16=bf16,
            use_cpu=bf16 and not torch.cuda.is_available(),  # it asks for that where there is no GPU
        ),
        train_dataset=Dataset.from_dict({"anchor": text, "positive": text}),
        loss=MultipleNegativesRankingLoss(model),
        callbacks=[clock],
    ).train()  # fmt: skip
    return np.diff(clock.times).tolist()


def ours(name: str, base: str, corpus, batch: int, length: int, steps: int, folder: Path) -> list[float]:
    recipe_name, changes = OURS[name]
    recipe = find_recipe(recipe_name)
    options = recipe.options(
        "cpu", batch_size=batch, max_length=length, max_steps=steps, eval_steps=0, select_by="last", **changes
    )
    encoder = recipe.build_encoder(base, options)
    if watch := find_part(encoder, TripletWatch):
        watch.until.zero_()
    # Rows enough that the steps end the run.
    rows = 10**6 * options.batch_size
    arguments = trainer_arguments(options, folder, 1, last_checkpoint(), rows)
    arguments.save_strategy = "no"
    clock = Clock()
    LikewiseTrainer(
        options,
        model=encoder,
        args=arguments,
        train_dataset=corpus,
        loss=recipe.build_loss(encoder, options),
        data_collator=recipe.build_collator(encoder, options, 1),
        callbacks=[clock],
    ).train()
    return np.diff(clock.times).tolist()


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--corpus", default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--batch-size", type=int, default=64)
    found.add_argument("--lengths", type=int, nargs="+", default=[32, 256], help="maximal lengths in tokens")
    found.add_argument("--steps", type=int, default=8, help="steps of a turn")
    found.add_argument("--turns", type=int, default=3)
    found.add_argument("--arms", nargs="+", default=list(OURS), choices=list(OURS))
    with_claims(found)
    return found


def main() -> None:
    args = parser().parse_args()
    claims: list[Claim] = []
    everything = prepare(args.corpus).dataset
    print(f"machine: {machine()}; bf16: {use_bf16('auto')}; batch {args.batch_size}")
    print("\n| maximal length | trainer | seconds a step | of sentence-transformers |\n| ---: | --- | ---: | ---: |")
    peers = {"sentence-transformers": False} | ({"sentence-transformers, bf16": True} if use_bf16("auto") else {})
    with tempfile.TemporaryDirectory() as folder:
        for length in args.lengths:
            times: dict[str, list[float]] = {name: [] for name in [*peers, *args.arms]}
            for turn in range(args.turns):
                size = args.steps * args.batch_size
                corpus = everything.select(range(turn * size, (turn + 1) * size))
                text = list(corpus["sentence"])
                for name, bf16 in peers.items():
                    torch.manual_seed(1)
                    times[name] += theirs(args.base, text, args.batch_size, length, args.steps, Path(folder), bf16)
                for name in args.arms:
                    times[name] += ours(name, args.base, corpus, args.batch_size, length, args.steps, Path(folder))
            reference = min(np.mean(times[name]) for name in peers)
            for name, found in times.items():
                print(f"| {length} | {name} | {np.mean(found):.2f} | {np.mean(found) / reference:.2f} |", flush=True)
                if name not in peers:
                    what = (
                        f"training step of {args.batch_size}, up to {length} tokens, {name.removeprefix('likewise ')}"
                    )
                    peer = f"{what}: sentence-transformers' trainer"
                    claims.append(Claim(peer, "s", float(reference), float(np.mean(found))))
    finish(args, claims)


if __name__ == "__main__":
    main()
