"""Printing of tables, and of errors and stops as a clean message if the user can fix them."""

import os
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

import typer

from likewise.errors import LikewiseError, limit_of, printable
from likewise.runs.progress import EXIT_CODE as STOPPED

if TYPE_CHECKING:
    from rich.table import Table

EXIT_CODE = 2
_HEAD_START = 3.0
"""Seconds in which the first process reports the same error, and torchrun ends the others."""


@contextmanager
def clean_errors() -> Iterator[None]:
    """Print an error that the user can fix as one message with exit code 2, and an interruption with exit code 130.

    The user can fix every LikewiseError and every error of the operating system, such as a missing file, a full disk or
    a folder that cannot be written. Any other error is a bug and keeps its traceback.
    """
    try:
        yield
    except BrokenPipeError as error:
        if reader_has_left():
            raise
        fail(_of_the_system(error))
    except KeyboardInterrupt as stop:
        fail(str(stop) or "Stopped. Run the same command again to resume.", STOPPED)
    except (LikewiseError, OSError) as error:
        fail(_of_the_system(error) if isinstance(error, OSError) else str(error))
    except Exception as error:
        # LanceDB and others raise errors of their own where a limit of the shell is met, and imports fail.
        limit = limit_of(error)
        if limit is None:
            raise
        fail(limit)


def reader_has_left() -> bool:
    """Return whether the program that reads standard output has ended, as `head` does when it has seen enough."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return True
    return False


def _of_the_system(error: OSError) -> str:
    place = f"{error.filename}: " if error.filename else ""
    return f"{place}{limit_of(error) or error.strerror or error}"


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
