"""An index on sets that people judged (nDCG@10 of words, vectors and both), and its speed by size.

    python benchmarks/searching.py --sets $LIKEWISE_DATA/domain/aviation $LIKEWISE_DATA/domain/exclusion
    python benchmarks/searching.py --sizes 10000 100000 1000000

A set is a folder with docs.jsonl.gz, queries.jsonl and qrels-test.tsv. The sizes are of synthetic vectors: unit vectors
around 1,000 centres. Speeds are beside sentence-transformers' `semantic_search` and, where it is installed, txtai (with
Faiss), on the same vectors in memory.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytrec_eval
import torch

import likewise
from likewise.searching.indexing import recall_of
from likewise.searching.passages import IndexedPassage
from likewise.searching.table import Table


def judged(folder: Path, model: str, split: str, work: Path) -> None:
    """Print nDCG@10 of each kind of search, and the speeds."""
    docs = work / f"{folder.name}.jsonl"
    docs.write_bytes(gzip.decompress((folder / "docs.jsonl.gz").read_bytes()))
    begun = time.monotonic()
    found = likewise.index(
        docs,
        model=model,
        out=work / f"{folder.name}.index",
        corpus_options=likewise.CorpusOptions(field="text"),
        metadata=["_id"],
    )
    indexed = found.encoded / (time.monotonic() - begun)
    queries = {row["_id"]: row["text"] for row in map(json.loads, (folder / "queries.jsonl").read_text().splitlines())}
    wanted: dict[str, dict[str, int]] = defaultdict(dict)
    for line in (folder / f"qrels-{split}.tsv").read_text().splitlines():
        query, document, grade = line.split("\t")
        if grade.isdigit():
            wanted[query][document] = int(grade)
    reader = likewise.Index(work / f"{folder.name}.index")
    evaluator = pytrec_eval.RelevanceEvaluator(dict(wanted), {"ndcg_cut_10"})
    for mode in ("words", "vectors", "hybrid"):
        run: dict[str, dict[str, float]] = {}
        reader.search("warm up", mode=mode)
        begun = time.monotonic()
        for query in wanted:
            hits = reader.search(queries[query], 30, mode=mode, mark=False)
            run[query] = {}
            for hit in hits:  # a document counts by its best passage
                run[query].setdefault(hit.metadata["_id"], hit.score)
        rate = len(wanted) / (time.monotonic() - begun)
        ndcg = 100 * np.mean([one["ndcg_cut_10"] for one in evaluator.evaluate(run).values()])
        print(
            f"| {folder.name} | {found.passages:,} | {mode} | {ndcg:.2f} | {len(wanted)} | {rate:.0f} "
            f"| {indexed:.0f} |",
            flush=True,
        )


def memory() -> int:
    """Return the megabytes that this process held at most."""
    return int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) // 1024


def pace(work: Callable[[np.ndarray], object], queries: np.ndarray, seconds: float = 20) -> float:
    """Return how many queries a second are answered, one at a time, in so many seconds at most."""
    work(queries[0])
    begun, done = time.monotonic(), 0
    for query in queries:
        work(query)
        done += 1
        if time.monotonic() - begun > seconds:
            break
    return done / (time.monotonic() - begun)


def sized(count: int, work: Path, dimension: int = 384) -> None:
    """Print queries a second, exact and approximate, with recall@10, and those of the peers."""
    from sentence_transformers.util import semantic_search

    centres = np.random.default_rng(0).normal(size=(1000, dimension)).astype(np.float32)

    def vectors(start: int, number: int) -> np.ndarray:
        draw = np.random.default_rng(start + 1)
        rows = centres[draw.integers(0, 1000, number)] + draw.normal(size=(number, dimension)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    parts = [(start, min(10_000, count - start)) for start in range(0, count, 10_000)]
    table = Table.create(work / f"{count}.index", "passages", dimension, ())
    begun = time.monotonic()
    for start, number in parts:
        names = [f"{start + i:032x}" for i in range(number)]
        passages = [(name, "a.txt", True, IndexedPassage(f"word{i % 9999}", i)) for i, name in enumerate(names)]
        table.add(passages, names, vectors(start, number))
    table.optimize()
    written = count / (time.monotonic() - begun)
    queries = vectors(count, 200)
    exact, begun = pace(lambda query: table.nearest(query, 10, exact=True), queries), time.monotonic()
    table.index_vectors()
    built = time.monotonic() - begun
    fast, recall, held = pace(lambda query: table.nearest(query, 10), queries), recall_of(table), memory()
    size = sum(path.stat().st_size for path in (work / f"{count}.index").rglob("*") if path.is_file()) >> 20
    print(
        f"| {count:,} | likewise, exact | {written:.0f} | | {exact:.1f} | 1 | | |\n"
        f"| | likewise, IVF | | {built:.0f} | {fast:.1f} | {recall:.3f} | {held:,} | {size:,} |",
        flush=True,
    )
    corpus = np.concatenate([vectors(start, number) for start, number in parts])
    matrix = torch.from_numpy(corpus)
    found = pace(lambda query: semantic_search(torch.from_numpy(query[None]), matrix, top_k=10), queries)
    print(f"| | semantic_search | | | {found:.1f} | 1 | | |", flush=True)
    if find_spec("txtai"):
        from txtai import Embeddings

        peer, begun = Embeddings(method="external"), time.monotonic()
        peer.index((i, row, None) for i, row in enumerate(corpus))
        built = time.monotonic() - begun
        found = pace(lambda query: peer.search(query, 10), queries)
        right = 0
        for query in queries[:100]:
            nearest = np.argpartition(-(corpus @ query), 10)[:10]
            right += len({name for name, _ in peer.search(query, 10)} & set(nearest.tolist()))
        print(f"| | txtai | | {built:.0f} | {found:.1f} | {right / 1000:.3f} | | |", flush=True)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    found.add_argument("--model", default="bundled:minilm")
    found.add_argument("--sets", type=Path, nargs="*", default=[])
    found.add_argument("--split", default="test", choices=["dev", "test"])
    found.add_argument("--sizes", type=int, nargs="*", default=[])
    return found


def main() -> None:
    options = parser().parse_args()
    with tempfile.TemporaryDirectory() as work:
        if options.sets:
            print("| set | passages | search | nDCG@10 | queries | queries a second | passages indexed a second |")
            print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
        for folder in options.sets:
            judged(folder, options.model, options.split, Path(work))
        if options.sizes:
            titles = (
                "passages | search | written a second | s to build | queries a second | recall@10 | MB | MB on disk"
            )
            print(f"| {titles} |")
            print("| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for count in options.sizes:
            sized(count, Path(work))


if __name__ == "__main__":
    main()
