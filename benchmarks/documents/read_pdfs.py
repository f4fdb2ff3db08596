"""What readers of PDF files keep of texts that are known: words, their order, headings, rows of tables.

    python make_pdfs.py pdfs
    pip install xberg==1.3.9 pdfminer.six
    for reader in pdfminer xberg liteparse likewise; do python read_pdfs.py pdfs --reader $reader; done
    python read_pdfs.py pdfs --table

`pdfminer` is MarkItDown's converter, a page at a time, with which PDFs were read before; `liteparse` and `xberg` write
Markdown as they do by themselves, without optical recognition; `likewise` is the format of this library. Seconds are
those of the processor, without imports.
"""

from __future__ import annotations

import argparse
import io
import itertools
import json
import re
import resource
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))
from rows import ResultFile

_WORD = re.compile(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+(?:['-][^\W\u4e00-\u9fff]+)*")
_MARK = 40
"""Number of letters by which a paragraph is known."""
COLUMNS = {
    "words": "words",
    "lost": "lost",
    "disordered": "paragraphs lost or out of order",
    "headings": "headings",
    "rows": "rows of tables",
    "edges": "running heads and page numbers left",
}

Reader = Callable[[Path], str]


def pdfminer() -> Reader:
    import pypdfium2
    from markitdown import StreamInfo
    from markitdown.converters import PdfConverter

    def read(path: Path) -> str:
        pages = []
        whole = pypdfium2.PdfDocument(path)
        for number in range(len(whole)):
            single, content = pypdfium2.PdfDocument.new(), io.BytesIO()
            single.import_pages(whole, [number])
            single.save(content)
            content.seek(0)
            pages.append(PdfConverter().convert(content, StreamInfo(extension=".pdf")).markdown)
        return "\n\n".join(pages)

    return read


def liteparse() -> Reader:
    from liteparse import LiteParse

    parser = LiteParse(ocr_enabled=False, output_format="markdown", image_mode="off", extract_links=False, quiet=True)
    return lambda path: parser.parse(str(path)).text


def xberg() -> Reader:
    import asyncio

    import xberg
    from xberg.options import ExtractInput, ExtractionConfig

    config = ExtractionConfig(disable_ocr=True, use_cache=False, output_format="markdown")

    def read(path: Path) -> str:
        given = ExtractInput(kind="uri", uri=str(path))
        return asyncio.run(xberg.extract(given, config)).results[0].content

    return read


def likewise() -> Reader:
    from likewise.documents.pdf_files import Pdf

    return lambda path: "\n\n".join(page.text for page in Pdf().pages(path))


READERS = {maker.__name__: maker for maker in (pdfminer, xberg, liteparse, likewise)}


def counts(truth: dict, text: str) -> dict[str, int]:
    """Return what of a text is kept and lost."""
    text = re.sub(r"\\([^\w\s])", r"\1", text)
    lines = text.split("\n")
    rows = [tuple(row) for row in truth["rows"]]
    known = " ".join([*truth["headings"], *truth["paragraphs"], *truth["notes"], *(" ".join(row) for row in rows)])
    words, read = Counter(_WORD.findall(known)), Counter(_WORD.findall(text))
    lost = words - read
    flat = "".join(text.split())
    places = [flat.find("".join(paragraph.split())[:_MARK]) for paragraph in dict.fromkeys(truth["paragraphs"])]
    there = Counter(
        tuple(cell.strip() for cell in line.strip().strip("|").split("|") if cell.strip())
        for line in lines
        if line.strip().startswith("|")
    )
    numbers = sum(bool(re.fullmatch(r"\W*Page \d+\W*", line)) for line in lines)
    return {
        "words": words.total(),
        "lost": lost.total(),
        "disordered": sum(a < 0 or b < 0 or a > b for a, b in itertools.pairwise(places)),
        "headings": sum(any(re.match("#+ ", line) and one in line for line in lines) for one in truth["headings"]),
        "all_headings": len(truth["headings"]),
        "rows": sum((Counter(rows) & there).values()),
        "all_rows": len(rows),
        "edges": text.count(truth["head"]) + numbers if truth["head"] else 0,
    }


def measure(folder: Path, name: str, results: ResultFile) -> None:
    """Add a row for each file."""
    read = READERS[name]()
    read(sorted(folder.glob("*.pdf"))[0])  # what is imported at the first file
    for path in sorted(folder.glob("*.pdf")):
        if results.has(arm=name, set=path.stem):
            continue
        begun = time.process_time()
        text = read(path)
        seconds = time.process_time() - begun
        row = counts(json.loads(path.with_suffix(".json").read_text()), text)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3
        score = round(100 * (1 - row["lost"] / row["words"]), 2)
        measured = {"score": score, **row, "seconds": round(seconds, 4), "megabytes": round(memory)}
        results.add({"arm": name, "set": path.stem, **measured})


def table(results: ResultFile) -> str:
    """Return the sums of each reader as a table of Markdown."""
    lines = [f"| reader | {' | '.join(COLUMNS.values())} | words a second | MB |"]
    lines.append("| --- |" + " ---: |" * (len(COLUMNS) + 2))
    for name in READERS:
        if rows := results.rows(arm=name):
            sums = Counter()
            for row in rows:
                sums.update({key: value for key, value in row.items() if isinstance(value, int | float)})
            cells = [
                f"{sums[key]:,} of {sums[f'all_{key}']:,}" if f"all_{key}" in sums else f"{sums[key]:,}"
                for key in COLUMNS
            ]
            memory = max(row["megabytes"] for row in rows)
            speed = f"{sums['words'] / sums['seconds']:,.0f}"
            lines.append(f"| {name} | {' | '.join(cells)} | {speed} | {memory} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--reader", choices=sorted(READERS))
    parser.add_argument("--table", action="store_true")
    parser.add_argument("--out", default="documents", help="name of the table of results, or path of a file")
    given = parser.parse_args()
    results = ResultFile(given.out)
    if given.reader:
        measure(given.folder, given.reader, results)
    if given.table:
        print(table(results))


if __name__ == "__main__":
    main()
