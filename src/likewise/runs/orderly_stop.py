"""Stopping a long job in order: Ctrl-C or a termination signal lets it save first."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from likewise.runs.progress import Progress

EXIT_CODE = 130
"""The exit code of the command line after a stop, as of a shell after Ctrl-C."""


class Stopped(KeyboardInterrupt):
    """Raised when a job was stopped in order: its work is saved, and the same command resumes it."""


class StopRequest:
    """The request to stop a job, which may still come."""

    def __init__(self, progress: Progress) -> None:
        self.asked = False
        self.progress = progress

    def check(self, done: str = "") -> None:
        """Raise `Stopped` if a stop was requested; to be called where all work so far is saved."""
        if self.asked:
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
        if request.asked:
            raise KeyboardInterrupt
        for running in _open:
            running.asked = True
        _open[0].progress.tell("Stopping: the current step is finished and saved first (Ctrl-C again stops at once).")

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
