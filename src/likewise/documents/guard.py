"""The guard of the process that reads documents: it starts the process, waits for its answers, and ends it."""

import json
import os
import queue
import subprocess
import sys
import threading
import time
from pathlib import Path

import likewise
from likewise.corpus.corpus_options import CorpusError
from likewise.runs.progress import check_stops
from likewise.runs.whole_files import Record

START_SECONDS = 120.0
"""Longest time that the libraries may take to load."""
FILE_SECONDS, MEGABYTE_SECONDS = 30.0, 30.0
"""Longest time that a file may take, and how much longer for each megabyte of it."""
_LOOK = 0.1  # seconds between two looks whether the job is to be stopped
_Started = queue.SimpleQueue[subprocess.Popen[str] | BaseException]


class ReaderGuard:
    """The process that reads documents, started when it is first needed, and again after a file that ended it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[Record | None] = queue.Queue()

    def read(self, path: Path, format: type, out: Path) -> str | None:
        """Write the pages of a file as JSON lines, and return what is wrong with the file, None if nothing is.

        Args:
            path: Path to the file.
            format: Class of the format, whose `pages` is called in the process.
            out: Path to the file that is written.

        Raises:
            CorpusError: The file takes too long, or ends the process.
            Stopped: A stop of the job was requested.
        """
        task = {"path": str(path.resolve()), "module": format.__module__, "class": format.__name__, "out": str(out)}
        size, answer = path.stat().st_size, None
        seconds = FILE_SECONDS + MEGABYTE_SECONDS * size / 1e6
        with self._lock:
            try:
                process = self._running(f"while {path} was read")
                assert process.stdin is not None
                process.stdin.write(json.dumps(task) + "\n")
                process.stdin.flush()
                answer = self._next(seconds, f"while {path} was read")
            except TimeoutError:
                raise CorpusError(
                    f"{path}: it takes more than {seconds:.0f} s to read {size / 1e6:,.1f} MB: exclude it, or save it "
                    "as plain text"
                ) from None
            except (EOFError, OSError):
                raise CorpusError(
                    f"{path}: reading it crashes the process: it is damaged or malicious. Save it again, or exclude it"
                ) from None
            finally:
                if answer is None:  # also after Ctrl-C
                    self.end()
        return answer.get("error")

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _next(self, seconds: float, what: str) -> Record:
        end = time.monotonic() + seconds
        while True:
            check_stops(what)
            try:
                answer = self._answers.get(timeout=_LOOK)
            except queue.Empty:
                if time.monotonic() > end:
                    raise TimeoutError from None
                continue
            if answer is None:
                raise EOFError
            return answer

    def _running(self, what: str) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._answers, started = queue.Queue(), _Started()
            threading.Thread(target=_run, args=(self._answers, started), daemon=True).start()
            process = started.get()
            if not isinstance(process, subprocess.Popen):
                raise process
            self._process = process
            self._next(START_SECONDS, what)
        return self._process


GUARD = ReaderGuard()
"""The one guard of this process."""


def _run(answers: queue.Queue[Record | None], started: _Started) -> None:
    """Start the process, and collect its answers until it ends.

    In one thread, since the system ends the process with the thread that has started it, as with a job that is killed.
    """
    home = str(Path(likewise.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "likewise.documents.reader", str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": paths},
            start_new_session=True,  # Ctrl-C is for this process alone
        )
    except OSError as error:
        started.put(error)
        return
    started.put(process)
    assert process.stdout is not None
    for line in process.stdout:
        answers.put(json.loads(line))
    answers.put(None)
