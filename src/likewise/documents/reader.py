"""The process in which documents are read: `python -m likewise.documents.reader`.

It reads a task a line and answers with a line, so that a file that crashes a library, or fills the memory, ends only
this process. `likewise.documents.guard` starts it.
"""

import ctypes
import errno
import json
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from pathlib import Path

from likewise.corpus.formats import Page
from likewise.errors import LikewiseError
from likewise.runs.whole_files import Record

MEMORY = 2 << 30
"""Number of bytes that one file may take beyond what the libraries do."""
TEXT = 256 << 20
"""Largest number of bytes of text that one file may have."""


def main() -> None:
    """Read the files that standard input names, until it ends."""
    _end_with(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer
    with suppress(ImportError):  # formats of other packages may not need it
        import markitdown  # noqa: F401 (its memory is not the file's)

    _limit_memory()
    for task in sys.stdin:
        print(json.dumps(_answer(json.loads(task))), file=answers, flush=True)


def _answer(task: Record) -> Record:
    """Write the pages of the file that a task names, a page a line, and return what is wrong, {} if nothing is."""
    try:
        format = getattr(import_module(task["module"]), task["class"])()
        with Path(task["out"]).open("w", encoding="utf-8") as out:
            for page in format.pages(Path(task["path"])):
                if not isinstance(page, Page) or not isinstance(page.place, int):
                    raise TypeError(f"`pages` has to yield Page(place, text), with a number as the place: {page!r}")
                out.write(json.dumps(page._asdict(), default=str) + "\n")
        return {}
    except MemoryError:
        return {"error": f"reading it takes more than {MEMORY >> 30} GiB of memory"}
    except Exception as error:
        return {"error": _reason(error)}


def _end_with(parent: int) -> None:
    """Have the system end this process together with its parent, even if both are busy."""
    with suppress(OSError, AttributeError):  # another system: it ends after the file that it reads
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != parent:
        sys.exit()


def _limit_memory() -> None:
    try:
        import resource

        used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + MEMORY, used + MEMORY))
        resource.setrlimit(resource.RLIMIT_FSIZE, (TEXT, TEXT))
    except (ImportError, OSError, ValueError):  # another system: the time alone is limited
        return


def _reason(error: Exception) -> str:
    if getattr(error, "errno", None) == errno.EFBIG:
        return f"it has more than {TEXT >> 20} MiB of text: split it"
    line = next(iter(str(error).strip().splitlines()), "")
    if isinstance(error, LikewiseError):  # a format says what is wrong in its own words
        return line
    if "password" in line.lower():
        return "it is protected by a password: save it without a password"
    return f"{type(error).__name__}: {line}"[:200] if line else type(error).__name__


if __name__ == "__main__":
    main()
