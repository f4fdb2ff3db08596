"""The duration of a job: measured on a few of its items, and told before it starts if somebody has to wait."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TypeVar

Done = TypeVar("Done")

WORTH_TELLING = 120.0
"""The least seconds of a job whose duration is told."""

_FIRST, _LEAST = 4, 0.5  # items of the first batch, and seconds that the measured one takes
_SETTLED = 0.7  # of the seconds of an item in the batch before


def seconds_each(work: Callable[[Sequence[Done]], object], items: Sequence[Done]) -> float:
    """Return the seconds that `work` takes for one of some items, which are spread over what there is to do.

    A first small batch is not counted, as the first call is slower. Then batches grow until one takes half a second, so
    that a large model is measured on few items and a small one on many; and until an item takes as long as in the batch
    before, since on some processors the first ten calls are slow, and another program may hold one call up.
    """
    count = min(_FIRST, len(items))
    work(items[:: max(1, len(items) // count)][:count])
    each = float("inf")
    while True:
        some = items[:: max(1, len(items) // count)][:count]
        begun = time.perf_counter()
        work(some)
        took = time.perf_counter() - begun
        settled = took / len(some) > _SETTLED * each
        each = min(each, took / len(some))
        if settled and (took >= _LEAST or count >= len(items)):
            return each
        count = min(len(items), 4 * count)


def spoken(seconds: float) -> str:
    """Return a duration in words.

    >>> spoken(50), spoken(200), spoken(9000), spoken(2e7)
    ('about 50 s', 'about 3 min', 'about 2.5 h', 'about 231 days')
    """
    if seconds > 172_800:
        return f"about {seconds / 86_400:.0f} days"
    if seconds < 90:
        return f"about {seconds:.0f} s"
    return f"about {seconds / 60:.0f} min" if seconds < 5400 else f"about {seconds / 3600:.1f} h"
