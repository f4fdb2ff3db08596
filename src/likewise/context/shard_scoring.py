"""The scores of a harvest's shards: in this process, in several of this machine, or by the workers of a Ray cluster."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Executor, Future, ProcessPoolExecutor, wait
from functools import lru_cache

import numpy as np

from likewise.context.harvest_pairs import HarvestPair, Pair, PairSource
from likewise.runs.on_ray import RayExecutor

PairScorer = Callable[[Sequence[Pair]], np.ndarray]
"""Pairs to their similarities (P,)."""
Scored = tuple[int, list[HarvestPair], np.ndarray]
"""A shard's number, its pairs and their scores."""


def scored_shards(
    source: PairSource,
    todo: Sequence[int],
    make_scorer: Callable[[], PairScorer],
    processes: int = 1,
    on_ray: bool = False,
) -> Iterator[Scored]:
    """Yield each shard as it is done.

    Args:
        make_scorer: called once in each process; with more than one, a function that can be pickled.
        processes: that score at the same time; on Ray, the workers.
        on_ray: let the workers of a `likewise.runs.on_ray.cluster` score.
    """
    if not todo:
        return
    if on_ray:
        yield from _scored_by(RayExecutor(), source, todo, pickle.dumps(make_scorer), processes)
    elif processes == 1:
        scorer = make_scorer()
        for number in todo:
            pairs = source.shard(number)
            yield number, pairs, scorer([(pair.first, pair.second) for pair in pairs])
    else:
        # A forked process would inherit the threads and locks of torch.
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=context, initializer=_begin) as pool:
            yield from _scored_by(pool, source, todo, pickle.dumps(make_scorer), processes)


def _scored_by(
    pool: Executor, source: PairSource, todo: Sequence[int], make_scorer: bytes, processes: int
) -> Iterator[Scored]:
    waiting: dict[Future[np.ndarray], tuple[int, list[HarvestPair]]] = {}
    ahead = list(reversed(todo))
    try:
        while ahead or waiting:
            # One shard ahead for each process: the pairs of all would fill the memory.
            while ahead and len(waiting) < 2 * processes:
                number = ahead.pop()
                pairs = source.shard(number)
                future = pool.submit(_score, make_scorer, [(pair.first, pair.second) for pair in pairs])
                waiting[future] = number, pairs
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                yield *waiting.pop(future), future.result()
    except BaseException:
        pool.shutdown(wait=False, cancel_futures=True)
        raise


def _begin() -> None:
    """Prepare a process of a pool: a thread ends it with its parent."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that writes
    parent = multiprocessing.parent_process()

    def leave() -> None:
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=leave, daemon=True).start()


def _score(make_scorer: bytes, pairs: list[Pair]) -> np.ndarray:
    """Return the scores of pairs (P,); called in a worker, which keeps its scorer."""
    return _scorer(make_scorer)(pairs)


@lru_cache(maxsize=1)
def _scorer(make_scorer: bytes) -> PairScorer:
    made: PairScorer = pickle.loads(make_scorer)()
    return made
