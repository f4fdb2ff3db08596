"""The access to LanceDB: its module, coroutines, tables and errors."""

from __future__ import annotations

import asyncio
import math
import os
import re
import sys
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec, module_from_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, TypeVar

from likewise.errors import LikewiseError, first_line, limit_of, require_extra
from likewise.runs.whole_files import is_full_disk
from likewise.searching.index.conditions import SearchError

if TYPE_CHECKING:
    import pyarrow as pa
    from lancedb import AsyncTable
    from lancedb.query import AsyncStandardQuery

_CLIENT = "lance_namespace_urllib3_client"
"""Of a service that is not used here, generated: LanceDB takes its types alone, and the rest is half of its import."""
_ADDRESSES = 3 << 30
"""Bytes of address space without which LanceDB ends the whole process, or waits for ever; it uses a tenth of them."""
_Made = TypeVar("_Made")
_LOST = re.compile(r"Not found|Not a directory|LanceError\(IO\)|[Cc]orrupt")


class DamageError(SearchError):
    """Raised if files of an index are missing or have changed."""


def is_lost(error: BaseException) -> bool:
    """Return whether files of a table are missing or have changed, and the error is not a limit of the system."""
    return bool(_LOST.search(str(error))) and limit_of(error) is None and not is_full_disk(error)


@contextmanager
def damage(folder: Path) -> Iterator[None]:
    """Raise a SearchError with the cure if files of an index are missing, have changed or cannot be read."""
    try:
        yield
    except (RuntimeError, OSError) as error:
        if not is_lost(error) and limit_of(error) is None:
            raise
        raise unreadable(folder, error) from None


def unreadable(folder: Path, error: BaseException) -> SearchError:
    """Return the error for files of an index that cannot be read.

    It is a limit, a right or a device of the system, or else the files are missing or malformed: a DamageError.
    """
    if limit := limit_of(error):
        return SearchError(f"{folder} cannot be read: {limit}")
    return damaged(folder, first_line(error))


def damaged(folder: Path, reason: object) -> DamageError:
    """Return the error that an index is damaged, with its cure."""
    return DamageError(f"{folder} is damaged ({reason}): rebuild it with `likewise index ... --overwrite`")


def lancedb_module() -> ModuleType:
    """Return the module `lancedb`.

    Raises:
        MissingExtraError: If it is not installed.
        LikewiseError: If the process may not have as much address space as it needs.
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
        del sys.modules[_CLIENT]  # imported elsewhere, it is complete
    return lancedb


def finished(work: Coroutine[object, object, _Made]) -> _Made:
    """Wait for a task of LanceDB in its event loop, and return the result.

    LanceDB's synchronous functions wait for the other thread many times per query.
    """
    from lancedb.background_loop import LOOP

    made: _Made = LOOP.run(work)
    return made


def begun(work: Coroutine[object, object, _Made]) -> Callable[[], _Made]:
    """Start a task of LanceDB, and return a function that waits for its result."""
    from lancedb.background_loop import LOOP

    return asyncio.run_coroutine_threadsafe(work, LOOP.loop).result


async def opened(lancedb: ModuleType, folder: Path, name: str, version: int | None) -> AsyncTable:
    """Open a table of a folder, as it was at a version if one is given."""
    table = await (await lancedb.connect_async(folder.resolve())).open_table(name)  # 'notes:1' would be an address
    if version is not None:
        await table.checkout(version)
    return table


def batches(query: AsyncStandardQuery, size: int) -> Iterator[pa.Table]:
    """Yield the rows of a query, about `size` at a time."""
    import pyarrow as pa

    reader = finished(query.to_batches(max_batch_length=size))
    with suppress(StopAsyncIteration):
        while True:
            yield pa.Table.from_batches([finished(anext(reader))])


def _allowed() -> float:
    """Return the bytes of address space that this process may have."""
    try:
        import resource
    except ImportError:  # another system
        return math.inf
    allowed = resource.getrlimit(resource.RLIMIT_AS)[0]
    return math.inf if allowed == resource.RLIM_INFINITY else allowed
