"""Sentences a second of light encoders and of all-MiniLM-L6-v2 in sentence-transformers, in alternation, in one run.

    python benchmarks/gclsr/speed.py

A light encoder is a preset of GCLSR on word vectors, their plain average, or one that `likewise train light` starts
from ('learnt'); its speed does not depend on training.
The vectors distilled from an encoder take a minute at first.
"""

from __future__ import annotations

import argparse
import gzip
import sys
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import torch
from sentence_transformers import SentenceTransformer

sys.path.insert(0, str(Path(__file__).parent.parent))

from claims import Claim, finish, with_claims
from compared.averages import WordAverageOptions, word_average
from likewise.data.bundled import resolve_model
from likewise.encoder.modules import without_training_head
from likewise.encoder.word_vectors import is_distilled
from likewise.inference.load_model import Encoder
from likewise.recipes import find_recipe
from likewise.runs.cache import data_folder
from likewise.runs.releases import machine

LIGHT = [
    "paper bundled:glove",
    "narrow bundled:glove",
    "narrow distilled:bundled:minilm",
    "average distilled:bundled:minilm",
    "learnt bundled:minilm",
]


def light(preset: str, vectors: str, dimension: int, text: list[str]) -> Encoder:
    """The encoder, untrained."""
    size = dimension if is_distilled(vectors) else 0
    if preset == "learnt":
        recipe = find_recipe("light")
        made = recipe.build_encoder(vectors, recipe.options(), text)
    elif preset == "average":
        made = word_average(vectors, WordAverageOptions(dimension=size), (), 1, lambda *done: None)
    else:
        recipe = find_recipe("gclsr")
        made = without_training_head(recipe.build_encoder(vectors, recipe.options(preset, dimension=size)))
    return Encoder(modules=list(made.children()))


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--corpus", default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    found.add_argument("--peer", default="bundled:minilm")
    found.add_argument("--light", nargs="+", default=LIGHT, help="'PRESET VECTORS', or average or learnt and a name")
    found.add_argument("--dimension", type=int, default=256, help="numbers of a distilled vector")
    found.add_argument("--sentences", type=int, default=2048)
    found.add_argument("--turns", type=int, default=3)
    with_claims(found)
    return found


def main() -> None:
    args = parser().parse_args()
    with gzip.open(args.corpus, "rt", encoding="utf-8") as lines:
        text = [line.rstrip("\n") for line in islice(lines, args.sentences)]
    arms: dict[str, Callable[[list[str]], object]] = {
        args.peer: SentenceTransformer(resolve_model(args.peer), device="cpu").encode
    }
    for name in args.light:
        arms[name] = light(*name.split(), args.dimension, text).encode
    best = dict.fromkeys(arms, float("inf"))
    for encode in arms.values():
        encode(text[:64])
    for _ in range(args.turns):
        for name, encode in arms.items():
            start = time.perf_counter()
            encode(text)
            best[name] = min(best[name], time.perf_counter() - start)
    print(f"machine: {machine()}; threads: {torch.get_num_threads()}; {len(text)} sentences\n")
    print("| encoder | sentences a second | ratio |\n| --- | ---: | ---: |")
    for name, seconds in best.items():
        print(f"| {name} | {len(text) / seconds:.0f} | {best[args.peer] / seconds:.1f} |")
    claims = [
        Claim(f"{name}: all-MiniLM-L6-v2 in sentence-transformers", "/s", len(text) / best[args.peer], len(text) / s)
        for name, s in best.items()
        if name != args.peer
    ]
    finish(args, claims)


if __name__ == "__main__":
    main()
