"""The display of a long job, its duration and its stop.

Lines, and bars with the time left, or one line a minute without a terminal. The duration is measured on a few items,
and reported before the job starts if it is long. Ctrl-C or a termination signal lets a job save first.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from likewise.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

Done = TypeVar("Done")
EVERY_SECONDS = 60.0
"""The seconds between two lines of a bar if there is no terminal."""
WORTH_TELLING = 120.0
"""Minimum number of seconds of a job whose duration is reported."""
_FIRST, _LEAST = 4, 0.5  # items of the first batch, and seconds that the measured one takes
_SETTLED = 0.7  # of the seconds of an item in the batch before
EXIT_CODE = 130
"""The exit code of the command line after a stop, as of a shell after Ctrl-C."""


class Bar:
    """A progress bar, made by `Progress.bar`."""

    def __init__(self, progress: Progress, what: str, total: int | None, unit: str, done: int) -> None:
        self._progress, self._what, self._unit = progress, what, unit
        self.done, self.total, self.note = done, total, ""
        self._begun_at, self._begun, self._reported = done, time.monotonic(), time.monotonic()
        self._task: TaskID | None = None

    def advance(self, count: int = 1) -> None:
        """Advance the count."""
        self.update(done=self.done + count)

    def update(self, done: int | None = None, total: int | None = None, note: str | None = None) -> None:
        """Set the count, the total, or the text after the count."""
        self.done = self.done if done is None else done
        self.total = self.total if total is None else total
        self.note = self.note if note is None else note
        if self.total and self.done > self.total:
            self.total = None  # it was an estimate, and too low
        if self._task is not None:
            count = self.count("/")
            self._progress.view.update(self._task, completed=self.done, total=self.total, count=count, note=self.note)
        elif time.monotonic() - self._reported >= EVERY_SECONDS:
            self._reported = time.monotonic()
            self._progress.tell(self._line())

    def count(self, of: str) -> str:
        """Return the count and the total, with `of` between them."""
        scale, unit = (1e6, " MB") if self._unit == "bytes" else (1, "")
        return of.join(f"{number / scale:,.0f}{unit}" for number in (self.done, self.total) if number is not None)

    def _line(self) -> str:
        text = f"{self._what}: {self.count(' of ')}"
        if self.total:
            text += f" ({self.done / self.total:.0%})"
            if self.done > self._begun_at:
                pace = (time.monotonic() - self._begun) / (self.done - self._begun_at)
                text += f", about {pace * max(0, self.total - self.done) / 60:.0f} min left"
        return f"{text}, {self.note}" if self.note else text


class Progress:
    """The display of a job: on standard error, or nowhere."""

    def __init__(self, quiet: bool = False, console: Console | None = None) -> None:
        self.quiet = quiet
        self._console = console
        self.view: Any = None
        self._bars = 0

    @property
    def console(self) -> Console:
        """The console, created when first needed: importing rich takes as long as a small job."""
        if self._console is None:
            from rich.console import Console

            self._console = Console(stderr=True, quiet=self.quiet, emoji=False)
        return self._console

    def tell(self, line: object) -> None:
        """Print a line, without interpreting markup in it."""
        if not self.quiet:
            self.console.print(printable(str(line)), markup=False, highlight=False, soft_wrap=True)

    @contextmanager
    def bar(
        self,
        what: str,
        total: int | None = None,
        *,
        done: int = 0,
        unit: Literal["count", "bytes"] = "count",
        stays: bool = False,
    ) -> Iterator[Bar]:
        """Show a bar during a `with` block.

        Args:
            what: Name of the activity, such as "encoding".
            done: Number of items finished before this run.
            unit: Unit of the items; bytes are shown as megabytes.
            stays: Whether the bar stays on the screen when it is finished.
        """
        bar = Bar(self, what, total, unit, done)
        if self.quiet or not self.console.is_terminal:
            yield bar
            return
        if self.view is None:
            from rich import progress as rich

            self.view = rich.Progress(
                rich.TextColumn("{task.description}"),
                rich.BarColumn(24),
                rich.TextColumn("{task.fields[count]}"),
                rich.TextColumn("{task.fields[note]}"),
                rich.TimeElapsedColumn(),
                rich.TextColumn("left"),
                rich.TimeRemainingColumn(),
                console=self.console,
            )
            self.view.start()
        self._bars += 1
        bar._task = self.view.add_task(what, total=total, completed=done, count=bar.count("/"), note="")
        try:
            yield bar
        finally:
            self._bars -= 1
            if not stays:
                self.view.remove_task(bar._task)
            if not self._bars:
                self.view.stop()
                self.view = None


class Stopped(KeyboardInterrupt):
    """Raised when a job was stopped in order: its work is saved, and the same command resumes it."""


class StopRequest:
    """The request to stop a job, which may still come."""

    def __init__(self, progress: Progress) -> None:
        self.requested = False
        self.progress = progress

    def check(self, done: str = "") -> None:
        """Raise `Stopped` if a stop was requested; to be called where all work so far is saved."""
        if self.requested:
            raise Stopped(f"Stopped{f' {done}' if done else ''}. Run the same command again to resume.")


_open: list[StopRequest] = []
"""The requests of the running jobs, the outermost first: a job may be part of another one."""


def check_stops(done: str = "") -> None:
    """Raise `Stopped` if the running jobs are to stop: for what takes long and has nothing to save."""
    for request in _open:
        request.check(done)


@contextmanager
def orderly_stop(progress: Progress) -> Iterator[StopRequest]:
    """Turn the first SIGINT or SIGTERM in a `with` block into a request, and the second into an interruption.

    Inside another such block, the request is one to both jobs. Outside the main thread, where Python has no signals,
    nothing is caught.
    """
    request = StopRequest(progress)

    def ask(number: int, frame: FrameType | None) -> None:
        if request.requested:
            raise KeyboardInterrupt
        for running in _open:
            running.requested = True
        _open[0].progress.tell("Stopping after the current step is finished and saved (Ctrl-C again stops at once).")

    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    _open.append(request)
    try:
        yield request
    finally:
        _open.remove(request)
        for number, handler in before.items():
            signal.signal(number, handler)


def seconds_each(work: Callable[[Sequence[Done]], object], items: Sequence[Done]) -> float:
    """Return the seconds that `work` takes per item, measured on a spread sample of the items.

    The first small batch is not counted, because the first call is slower. Then batches grow until a batch takes half a
    second, so that a large model is measured on few items and a small model on many, and until the time per item is
    stable, because on some processors the first ten calls are slow, and other programs can delay a call.
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
