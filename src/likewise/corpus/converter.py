"""The process that makes Markdown of web pages, Word, PowerPoint and PDF files: `python -m likewise.corpus.converter`.

It reads a task a line and answers in lines, so that a file that crashes a library, or fills the memory, ends only this
process. See `likewise.corpus.foreign`, which starts it.
"""

from __future__ import annotations

import ctypes
import errno
import io
import json
import os
import re
import signal
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

MEMORY = 2 << 30
"""Bytes that one file may take beyond what the libraries do."""
TEXT = 256 << 20
"""The most bytes of text that one file may have."""

_NO_TEXT = ("script", "style", "noscript", "template", "nav", "footer", "aside", "form", "button", "svg")
_SLIDE = re.compile(r"^<!-- Slide number: (\d+) -->$", re.MULTILINE)
_LIGATURES = re.compile("[\ufb00-\ufb06]")
_HYPHEN = re.compile(r"(\w+)-\n(\w+)")
_EDGE = 2  # blocks at the top and the bottom of a page that may be its header and footer
_LONGEST_EDGE = 100  # characters of one

Page = tuple[int, str]
"""The number of a page or a slide, from 1, or 0 where there are none; and its Markdown."""


def main() -> None:
    """Convert the files that standard input names, until it ends."""
    _end_with(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer

    def answer(**content: Any) -> None:
        print(json.dumps(content), file=answers, flush=True)

    import markitdown  # noqa: F401 (its memory is not the file's)

    _limit_memory()
    answer(ready=True)
    for line in sys.stdin:
        task = json.loads(line)
        try:
            with Path(task["out"]).open("w", encoding="utf-8") as out:
                for number, text, pages in _pages(Path(task["path"]), task["suffix"]):
                    out.write(json.dumps({"place": number, "text": text}) + "\n")
                    answer(done=number, of=pages)
            answer(written=True)
        except MemoryError:
            answer(error=f"it takes more than {MEMORY >> 30} GiB of memory to read")
        except Exception as error:
            answer(error=_reason(error))


def _end_with(parent: int) -> None:
    """Have the system end this process with the one that started it, even if both are in the middle of something."""
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
        return f"it has more than {TEXT >> 20} MiB of text: divide it"
    line = next(iter(str(error).strip().splitlines()), "")
    if "password" in line.lower():
        return "it is locked by a password: save it without one"
    return f"{type(error).__name__}: {line}"[:200] if line else type(error).__name__


def _pages(path: Path, suffix: str) -> Iterator[tuple[int, str, int]]:
    """Yield the number of each page, its Markdown, and how many there are."""
    if suffix == ".pdf":
        yield from _pdf(path)
        return
    found = _slides(path) if suffix == ".pptx" else [(0, _word(path) if suffix == ".docx" else _web(path))]
    for number, text in found:
        yield number, text, len(found)


def _info(suffix: str) -> Any:
    from markitdown import StreamInfo

    return StreamInfo(extension=suffix, charset="utf-8")


def _word(path: Path) -> str:
    from markitdown.converters import DocxConverter

    with path.open("rb") as file:
        return str(DocxConverter().convert(file, _info(".docx")).markdown)


def _slides(path: Path) -> list[Page]:
    from markitdown.converters import PptxConverter

    with path.open("rb") as file:
        parts = _SLIDE.split(PptxConverter().convert(file, _info(".pptx")).markdown)
    return [(int(number), text.strip()) for number, text in zip(parts[1::2], parts[2::2], strict=True)]


def _web(path: Path) -> str:
    """Return the text of a web page without what is around it on each page of a site."""
    from bs4 import BeautifulSoup
    from markitdown.converters import HtmlConverter

    soup = BeautifulSoup(path.read_bytes(), "html.parser")
    for tag in soup(_NO_TEXT):
        tag.decompose()
    title = soup.title.get_text(" ", strip=True) if soup.title else ""
    text = HtmlConverter().convert(io.BytesIO(str(soup).encode("utf-8", "replace")), _info(".html")).markdown
    return f"---\ntitle: {title}\n---\n{text}" if title else str(text)


def _pdf(path: Path) -> Iterator[tuple[int, str, int]]:
    """Yield the pages of a PDF, without the lines that stand above or below the text of most of them."""
    import pypdfium2
    from markitdown.converters import PdfConverter

    with path.open("rb") as file:
        whole = pypdfium2.PdfDocument(file)
        pages: list[list[str]] = []
        for number in range(count := len(whole)):
            page = io.BytesIO()
            one = pypdfium2.PdfDocument.new()
            one.import_pages(whole, [number])
            one.save(page)
            one.close()
            page.seek(0)
            text = PdfConverter().convert(page, _info(".pdf")).markdown
            pages.append(blocks_of(text))
            yield 0, "", count  # it goes on
        whole.close()
    for number, text in enumerate(without_edges(pages), 1):
        yield number, text, count


def blocks_of(text: str) -> list[str]:
    r"""Return the blocks of a page: what blank lines divide.

    >>> blocks_of("The \ufb01rst.\n\n\nThe second\nline.\f")
    ['The first.', 'The second\nline.']
    """
    text = _LIGATURES.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text.replace("\f", ""))
    return [block.strip("\n") for block in re.split(r"\n\s*\n", text) if block.strip()]


def without_edges(pages: list[list[str]]) -> list[str]:
    r"""Return the text of pages of blocks without headers and footers, and with divided words joined.

    A header or footer is a short block among the first or last two of a page that is, but for its numbers, on more than
    half of the pages, and on three at least. A word that a hyphen divides at a line's end is joined if it is elsewhere
    joined in the text.

    >>> texts = ["Open the valve.", "Turn the valve-\nwheel.", "Then close the val-\nve."]
    >>> without_edges([["Manual", text, f"{i}/3"] for i, text in enumerate(texts)])
    ['Open the valve.', 'Turn the valve-wheel.', 'Then close the valve.']
    """

    def form(block: str) -> str:
        return re.sub(r"\d+", "0", " ".join(block.split()))

    edges = [{form(one) for one in [*page[:_EDGE], *page[-_EDGE:]]} for page in pages]
    seen = Counter(one for page in edges for one in page)
    often = {one for one, count in seen.items() if count >= 3 and count > len(pages) / 2}
    repeated = {one for one in often if len(one) <= _LONGEST_EDGE}
    kept = [
        [block for place, block in enumerate(page) if _EDGE <= place < len(page) - _EDGE or form(block) not in repeated]
        for page in pages
    ]
    words = set(re.findall(r"\w+", " ".join(block for page in kept for block in page)))

    def joined(found: re.Match[str]) -> str:
        return found[1] + ("" if found[1] + found[2] in words else "-") + found[2]

    return [_HYPHEN.sub(joined, "\n\n".join(page)) for page in kept]


if __name__ == "__main__":
    main()
