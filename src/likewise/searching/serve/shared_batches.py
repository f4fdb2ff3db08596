"""Dynamic batching: texts of many requests share the batches of a model.

All state belongs to the event loop; only the batches run in other threads. Requests take turns, so that a request of
thousands of texts does not delay a short request.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from likewise.inference.text_encoder import Item, TextEncoder
from likewise.searching.serve.requests import RequestError


@dataclass
class _Text:
    item: Item
    tokens: int
    vector: asyncio.Future[np.ndarray]


class Batcher:
    """The queue of a model.

    Args:
        model: Model that runs the batches, one per worker at the same time.
        limit: Maximum number of waiting texts; a request is always accepted if nothing waits.
        wait: Maximum number of seconds that a text waits for others, while another batch runs.
        observe: Function that is called with the number of texts of each batch.
    """

    def __init__(
        self, model: TextEncoder, limit: int, wait: float, observe: Callable[[int], object] = lambda _: None
    ) -> None:
        self.model, self.limit, self.wait, self._observe = model, limit, wait, observe
        self.waiting = self.tokens_waiting = 0
        self._running = 0
        # Of each request, when it came and its texts that are not in a batch yet, the longest last.
        self._queue: deque[tuple[float, list[_Text]]] = deque()
        self._timer: asyncio.TimerHandle | None = None

    async def vectors(self, items: Sequence[Item]) -> np.ndarray:
        """Return the vectors (S, D) of S items, 1 or more; those not in a batch yet are dropped if it is cancelled.

        Raises:
            RequestError: If too many texts wait.
        """
        if self.waiting and self.waiting + len(items) > self.limit:
            raise RequestError(f"{self.waiting:,} texts are waiting: try again in 1 s", 429, retry_after="1")
        loop = asyncio.get_running_loop()
        texts = [_Text(item, self.model.tokens(item), loop.create_future()) for item in items]
        left = sorted(texts, key=lambda text: text.tokens)
        self._queue.append((time.monotonic(), left))
        self._count(left, 1)
        self._pump()
        try:
            return np.stack([await text.vector for text in texts])
        finally:
            if left:  # given up
                self._count(left, -1)
                self._queue = deque(entry for entry in self._queue if entry[1] is not left)

    def _count(self, texts: Sequence[_Text], sign: int) -> None:
        self.waiting += sign * len(texts)
        self.tokens_waiting += sign * sum(text.tokens for text in texts)

    def _pump(self) -> None:
        """Start batches while there is a free worker and enough to do."""
        loop = asyncio.get_running_loop()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        while self._queue and self._running < self.model.workers:
            waited = time.monotonic() - self._queue[0][0]
            if self._running and self.tokens_waiting < self.model.budget and waited < self.wait:
                self._timer = loop.call_later(self.wait - waited, self._pump)
                return
            taken = self._take()
            self._running += 1
            self._observe(len(taken))
            future = loop.run_in_executor(self.model.pool, self._vectors_of, [text.item for text in taken])
            future.add_done_callback(partial(self._done, taken))

    def _take(self) -> list[_Text]:
        """Take texts of as many tokens as a batch contains, from the requests in turn."""
        taken: list[_Text] = []
        room = self.model.budget
        while self._queue and room > 0:
            since, left = self._queue.popleft()
            while left and room > 0:
                taken.append(left.pop())
                room -= taken[-1].tokens
            if left:
                self._queue.append((since, left))
        self._count(taken, -1)
        return taken

    def _vectors_of(self, items: Sequence[Item]) -> list[np.ndarray | Exception]:
        """Return the vector of each item, or why it has none: one that cannot be read spoils no other of its batch."""
        try:
            return [*self.model.vectors(items)]
        except Exception as error:
            half = len(items) // 2
            return [*self._vectors_of(items[:half]), *self._vectors_of(items[half:])] if half else [error]

    def _done(self, taken: list[_Text], done: asyncio.Future[list[np.ndarray | Exception]]) -> None:
        self._running -= 1
        error = done.exception()
        for number, text in enumerate(taken):
            if text.vector.done():  # given up, or failed with another batch
                continue
            vector = error or done.result()[number]
            if isinstance(vector, BaseException):
                text.vector.set_exception(vector)
                text.vector.exception()  # looked at, also if another text of the request fails first
            else:
                text.vector.set_result(vector)
        self._pump()
