"""Documents read by page: web pages, notebooks, mails, office files, e-books and PDF files.

Notebooks are read here. The others are converted (`likewise.corpus.converter`, with the extra `files`) in a process of
its own, with limits on its memory and time, and kept in the cache by their content.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import time
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import likewise
from likewise.corpus.converter import Page, converters
from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.files import check_expansion
from likewise.errors import counted
from likewise.runs.cache import cached
from likewise.runs.progress import check_stops
from likewise.runs.whole_files import Record, checksum, parse_json

START_SECONDS = 120.0
"""The longest that the libraries may take to load."""
PAGE_SECONDS = 10.0
"""The longest that a page of a PDF, or another of several pages, may take."""
FILE_SECONDS, MEGABYTE_SECONDS = 30.0, 30.0
"""The longest that a file may take, and how much longer for each megabyte of it."""
_LOOK = 0.1  # seconds between two looks whether the job is to be stopped
_Started = queue.SimpleQueue[subprocess.Popen[str] | BaseException]


class ConverterProcess:
    """The converting process, started when it is first needed, and again after a file that ended it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[Record | None] = queue.Queue()

    def convert(self, path: Path, suffix: str, out: Path) -> None:
        """Write the pages of a file as JSON lines.

        Raises:
            CorpusError: the file cannot be read, or takes too long.
            Stopped: a stop of the job was requested.
        """
        with self._lock:
            whole = False
            try:
                task = {"path": str(path.resolve()), "suffix": suffix, "out": str(out)}
                error = self._asked(task, path.stat().st_size)
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
        if error is not None:
            raise CorpusError(f"{path}: it cannot be read as {suffix} ({error})")

    def _asked(self, task: dict[str, str], size: int) -> str | None:
        """Send a task, and return what is wrong with the file, None if its pages are written."""
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
            if "of" not in answer:
                return answer.get("error")
            seen += 1
            page_begun, paged = time.monotonic(), paged or answer["of"] > 1

    def _next(self, end: float, late: str, what: str) -> Record:
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
            self._answers, started = queue.Queue(), _Started()
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


def _run(answers: queue.Queue[Record | None], started: _Started) -> None:
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


NOTEBOOK = ".ipynb"
_UNITS = {NOTEBOOK: "cell", ".parquet": "row"}
"""What the place in a file is called that is not converted, if it is no line."""

INSTALL = "pip install 'likewise[files]'"

_PAGES = "pages.jsonl"
_FORMAT = 11  # raise it when the same file gives another text
_ZIPPED = (".docx", ".pptx", ".xlsx", ".xlsm", ".epub", ".odt")


def document_suffixes() -> tuple[str, ...]:
    """Return the endings of the files that are read here."""
    return (*converters(), NOTEBOOK)


def lacks_extra(suffix: str) -> bool:
    """Return whether files with this ending need the extra `files`, which is not installed."""
    packages = ("markitdown", "pypdfium2", "openpyxl")
    converter = converters().get(suffix)
    return converter is not None and converter.is_own and not all(find_spec(name) for name in packages)


def place_in(file: str, line: int) -> str:
    """Return the place of a passage, for people: a file's line, page, slide or cell, or the file alone for line 0.

    >>> place_in("a.txt", 3), place_in("a.pdf", 3), place_in("a.html", 0)
    ('a.txt:3', 'a.pdf, page 3', 'a.html')
    """
    suffix = Path(file).suffix.lower()
    if unit := converters()[suffix].unit if suffix in converters() else _UNITS.get(suffix):
        return f"{file}, {unit} {line}"
    return f"{file}:{line}" if line else file


def pages_of(path: Path, suffix: str, options: CorpusOptions) -> Iterator[Page]:
    """Yield the pages, slides, cells, chapters, mails or rows of a file.

    Args:
        suffix: the ending that says how it is read.

    Raises:
        CorpusError: it cannot be read; the message names the cure.
    """
    if suffix == NOTEBOOK:
        yield from _cells(path)
        return
    with converted(path, suffix, options).open(encoding="utf-8") as lines:
        for line in lines:
            yield Page(**json.loads(line))


def rows_of_sheets(path: Path, options: CorpusOptions) -> Iterator[tuple[list[object], Page]]:
    """Yield each row of the sheets of a file, behind the cells of its sheet's header."""
    sheet, header = None, []
    for page in pages_of(path, path.suffix.lower(), options):
        if not page.cells and not page.left_out:  # a box beside the rows
            continue
        if page.title != sheet:
            sheet, header = page.title, list(page.cells)
        else:
            yield header, page


def converted(path: Path, suffix: str, options: CorpusOptions) -> Path:
    """Return a file of the cache that has a page of a document a line; it is made if it is not there."""
    if lacks_extra(suffix):
        raise CorpusError(f"{path}: to read {suffix} files, markitdown is needed: {INSTALL}")
    try:
        content = checksum(path)
    except OSError as error:
        raise CorpusError(f"{path}: cannot be opened ({error.strerror}): check the path and its permissions") from None

    def make(folder: Path) -> None:
        if suffix in _ZIPPED:
            _check_zipped(path, options)
        _CONVERTER.convert(path, suffix, folder / _PAGES)
        _keep_text(path, suffix, folder / _PAGES)

    return cached("documents", [content, suffix, _FORMAT, _version(suffix)], make) / _PAGES


def _version(suffix: str) -> str:
    """Return what changes when the same file may be converted to another text."""
    converter = converters()[suffix]
    if not converter.is_own:
        return checksum(Path(str(sys.modules[type(converter).__module__].__file__)))
    try:
        return version("markitdown")
    except PackageNotFoundError:
        return ""


def _keep_text(path: Path, suffix: str, out: Path) -> None:
    """Check that there is text in what was converted, and remove the marks of progress."""
    pages = [(line, json.loads(line)) for line in out.read_text(encoding="utf-8").splitlines()]
    if not any(_has_text(page) for _, page in pages):
        if suffix == ".pdf":
            raise CorpusError(
                f"{path}: there is no text in this PDF, only pictures, such as those of a scan: turn them into text, "
                "for example "
                "with docling, and give that text"
            )
        raise CorpusError(f"{path}: there is no text in this file")
    kept = [line for line, page in pages if _has_text(page) or page["left_out"]]
    out.write_text("\n".join(kept) + "\n", encoding="utf-8")


def _has_text(page: Record) -> bool:
    return bool(page["text"].strip() or page["title"].strip())


def _check_zipped(path: Path, options: CorpusOptions) -> None:
    """Refuse what is no Office file, and one that would expand without measure."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise CorpusError(
            f"{path}: this is not a whole {path.suffix} file: it is damaged, or of another format: save it again"
        ) from None
    check_expansion(path, size, options)


def _cells(path: Path) -> Iterator[Page]:
    """Yield the cells of a notebook, numbered from 1; outputs are left out."""
    try:
        content = parse_json(path.read_text(encoding="utf-8-sig"))
        cells = content.get("cells") or [cell for sheet in content.get("worksheets", ()) for cell in sheet["cells"]]
        language = content.get("metadata", {}).get("kernelspec", {}).get("language", "")
        for number, cell in enumerate(cells, 1):
            source = cell.get("source", cell.get("input", ""))
            text = source if isinstance(source, str) else "".join(source)
            if cell["cell_type"] == "code" and text.strip():
                fence = "````" if "```" in text else "```"
                text = f"{fence}{language}\n{text}\n{fence}"
            yield Page(number, text, form="markdown")
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorpusError(
            f"{path}: this is not a whole notebook ({type(error).__name__}: {error}): save it again"
        ) from None


_CONVERTER = ConverterProcess()


def uninstalled(suffixes: dict[str, int]) -> str:
    """Return the line on files that only the extra reads."""
    kinds = ", ".join(f"{count:,} {suffix}" for suffix, count in sorted(suffixes.items()))
    return f"{counted(sum(suffixes.values()), 'file')} ({kinds}) can be read after {INSTALL}"
