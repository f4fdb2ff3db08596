"""The converters of documents, and the process in which they run: `python -m likewise.corpus.converter`.

A format is a subclass of `Converter`; other packages register theirs by entry points. The process reads a task a line
and answers in lines, so that a file that crashes a library, or fills the memory, ends only this process. See
`likewise.corpus.paged_documents`, which starts it.
"""

from __future__ import annotations

import ctypes
import errno
import json
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import ClassVar, Literal, NamedTuple

from likewise.corpus.sentence_splitter import JOINING
from likewise.errors import LikewiseError

MEMORY = 2 << 30
"""Bytes that one file may take beyond what the libraries do."""
TEXT = 256 << 20
"""The most bytes of text that one file may have."""
_HYPHEN = re.compile("(?<!\\w)(\\w+)([-\u2010\u00ad])\n(\\w+)")
_JOINING = re.compile(rf"{JOINING}(?=\s)")
_EDGE = 2  # blocks at the top and the bottom of a page that may be its header and footer
_LONGEST_EDGE = 100  # characters of one
MARKS = re.compile(r"([\\`*_{}\[\]<>#+\-.!|~=()&])")


class Page(NamedTuple):
    """A part of a document that has a place of its own.

    Attributes:
        place: its number, such as that of a page, from 1; 0 where there are none.
        text: what it says.
        title: the heading above all of it.
        form: "markdown", in which each sign that is no mark is escaped; or "plain", paragraphs between blank lines.
        fields: what the document says of itself, such as the sender of a mail.
        cells: those of a row of a sheet.
        left_out: why something on it is not read, '' if all is.
    """

    place: int
    text: str
    title: str = ""
    form: Literal["markdown", "plain"] = "plain"
    fields: Mapping[str, object] = {}
    cells: Sequence[object] = ()
    left_out: str = ""


class Converter:
    """A format of documents; a new one is a subclass, named in `converters` or registered by an entry point.

    Attributes:
        suffixes: the endings of its files, in small letters.
        unit: what a place in it is called, "" if it has none.
    """

    suffixes: ClassVar[tuple[str, ...]] = ()
    unit: ClassVar[str] = ""

    @property
    def is_own(self) -> bool:
        """True if it is a format of this library, which the extra `files` reads."""
        return type(self).__module__.startswith("likewise.corpus.")

    def convert(self, path: Path) -> Iterator[Page | int]:
        """Yield the pages of a file; a number says how many there will be, and that it goes on."""
        raise NotImplementedError


@cache
def converters() -> dict[str, Converter]:
    """Return what converts files, by their endings: the formats of this library, then those of other packages.

    Raises:
        CorpusError: what another package registers cannot be loaded, or is no subclass of `Converter`.
    """
    from importlib.metadata import entry_points

    from likewise.corpus.corpus_options import CorpusError
    from likewise.corpus.mails import Mail, Mailbox
    from likewise.corpus.office_files import OpenDocument, Sheets, Slides, Word
    from likewise.corpus.pdf_files import Pdf
    from likewise.corpus.web_pages import Book, WebPage
    from likewise.runs.plugins import FORMATS_GROUP, load_registered

    entries = sorted(entry_points(group=FORMATS_GROUP), key=lambda entry: entry.name)
    others: list[Converter] = []
    for entry in entries:
        kind = load_registered(entry, type, f"the format {entry.name!r}", CorpusError)
        if not issubclass(kind, Converter):
            raise CorpusError(f"the format {entry.name!r} ({entry.value}) is no subclass of likewise.corpus.Converter")
        if wrong := [suffix for suffix in kind.suffixes if not re.fullmatch(r"\.[^\sA-Z]+", suffix)]:
            raise CorpusError(
                f"the format {entry.name!r} ({entry.value}) has the suffix {wrong[0]!r}: `suffixes` is a tuple of "
                "endings in small letters, each with its dot, such as ('.srt',)"
            )
        others.append(kind())
    own = (WebPage(), Word(), Slides(), Pdf(), Sheets(), Book(), OpenDocument(), Mail(), Mailbox())
    known: dict[str, Converter] = {}
    for converter in (*own, *others):
        for suffix in converter.suffixes:
            known.setdefault(suffix, converter)
    return known


def main() -> None:
    """Convert the files that standard input names, until it ends."""
    _end_with(int(sys.argv[1]))
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what a library prints is no answer

    def answer(**content: object) -> None:
        print(json.dumps(content), file=answers, flush=True)

    with suppress(ImportError):  # formats of other packages may not need it
        import markitdown  # noqa: F401 (its memory is not the file's)

    _limit_memory()
    answer(ready=True)
    for line in sys.stdin:
        task = json.loads(line)
        try:
            with Path(task["out"]).open("w", encoding="utf-8") as out:
                pages = 1
                converter = converters().get(task["suffix"])
                if converter is None:
                    raise LookupError("no installed package reads such files")
                for page in converter.convert(Path(task["path"])):
                    if isinstance(page, int):
                        pages = page
                    elif not isinstance(getattr(page, "place", None), int):
                        raise TypeError(
                            f"`convert` has to yield Page(place, text), with a number as the place: {page!r}"
                        )
                    else:
                        out.write(json.dumps(page._asdict(), default=str) + "\n")
                    if isinstance(page, int) or not page.cells:
                        answer(of=pages)
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
    if isinstance(error, LikewiseError):  # a converter says what is wrong in its own words
        return line
    if "password" in line.lower():
        return "it is locked by a password: save it without one"
    return f"{type(error).__name__}: {line}"[:200] if line else type(error).__name__


def _goes_on(places: Sequence[tuple[int, Sequence[int]]]) -> bool:
    """Return whether the numbers of blocks on several pages are the same, or those of the pages, on most of these.

    >>> _goes_on([(0, [7, 3]), (1, [8, 3]), (2, [9, 3])]), _goes_on([(0, [471]), (1, [482]), (2, [499])])
    (True, False)
    """

    def most(values: Iterable[int]) -> int:
        return Counter(values).most_common(1)[0][1]

    pages = [page for page, _ in places]
    columns = zip(*(numbers for _, numbers in places), strict=True)
    as_pages = ((column, [number - page for page, number in zip(pages, column, strict=True)]) for column in columns)
    return all(2 * max(most(column), most(distances)) > len(places) for column, distances in as_pages)


def without_edges(pages: list[list[str]]) -> list[str]:
    r"""Return the text of pages of blocks without headers and footers, and with divided words joined.

    A header or footer is a short block among the first or last two of a page that is on more than half of the pages,
    and on three at least, with the same numbers or with those of the pages. A word that a hyphen divides at a line's
    end is joined if it is elsewhere joined in the text, or if the hyphen is a soft one.

    >>> texts = ["Open the valve.", "Turn the valve-\nwheel.", "Then close the val-\nve."]
    >>> without_edges([["Manual", text, f"{i}/3"] for i, text in enumerate(texts)])
    ['Open the valve.', 'Turn the valve-wheel.', 'Then close the valve.']
    """

    def form(block: str) -> str:
        return re.sub(r"\d+", "0", " ".join(block.split()))

    edges = [{form(block): block for block in [*page[:_EDGE], *page[-_EDGE:]]} for page in pages]
    seen: dict[str, list[tuple[int, list[int]]]] = {}
    for number, page_edges in enumerate(edges):
        for one, block in page_edges.items():
            seen.setdefault(one, []).append((number, [int(digits[-18:]) for digits in re.findall(r"\d+", block)]))
    often = {
        block
        for block, places in seen.items()
        if len(places) >= 3 and len(places) > len(pages) / 2 and _goes_on(places)
    }
    repeated = {block for block in often if len(block) <= _LONGEST_EDGE}
    kept = [
        [block for place, block in enumerate(page) if _EDGE <= place < len(page) - _EDGE or form(block) not in repeated]
        for page in pages
    ]
    kept = kept if any(kept) else pages  # short pages that differ in their numbers alone
    words = set(re.findall(r"\w+", " ".join(block for page in kept for block in page)))

    def joined(match: re.Match[str]) -> str:
        if match[2] != "\u00ad" and _JOINING.match(match.string, match.start(3)):
            return f"{match[1]}{match[2]} {match[3]}"
        is_one = match[2] == "\u00ad" or match[1] + match[3] in words
        return match[1] + ("" if is_one else match[2]) + match[3]

    return [_HYPHEN.sub(joined, "\n\n".join(page)) for page in kept]


if __name__ == "__main__":
    from likewise.corpus import converter  # whose classes are those of other packages, too

    converter.main()
