"""Sentences a second of trained light encoders, in turn: likewise, sentence-transformers, model2vec, all-MiniLM-L6-v2.

    python benchmarks/gclsr/light_speed.py --model runs/light runs/mean

A mean of words (`likewise train light --preset mean`) is also read by model2vec, from the export; the first module of
any other light encoder is taken as such a mean. Best of the turns, one thread.
"""

from __future__ import annotations

import argparse
import gzip
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from model2vec import StaticModel
from sentence_transformers import SentenceTransformer

import likewise
from likewise.corpus.bundled import resolve_model
from likewise.corpus.downloads import data_folder
from likewise.inference.encoder import Encoder
from likewise.runs.provenance import machine


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--corpus", default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    found.add_argument("--model", nargs="+", required=True)
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--sentences", type=int, default=10_000)
    found.add_argument("--of-base", type=int, default=256, help="sentences for the base")
    found.add_argument("--turns", type=int, default=5)
    return found


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(1)
    with gzip.open(args.corpus, "rt", encoding="utf-8") as lines:
        text = [line.rstrip("\n") for line in islice(lines, args.sentences)]
    arms: dict[str, tuple[Callable[..., Any], list[str]]] = {
        "base, sentence-transformers": (
            SentenceTransformer(resolve_model(args.base), device="cpu").encode,
            text[: args.of_base],
        )
    }
    for name in args.model:
        whole = likewise.load(name, precision="fp32")
        if len(whole) > 1:
            arms[f"{name}, likewise"] = whole.encode, text
            arms[f"{name}, sentence-transformers"] = SentenceTransformer(name, device="cpu").encode, text
        mean = Encoder(modules=[whole[0]], device="cpu")
        with tempfile.TemporaryDirectory() as folder:
            likewise.export(mean, "model2vec", Path(folder) / "m2v")
            peer = StaticModel.from_pretrained(Path(folder) / "m2v")
        arms[f"mean of words of {name}, likewise"] = mean.encode, text
        arms[f"mean of words of {name}, StaticEmbedding"] = (
            SentenceTransformer(modules=[whole[0]], device="cpu").encode,
            text,
        )
        arms[f"mean of words of {name}, model2vec"] = (
            (lambda texts, m=peer: m.encode(texts, use_multiprocessing=False)),
            text,
        )
    best = dict.fromkeys(arms, 0.0)
    for encode, texts in arms.values():
        encode(texts[:64])
    for _ in range(args.turns):
        for name, (encode, texts) in arms.items():
            start = time.process_time()
            encode(texts)
            best[name] = max(best[name], len(texts) / (time.process_time() - start))
    base = next(iter(best.values()))
    print(f"machine: {machine()}; one thread; sentences a second of processor time, best of {args.turns}\n")
    print("| encoder | sentences a second | to the base |\n| --- | ---: | ---: |")
    for name, speed in best.items():
        print(f"| {name} | {speed:,.0f} | {speed / base:.1f} |")


if __name__ == "__main__":
    main()
