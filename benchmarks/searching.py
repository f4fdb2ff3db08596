"""An index on sets that people judged (nDCG@10 of words, vectors and both), and its speed by size.

    python benchmarks/searching.py --sets shared/data/domain/aviation shared/data/domain/exclusion
    python benchmarks/searching.py --sizes 10000 100000 1000000

A set is a folder with docs.jsonl.gz, queries.jsonl and qrels-test.tsv. The sizes are of synthetic vectors: unit vectors
around 1,000 centres. Speeds are beside sentence-transformers' `semantic_search` on the same vectors in memory.
"""

from __future__ import annotations

import argparse
import gzip
import json
import re
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import numpy as np
import pytrec_eval

import likewise
from likewise.searching.indexing import recall_of
from likewise.searching.passages import Passage
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
    pace = found.encoded / (time.monotonic() - begun)
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
            f"| {folder.name} | {found.passages:,} | {mode} | {ndcg:.2f} | {len(wanted)} | {rate:.0f} | {pace:.0f} |",
            flush=True,
        )


def sized(count: int, work: Path, dimension: int = 384) -> None:
    """Print queries a second, exact and approximate, with recall@10."""
    from sentence_transformers.util import semantic_search

    draw = np.random.default_rng(0)
    centres = draw.normal(size=(1000, dimension)).astype(np.float32)

    def vectors(number: int) -> np.ndarray:
        rows = centres[draw.integers(0, 1000, number)] + draw.normal(size=(number, dimension)).astype(np.float32)
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)

    table = Table.create(work / f"{count}.index", "passages", dimension, ())
    pieces, begun = [], time.monotonic()
    for start in range(0, count, 10_000):
        rows = vectors(min(10_000, count - start))
        pieces.append(rows)
        names = [f"{start + i:032x}" for i in range(len(rows))]
        table.add([(name, "a.txt", True, Passage(f"word{i % 9999}", i)) for i, name in enumerate(names)], names, rows)
    table.optimize()
    written = time.monotonic() - begun
    queries = vectors(50)

    def rate(**settings) -> float:
        table.by_vector(queries[0], 10, **settings)
        begun = time.monotonic()
        for query in queries:
            table.by_vector(query, 10, **settings)
        return len(queries) / (time.monotonic() - begun)

    exact, begun = rate(exact=True), time.monotonic()
    table.index_vectors()
    built = time.monotonic() - begun
    fast, recall = rate(), recall_of(table)
    corpus, begun = np.concatenate(pieces), time.monotonic()
    for query in queries[:10]:
        semantic_search(query[None], corpus, top_k=10)
    peer = 10 / (time.monotonic() - begun)
    memory = int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1]) // 1024
    print(
        f"| {count:,} | {written:.0f} | {built:.0f} | {exact:.1f} | {fast:.1f} | {recall:.3f} | {peer:.1f} "
        f"| {memory:,} |",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--model", default="bundled:minilm")
    parser.add_argument("--sets", type=Path, nargs="*", default=[])
    parser.add_argument("--split", default="test", choices=["dev", "test"])
    parser.add_argument("--sizes", type=int, nargs="*", default=[])
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as work:
        if options.sets:
            print("| set | passages | search | nDCG@10 | queries | queries a second | passages indexed a second |")
            print("| --- | ---: | --- | ---: | ---: | ---: | ---: |")
        for folder in options.sets:
            judged(folder, options.model, options.split, Path(work))
        if options.sizes:
            print("| passages | s to write | s to build IVF | exact/s | IVF/s | recall@10 | semantic_search/s | MB |")
            print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
        for count in options.sizes:
            sized(count, Path(work))


if __name__ == "__main__":
    main()
