"""Concurrent parts of a long job: the next input, and pieces of work of a pool, in their order.

In threads, as reading, products and writing hold Python's lock only a small part of the time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

T = TypeVar("T")


def read_ahead(items: Iterator[T]) -> Iterator[T]:
    """Yield items, of which the next one is made in a thread meanwhile.

    >>> list(read_ahead(iter("abc")))
    ['a', 'b', 'c']
    """
    end: Any = object()
    with ThreadPoolExecutor(1, "likewise-reader") as reader:
        following = reader.submit(next, items, end)
        while (item := following.result()) is not end:
            following = reader.submit(next, items, end)
            yield item


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
