"""Topics beside the classes that people gave the same texts: NMI, ARI and purity.

    python benchmarks/topics.py
    python benchmarks/topics.py --lines 100000

Banking messages (77 intents), sentences of security reports (about 50 techniques), titles of biomedical papers (20
classes); 2,000 texts of each at most. Told the number of classes, which nobody knows who looks for topics, it finds as
many by k-means. With --lines, the time and the memory of so many sentences of Wikipedia, each read once.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import random
import tempfile
import time
from itertools import islice
from pathlib import Path

import numpy as np
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

import likewise
from rows import ResultFile
from searching import memory

DATA = Path(os.environ.get("LIKEWISE_DATA") or Path(__file__).parents[2] / "shared" / "data")
MODEL = "bundled:minilm"
MOST = 2000
SETS = ("banking", "threats", "biomedicine")


def read(name: str, part: str) -> tuple[list[str], list[str]]:
    lines = (DATA / f"domain/{name}/classes-{part}.tsv").read_text(encoding="utf-8").splitlines()
    random.Random(1).shuffle(lines)  # they are sorted by class
    rows = [line.split("\t", 1) for line in lines[:MOST]]
    return [text for _, text in rows], [label for label, _ in rows]


def purity(labels: list[str], groups: np.ndarray) -> float:
    """Return the share of texts whose class is the most frequent one of their group."""
    found = 0
    for group in np.unique(groups):
        inside = [labels[i] for i in np.flatnonzero(groups == group)]
        found += max(inside.count(label) for label in set(inside))
    return found / len(labels)


def row(name: str, way: str, labels: list[str], groups: np.ndarray, **facts: float) -> dict:
    measured = {
        "set": name,
        "way": way,
        "texts": len(labels),
        "classes": len(set(labels)),
        "topics": len(np.unique(groups)),
        "NMI": round(100 * normalized_mutual_info_score(labels, groups), 1),
        "ARI": round(100 * adjusted_rand_score(labels, groups), 1),
        "purity": round(100 * purity(labels, groups), 1),
        **facts,
    }
    print(json.dumps(measured), flush=True)
    return measured


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--table", default="topics", help="the result file")
    options.add_argument("--lines", type=int, help="measure the cost of so many lines instead")
    return options


def cost(count: int) -> dict:
    """Measure the minutes and the memory of topics of so many lines, the encoding included."""
    with gzip.open(DATA / "wikipedia" / "sentences-250k.txt.gz", "rt", encoding="utf-8") as file:
        texts = [line.strip() for line in islice(file, count)]
    begun = time.monotonic()
    vectors_kept = tempfile.TemporaryDirectory()
    os.environ["LIKEWISE_CACHE"] = vectors_kept.name  # so that every line is encoded
    with vectors_kept:
        found = likewise.topics(texts, model=MODEL, quiet=True)
    minutes = (time.monotonic() - begun) / 60
    return {"lines": len(texts), "topics": len(found.topics), "minutes": round(minutes, 1), "MB": memory()}


def main() -> None:
    args = parser().parse_args()
    if args.lines:
        measured = {"part": "cost", "model": MODEL, **cost(args.lines)}
        print(json.dumps(measured))
        ResultFile(args.table).add(measured)
        return
    rows = []
    for name in SETS:
        texts, labels = read(name, "test")
        for way, number in (("likewise topics, told the number", len(set(labels))), ("likewise topics", None)):
            of = likewise.topics(texts, model=MODEL, number=number, quiet=True).of
            rows.append(row(name, way, labels, of))
    ResultFile(args.table).add(*({"part": "test", "model": MODEL} | row for row in rows))


if __name__ == "__main__":
    main()
