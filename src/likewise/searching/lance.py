"""LanceDB, imported without the half of it that is not used here."""

from __future__ import annotations

import asyncio
import math
import os
import sys
from collections.abc import Coroutine
from concurrent.futures import Future
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import TypeVar

from likewise.errors import LikewiseError, require_extra

_Made = TypeVar("_Made")
_CLIENT = "lance_namespace_urllib3_client"
"""Of a service that is not used here, generated: LanceDB takes its types alone, and the rest is half of its import."""


_ADDRESSES = 3 << 30
"""Bytes of address space without which LanceDB ends the whole process, or waits for ever; it uses a tenth of them."""


def lancedb_module() -> ModuleType:
    """Return the module `lancedb`.

    Raises:
        MissingExtraError: it is not installed.
        LikewiseError: the process may not have as much address space as it needs.
    """
    require_extra("search", "An index", "lancedb")
    if (allowed := _allowed()) < _ADDRESSES:
        raise LikewiseError(
            f"this shell allows a process {allowed / 2**30:.1f} GiB of addresses (`ulimit -v`), and an index needs "
            f"{_ADDRESSES >> 30}: raise the limit, for example by `ulimit -v unlimited`, and run the command again"
        )
    os.environ.setdefault("LANCEDB_LOG", "error")  # read at the import: it would warn of each table that it makes
    client = find_spec(_CLIENT) if _CLIENT not in sys.modules else None
    if client is not None:
        sys.modules[_CLIENT] = module_from_spec(client)
    import lancedb

    if client is not None:
        del sys.modules[_CLIENT]  # imported by somebody else, it is whole
    return lancedb


def begun(work: Coroutine[object, object, _Made]) -> Future[_Made]:
    """Begin work of LanceDB in the loop in which it runs all of it.

    Its functions that are not asynchronous wait many times in a query, each time for the other thread.
    """
    from lancedb.background_loop import LOOP

    return asyncio.run_coroutine_threadsafe(work, LOOP.loop)


def finished(work: Coroutine[object, object, _Made]) -> _Made:
    """Wait for work of LanceDB, and return what comes of it."""
    future = begun(work)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise


def _allowed() -> float:
    """Return the bytes of address space that this process may have."""
    try:
        import resource
    except ImportError:  # another system
        return math.inf
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    return math.inf if allowed == resource.RLIM_INFINITY else allowed
