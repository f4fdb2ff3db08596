"""The printing of tables, and of errors and stops as a clean message where the user can mend them."""

import os
import re
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from likewise.errors import LikewiseError, printable
from likewise.runs.progress import EXIT_CODE as STOPPED

if TYPE_CHECKING:
    from rich.table import Table

EXIT_CODE = 2
_HEAD_START = 3.0
"""Seconds in which the first process reports the same error, and torchrun ends the others."""


@contextmanager
def clean_errors() -> Iterator[None]:
    """Print an error that the user can mend as one message with exit code 2, and a stop with exit code 130.

    The user can mend every LikewiseError, and what the operating system refuses: a missing file, a full disk, a folder
    that cannot be written. Anything else is a bug and keeps its traceback.
    """
    try:
        yield
    except KeyboardInterrupt as stop:
        fail(str(stop) or "Stopped. Run the same command again to resume.", STOPPED)
    except (LikewiseError, OSError) as error:
        fail(_of_the_system(error) if isinstance(error, OSError) else str(error))
    except Exception as error:
        # LanceDB and others raise errors of their own where a limit of the shell is met, and imports fail.
        limit = _limit_of(error)
        if limit is None:
            raise
        fail(limit)


_LIMITS = {
    r"Too many open files|os error 24\b|Errno 24\b": "too many files are open: raise the limit, for example by "
    "`ulimit -n 1024`, and run the same command again",
    r"File too large|os error 27\b|Errno 27\b": "a file would be larger than this shell allows: raise the limit, for "
    "example by `ulimit -f unlimited`, and run the same command again",
    r"failed to map segment|[Cc]an(no|')t allocate memory|Unable to allocate|bad[ _]alloc|can't start new thread|"
    r"os error 12\b|Errno 12\b|^MemoryError$": "there is not enough memory: free some, or raise the limit of the "
    "shell, as `ulimit -v unlimited`, and run the same command again",
}


def _limit_of(error: BaseException | None) -> str | None:
    """Return the message for an error that a limit of the system caused; None for any other error."""
    while error is not None:
        for pattern, message in _LIMITS.items():
            if re.search(pattern, "MemoryError" if isinstance(error, MemoryError) else str(error)):
                return message
        error = error.__cause__ or error.__context__
    return None


def _of_the_system(error: OSError) -> str:
    if limit := _limit_of(error):
        return limit
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{error.strerror or error}"


def fail(message: str, code: int = EXIT_CODE) -> NoReturn:
    """Print a message on standard error and end the command."""
    from rich.console import Console

    if number := os.environ.get("RANK", "0").strip("0"):  # one of several processes of a training
        time.sleep(_HEAD_START)
        message = f"process {number}: {message}"
    # Text comes from files and users: not to be read as markup, nor its numbers coloured.
    console = Console(stderr=True, highlight=False, emoji=False)
    if code == EXIT_CODE:
        console.print("[bold red]Error:[/]", end=" ")
    console.print(printable(message), markup=False, soft_wrap=True)
    raise typer.Exit(code)


def table_of(columns: Sequence[str], rows: Iterable[Sequence[str]], bold: int | None = None) -> "Table":
    """Return a table for the terminal: the first column on the left, the others on the right, one row in bold."""
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for i, column in enumerate(columns):
        # A path may be long.
        table.add_column(Text(printable(column)), justify="right" if i else "left", overflow="fold")
    for i, row in enumerate(rows):
        table.add_row(*(Text(printable(cell)) for cell in row), style="bold" if i == bold else "")
    return table
