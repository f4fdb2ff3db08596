"""The threads that run one batch each on a core of their own; all calls of the process share them."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

import torch

_SETTING = threading.Lock()
_POOLS: dict[tuple[int, int], ThreadPoolExecutor] = {}  # by process, as a fork has no threads, and size


def torch_threads() -> int:
    """Return how many threads torch uses in the calling thread.

    A thread that asks for the first time gets the setting of the process, so it must not ask while that is changed.
    """
    with _SETTING:
        return torch.get_num_threads()


def one_core_threads(count: int) -> ThreadPoolExecutor:
    """Return a pool of threads in each of which torch uses one core.

    It is made once: overlapping calls wait for each other's batches and do not crowd the cores. Making it leaves the
    setting of every other thread as it was.
    """
    with _SETTING:
        known = _POOLS.get((os.getpid(), count))
        if known is not None:
            return known
        # What a thread sets counts for itself, and for threads that start later: those get it back at once.
        threads = torch.get_num_threads()
        pool = ThreadPoolExecutor(count, thread_name_prefix="likewise-core")
        all_set = threading.Barrier(count)

        def one_core(_: int) -> None:
            torch.get_num_threads()  # or the first use in this thread would give it the setting of the process again
            torch.set_num_threads(1)
            all_set.wait()  # a thread that is done would take another one's turn

        list(pool.map(one_core, range(count)))
        torch.set_num_threads(threads)
        _POOLS[os.getpid(), count] = pool
        return pool
