"""Concurrent parts of a long job: the next input, and pieces of work of a pool, in their order.

In threads, as reading, products and writing hold Python's lock only a small part of the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

T = TypeVar("T")


def in_order(begun: Iterable[Callable[[], T]], ahead: int) -> Iterator[T]:
    """Yield the results of work in the order in which it was begun, while `ahead` more pieces of it are under way.

    >>> list(in_order([lambda: 1, lambda: 2], 1))
    [1, 2]
    """
    waiting: deque[Callable[[], T]] = deque()
    for finish in begun:
        waiting.append(finish)
        if len(waiting) > ahead:
            yield waiting.popleft()()
    for finish in waiting:
        yield finish()
