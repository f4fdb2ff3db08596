"""Passages a second of `likewise index`, beside the bare encoder and beside txtai's and LanceDB's own embedding.

    nice python benchmarks/indexing.py

likewise reads documents and divides them into passages, which it encodes in 'close', as encode does; the others are
given these passages, in memory. 'encode' is
`load(model).encode(passages)`: the vectors alone, and nothing is written. txtai keeps the texts and their words too
(content=True, hybrid=True), LanceDB's table has its embedding function for sentence-transformers and an index of the
words; both are otherwise at their defaults, on the same folder of the model. likewise also keeps tokens and neighbours;
'index, vectors and words' leaves these out.

Every arm of every turn is a process of its own, which has encoded other passages before the clock runs; the arms take
turns. Seconds are by the clock and by the processor (all threads); the median turn counts. --documents of several sizes
show whether memory grows.

--judged SET makes the index of a judged set in float32 and in 'close', searches both with its dev queries, and tells
the share of the first ten hits that are the same, nDCG@10 of both, and the interval of what 'close' gains (95 %, paired
bootstrap over the queries).
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

import likewise
import searching
from likewise.choice.trial import gain_interval
from likewise.corpus.bundled import resolve_model
from likewise.corpus.corpus_options import CorpusOptions
from likewise.corpus.downloads import data_folder
from likewise.retrieval.pipeline import WITHOUT_TOKENS
from likewise.runs.job import read_record
from likewise.runs.provenance import machine
from likewise.searching.passages import Splitting
from rows import ResultFile

WORDS = 180
WARM = 256
"""Passages that are encoded before the clock runs: enough for an engine to be chosen."""
Run = Callable[[Path], object]


def indexing(documents: Path, warm: Path, model: str, **settings: Any) -> Callable[[Path], Run]:
    options: dict[str, Any] = {"corpus_options": CorpusOptions(field="text"), "quiet": True, **settings}

    def prepared(folder: Path) -> Run:
        likewise.index(warm, model=model, out=folder / "warm", **options)
        return lambda out: likewise.index(documents, model=model, out=out, **options)

    return prepared


def encoding(passages: list[str], warm: list[str], model: str, **settings: Any) -> Callable[[Path], Run]:
    def prepared(_: Path) -> Run:
        encoder = likewise.load(model, **settings)
        encoder.encode(warm)
        print(getattr(encoder, "engine", ""), file=sys.stderr)
        return lambda _: encoder.encode(passages)

    return prepared


def by_txtai(passages: list[str], warm: list[str], model: str) -> Callable[[Path], Run]:
    def prepared(_: Path) -> Run:
        from txtai import Embeddings

        peer = Embeddings(path=resolve_model(model), content=True, hybrid=True)
        peer.batchtransform(warm)

        def run(out: Path) -> None:
            peer.index(passages)
            peer.save(str(out))

        return run

    return prepared


def by_lancedb(passages: list[str], warm: list[str], model: str) -> Callable[[Path], Run]:
    def prepared(_: Path) -> Run:
        import lancedb
        from lancedb.embeddings import get_registry
        from lancedb.index import FTS
        from lancedb.pydantic import LanceModel, Vector

        function = get_registry().get("sentence-transformers").create(name=resolve_model(model), device="cpu")
        function.compute_source_embeddings(warm)

        class Row(LanceModel):
            text: str = function.SourceField()
            vector: Vector(function.ndims()) = function.VectorField()  # type: ignore[valid-type]

        def run(out: Path) -> None:
            table = lancedb.connect(out).create_table("passages", schema=Row)
            table.add([{"text": text} for text in passages])
            table.create_index("text", config=FTS())

        return run

    return prepared


def passages_of(file: Path) -> list[str]:
    return [one.encoded for one in Splitting(WORDS, CorpusOptions(field="text")).read(file)]


def arms(documents: Path, warm: Path, model: str) -> dict[str, Callable[[], Callable[[Path], Run]]]:
    texts, first = passages_of(documents), passages_of(warm)
    return {
        "encode": lambda: encoding(texts, first, model),
        "encode, fp32": lambda: encoding(texts, first, model, precision="fp32"),
        "index": lambda: indexing(documents, warm, model, precision="close"),
        "index, vectors and words": lambda: indexing(
            documents, warm, model, precision="close", pipeline=WITHOUT_TOKENS
        ),
        "index, fp32": lambda: indexing(documents, warm, model, precision="fp32"),
        "txtai": lambda: by_txtai(texts, first, model),
        "LanceDB": lambda: by_lancedb(texts, first, model),
    }


def one(name: str, documents: Path, warm: Path, model: str) -> None:
    """Run an arm in this process, and print what it took."""
    count = len(passages_of(documents))
    with tempfile.TemporaryDirectory() as folder:
        run = arms(documents, warm, model)[name]()(Path(folder))
        wall, cpu = time.perf_counter(), time.process_time()
        run(Path(folder) / "out")
        seconds, processor = time.perf_counter() - wall, time.process_time() - cpu
    peak = searching.memory()  # the maximum of getrusage begins at the parent's
    print(json.dumps({"arm": name, "passages": count, "seconds": seconds, "processor": processor, "peak_mb": peak}))


def export(model: str, texts: list[str]) -> None:
    """Make the export that the default call wants, which a user finds made in the background."""
    from likewise.inference.engines.store import release
    from likewise.inference.fidelity import Sample
    from likewise.inference.policy import policy_of

    encoder = likewise.load(model)
    for pair in (policy_of(encoder).missing_export(), ("onnx", "fp32")):
        if pair and release(pair[0]):
            policy_of(encoder).make(pair, Sample(encoder, texts))


def judged(name: str, model: str, folder: Path) -> dict[str, Any]:
    """The index in 'close' beside the one in float32: the same hits, and nDCG@10."""
    questions = searching.collection(data_folder() / "domain", name, "dev")
    rows = [{"id": one, "text": text} for one, text in questions.documents.items()]
    found, ten, each = {}, {}, {}
    for kind, settings in {"fp32": {"precision": "fp32"}, "close": {"precision": "close"}}.items():
        opened = likewise.index(rows, model=model, out=folder / kind, quiet=True, **settings)
        best = searching.by_index(questions, opened)
        ten[kind] = {query: list(best[query])[:10] for query in questions.queries}
        each[kind] = searching.measured(questions, best)["ndcg_cut_10"]
        found[kind] = {"engine": read_record(folder / kind)["engine"], "ndcg_cut_10": statistics.mean(each[kind])}
    same = [len({*ten["fp32"][query]} & {*ten["close"][query]}) / len(ten["fp32"][query]) for query in ten["fp32"]]
    gain = gain_interval(np.array(each["close"]) - np.array(each["fp32"]))
    return {"set": name, "queries": len(same), "same": statistics.mean(same), "gain_95": gain, **found}


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--file", type=Path, default=data_folder() / "domain/aviation/docs.jsonl.gz")
    found.add_argument("--documents", type=int, nargs="+", default=[1100])
    found.add_argument("--model", default="bundled:minilm")
    found.add_argument("--arms", nargs="+", default=["encode", "index", "index, vectors and words", "txtai", "LanceDB"])
    found.add_argument("--turns", type=int, default=3)
    found.add_argument("--judged", nargs="*", default=[], metavar="SET", help="compare hits, and measure no speed")
    found.add_argument("--table", default="indexing", help="the result file")
    found.add_argument("--one", nargs=3, metavar=("ARM", "DOCUMENTS", "WARM"), help=argparse.SUPPRESS)
    return found


def main() -> None:
    args = parser().parse_args()
    if args.one:
        one(args.one[0], Path(args.one[1]), Path(args.one[2]), args.model)
        return
    if args.judged:
        with tempfile.TemporaryDirectory() as work:
            compared = [judged(name, args.model, Path(work) / name) for name in args.judged]
        print(json.dumps(compared, indent=1))
        keep(args, "judged", compared)
        return
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder, gzip.open(args.file, "rt", encoding="utf-8") as lines:
        warm = Path(folder) / "warm.jsonl"
        warm.write_text("".join(islice(lines, WARM)), encoding="utf-8")
        following = list(islice(lines, max(args.documents)))
        export(args.model, passages_of(warm))
        for size in args.documents:
            documents = Path(folder) / f"{size}.jsonl"
            documents.write_text("".join(following[:size]), encoding="utf-8")
            for _ in range(args.turns):
                for name in args.arms:
                    command = [sys.executable, __file__, "--model", args.model]
                    command += ["--one", name, str(documents), str(warm)]
                    found = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
                    rows.append(json.loads(found.stdout.splitlines()[-1]) | {"documents": size})
                    print(rows[-1], flush=True)
    table(rows, args)


def table(rows: list[dict[str, Any]], args: argparse.Namespace) -> None:
    """Print the medians, with the share of the bare encoder's speed, and write them."""
    print(f"machine: {machine()}; load {os.getloadavg()[0]:.1f}; {args.turns} turns; {args.file.parent.name}\n")
    print("| documents | passages | arm | passages a second | of `encode` | by the processor | of `encode` | peak MB |")
    print("| ---: | ---: | --- | ---: | ---: | ---: | ---: | ---: |")
    found = []
    for size in args.documents:
        bare: dict[str, float] = {}
        for name in args.arms:
            mine = [row for row in rows if row["arm"] == name and row["documents"] == size]
            row = {"documents": size, "arm": name, "passages": mine[0]["passages"], "turns": len(mine)}
            row["peak_mb"] = round(max(one["peak_mb"] for one in mine))
            for kind in ("seconds", "processor"):
                row[kind] = statistics.median(one[kind] for one in mine)
                bare.setdefault(kind, row[kind])
                row[f"of_encode_{kind}"] = bare[kind] / row[kind]
            found.append(row)
            speeds = [f"{row['passages'] / row[k]:.1f} | {row[f'of_encode_{k}']:.2f}" for k in ("seconds", "processor")]
            print(f"| {size} | {row['passages']} | {name} | {' | '.join(speeds)} | {row['peak_mb']} |")
    keep(args, "indexing", found)


def keep(args: argparse.Namespace, part: str, rows: list[dict[str, Any]]) -> None:
    ResultFile(args.table).add(*({"part": part, "file": args.file.parent.name} | row for row in rows))


if __name__ == "__main__":
    main()
