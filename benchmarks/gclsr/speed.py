"""Sentences a second of the light encoder beside all-MiniLM-L6-v2 in sentence-transformers, in turn, in one run.

    python benchmarks/gclsr/speed.py --corpus ../shared/data/wikipedia/sentences-250k.txt.gz

The light encoder is GCLSR's with word attention and the paper's TextCNN; its speed does not depend on its training.
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
from likewise.corpus.bundled import resolve_model
from likewise.encoder.head import without_training_head
from likewise.inference.encoder import Encoder
from likewise.recipes import find_recipe
from likewise.training.provenance import machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="../shared/data/wikipedia/sentences-250k.txt.gz")
    parser.add_argument("--peer", default="bundled:minilm")
    parser.add_argument("--light", nargs="+", default=["bundled:glove"], help="word vectors")
    parser.add_argument("--sentences", type=int, default=2048)
    parser.add_argument("--turns", type=int, default=3)
    with_claims(parser)
    args = parser.parse_args()
    with gzip.open(args.corpus, "rt", encoding="utf-8") as lines:
        text = [line.rstrip("\n") for line in islice(lines, args.sentences)]
    arms: dict[str, Callable[[list[str]], object]] = {
        args.peer: SentenceTransformer(resolve_model(args.peer), device="cpu").encode
    }
    for vectors in args.light:
        encoder = find_recipe("gclsr").build_encoder(vectors, find_recipe("gclsr").options())
        arms[f"light, {vectors}"] = Encoder(modules=list(without_training_head(encoder).children())).encode
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
