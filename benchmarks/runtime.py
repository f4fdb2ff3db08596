"""Sentences a second with and without batching by length, on the CPU and on a GPU where there is one.

    python benchmarks/runtime.py --models bundled:minilm --sentences ../shared/data/wikipedia/sentences-250k.txt.gz

Table 1 of 'Sentence Similarity Based on Contexts'. The sentences are in the order of the file.
"""

from __future__ import annotations

import argparse
from itertools import islice

import torch

from likewise.evaluation.runtime import TURNS, measure
from likewise.inference import load
from likewise.inference.lines import open_lines
from likewise.runs.provenance import machine


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", default=["bundled:minilm"])
    parser.add_argument("--sentences", default="../shared/data/wikipedia/sentences-250k.txt.gz")
    parser.add_argument("--n", type=int, default=1000, help="sentences of a turn on the CPU")
    parser.add_argument("--n-gpu", type=int, default=20_000, help="sentences of a turn on a GPU")
    parser.add_argument("--batch-size", type=int, default=32)
    parser.add_argument("--turns", type=int, default=TURNS)
    args = parser.parse_args()
    devices = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
    print(f"machine: {machine()}; threads: {torch.get_num_threads()}; batch {args.batch_size}\n")
    print("| model | device | batches | sentences a second | slowest to fastest turn | padding |")
    print("| --- | --- | --- | ---: | ---: | ---: |")
    for name in args.models:
        for device in devices:
            with open_lines(args.sentences) as lines:
                sentences = list(islice(lines, args.n if device == "cpu" else args.n_gpu))
            for speed in measure(load(name, device=device), sentences, args.batch_size, args.turns):
                print(
                    f"| {name} | {speed.device} | {'by length' if speed.by_length else 'as they come'} | "
                    f"{speed.per_second:.0f} | {speed.slowest:.0f} to {speed.fastest:.0f} | {speed.padding:.0%} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
