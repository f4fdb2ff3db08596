"""Time of the word noise on a whole batch, and of a loop over the words, the same noise, in one run.

    python benchmarks/gclsr/word_noise.py --batch 512 --words 30 --dimension 50

The three numbers are the sizes of the batch, which is random.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).parent.parent))

from claims import Claim, finish, with_claims
from likewise.augment.word_noise import (
    WordNoise,
    add_word_noise,
    background_noise,
    fourier_round_trip,
    random_zeros,
    white_noise,
)


def loop(vectors: Tensor, mask: Tensor, noise: WordNoise) -> Tensor:
    """Equations 1 to 5, one word after the other."""
    out = vectors.clone()
    weights = torch.tensor(noise.kinds)
    for b in range(vectors.shape[0]):
        for t in range(int(mask[b].sum())):
            if torch.rand(()).item() >= noise.share:
                continue
            kind = int(torch.multinomial(weights, 1))
            word = vectors[b, t][None]
            if kind == 0:
                word = white_noise(word, noise.decibels)
            elif kind == 1:
                word = random_zeros(word, noise.zero_rates)
            elif kind == 2:
                word = fourier_round_trip(word)
            else:
                word = background_noise(word, noise.background)
            out[b, t] = word[0]
    return out


def seconds(work: Callable[[], object], repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("--batch", type=int, default=512)
    found.add_argument("--words", type=int, default=30)
    found.add_argument("--dimension", type=int, default=50)
    with_claims(found)
    return found


def main() -> None:
    given = parser().parse_args()
    torch.manual_seed(0)
    vectors = torch.randn(given.batch, given.words, given.dimension)
    mask = torch.ones(given.batch, given.words)
    noise = WordNoise()
    whole = seconds(lambda: add_word_noise(vectors, mask, noise), 20)
    single = seconds(lambda: loop(vectors, mask, noise), 3)
    print(f"{given.batch} x {given.words} words of {given.dimension} numbers, {torch.get_num_threads()} threads")
    print(f"whole batch {whole * 1e3:.1f} ms, loop over words {single * 1e3:.0f} ms: {single / whole:.0f} times")
    finish(given, [Claim("noise on the word vectors of a batch: a loop over words", "s", single, whole)])


if __name__ == "__main__":
    main()
