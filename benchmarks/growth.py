"""Time and peak memory of each part of the library for files of growing length.

    python benchmarks/growth.py

Each part and size runs in a process of its own, so that its peak memory is its own. What is looked at is the pipeline:
training and encoding take a small light encoder, so that its products do not hide what grows. Prints seconds of the
processor (all threads and child processes), how they grew for a sentence from the size before (1.0 is linear), and by
how much memory grew beyond what was there before the first sentence.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from claims import Claim, finish, with_claims
from likewise.corpus.downloads import data_folder

Work = Callable[[], Any]
MEGABYTE = 1024.0


def corpus_reading(source: Path, folder: Path) -> Work:
    """Clean, drop the double ones, write the prepared corpus."""
    from likewise.corpus import prepare

    os.environ["LIKEWISE_CACHE"] = str(folder / "cache")
    return lambda: prepare(source)


def training_steps(source: Path, folder: Path) -> Work:
    """One epoch of a small light encoder, the corpus prepared before."""
    import likewise
    from likewise.corpus import prepare

    prepare(source)

    def work() -> None:
        likewise.train(
            "gclsr",
            source,
            base="bundled:glove",
            out=folder / "model",
            sentences=0,
            epochs=1,
            warmup_epochs=0,
            batch_size=256,
            filters=20,
            projection=64,
            bottleneck=16,
            eval_steps=0,
            select_by="last",
            collapse_below=0.0,
            most_frequent=1000,
            quiet=True,
        )

    return work


def _mean_of_words(folder: Path) -> Any:
    from likewise.baselines import baseline
    from likewise.inference import load

    baseline("word-average", base="bundled:glove", out=folder / "model", most_frequent=20_000, quiet=True)
    model = load(folder / "model", device="cpu", precision="fp32")
    model.encode(["a first sentence"])
    return model


def encoding(source: Path, folder: Path) -> Work:
    """From a text file to .npy, with a mean of word vectors."""
    from likewise.inference import encode_file

    model = _mean_of_words(folder)
    return lambda: encode_file(model, source, folder / "out.npy", quiet=True, engine="torch", precision="fp32")


def negation(source: Path, folder: Path) -> Work:
    """From a text file to its negations."""
    from likewise.augment.negation import negate_batch, negate_corpus

    negate_batch(["This is a first sentence."])

    def work() -> None:
        with source.open(encoding="utf-8") as lines:
            negate_corpus((line.rstrip("\n") for line in lines), folder / "out.jsonl", processes=1, quiet=True)

    return work


def indexing(source: Path, folder: Path) -> Work:
    """From a text file to an index that can be searched, with a mean of word vectors."""
    import likewise

    _mean_of_words(folder)
    return lambda: likewise.index(source, model=folder / "model", out=folder / "out.index", quiet=True)


def evaluation(source: Path, folder: Path) -> Work:
    """Cosines of neighbouring sentences and their rank correlation with a made-up rating, by a mean of word vectors."""
    import numpy as np

    from likewise.evaluation.pairs import correlations, pair_cosines

    model = _mean_of_words(folder)
    lines = source.read_text(encoding="utf-8").split("\n")[:-1]

    def work() -> None:
        vectors = model.encode(lines)
        half = len(vectors) // 2
        gold = np.random.default_rng(1).random(half)
        correlations(pair_cosines(vectors[:half], vectors[half : 2 * half]), gold)

    return work


PARTS = {
    "corpus reading": corpus_reading,
    "training steps": training_steps,
    "encoding": encoding,
    "indexing": indexing,
    "negation": negation,
    "evaluation": evaluation,
}


def lines_of(corpus: Path, count: int) -> Iterator[str]:
    """The first lines of a corpus; where it ends, its lines again, each with another one behind it."""
    with gzip.open(corpus, "rt", encoding="utf-8") as file:
        lines = list(islice(file, count))
    yield from lines
    for number in range(len(lines), count):
        turn, row = divmod(number, len(lines))
        yield f"{lines[row].rstrip()} {lines[(row + turn) % len(lines)]}"


def _peak() -> float:
    usage = [resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return max(usage) / MEGABYTE


def child(args: argparse.Namespace) -> None:
    """One part at one size: a line of JSON."""
    source = Path(args.child[1])
    with tempfile.TemporaryDirectory() as folder:
        work = PARTS[args.child[0]](source, Path(folder))
        before, wall, cpu = _peak(), time.perf_counter(), os.times()
        work()
        now = os.times()
        spent = sum(now[i] - cpu[i] for i in range(4))  # own and children's, user and system
        print(json.dumps([time.perf_counter() - wall, spent, before, _peak()]))


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--corpus", type=Path, default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    found.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000, 250_000])
    found.add_argument("--parts", nargs="+", default=list(PARTS), choices=list(PARTS))
    found.add_argument("--most", type=int, default=0, help="larger sizes are left out for negation, the slowest")
    found.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    with_claims(found)
    return found


def main() -> None:
    args = parser().parse_args()
    if args.child:
        child(args)
        return
    claims: list[Claim] = []
    print("| part | sentences | seconds | of the processor | a sentence, of the size before | peak MB | grown by MB |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory() as folder:
        sources: dict[int, Path] = {}
        for size in args.sizes:
            sources[size] = Path(folder) / f"{size}.txt"
            with sources[size].open("w", encoding="utf-8") as file:
                file.writelines(lines_of(args.corpus, size))
        for part in args.parts:
            last: tuple[int, float] | None = None
            for size in args.sizes:
                if part == "negation" and args.most and size > args.most:
                    continue
                command = [sys.executable, __file__, "--child", part, str(sources[size])]
                environment = os.environ | {"LIKEWISE_CACHE": f"{folder}/cache-{size}"}
                done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True, env=environment)
                wall, cpu, before, after = json.loads(done.stdout.splitlines()[-1])
                grown = f"{cpu / size / last[1]:.2f}" if last else ""
                print(
                    f"| {part} | {size:,} | {wall:.1f} | {cpu:.1f} | {grown} | {after:.0f} | {after - before:.0f} |",
                    flush=True,
                )
                if last and size == args.sizes[-1]:
                    claims.append(
                        Claim(
                            f"{part}: a sentence of {size:,}, of one of {last[0]:,}", "s", last[1], cpu / size, "growth"
                        )
                    )
                last = size, cpu / size
    finish(args, claims)


if __name__ == "__main__":
    main()
