"""What the parts of a search cost by the size of the index: the time of a query, the index on disk, and its building.

    python benchmarks/search_scale.py --sizes 100000 1000000
    python benchmarks/search_scale.py --sizes --vectors vectors.npy

The words are real: windows of 60 words of Wikipedia's articles, which overlap, so that 15 million words make a million
of them; an article is a document. The rest is synthetic, so that no million passages need to be encoded: vectors of
384 dimensions around 1,000 centres, and 80 tokens a passage whose bytes are random (what a comparison costs does not
depend on them). A query has six words in a row of a passage, a vector near it, and 12 tokens. Not in the times: the
encoding of the query. The pipelines take turns query by query, so that what else the machine does meets them alike;
the ratio is of the medians. With --peers, LanceDB's own hybrid search of the same table, bm25s alone, on a memory map,
and tantivy alone, if it is installed, take turns with them; with --words-alone these two, without an index. With
--work, an index stays there for the next run. A million needs 8 GB of disk, 5 GB of memory and half an hour of a
machine that does nothing else.

With --vectors, those of real texts (`likewise encode`), 200,000 or more: how many of the nearest passages the cells
find, and how many of a query's nearest the approximate index finds at the depth of a search.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import timedelta
from functools import partial
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path
from typing import Any

import bm25s
import lancedb
import numpy as np
import snowballstemmer
from lancedb.query import MatchQuery

import likewise
from likewise.runs.cache import data_folder
from likewise.runs.whole_files import write_json
from likewise.searching.index import geometry
from likewise.searching.index.index_update import APPROXIMATE
from likewise.searching.index.maxsim import TokenCodec
from likewise.searching.index.passages import EncodedPassage, IndexedPassage
from likewise.searching.index.table import Table, number_of
from likewise.searching.parts.pipeline import Pipeline
from rows import ResultFile
from searching import memory

DIMENSION, CENTRES, TOKENS, WORDS, ASKED, BLOCK = 384, 1000, 80, 60, 6, 5000
ARTICLES = data_folder() / "wikipedia" / "articles.jsonl.gz"
PIPELINES: dict[str, dict[str, Any]] = {
    "vectors and words": {"tokens": 0, "neighbours": 0},
    "and tokens": {"neighbours": 0},
    "and neighbours": {"tokens": 0},
    "every part": {},
}


class Passages:
    """Passages of articles, each with a vector and tokens: the same ones for the same number of them.

    Args:
        count: passages that are wanted.
    """

    def __init__(self, count: int) -> None:
        draw = np.random.default_rng(0)
        self.count = count
        self.centres = draw.normal(size=(CENTRES, DIMENSION)).astype(np.float32)
        self.codec = TokenCodec.fit([draw.normal(size=(TOKENS, DIMENSION)) for _ in range(64)])

    def blocks(self) -> Iterator[tuple[list[tuple[str, str]], np.ndarray, list[bytes]]]:
        """Yield the names and texts of passages, their vectors (B, D) and their tokens, block after block."""
        windows = islice(self._windows(), self.count)
        for number in count():
            if not (rows := list(islice(windows, BLOCK))):
                return
            draw = np.random.default_rng(1 + number)
            of = np.arange(number * BLOCK, number * BLOCK + len(rows)) % CENTRES
            vectors = self.centres[of] + 0.8 * draw.normal(size=(len(rows), DIMENSION)).astype(np.float32)
            packed = [draw.bytes(TOKENS * len(self.codec.mean) // 4) for _ in rows]
            yield rows, vectors / np.linalg.norm(vectors, axis=1, keepdims=True), packed

    def _windows(self) -> Iterator[tuple[str, str]]:
        step = WORDS // -(-self.count // 200_000)  # the articles have 200,000 windows that do not overlap
        with gzip.open(ARTICLES, "rt", encoding="utf-8") as file:
            for article in map(json.loads, file):
                paragraphs = (text for section in article["sections"] for text in section["paragraphs"])
                words = " ".join(paragraphs).split()
                for start in range(0, max(1, len(words) - WORDS), step):
                    yield f"{article['id']}.txt", " ".join(words[start : start + WORDS])


def on_disk(folder: Path) -> float:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()) / 2**20


def built(folder: Path, made: Passages) -> dict[str, Any]:
    """Build the index as `likewise index` does after encoding, and return what it took."""
    took: dict[str, Any] = {}
    begun = time.monotonic()

    def lap(what: str) -> None:
        nonlocal begun
        took[what], begun = round(time.monotonic() - begun, 1), time.monotonic()

    table = Table.create(folder, "passages-00000000", DIMENSION, tokens=True)
    for passages, vectors, packed in made.blocks():
        rows = [IndexedPassage(text, 1, source=file, file=file, is_last=True) for file, text in passages]
        table.add([EncodedPassage(*one) for one in zip(rows, vectors, packed, strict=True)])
    lap("s to write")
    table.index_words("English")
    lap("s for words")
    if made.count >= APPROXIMATE:
        table.index_vectors()
    table.optimize()
    lap("s for vectors")
    found = geometry.build(table, 3, _Quiet())  # type: ignore[arg-type]
    lap("s for neighbours")
    found.save(folder / "geometry-00000000")
    made.codec.save(folder / "geometry-00000000")
    record: dict[str, Any] = {
        "plan": {"job": "index", "inputs": {"model": ""}, "options": {}},
        "files": [],
        "table": table.name,
        "version": table.version,
    }
    write_json(folder / "likewise.json", record | {"geometry": "geometry-00000000", "pipeline": Pipeline().to_dict()})
    lancedb.connect(folder).open_table(table.name).optimize(cleanup_older_than=timedelta(0))  # as a later update does
    return took | {"MB": round(on_disk(folder)), "of it tokens": round(made.count * len(packed[0]) / 2**20)}


class _Quiet:
    """A stop that is never asked for."""

    def __init__(self) -> None:
        from likewise.runs.progress import Progress

        self.progress = Progress(quiet=True)

    def check(self, done: str = "") -> None:
        """Go on."""


def real(path: Path, work: Path | None) -> dict[str, Any]:
    """What is found of the nearest passages, and of the nearest of 500 queries, among vectors of real texts."""
    vectors = np.load(path).astype(np.float32)
    vectors /= np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12)
    order = np.random.default_rng(0).permutation(len(vectors))
    vectors, queries = vectors[order[500:]], vectors[order[:500]]
    with tempfile.TemporaryDirectory(dir=work) as folder:
        table = Table.create(Path(folder), "passages", vectors.shape[1])
        for start in range(0, len(vectors), BLOCK):
            block = vectors[start : start + BLOCK]
            rows = [IndexedPassage(str(start + i), 1, source="a.txt", is_last=True) for i in range(len(block))]
            table.add([EncodedPassage(row, vector, b"") for row, vector in zip(rows, block, strict=True)])
        table.index_vectors()
        begun = time.monotonic()
        found = geometry.build(table, 3, _Quiet())  # type: ignore[arg-type]
        took = time.monotonic() - begun
        of_key = {number_of(IndexedPassage(str(i), 1).key): i for i in range(len(vectors))}
        places = np.array([of_key[int(key)] for key in found.keys])  # of positions in `vectors`
        some = np.random.default_rng(1).choice(len(places), 500, replace=False)
        cosines = vectors[places[some]] @ vectors.T
        cosines[np.arange(500), places[some]] = -1
        near = np.argsort(-cosines, axis=1)[:, :3]
        shared = [len(set(one) & set(places[two])) for one, two in zip(near.tolist(), found.near[some], strict=True)]
        nearest = np.argsort(-(queries @ vectors.T), axis=1)[:, :100]
        results = {"vectors": len(vectors), "neighbours found": np.mean(shared) / 3, "s for neighbours": round(took, 1)}
        for depth in (10, 100):
            times, reached = [], []
            for query, best in zip(queries, nearest, strict=True):
                begun = time.perf_counter()
                ids, _ = table.nearest(query, depth)
                times.append(1000 * (time.perf_counter() - begun))
                ours = places[np.searchsorted(found.rows, ids)]
                reached.append(len(set(ours.tolist()) & set(best[:depth].tolist())) / depth)
            results |= {f"recall@{depth}": np.mean(reached), f"ms for {depth}": np.median(times)}
    return {name: round(float(value), 3) for name, value in results.items()}


def by_lancedb(folder: Path) -> Callable[[str, np.ndarray], object]:
    """Return LanceDB's own hybrid search of the table of an index: reciprocal ranks."""
    table = lancedb.connect(folder).open_table(likewise.Index(folder).table.name)

    def search(words: str, vector: np.ndarray) -> object:
        query = table.search(query_type="hybrid", vector_column_name="vector").vector(vector)
        return query.text(MatchQuery(words, "searched")).limit(10).to_list()

    return search


def by_bm25s(folder: Path, made: Passages) -> Callable[[str, np.ndarray], object]:
    """Return the search of bm25s, with stems, on a memory map; it is built beside the index if it is not there."""
    stored, stems = folder.with_suffix(".bm25s"), snowballstemmer.stemmer("english")
    if not stored.exists():
        texts = [text for rows, _, _ in made.blocks() for _, text in rows]
        built = bm25s.BM25()
        built.index(bm25s.tokenize(texts, stemmer=stems.stemWords, show_progress=False), show_progress=False)
        built.save(stored)
    peer = bm25s.BM25.load(stored, mmap=True)

    def search(words: str, _: np.ndarray) -> object:
        asked = bm25s.tokenize([words], stemmer=stems.stemWords, return_ids=False, show_progress=False)
        return peer.retrieve(asked, k=10, show_progress=False)

    return search


def by_tantivy(folder: Path, made: Passages, most: int = 10) -> Callable[[str, np.ndarray], object]:
    """Return the search of tantivy, with stems; it is built beside the index if it is not there."""
    import tantivy

    stored = folder.with_suffix(".tantivy")
    field = tantivy.SchemaBuilder().add_text_field("text", tokenizer_name="en_stem", index_option="freq")
    if not stored.exists():
        half = stored.with_suffix(".half")
        half.mkdir(parents=True)
        writer = tantivy.Index(field.build(), path=str(half)).writer(heap_size=2**28, num_threads=2)
        for rows, _, _ in made.blocks():
            for _, text in rows:
                writer.add_document(tantivy.Document(text=text))
        writer.commit()
        writer.wait_merging_threads()
        half.rename(stored)
    peer = tantivy.Index.open(str(stored))
    searcher = peer.searcher()
    return lambda words, _: searcher.search(peer.parse_query(words, ["text"]), most).hits


Asked = dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]
Way = Callable[[str, np.ndarray], object]


def questions(made: Passages, queries: int) -> Asked:
    """Return the words of each query with its vector and its tokens; the first five open files."""
    passages, vectors, _ = next(made.blocks())
    draw = np.random.default_rng(7)
    asked: Asked = {}
    for place in draw.choice(len(passages), queries + 5, replace=False):
        words = [word for word in passages[place][1].split() if word.isalpha()]
        start = int(draw.integers(max(1, len(words) - ASKED)))
        words = " ".join(words[start : start + ASKED])
        vector = vectors[place] + 0.02 * draw.normal(size=DIMENSION).astype(np.float32)
        tokens = draw.normal(size=(12, DIMENSION)).astype(np.float32)
        asked[words] = (vector / np.linalg.norm(vector), tokens, np.arange(12))
    return asked


def timed(folder: Path, made: Passages, queries: int, with_peers: bool = False) -> dict[str, np.ndarray]:
    """Return the milliseconds of each query by each pipeline, and by the peers."""
    asked = questions(made, queries)
    reader = likewise.Index(
        folder, vectors=lambda some: np.stack([asked[one][0] for one in some]), tokens=lambda one: asked[one]
    )
    ways: dict[str, Way] = {
        name: partial(lambda steps, query, _: reader.search(query, 10, pipeline=steps, mark=False), steps)
        for name, steps in PIPELINES.items()
    }
    if with_peers:
        ways |= {"LanceDB's hybrid": by_lancedb(folder)} | by_words(folder, made)
    return in_turn(ways, asked)


def by_words(folder: Path, made: Passages) -> dict[str, Way]:
    """Return the libraries that search by words alone; ten hits, and as many as a search of ours reads."""
    ways: dict[str, Way] = {"bm25s alone": by_bm25s(folder, made)}
    for most in (10, 1_000, 100_000) if find_spec("tantivy") else ():
        ways[f"tantivy alone, {most:,} hits"] = by_tantivy(folder, made, most)
    return ways


def in_turn(ways: dict[str, Way], asked: Asked) -> dict[str, np.ndarray]:
    """Return the milliseconds of each query by each way."""
    took: dict[str, list[float]] = {name: [] for name in ways}
    for turn, (query, (vector, *_)) in enumerate(asked.items()):
        for name, search in ways.items():
            begun = time.perf_counter()
            search(query, vector)
            if turn >= 5:  # the first ones open files
                took[name].append(1000 * (time.perf_counter() - begun))
    return {name: np.array(values) for name, values in took.items()}


def parser() -> argparse.ArgumentParser:
    """The options."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--sizes", type=int, nargs="*", default=[100_000])
    options.add_argument("--queries", type=int, default=300)
    options.add_argument("--peers", action="store_true", help="measure LanceDB, bm25s and tantivy, too")
    options.add_argument("--words-alone", action="store_true", help="measure bm25s and tantivy, without an index")
    options.add_argument("--vectors", type=Path, help="a .npy file of vectors of real texts")
    options.add_argument(
        "--work", type=Path, help="a folder on the disk that is to be measured, in which the indexes stay"
    )
    return options


def main() -> None:
    given, results = parser().parse_args(), ResultFile("search-scale")
    if given.vectors:
        print(real(given.vectors, given.work), flush=True)
    for size in given.sizes:
        with nullcontext(given.work) if given.work else tempfile.TemporaryDirectory() as work:
            folder, made = Path(work) / f"{size}.index", Passages(size)
            if not given.words_alone and not (folder / "likewise.json").exists():
                took = built(folder, made) | {"MB of memory": memory()}
                print(f"{size:,} passages: {took}", flush=True)
                results.add({"passages": made.count, "parts": "building", **took})
            if given.words_alone:
                found = in_turn(by_words(folder, made), questions(made, given.queries))
            else:
                found = timed(folder, made, given.queries, given.peers)
            plain = np.median(next(iter(found.values())))
            for name, values in found.items():
                p50, p99 = np.quantile(values, [0.5, 0.99])
                print(f"| {size:,} | {name} | {p50:.1f} | {p99:.1f} | {p50 / plain:.2f} |", flush=True)
                times = {"p50_ms": round(float(p50), 1), "p99_ms": round(float(p99), 1)}
                results.add({"passages": made.count, "parts": name, "queries": given.queries, **times})
            print(f"memory at most: {memory():,} MB", flush=True)


if __name__ == "__main__":
    main()
