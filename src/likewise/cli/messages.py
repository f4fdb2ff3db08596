"""How the command line reports errors: a clean message for what the user can mend, else a traceback."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from types import TracebackType
from typing import NoReturn, ParamSpec, TypeVar

import typer

from likewise.runs.stopping import EXIT_CODE as STOPPED
from likewise.runs.stopping import Stopped

P = ParamSpec("P")
R = TypeVar("R")

# Set it to see the traceback behind a clean message.
TRACEBACK_VARIABLE = "LIKEWISE_TRACEBACK"
EXIT_CODE = 2


def clean_errors(command: Callable[P, R]) -> Callable[P, R]:
    """Wrap a verb: an error that the user can mend is printed as one message, and the exit code is 2.

    Those are a FileNotFoundError, errors whose class likewise defines, and a ValueError or ImportError that
    likewise raises itself (and not a library below it). Anything else is a bug and keeps its traceback.
    """

    @functools.wraps(command)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return command(*args, **kwargs)
        except Stopped as stopped:
            typer.echo(str(stopped), err=True)
            raise typer.Exit(STOPPED) from None
        except Exception as error:
            if os.environ.get(TRACEBACK_VARIABLE) or not is_known(error):
                raise
            fail(str(error))

    return wrapped


def is_known(error: BaseException) -> bool:
    """Whether the user can mend it, and its message alone says how."""
    if isinstance(error, FileNotFoundError):
        return True
    if not isinstance(error, (ValueError, ImportError)):
        return False
    return type(error).__module__.startswith("likewise.") or _raised_in(error.__traceback__).startswith("likewise.")


def fail(message: str) -> NoReturn:
    """Print a message on standard error and end the command with exit code 2."""
    from rich.console import Console

    # Text comes from files and users: not to be read as markup, nor its numbers coloured.
    console = Console(stderr=True, highlight=False)
    console.print("[bold red]Error:[/]", end=" ")
    console.print(message, markup=False, soft_wrap=True)
    raise typer.Exit(EXIT_CODE)


def _raised_in(traceback: TracebackType | None) -> str:
    """The module whose line raised it."""
    name = ""
    while traceback is not None:
        name = traceback.tb_frame.f_globals.get("__name__", "")
        traceback = traceback.tb_next
    return name
