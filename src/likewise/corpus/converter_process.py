"""The process that converts documents: started, watched and ended; see `likewise.corpus.converter`, which it runs."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import likewise
from likewise.corpus.corpus_options import CorpusError
from likewise.corpus.files import Tick
from likewise.runs.orderly_stop import check_stops

START_SECONDS = 120.0
"""The longest that the libraries may take to load."""
PAGE_SECONDS = 10.0
"""The longest that a page of a PDF, or another of several pages, may take."""
FILE_SECONDS, MEGABYTE_SECONDS = 30.0, 30.0
"""The longest that a file may take, and how much longer for each megabyte of it."""
_LOOK = 0.1  # seconds between two looks whether the job is to be stopped


class ConverterProcess:
    """The converting process, started when it is first needed, and again after a file that ended it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def convert(self, path: Path, suffix: str, out: Path, tick: Tick | None) -> None:
        """Write the pages of a file as JSON lines.

        Args:
            tick: called with the bytes of the file that are done.

        Raises:
            CorpusError: the file cannot be read, or takes too long.
            Stopped: a stop of the job was requested.
        """
        with self._lock:
            whole = False
            try:
                size = path.stat().st_size
                for answer in self._asked({"path": str(path.resolve()), "suffix": suffix, "out": str(out)}, size):
                    if "error" in answer:
                        whole = True
                        raise CorpusError(f"{path}: it cannot be read as {suffix} ({answer['error']})")
                    if tick is not None and answer.get("of"):
                        tick(min(size, size * answer.get("seen", 0) // answer["of"]))
                whole = True
            except TimeoutError as late:
                raise CorpusError(f"{path}: {late}: leave it out, or save it as plain text") from None
            except (EOFError, OSError):
                raise CorpusError(
                    f"{path}: reading it ends the process: it is damaged, or made to do that. Save it again, or leave "
                    "it out"
                ) from None
            finally:
                if not whole:  # also after Ctrl-C
                    self._end()

    def _asked(self, task: dict[str, str], size: int) -> Iterator[dict[str, Any]]:
        """Send a task, and yield what is answered, with how many pages have been seen."""
        what = f"while {task['path']} was read"
        process = self._running(what)
        assert process.stdin is not None
        process.stdin.write(json.dumps(task) + "\n")
        process.stdin.flush()
        seconds, seen, paged = FILE_SECONDS + MEGABYTE_SECONDS * size / 1e6, 0, task["suffix"] == ".pdf"
        begun = page_begun = time.monotonic()
        while True:
            if paged and page_begun + PAGE_SECONDS < begun + seconds:
                end, late = page_begun + PAGE_SECONDS, f"page {seen + 1} takes more than {PAGE_SECONDS:.0f} s"
            else:
                end, late = begun + seconds, f"it takes more than {seconds:.0f} s to read {size / 1e6:,.1f} MB"
            answer = self._next(end, late, what)
            if "written" in answer:
                return
            seen += 1
            page_begun, paged = time.monotonic(), paged or answer.get("of", 0) > 1
            yield {**answer, "seen": seen}

    def _next(self, end: float, late: str, what: str) -> dict[str, Any]:
        """Return the next answer."""
        while True:
            check_stops(what)
            try:
                answer = self._answers.get(timeout=_LOOK)
            except queue.Empty:
                if time.monotonic() > end:
                    raise TimeoutError(late) from None
                continue
            if answer is None:
                raise EOFError
            return answer

    def _running(self, what: str) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            self._answers, started = queue.Queue(), queue.SimpleQueue[Any]()
            threading.Thread(target=_run, args=(self._answers, started), daemon=True).start()
            process = started.get()
            if not isinstance(process, subprocess.Popen):
                raise process
            self._process = process
            self._next(time.monotonic() + START_SECONDS, "the reader of documents does not start", what)
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _run(answers: queue.Queue[dict[str, Any] | None], started: queue.SimpleQueue[Any]) -> None:
    """Start the process, and collect its answers until it ends.

    In one thread, since the system ends the process with the thread that has started it, as with a job that is killed.
    """
    home = str(Path(likewise.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    try:
        process = subprocess.Popen(
            [sys.executable, "-P", "-m", "likewise.corpus.converter", str(os.getpid())],
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
