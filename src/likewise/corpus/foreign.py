"""Web pages, notebooks, Word, PowerPoint and PDF files, read as Markdown by page.

Notebooks are read here. The others are converted by markitdown (the extra `files`) in a process of its own, with limits
on its memory and time, and kept in the cache by their content.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import zipfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import likewise
from likewise.corpus.corpus_options import CorpusError, CorpusOptions
from likewise.corpus.files import FREE_EXPANSION, Tick
from likewise.errors import counted
from likewise.runs.cache import cached
from likewise.runs.parts import checksum
from likewise.runs.whole_files import parse_json

NOTEBOOK = ".ipynb"
CONVERTED = (".html", ".htm", ".docx", ".pptx", ".pdf")
DOCUMENTS = (*CONVERTED, NOTEBOOK)
"""Endings of the files that are read here."""

UNITS = {".pdf": "page", ".pptx": "slide", NOTEBOOK: "cell"}
"""What the place in a file is called, if it is no line."""

INSTALL = "pip install 'likewise[files]'"
SECONDS = 120.0
"""That a page may take, or a file that has none."""

_PAGES = "pages.jsonl"
_FORMAT = 1  # raise it when the same file gives another text
_ZIPPED = (".docx", ".pptx")


def can_convert() -> bool:
    """Return whether the extra `files` is installed."""
    return all(find_spec(name) is not None for name in ("markitdown", "pypdfium2"))


def place_in(file: str, line: int) -> str:
    """Return the place of a passage, for people: a file's line, page, slide or cell, or the file alone for line 0.

    >>> place_in("a.txt", 3), place_in("a.pdf", 3), place_in("a.html", 0)
    ('a.txt:3', 'a.pdf, page 3', 'a.html')
    """
    if unit := UNITS.get(Path(file).suffix.lower()):
        return f"{file}, {unit} {line}"
    return f"{file}:{line}" if line else file


def pages_of(path: Path, suffix: str, options: CorpusOptions, tick: Tick | None = None) -> Iterator[tuple[int, str]]:
    """Yield (number, Markdown) of each page, slide or cell of a file; 0 is the number where there are none.

    Args:
        suffix: the ending that says how it is read.
        tick: called with the bytes of the file that are done, while it is converted.

    Raises:
        CorpusError: it cannot be read; the message names the cure.
    """
    if suffix == NOTEBOOK:
        yield from _cells(path)
        return
    with converted(path, suffix, options, tick).open(encoding="utf-8") as lines:
        for line in lines:
            page = json.loads(line)
            yield page["place"], page["text"]


def converted(path: Path, suffix: str, options: CorpusOptions, tick: Tick | None = None) -> Path:
    """Return a file of the cache that has a page of a document a line; it is made if it is not there."""
    if not can_convert():
        raise CorpusError(f"{path}: to read {suffix} files, markitdown is needed: {INSTALL}")
    try:
        converter = version("markitdown")
    except PackageNotFoundError:
        converter = ""
    try:
        content = checksum(path)
    except OSError as error:
        raise CorpusError(f"{path}: cannot be opened ({error.strerror}): check the path and its permissions") from None

    def make(folder: Path) -> None:
        if suffix in _ZIPPED:
            _check_zipped(path, options)
        _CONVERTER.convert(path, suffix, folder / _PAGES, tick)
        _keep_text(path, suffix, folder / _PAGES)

    return cached("documents", [content, suffix, _FORMAT, converter], make) / _PAGES


def _keep_text(path: Path, suffix: str, out: Path) -> None:
    """Check that there is text in what was converted, and remove the marks of progress."""
    pages = [line for line in out.read_text(encoding="utf-8").splitlines() if json.loads(line)["text"].strip()]
    if not pages:
        if suffix == ".pdf":
            raise CorpusError(
                f"{path}: there is no text in this PDF, only pictures, such as those of a scan: turn them into text, "
                "for example "
                "with docling, and give that text"
            )
        raise CorpusError(f"{path}: there is no text in this file")
    out.write_text("\n".join(pages) + "\n", encoding="utf-8")


def _check_zipped(path: Path, options: CorpusOptions) -> None:
    """Refuse what is no Office file, and one that would expand without measure."""
    try:
        with zipfile.ZipFile(path) as archive:
            size = sum(entry.file_size for entry in archive.infolist())
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        raise CorpusError(
            f"{path}: this is not a whole {path.suffix} file: it is damaged, or of another format: save it again"
        ) from None
    if size > max(FREE_EXPANSION, options.max_expansion * path.stat().st_size):
        raise CorpusError(
            f"{path}: it expands to more than {options.max_expansion} times its size, which text does not: it is "
            "damaged, or made to fill a disk. If it is right, raise the option max_expansion"
        )


def _cells(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the number, from 1, and the Markdown of each cell of a notebook; outputs are left out."""
    try:
        content = parse_json(path.read_text(encoding="utf-8"))
        cells = (
            content["cells"]
            if "cells" in content
            else [one for sheet in content["worksheets"] for one in sheet["cells"]]
        )
        language = content.get("metadata", {}).get("kernelspec", {}).get("language", "")
        for number, cell in enumerate(cells, 1):
            found = cell.get("source", cell.get("input", ""))
            text = found if isinstance(found, str) else "".join(found)
            if cell["cell_type"] == "code" and text.strip():
                fence = "````" if "```" in text else "```"
                text = f"{fence}{language}\n{text}\n{fence}"
            yield number, text
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise CorpusError(
            f"{path}: this is not a whole notebook ({type(error).__name__}: {error}): save it again"
        ) from None


class _Converter:
    """The converting process, started when it is first needed, and again after a file that ended it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None
        self._answers: queue.Queue[dict[str, Any] | None] = queue.Queue()

    def convert(self, path: Path, suffix: str, out: Path, tick: Tick | None) -> None:
        """Write the pages of a file as JSON lines."""
        with self._lock:
            try:
                size = path.stat().st_size
                for answer in self._asked({"path": str(path.resolve()), "suffix": suffix, "out": str(out)}):
                    if "error" in answer:
                        raise CorpusError(f"{path}: it cannot be read as {suffix} ({answer['error']})")
                    if tick is not None and answer.get("of"):
                        tick(min(size, size * answer.get("seen", 0) // answer["of"]))
            except queue.Empty:
                self._end()
                raise CorpusError(f"{path}: it takes more than {SECONDS:.0f} s a page to read: leave it out") from None
            except (EOFError, OSError):
                self._end()
                raise CorpusError(
                    f"{path}: reading it ends the process: it is damaged, or made to do that. Save it again, or leave "
                    "it out"
                ) from None

    def _asked(self, task: dict[str, str]) -> Iterator[dict[str, Any]]:
        """Send a task, and yield what is answered, with how many pages have been seen."""
        process = self._running()
        assert process.stdin is not None
        process.stdin.write(json.dumps(task) + "\n")
        process.stdin.flush()
        seen = 0
        while True:
            answer = self._answers.get(timeout=SECONDS)
            if answer is None:
                raise EOFError
            if "written" in answer:
                return
            seen += 1
            yield {**answer, "seen": seen}

    def _running(self) -> subprocess.Popen[str]:
        if self._process is None or self._process.poll() is not None:
            home = str(Path(likewise.__file__).parents[1])
            paths = os.pathsep.join(filter(None, (home, os.environ.get("PYTHONPATH"))))
            self._answers = queue.Queue()
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", "likewise.corpus.converter"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
                encoding="utf-8",
                env={**os.environ, "PYTHONPATH": paths},
                start_new_session=True,  # Ctrl-C is for this process alone
            )
            threading.Thread(target=_collect, args=(self._process, self._answers), daemon=True).start()
        return self._process

    def _end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None


def _collect(process: subprocess.Popen[str], answers: queue.Queue[dict[str, Any] | None]) -> None:
    assert process.stdout is not None
    for line in process.stdout:
        answers.put(json.loads(line))
    answers.put(None)


_CONVERTER = _Converter()


def uninstalled(suffixes: dict[str, int]) -> str:
    """Return the line on files that only the extra reads."""
    kinds = ", ".join(f"{count:,} {suffix}" for suffix, count in sorted(suffixes.items()))
    return f"{counted(sum(suffixes.values()), 'file')} ({kinds}) can be read after {INSTALL}"
