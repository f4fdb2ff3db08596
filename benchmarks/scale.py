"""What a second process brings: two processes of one thread beside one process of one thread and one of two.

    python benchmarks/scale.py                      # training and encoding, three times each
    python benchmarks/scale.py --large-batch 4096   # one update with gradient caching: seconds and peak memory
    python benchmarks/scale.py --encoders 1,2       # encoding by the workers of a Ray cluster of this machine
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
_STEPS, _BATCH = 3, 64


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


def training(texts: list[str], base: str, steps: int = _STEPS, batch: int = _BATCH, chunk: int = 0) -> float:
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


def one(folder: Path, base: str, count: int, repeats: int) -> None:
    """Do the measurements of one kind as one of its processes."""
    import torch

    from likewise.runs import processes

    processes.start()
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    texts = sentences(count)
    found = {
        "encoding": [count / encoding(texts, base) for _ in range(repeats)],
        "training": [_STEPS * _BATCH / training(texts, base) for _ in range(repeats)],
    }
    if processes.is_first():
        (folder / "rates").write_text(json.dumps(found))


def rates(kind: str, base: str, count: int, repeats: int) -> dict[str, float]:
    """Return sentences a second of encoding and of training, medians, in processes of their own."""
    number, threads = KINDS[kind]
    with tempfile.TemporaryDirectory() as folder:
        own = [__file__, "--one", folder, "--base", base, "--sentences", str(count), "--repeats", str(repeats)]
        launch = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", str(number)] if number > 1 else []
        environment = os.environ | {"OMP_NUM_THREADS": str(threads)}
        subprocess.run([sys.executable, *launch, *own], env=environment, check=True)
        found = json.loads((Path(folder) / "rates").read_text())
    return {what: median(values) for what, values in found.items()}


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


class Encoding:
    """A worker that encodes with one thread."""

    def __init__(self, base: str) -> None:
        from likewise import load

        self.model = load(base, engine="torch", precision="fp32")

    def __call__(self, piece: dict[str, Any]) -> dict[str, Any]:
        self.model.encode(piece["texts"])
        return {}


def growth(worker: type, argument: Any, workers: int, pieces: list[dict[str, Any]]) -> float:
    """Return the pieces a second that so many workers do, from the first round of pieces on."""
    from likewise.runs.on_ray import cluster, pieces_on_ray

    with cluster("ray", workers):
        times = [time.monotonic() for _ in pieces_on_ray(worker, [argument], pieces, workers)]
    return (len(times) - workers) / (times[-1] - times[workers - 1])


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


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__)
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--sentences", type=int, default=512)
    found.add_argument("--repeats", type=int, default=3)
    found.add_argument("--large-batch", type=int)
    found.add_argument("--chunk", type=int, default=64)
    found.add_argument("--words", type=int, default=32, help="most words of a sentence, with --large-batch")
    found.add_argument("--encoders", help="numbers with commas between")
    found.add_argument("--workers", help="numbers with commas between")
    found.add_argument("--kill", action="store_true")
    found.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    return found


def main() -> None:
    given = parser().parse_args()
    if given.one:
        one(given.one, given.base, given.sentences, given.repeats)
    elif given.large_batch:
        print(json.dumps(large_batch(given.base, given.large_batch, given.chunk, given.words)))
    elif given.kill:
        print(json.dumps(kill()))
    elif given.encoders:
        pieces = [{"texts": sentences(_BATCH)}] * 24
        for workers in map(int, given.encoders.split(",")):
            found = growth(Encoding, given.base, workers, pieces) * _BATCH
            print(f"{workers} workers: {found:.1f} sentences a second", flush=True)
    elif given.workers:
        for workers in map(int, given.workers.split(",")):
            found = growth(Waiting, 1.0, workers, [{}] * 8 * workers)
            print(f"{workers} workers: {found:.2f} pieces a second, {found / workers:.2f} of the ideal", flush=True)
    else:
        found = {kind: rates(kind, given.base, given.sentences, given.repeats) for kind in KINDS}
        for what in ("encoding", "training"):
            single, threads, processes = (found[kind][what] for kind in KINDS)
            shown = ", ".join(f"{kind}: {found[kind][what]:.1f}/s" for kind in KINDS)
            beside = f"efficiency {processes / single / 2:.2f}; beside two threads {processes / threads:.2f}"
            print(f"{what}: {shown}; {beside}", flush=True)


if __name__ == "__main__":
    main()
