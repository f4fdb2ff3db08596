"""What a second process brings: two processes of one thread beside one process of one thread and one of two.

    python benchmarks/scale.py                      # training and encoding, in turn, three times each
    python benchmarks/scale.py --large-batch 4096   # one update with gradient caching: seconds and peak memory
    python benchmarks/scale.py --workers 1,2,4,8    # Ray alone: workers that wait in place of encoding
    python benchmarks/scale.py --kill               # a worker is killed: what is done, and what was asked for

Efficiency is the rate of two processes divided by twice the rate of one process of one thread: 1 is a machine whose
cores do not disturb each other. Only ratios are compared on a machine that does other work too.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Any

KINDS = {"1 x 1": (1, 1), "1 x 2": (1, 2), "2 x 1": (2, 1)}
"""Processes x threads."""


def sentences(count: int) -> list[str]:
    """Return sentences of the bundled corpus."""
    from likewise.corpus import prepare

    return prepare("bundled:wiki-sample").dataset[:count]["sentence"]


def encoding(texts: list[str], base: str) -> float:
    """Return the seconds in which all processes encode their part of the texts."""
    from likewise import load
    from likewise.runs import processes

    mine = texts[processes.number() :: processes.count()]
    model = load(base, engine="torch", precision="fp32")
    model.encode(mine[:64])
    processes.wait()
    begun = time.monotonic()
    model.encode(mine)
    processes.wait()
    return time.monotonic() - begun


def training(texts: list[str], base: str, steps: int = 3, batch: int = 64, chunk: int = 0) -> float:
    """Return the seconds of updates of SimCSE on a batch that the processes share."""
    import torch

    from likewise.recipes import find_recipe
    from likewise.runs import processes
    from likewise.training.chunks import in_chunks

    method = find_recipe("simcse")
    options = method.options(None, batch_size=batch // processes.count(), max_length=32, precision="fp32")
    torch.manual_seed(1)
    encoder = method.build_encoder(base, options).train()
    loss, collate = method.build_loss(encoder, options), method.build_collator(encoder, options, 1)
    optimizer = torch.optim.AdamW(encoder.parameters(), lr=1e-5)
    seconds = []
    for step in range(steps + 1):
        rows = texts[step * batch : (step + 1) * batch][processes.number() :: processes.count()]
        inputs = collate([{"sentence": text, "words": len(text.split())} for text in rows])
        features = [{name.removeprefix("sentence_"): value for name, value in inputs.items()}]
        processes.wait()
        begun = time.monotonic()
        with in_chunks(encoder, chunk):
            sum(loss(features, None).values()).backward()
        if processes.count() > 1:
            processes.average_gradients(encoder.parameters())
        optimizer.step()
        optimizer.zero_grad()
        processes.wait()
        seconds.append(time.monotonic() - begun)
    return sum(seconds[1:]) if steps else seconds[0]


def one(folder: Path, what: str, base: str, count: int) -> None:
    """Do one measurement as one of its processes."""
    import torch

    from likewise.runs import processes

    processes.start()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    texts = sentences(count)
    seconds = encoding(texts, base) if what == "encoding" else training(texts, base)
    if processes.is_first():
        (folder / "seconds").write_text(str(seconds))


def rate(what: str, kind: str, base: str, count: int) -> float:
    """Return sentences a second of one measurement, in processes of its own."""
    number, threads = KINDS[kind]
    with tempfile.TemporaryDirectory() as folder:
        own = [__file__, "--one", folder, what, "--base", base, "--sentences", str(count)]
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(number)] if number > 1 else []
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        subprocess.run([sys.executable, *launch, *own], env=environment, check=True)
        seconds = float((Path(folder) / "seconds").read_text())
    return (count if what == "encoding" else 3 * 64) / seconds


def large_batch(base: str, size: int, chunk: int, words: int) -> dict[str, Any]:
    """Return seconds and peak memory of one update, on the first words of sentences."""
    texts = [" ".join(text.split()[:words]) for text in (sentences(10**6) * size)[:size]]
    seconds = training(texts, base, steps=0, batch=size, chunk=chunk)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    shown = {"batch": size, "chunk": chunk, "words": words}
    return shown | {"seconds": round(seconds, 1), "peak GiB": round(gigabytes, 2)}


class Waiting:
    """A worker that waits in place of encoding: what is left is the work of Ray and of the first process."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, piece: dict[str, Any]) -> dict[str, Any]:
        time.sleep(self.seconds)
        return piece


def growth(workers: int, seconds: float, pieces: int) -> dict[str, Any]:
    """Return what share of the ideal rate so many workers reach, from the first piece that is done."""
    from likewise.runs.on_ray import cluster, pieces_on_ray

    named = [{"name": str(i)} for i in range(pieces * workers)]
    with cluster("ray", workers):
        times = [time.monotonic() for _ in pieces_on_ray(Waiting, [seconds], named, workers)]
    found = (len(times) - workers) / (times[-1] - times[workers - 1])
    return {"workers": workers, "pieces a second": round(found, 2), "share": round(found * seconds / workers, 2)}


class Mortal:
    """A worker that kills itself at the first piece it meets, and writes down what it is asked for."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)

    def __call__(self, piece: dict[str, Any]) -> dict[str, Any]:
        with (self.folder / "asked").open("a") as file:
            file.write(f"{piece['name']}\n")
        try:
            (self.folder / "killed").touch(exist_ok=False)
        except FileExistsError:
            return piece
        os.kill(os.getpid(), signal.SIGKILL)
        return {}


def kill() -> dict[str, list[str]]:
    """Return the pieces that are done after a worker was killed, and those that were asked for."""
    from likewise.runs.on_ray import cluster, pieces_on_ray

    with tempfile.TemporaryDirectory() as folder, cluster("ray", 2):
        named = [{"name": str(i)} for i in range(8)]
        done = sorted(piece["name"] for piece in pieces_on_ray(Mortal, [folder], named, 2))
        return {"done": done, "asked": (Path(folder) / "asked").read_text().split()}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--base", default="bundled:minilm")
    parser.add_argument("--sentences", type=int, default=512)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--large-batch", type=int)
    parser.add_argument("--chunk", type=int, default=64)
    parser.add_argument("--words", type=int, default=32, help="most words of a sentence, with --large-batch")
    parser.add_argument("--workers", help="numbers with commas between")
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--one", nargs=2, metavar=("FOLDER", "WHAT"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        one(Path(given.one[0]), given.one[1], given.base, given.sentences)
    elif given.large_batch:
        print(json.dumps(large_batch(given.base, given.large_batch, given.chunk, given.words)))
    elif given.kill:
        print(json.dumps(kill()))
    elif given.workers:
        for workers in map(int, given.workers.split(",")):
            print(json.dumps(growth(workers, seconds=1.0, pieces=8)), flush=True)
    else:
        for what in ("encoding", "training"):
            runs = [
                {kind: rate(what, kind, given.base, given.sentences) for kind in KINDS} for _ in range(given.repeats)
            ]
            rates = {kind: median(run[kind] for run in runs) for kind in KINDS}
            efficiency = median(run["2 x 1"] / run["1 x 1"] / 2 for run in runs)
            beside = median(run["2 x 1"] / run["1 x 2"] for run in runs)
            shown = ", ".join(f"{kind}: {found:.1f}/s" for kind, found in rates.items())
            print(f"{what}: {shown}; efficiency {efficiency:.2f}; beside two threads {beside:.2f}", flush=True)


if __name__ == "__main__":
    main()
