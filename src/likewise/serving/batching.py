"""Dynamic batching: texts of many requests share the batches of a model.

All of its state belongs to the event loop; only the batches themselves run in other threads. Requests take turns, so
that one of thousands of texts does not keep a short one waiting.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from likewise.errors import LikewiseError
from likewise.serving.served import Item, Served

_PACE = 0.1  # the share of a new measurement in the pace that is told


class TooBusyError(LikewiseError):
    """Raised if too many texts wait; `after` is how many seconds they will take."""

    def __init__(self, waiting: int, after: int) -> None:
        super().__init__(f"{waiting:,} texts are waiting: try again in {after} s")
        self.after = after


@dataclass
class _Waiting:
    """The texts of a request that are not in a batch yet, the longest last; and its vectors so far."""

    places: list[int]
    items: Sequence[Item]
    future: asyncio.Future[np.ndarray]
    since: float = field(default_factory=time.monotonic)
    found: np.ndarray | None = None
    open: int = 0


class Batcher:
    """The queue of a model.

    Args:
        model: what runs the batches, as many at the same time as it has workers.
        limit: texts that may wait; a request is taken in any case when nothing waits.
        wait: seconds that a text waits at most for others, while another batch runs.
    """

    def __init__(self, model: Served, limit: int, wait: float) -> None:
        self.model, self.limit, self.wait = model, limit, wait
        self.waiting = self.tokens_waiting = 0
        self.sizes: list[int] = []  # texts of the batches since they were last asked for
        self._running = 0
        self._queue: deque[_Waiting] = deque()
        self._timer: asyncio.TimerHandle | None = None
        self._pace = 2000.0  # tokens a second

    async def vectors(self, items: Sequence[Item]) -> np.ndarray:
        """Return the vectors (S, D) of S items, 1 or more; those not in a batch yet are dropped if it is cancelled.

        Raises:
            TooBusyError: too many texts wait.
        """
        if self.waiting and self.waiting + len(items) > self.limit:
            raise TooBusyError(self.waiting, max(1, math.ceil(self.tokens_waiting / self._pace)))
        lengths = [self.model.tokens(item) for item in items]
        one = _Waiting(sorted(range(len(items)), key=lengths.__getitem__), items, asyncio.Future())
        self._queue.append(one)
        self.waiting += len(items)
        self.tokens_waiting += sum(lengths)
        self._pump()
        try:
            return await one.future
        finally:
            if one.places:  # given up
                self.waiting -= len(one.places)
                self.tokens_waiting -= sum(lengths[place] for place in one.places)
                one.places = []
                if one in self._queue:
                    self._queue.remove(one)

    def _pump(self) -> None:
        """Start batches while there is a free worker and enough to do."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue and self._running < self.model.workers:
            waited = time.monotonic() - self._queue[0].since
            if self._running and self.tokens_waiting < self.model.budget and waited < self.wait:
                self._timer = asyncio.get_running_loop().call_later(self.wait - waited, self._pump)
                return
            taken = self._take()
            self._running += 1
            self.sizes.append(len(taken))
            items = [one.items[place] for one, place in taken]
            future = asyncio.get_running_loop().run_in_executor(self.model.pool, self._timed, items)
            future.add_done_callback(lambda done, taken=taken: self._done(taken, done))  # type: ignore[misc]

    def _take(self) -> list[tuple[_Waiting, int]]:
        """Take texts of as many tokens as a batch holds, from the requests in turn."""
        taken: list[tuple[_Waiting, int]] = []
        tokens = 0
        while self._queue and tokens < self.model.budget:
            one = self._queue.popleft()
            while one.places and tokens < self.model.budget:
                place = one.places.pop()
                taken.append((one, place))
                tokens += self.model.tokens(one.items[place])
                one.open += 1
            if one.places:
                self._queue.append(one)
        self.waiting -= len(taken)
        self.tokens_waiting -= tokens
        return taken

    def _timed(self, items: list[Item]) -> tuple[np.ndarray, float]:
        begun = time.monotonic()
        found = self.model.vectors(items)
        return found, sum(map(self.model.tokens, items)) / max(1e-6, time.monotonic() - begun)

    def _done(self, taken: list[tuple[_Waiting, int]], done: asyncio.Future[Any]) -> None:
        self._running -= 1
        error = done.exception()
        if error is None:
            rows, pace = done.result()
            self._pace += _PACE * (pace * self.model.workers - self._pace)
        for number, (one, place) in enumerate(taken):
            one.open -= 1
            if one.future.done():  # given up, or failed with another batch
                continue
            if error is not None:
                one.future.set_exception(error)
                continue
            if one.found is None:
                one.found = np.empty((len(one.items), rows.shape[1]), dtype=np.float32)
            one.found[place] = rows[number]
            if not one.open and not one.places:
                one.future.set_result(one.found)
        self._pump()
