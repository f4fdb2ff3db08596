"""Which lines of documents of every kind are lost by libraries that read all of them.

    pip install xberg==1.3.9 "markitdown[all]"
    python read_files.py

The documents are those of tests/documents/files, each beside a text file with the lines that must come: headings,
rows of tables, entries with their letters, and sentences. The test next to them says that likewise loses none.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from pathlib import Path

FILES = Path(__file__).parents[2] / "tests" / "documents" / "files"


def markitdown() -> Callable[[Path], str]:
    from markitdown import MarkItDown

    reader = MarkItDown()
    return lambda path: reader.convert(path).markdown


def xberg() -> Callable[[Path], str]:
    import xberg
    from xberg.options import ExtractInput, ExtractionConfig

    config = ExtractionConfig(disable_ocr=True, use_cache=False, output_format="markdown")

    def read(path: Path) -> str:
        results = asyncio.run(xberg.extract(ExtractInput(kind="uri", uri=str(path)), config)).results
        return "\n".join(one.content for one in results)

    return read


def bare(text: str) -> str:
    """Return a text without emphasis, escapes, blanks, and the differences between marks of lists and of headings."""
    text = re.sub(r"\\([^\w\s])|\*\*|(?<!\w)\*(?!\s)|(?<!\s)\*(?!\w)", r"\1", text)
    text = re.sub(r"(?m)^\s*#+ ", "# ", text)
    return re.sub(r"\s+", "", re.sub(r"(?m)^\s*[*+-] ", "- ", text))


def main() -> None:
    """Print a table of the lines that each reader loses of each file."""
    readers = {maker.__name__: maker() for maker in (markitdown, xberg)}
    print(f"| file | lines | {' | '.join(readers)} |\n| --- | ---: |{' ---: |' * len(readers)}")
    for path in sorted(path for path in FILES.iterdir() if path.suffix != ".txt"):
        lines = path.with_name(f"{path.name}.txt").read_text(encoding="utf-8").splitlines()
        lost = []
        for read in readers.values():
            try:
                text = bare(read(path))
                lost.append(str(sum(bare(line) not in text for line in lines)))
            except Exception as error:  # each library raises its own
                lost.append(f"{len(lines)} ({type(error).__name__})")
        print(f"| {path.name} | {len(lines)} | {' | '.join(lost)} |", flush=True)


if __name__ == "__main__":
    main()
