"""A harvest (section 3.4): pairs of the corpus with their Origin similarity, in shards that survive a crash.

A shard is a Parquet file with the columns sentence1, sentence2, score, kind and split. It is written beside its place
and renamed, so that it is whole or not there; what is not there is done by the next run. Shard k belongs to machine
k modulo n + 1 of n, and the shards of all machines in one folder are the harvest.
"""

from __future__ import annotations

import json
import multiprocessing
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from likewise.context.errors import ContextError
from likewise.context.harvest_pairs import HarvestPair, Pair, PairSource
from likewise.runs.whole_files import write_json, written_whole

PairScorer = Callable[[Sequence[Pair]], np.ndarray]
"""Pairs to their similarities (P,)."""

RECORD = "harvest.json"


@dataclass(frozen=True)
class Part:
    """The share of one machine: `number` of `total`, from 1.

    Raises:
        ContextError: there is no such part.
    """

    number: int = 1
    total: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.number <= self.total:
            raise ContextError(f"--shard {self.number}/{self.total}: give a number from 1 to {self.total}, as 1/4")

    @classmethod
    def parse(cls, text: str) -> Part:
        """The part that a text names.

        >>> Part.parse("2/8")
        Part(number=2, total=8)
        """
        match = re.fullmatch(r"(\d+)/(\d+)", text.strip())
        if not match:
            raise ContextError(f"--shard {text}: give it as number/machines, for example 1/4")
        return cls(int(match[1]), int(match[2]))


@dataclass(frozen=True)
class Forecast:
    """Where a run stands.

    Attributes:
        shards: how many it had to do.
        done: how many of them are done.
        pairs: scored by it so far.
        pairs_a_minute: since it began.
        seconds_left: at that rate; None before the first shard is done.
    """

    shards: int
    done: int
    pairs: int
    pairs_a_minute: float
    seconds_left: float | None


def harvest(
    source: PairSource,
    out: str | Path,
    make_scorer: Callable[[], PairScorer],
    *,
    identity: dict[str, Any] | None = None,
    part: Part | None = None,
    processes: int = 1,
    progress: Callable[[Forecast], None] | None = None,
) -> dict[str, Any] | None:
    """Score the pairs of a source, shard by shard, from where an earlier run was stopped.

    Args:
        source: the pairs.
        out: the folder of the shards.
        make_scorer: called once in each process; with more than one, a function that can be pickled.
        identity: plain values that the scores depend on (weights, models), kept in the record; a run with others is
            refused.
        part: the share of this machine.
        processes: that score at the same time.
        progress: told where the run stands, at its start and after each shard.

    Returns:
        The summary that is written to harvest.json, or None while shards of other machines are missing.

    Raises:
        ContextError: the folder holds a harvest of other pairs or scores, or the scorer gives no finite number.
    """
    if processes < 1:
        raise ContextError(f"processes is 1 or more, not {processes}")
    part, folder = part or Part(), Path(out)
    _claim(folder, source, identity or {})
    todo = [k for k in range(part.number - 1, source.shards, part.total) if not shard_path(folder, k).exists()]
    for number in todo:  # what a killed process was writing
        for left in folder.glob(f".{shard_path(folder, number).name}.*.part"):
            left.unlink(missing_ok=True)
    started, done, pairs = time.monotonic(), 0, 0

    def tell() -> None:
        if progress is not None:
            passed = time.monotonic() - started
            left = passed / done * (len(todo) - done) if done else None
            progress(Forecast(len(todo), done, pairs, 60 * pairs / passed if done else 0.0, left))

    tell()
    for written in _scored(source, folder, todo, make_scorer, processes):
        done, pairs = done + 1, pairs + written
        tell()
    return summarise(source, folder)


def shard_path(folder: Path, number: int) -> Path:
    """The file of a shard."""
    return folder / f"shard-{number:06d}.parquet"


def summarise(source: PairSource, folder: Path) -> dict[str, Any] | None:
    """Count pairs by split, and scores by kind, and record them; None while a shard is missing."""
    import pyarrow.parquet as pq

    paths = [shard_path(folder, k) for k in range(source.shards)]
    if not all(path.exists() for path in paths):
        return None
    scores: dict[str, list[np.ndarray]] = {}
    splits: dict[str, int] = {"train": 0, "dev": 0, "test": 0}
    for path in paths:
        table = pq.read_table(path, columns=["score", "kind", "split"])
        kinds, values = np.array(table["kind"].to_pylist()), table["score"].to_numpy()
        for kind in np.unique(kinds):
            scores.setdefault(str(kind), []).append(values[kinds == kind])
        for split in table["split"].to_pylist():
            splits[split] += 1
    spread = {}
    for kind, parts in sorted(scores.items()):
        values = np.concatenate(parts)
        low, middle, high = (float(q) for q in np.quantile(values, [0.05, 0.5, 0.95]))
        spread[kind] = {"pairs": len(values), "mean": float(values.mean()), "5%": low, "50%": middle, "95%": high}
    found = {**_read(folder), "pairs": sum(splits.values()), "splits": splits, "scores": spread}
    write_json(folder / RECORD, found)
    return found


def _read(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / RECORD).read_text(encoding="utf-8"))
    return found


def _claim(folder: Path, source: PairSource, identity: dict[str, Any]) -> None:
    """Record whose shards a folder holds, or check that they are those of this harvest."""
    plan = {
        "options": asdict(source.options),
        "fingerprint": source.fingerprint,
        "identity": identity,
        "sentences": len(source.pool),
        "shards": source.shards,
    }
    plan = json.loads(json.dumps(plan))  # as it is read back: a tuple becomes a list
    path = folder / RECORD
    if not path.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_json(path, plan)
        return
    old = _read(folder)
    for name, now in plan.items():
        if old.get(name) != now:
            raise ContextError(
                f"{folder} holds a harvest with other {name} ({old.get(name)}, now {now}): give another --out, or what "
                "it was begun with"
            )


def _scored(
    source: PairSource, folder: Path, todo: Sequence[int], make_scorer: Callable[[], PairScorer], processes: int
) -> Iterator[int]:
    """Do the shards; gives the pairs of each as it is done."""
    if not todo:
        return
    if processes == 1:
        scorer = make_scorer()
        for number in todo:
            yield _write(shard_path(folder, number), source.shard(number), scorer)
        return
    # A forked process would inherit the threads and locks of torch.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin, initargs=(make_scorer,)) as pool:
        waiting: set[Future[int]] = set()
        try:
            for number in todo:
                # One shard ahead for each process: the pairs of all would fill the memory.
                if len(waiting) >= 2 * processes:
                    finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                    yield from (future.result() for future in finished)
                waiting.add(pool.submit(_write_here, shard_path(folder, number), source.shard(number)))
            while waiting:
                finished, waiting = wait(waiting, return_when=FIRST_COMPLETED)
                yield from (future.result() for future in finished)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


_SCORER: list[PairScorer] = []


def _begin(make_scorer: Callable[[], PairScorer]) -> None:
    """Make a process ready: its scorer, and a watch that ends it with the process that started it."""
    parent = multiprocessing.parent_process()

    def leave() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=leave, daemon=True).start()
    _SCORER[:] = [make_scorer()]


def _write_here(path: Path, pairs: list[HarvestPair]) -> int:
    return _write(path, pairs, _SCORER[0])


def _write(path: Path, pairs: list[HarvestPair], scorer: PairScorer) -> int:
    """Score pairs and write their shard by rename; returns how many they are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    scores = np.asarray(scorer([(pair.first, pair.second) for pair in pairs]), dtype=np.float64)
    if scores.shape != (len(pairs),) or not np.isfinite(scores).all():
        raise ContextError(f"{path.name}: the scorer gave {scores.shape} scores, or some that are no number")
    table = pa.table(
        {
            "sentence1": [pair.first for pair in pairs],
            "sentence2": [pair.second for pair in pairs],
            "score": scores,
            "kind": [pair.kind for pair in pairs],
            "split": [pair.split for pair in pairs],
        }
    )
    with written_whole(path) as unfinished:
        pq.write_table(table, unfinished)
        with unfinished.open("rb") as file:
            os.fsync(file.fileno())
    return len(pairs)
