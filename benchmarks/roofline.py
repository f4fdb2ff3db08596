"""The wall of encoding: its matrix products alone beside the whole, and where the rest of the time goes.

    python benchmarks/roofline.py

The products are those of the model for the tokens of the corpus without padding: query, key and value in one, the
attention's output, and the two of the feed-forward, each layer with weights of its own, in batches of the size that
`encode` makes. oneDNN runs them under torch, with its own order of the weights for bfloat16 and int8, and nothing else
is done to the numbers. What is left of the whole is the rest, which attention's own products are part of.

The shares are of OpenVINO's own clocks, in its nodes, and the whole is measured without them. Seconds are the
processor's, of one thread, and the best of some turns: a ratio to sentence-transformers holds for the same machine.
"""

from __future__ import annotations

import argparse
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch.nn import functional

from encode import sentences
from likewise.corpus.downloads import data_folder
from likewise.inference import load
from likewise.inference.chooser import exports_of
from likewise.inference.engines.engine import CPU_BUDGET
from likewise.inference.engines.openvino_engine import FILE
from likewise.inference.fidelity import Sample
from likewise.inference.model_tokens import tokens_of
from likewise.inference.tokens import by_budget
from likewise.runs.provenance import machine

PARTS = {
    "FullyConnected": "products, with their bias and GELU",
    "MatMul": "attention",
    "Softmax": "attention",
    "Subgraph": "attention",
    "MVN": "sums and layer norms",
    "MulAdd": "sums and layer norms",
    "Gather": "embeddings",
    "FakeQuantize": "rounding to int8",
    "Reorder": "copies and casts",
    "Transpose": "copies and casts",
    "Reshape": "copies and casts",
    "Convert": "copies and casts",
}


def seconds(run: Callable[[], Any], turns: int) -> float:
    """The processor's seconds of the best turn."""
    best = float("inf")
    for _ in range(turns):
        start = time.process_time()
        run()
        best = min(best, time.process_time() - start)
    return best


def products(model: SentenceTransformer, rows: list[int], kind: str) -> Callable[[], Any]:
    """A function that makes all products of the model for batches of so many rows."""
    shapes = []
    transformer: Any = model[0]
    for layer in transformer.auto_model.encoder.layer:
        attention = layer.attention
        size = attention.output.dense.weight.shape[0]
        inner = layer.intermediate.dense.weight.shape[0]
        shapes += [(3 * size, size), (size, size), (inner, size), (size, inner)]
    widest = max(width for _, width in shapes)
    if kind == "int8":
        whole = torch.randint(0, 255, (max(rows), widest), dtype=torch.uint8)
        ops: Any = torch.ops.onednn
        weights = [
            (
                ops.qlinear_prepack(torch.randint(-127, 127, shape, dtype=torch.int8), [CPU_BUDGET, shape[1]]),
                torch.full(shape[:1], 0.01),
                torch.zeros(shape[0], dtype=torch.int64),
                torch.zeros(shape[0]),
            )
            for shape in shapes
        ]
        inputs = {width: whole[:, :width].contiguous() for _, width in shapes}

        def run_int8() -> None:
            for count in rows:
                for (_, width), (weight, scales, zeros, bias) in zip(shapes, weights, strict=True):
                    given = inputs[width][:count]
                    ops.qlinear_pointwise(
                        given, 0.01, 128, weight, scales, zeros, bias, 0.01, 0, torch.uint8, "none", [], ""
                    )

        return run_int8
    to = torch.bfloat16 if kind == "bf16" else torch.float32
    made = [(torch.randn(shape).to(to), torch.zeros(shape[0]).to(to)) for shape in shapes]
    given = {width: torch.randn(max(rows), width).to(to) for _, width in shapes}
    if kind == "bf16":
        packed = [torch.ops.mkldnn._reorder_linear_weight(weight, CPU_BUDGET) for weight, _ in made]

        def run_bf16() -> None:
            for count in rows:
                for (_, width), weight, (_, bias) in zip(shapes, packed, made, strict=True):
                    torch.ops.mkldnn._linear_pointwise(given[width][:count], weight, bias, "none", [], "")

        return run_bf16

    def run() -> None:
        for count in rows:
            for weight, bias in made:
                functional.linear(given[weight.shape[1]][:count], weight, bias)

    return run


def part_of(node: Any) -> str:
    """The part of the encoder that a node of OpenVINO's graph belongs to."""
    if "attention.self" in node.node_name and node.node_type in ("Add", "Multiply", "Transpose", "Reshape", "Select"):
        return "attention"
    if node.node_type in ("Add", "Multiply") and "encoder.layer" in node.node_name:
        return "sums and layer norms"
    return PARTS.get(node.node_type, "pooling and the mask")


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--model", default="bundled:minilm")
    found.add_argument("--corpus", type=Path, default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    found.add_argument("--sentences", type=int, default=1024)
    found.add_argument("--turns", type=int, default=3)
    found.add_argument("--precisions", nargs="+", default=["bf16", "int8"], choices=["fp32", "bf16", "int8"])
    return found


@torch.inference_mode()
def main() -> None:
    options = parser().parse_args()
    torch.set_num_threads(1)
    import openvino

    model = load(options.model, device="cpu", engine="torch", precision="fp32")
    texts, tokens = sentences(options.corpus, options.sentences), tokens_of(model)
    items = tokens(texts)
    count = sum(map(len, items))
    batches = by_budget(np.array([len(item) for item in items]), CPU_BUDGET)
    feeds = [tokens.batch([items[i] for i in batch], 2) for batch in batches]
    cells = sum(ids.size for ids, _ in feeds)
    rows = [sum(len(items[i]) for i in batch) for batch in batches]
    print(f"{options.model}, {machine()}, one thread")
    print(
        f"{len(texts)} sentences, {count} tokens in {len(batches)} batches, {len(set(texts))} different sentences; "
        f"{1 - count / cells:.1%} of the cells are padding\n"
    )
    theirs = SentenceTransformer(str(model.loaded_from), device="cpu")
    theirs.encode(texts[:64])
    peer = seconds(lambda: theirs.encode(texts), max(1, options.turns - 1))
    weights = sum(part.weight.numel() for name, part in model[0].named_modules() if "encoder.layer" in name
                  and isinstance(part, torch.nn.Linear))  # fmt: skip
    print("| what | seconds | 1e9 operations a second | of sentence-transformers |\n| --- | ---: | ---: | ---: |")
    print(f"| sentence-transformers, whole | {peer:.2f} | | 1.00 |")
    for kind in ("fp32", "bf16", "int8"):
        run = products(model, rows, kind)
        run()
        took = seconds(run, options.turns)
        print(f"| {kind} products alone | {took:.2f} | {2 * weights * count / took / 1e9:.0f} | {peer / took:.2f} |")
    reading = seconds(lambda: tokens(texts), options.turns)
    filling = seconds(lambda: [tokens.batch([items[i] for i in batch], 2) for batch in batches], options.turns)
    core, sample, shares = openvino.Core(), Sample(model, texts), {}
    for precision in options.precisions:
        pair: Any = ("openvino", precision)
        exports_of(model).prepare(pair, sample)
        graph = core.read_model(exports_of(model).store.folder(pair) / FILE)
        settings = {
            "INFERENCE_PRECISION_HINT": "bf16" if precision == "bf16" else "f32",
            "NUM_STREAMS": 1,
            "INFERENCE_NUM_THREADS": 1,
        }
        plain = core.compile_model(graph, "CPU", settings).create_infer_request()

        def whole(request: Any = plain) -> None:
            for feed in feeds:
                request.infer(list(feed), share_inputs=True)

        whole()
        took = seconds(whole, options.turns) + reading + filling
        print(f"| OpenVINO {precision}, whole | {took:.2f} | | {peer / took:.2f} |")
        clocked = core.compile_model(graph, "CPU", settings | {"PERF_COUNT": True}).create_infer_request()
        spent: Counter[str] = Counter()
        for _ in range(2):
            spent.clear()
            for feed in feeds:
                clocked.infer(list(feed), share_inputs=True)
                for node in clocked.profiling_info:
                    spent[part_of(node)] += node.real_time.total_seconds()
        run_share = (took - reading - filling) / took
        total = sum(spent.values())
        shares[precision] = {name: value / total * run_share for name, value in spent.items()}
        shares[precision] |= {"tokenising": reading / took, "filling batches": filling / took}
    names = sorted(
        {name for found in shares.values() for name in found},
        key=lambda name: -shares[options.precisions[0]].get(name, 0),
    )
    print(f"\n| share of the whole | {' | '.join(f'OpenVINO {one}' for one in shares)} |")
    print("| --- |" + " ---: |" * len(shares))
    for name in names:
        print(f"| {name} | {' | '.join(f'{found.get(name, 0):.1%}' for found in shares.values())} |")


if __name__ == "__main__":
    main()
