"""Sentences a second with and without batching by length, on the CPU and on a GPU where there is one.

    python benchmarks/runtime.py --models bundled:minilm

Table 1 of 'Sentence Similarity Based on Contexts'. A batch is padded to its longest sentence, and grouping sentences by
length ('smart batching', Reimers and Gurevych 2019, section 7) saves padding. The sentences keep the order of the file.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.util import batch_to_device

from likewise.corpus.downloads import data_folder
from likewise.inference import load
from likewise.inference.lines import open_lines
from likewise.inference.vectors import undisturbed
from likewise.runs.provenance import machine

TURNS = 3


@dataclass(frozen=True)
class Speed:
    """Sentences a second.

    Attributes:
        device: "cpu", or a GPU by its name.
        by_length: whether batches held sentences of one length.
        per_second: the median over the turns.
        slowest, fastest: turn.
        padding: share of the tokens, padding included, that is padding.
        sentences, batch_size: of a turn.
    """

    device: str
    by_length: bool
    per_second: float
    slowest: float
    fastest: float
    padding: float
    sentences: int
    batch_size: int


def measure(
    model: SentenceTransformer, sentences: Sequence[str], batch_size: int = 32, turns: int = TURNS
) -> tuple[Speed, Speed]:
    """Sentences a second on the model's device, in batches as they come and in batches by length.

    Tokenizing is part of it, and so is fetching the vectors. The two ways take turns, so that what else the machine
    does falls on both; the first turn of each warms up and is not counted.

    Args:
        model: the encoder.
        sentences: in the order of a text: sentences sorted by length already would show no difference.
        batch_size: sentences a batch; 32 is the default of sentence-transformers.
        turns: how often each way is timed.

    Returns:
        As they come, and by length.

    Raises:
        ValueError: there is no sentence, or a number is below 1.
    """
    if not sentences or batch_size < 1 or turns < 1:
        raise ValueError(f"{len(sentences)} sentences, batch_size {batch_size}, turns {turns}: give 1 or more of each.")
    ways = (list(sentences), sorted(sentences, key=len, reverse=True))
    seconds: tuple[list[float], list[float]] = ([], [])
    padding = [0.0, 0.0]
    with undisturbed(model), torch.inference_mode():
        for _ in range(turns + 1):
            for way, ordered in enumerate(ways):
                start = time.perf_counter()
                padding[way] = _encode(model, ordered, batch_size)
                seconds[way].append(time.perf_counter() - start)
    for times in seconds:
        del times[0]
    device = torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else model.device.type
    as_they_come, by_length = (
        Speed(
            device=device,
            by_length=bool(way),
            per_second=len(sentences) / float(np.median(times)),
            slowest=len(sentences) / max(times),
            fastest=len(sentences) / min(times),
            padding=padding[way],
            sentences=len(sentences),
            batch_size=batch_size,
        )
        for way, times in enumerate(seconds)
    )
    return as_they_come, by_length


def _encode(model: SentenceTransformer, ordered: list[str], batch_size: int) -> float:
    """Encode in batches in the order given; returns the share of padding."""
    tokens = real = 0
    for start in range(0, len(ordered), batch_size):
        batch = model.preprocess(ordered[start : start + batch_size])
        mask = batch.get("attention_mask")
        if mask is not None:  # a mean of word vectors takes the words of a batch in one row: nothing is padded
            tokens += mask.numel()
            real += int(mask.sum())
        # Fetching the vectors waits for the device: without it a GPU would be timed on what it only has queued.
        model(batch_to_device(batch, model.device))["sentence_embedding"].cpu()
    return 1 - real / tokens if tokens else 0.0


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--models", nargs="+", default=["bundled:minilm"])
    found.add_argument("--sentences", default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    found.add_argument("--n", type=int, default=1000, help="sentences of a turn on the CPU")
    found.add_argument("--n-gpu", type=int, default=20_000, help="sentences of a turn on a GPU")
    found.add_argument("--batch-size", type=int, default=32)
    found.add_argument("--turns", type=int, default=TURNS)
    return found


def main() -> None:
    args = parser().parse_args()
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
