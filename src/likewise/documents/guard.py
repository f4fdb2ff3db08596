"""The guard of the process that reads documents: it starts the process, waits for its answers, and ends it."""

import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import likewise
from likewise.corpus.corpus_options import CorpusError
from likewise.runs.progress import check_stops

START_SECONDS = 120.0
"""Longest time that the libraries may take to load, in addition to the first file's."""
FILE_SECONDS, MEGABYTE_SECONDS = 30.0, 30.0
"""Longest time that a file may take, and how much longer for each megabyte of it."""
_LOOK = 0.1  # seconds between two looks whether the job is to be stopped


class ReaderGuard:
    """The process that reads documents, started when it is first needed, and again after a file that ended it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._thread: ThreadPoolExecutor

    def read(self, path: Path, format: type, out: Path) -> str | None:
        """Write the pages of a file as JSON lines, and return the fault of the file, or None.

        Args:
            path: Path to the file.
            format: Class of the format, whose `pages` is called in the process.
            out: Path to the file that is written.

        Raises:
            CorpusError: The file takes too long, or ends the process.
            Stopped: A stop of the job was requested.
        """
        task = {"path": str(path.resolve()), "module": format.__module__, "class": format.__name__, "out": str(out)}
        size, answer = path.stat().st_size, ""
        seconds = FILE_SECONDS + MEGABYTE_SECONDS * size / 1e6
        with self._lock:
            try:
                answer = self._answer(json.dumps(task), seconds, f"while {path} was read")
            except TimeoutError:
                raise CorpusError(
                    f"{path}: it takes more than {seconds:.0f} s to read {size / 1e6:,.1f} MB: exclude it, or save it "
                    "as plain text"
                ) from None
            except OSError:
                raise CorpusError(
                    f"{path}: reading it crashes the process: it is damaged or malicious. Save it again, or exclude it"
                ) from None
            finally:
                if not answer:  # also after Ctrl-C
                    self.end()
        return json.loads(answer).get("error")

    def end(self) -> None:
        """End the process."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _answer(self, task: str, seconds: float, what: str) -> str:
        """Return the answer to a task.

        Raises:
            TimeoutError: There is none within so many seconds.
            OSError: The process has ended.
        """
        end = time.monotonic() + seconds
        if self._process is None or self._process.poll() is not None:
            end += START_SECONDS
            # The system ends the process with the thread that has started it, as with a job that is killed.
            self._thread = ThreadPoolExecutor(1)
            self._process = self._thread.submit(_start).result()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(task, file=self._process.stdin, flush=True)
        answer = self._thread.submit(self._process.stdout.readline)
        while not answer.done():
            check_stops(what)
            if time.monotonic() > end:
                raise TimeoutError
            wait([answer], timeout=_LOOK)
        if not answer.result():
            raise OSError("the process has ended")
        return answer.result()


GUARD = ReaderGuard()
"""The one guard of this process."""


def _start() -> subprocess.Popen[str]:
    """Start the process."""
    home = str(Path(likewise.__file__).parents[1])
    paths = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "likewise.documents.reader", str(os.getpid())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONPATH": paths},
        start_new_session=True,  # Ctrl-C is for this process alone
    )
