"""The threads of one core each that batches run on, which all calls of a process share. Nothing here imports torch."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

_SETTING = threading.Lock()
_POOLS: dict[tuple[int, int, bool], ThreadPoolExecutor] = {}
"""Pools by their process, as a fork has no threads; by size; and by whether torch was imported."""


def cores() -> int:
    """Return the number of encoding threads: torch's in the calling thread, if it is imported.

    Without torch they are as many as this process has cores, or OMP_NUM_THREADS if that is less. A thread that asks
    torch for the first time gets the setting of the process, so it must not ask while that is changed.
    """
    if (torch := _torch()) is not None:
        with _SETTING:
            return int(torch.get_num_threads())
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    limit = os.environ.get("OMP_NUM_THREADS", "")
    return min(count, int(limit)) if limit.isdigit() and int(limit) else count


def one_core_threads(count: int) -> ThreadPoolExecutor:
    """Return a pool of threads in each of which torch uses one core.

    It is made once: overlapping calls wait for each other's batches and do not crowd the cores. Making it leaves the
    setting of every other thread as it was.
    """
    torch = _torch()
    with _SETTING:
        here = (os.getpid(), count, torch is not None)
        if here not in _POOLS:
            _POOLS[here] = _made(count, torch)
        return _POOLS[here]


def _made(count: int, torch: ModuleType | None) -> ThreadPoolExecutor:
    pool = ThreadPoolExecutor(count, thread_name_prefix="likewise-core")
    if torch is None:
        return pool
    # What a thread sets counts for itself, and for threads that start later: those get it back at once.
    threads = torch.get_num_threads()
    all_set = threading.Barrier(count)

    def one_core(_: int) -> None:
        torch.get_num_threads()  # or the first use in this thread would give it the setting of the process again
        torch.set_num_threads(1)
        all_set.wait()  # a thread that is done would take another one's turn

    list(pool.map(one_core, range(count)))
    torch.set_num_threads(threads)
    return pool


def _torch() -> ModuleType | None:
    """Return torch if it is imported, and not just being imported by another thread."""
    torch = sys.modules.get("torch")
    return torch if hasattr(torch, "get_num_threads") and hasattr(torch, "set_num_threads") else None
