"""The time of reading text, JSONL and Markdown of two checkouts in turn: passages of an index, sentences of a corpus.

    python benchmarks/reading.py --old ../other-checkout --megabytes 100

The text is made of the articles in LIKEWISE_DATA or ../shared/data. Seconds are of the processor, so that other work on
the machine changes them little; the ratio is what counts.
"""

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from itertools import chain, cycle
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
RUN = """
import json, sys, time
from pathlib import Path
from likewise.corpus import CorpusOptions, read_sentences
from likewise.searching.passages import Splitting
path = Path(sys.argv[1])
options = CorpusOptions(field="text" if path.suffix == ".jsonl" else None)
list(Splitting(180, options).read(path.with_name("first" + path.suffix)))
begun = time.process_time()
passages = sum(1 for _ in Splitting(180, options).read(path))
middle = time.process_time()
sentences = sum(1 for _ in read_sentences(path, options))
print(json.dumps([middle - begun, time.process_time() - middle, passages, sentences]))
"""


def articles():
    """Yield the title and the sections of articles, again and again."""
    data = Path(os.environ.get("LIKEWISE_DATA", HERE.parent / "shared" / "data"))
    with gzip.open(data / "wikipedia" / "articles.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line, _ in zip(lines, range(4000), strict=False)]
    for row in cycle(rows):
        yield row["title"], [(one["heading"], one["paragraphs"]) for one in row["sections"]]


def written(folder: Path, megabytes: float, name: str) -> None:
    """Write a file of each format."""
    for suffix in (".txt", ".jsonl", ".md"):
        size = 0
        with (folder / f"{name}{suffix}").open("w", encoding="utf-8") as file:
            for title, sections in articles():
                if suffix == ".jsonl":
                    text = "\n\n".join(chain.from_iterable(paragraphs for _, paragraphs in sections))
                    size += file.write(json.dumps({"title": title, "text": text}, ensure_ascii=False) + "\n")
                else:
                    size += file.write(f"# {title}\n\n" if suffix == ".md" else "")
                    for heading, paragraphs in sections:
                        size += file.write(f"## {heading}\n\n" if suffix == ".md" and heading else "")
                        size += file.write("".join(f"{paragraph}\n\n" for paragraph in paragraphs))
                if size > megabytes * 1e6:
                    break


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--old", type=Path, required=True, help="the other checkout")
    parser.add_argument("--megabytes", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        written(folder, asked.megabytes, "text")
        written(folder, 0.01, "first")
        print(f"{'':8}{'index old':>11}{'new':>8}{'ratio':>7}{'train old':>11}{'new':>8}{'ratio':>7}")
        for suffix in (".txt", ".jsonl", ".md"):
            best = {}
            for _ in range(asked.rounds):
                for root in (asked.old, HERE):
                    environment = {**os.environ, "PYTHONPATH": str(root / "src"), "OMP_NUM_THREADS": "1"}
                    command = [sys.executable, "-c", RUN, str(folder / f"text{suffix}")]
                    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
                    took = json.loads(done.stdout)
                    best[root] = [min(pair) for pair in zip(took, best.get(root, took), strict=True)]
            old, new = best[asked.old], best[HERE]
            cells = [f"{old[i]:>11.1f}{new[i]:>8.1f}{new[i] / old[i]:>7.2f}" for i in (0, 1)]
            print(f"{suffix:8}{''.join(cells)}   {new[2]:,} passages, {new[3]:,} sentences", flush=True)


if __name__ == "__main__":
    main()
