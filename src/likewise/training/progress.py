"""Progress bars for what comes before the first step."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


@contextmanager
def reading_bar(console: Console) -> Iterator[Callable[[int, int], None]]:
    """A bar for reading files: a function that is told (bytes done, bytes in all). Gone when it is done."""
    columns = (TextColumn("reading the corpus"), BarColumn(24), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


@contextmanager
def counting_bar(console: Console, what: str, total: int) -> Iterator[Callable[[int], None]]:
    """A bar for things that are counted: a function that is told how many were done since its last call."""
    columns = (TextColumn(what), BarColumn(24), MofNCompleteColumn(), TextColumn("left"), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=total)
        yield lambda done: bar.advance(task, done)
