"""Sentences a second of `encode` and of sentence-transformers', in alternation, in one run; and STS-B dev.

    python benchmarks/encode.py --data $LIKEWISE_DATA/senteval

The peer is sentence-transformers' `encode` at its defaults: the model is the same folder and the texts are the same.
Each arm is run in every turn, the best turn counts, and the peer's is compared with ours by the clock and by the
processor's seconds: on a machine that does other work too, the latter tells more.

The share is that of the rate of a matrix product of the same precision, measured in the same run: multiplications of
the encoder's weight matrices (2 x weights x tokens without padding) a second, over those of one large product.

'default' is `load(model)` as people write it, with the export kept that its engine wants; 'default-first' the same
before there is one. Both have seen 256 texts, so that bfloat16 was judged.

--pooling cls takes the model's transformer with [CLS], as most recipes train it. The share then counts the whole last
layer, of which likewise makes the pooled token alone.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

from claims import Claim, finish, with_claims
from likewise import processor
from likewise.data.bundled import resolve_model
from likewise.encoder.build import build_encoder
from likewise.errors import MissingExtraError
from likewise.evaluation.registry import TASKS
from likewise.inference import load
from likewise.inference.engines.engine import EngineError
from likewise.inference.load_model import Encoder
from likewise.inference.model_tokens import tokens_of
from likewise.inference.policy import policy_of
from likewise.inference.sample import Sample
from likewise.runs.cache import data_folder
from likewise.runs.releases import machine

FLAGS = ("avx2", "fma", "avx_vnni", "avx512f", "avx512_vnni", "avx512_bf16", "amx_int8", "amx_bf16")
LATENCY_TURNS = 3
Arm = Callable[[list[str]], tuple[np.ndarray, float, float]]
"""Texts to vectors, wall seconds and processor seconds."""


def timed(encode: Callable[[list[str]], np.ndarray]) -> Arm:
    def run(texts: list[str]) -> tuple[np.ndarray, float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        found = encode(texts)
        return np.asarray(found), time.perf_counter() - wall, time.process_time() - cpu

    return run


def by_default(name: str, texts: list[str], export: bool) -> Encoder:
    """`load(name)`, which has encoded its first texts, with the export that it would take, or with none."""
    model = load(name, device="cpu")
    with tempfile.TemporaryDirectory() as empty:
        own = os.environ.get("LIKEWISE_CACHE")
        if export:
            if pair := policy_of(model).missing_export():
                policy_of(model).engines.make(pair, Sample(model, texts))
        else:
            os.environ["LIKEWISE_CACHE"] = empty
        model.encode(texts)
        os.environ.pop("LIKEWISE_CACHE", None)
        if own is not None:
            os.environ["LIKEWISE_CACHE"] = own
    print(f"{'default' if export else 'default-first'}: {model.engine}")
    return model


def matrix_rate(kind: str) -> float:
    """Multiplications and additions a second of one product of 960 x 384 x 1536, in 1e9, by processor time."""
    rows, weights = torch.randn(960, 384), torch.randn(1536, 384)
    if kind == "int8":
        layer = torch.nn.Sequential(torch.nn.Linear(384, 1536))
        run = torch.ao.quantization.quantize_dynamic(layer, {torch.nn.Linear}, dtype=torch.qint8)
    else:
        to = torch.bfloat16 if kind == "bf16" else torch.float32
        rows, weights = rows.to(to), weights.to(to)

        def run(rows: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.linear(rows, weights)

    best = float("inf")
    with torch.inference_mode():
        for _ in range(30):
            start = time.process_time()
            run(rows)
            best = min(best, time.process_time() - start)
    return 2 * 960 * 384 * 1536 / best / 1e9


def weights_of(model: SentenceTransformer) -> int:
    return sum(m.weight.numel() for m in model.modules() if isinstance(m, torch.nn.Linear)) - sum(
        m.weight.numel() for name, m in model.named_modules() if "pooler" in name and isinstance(m, torch.nn.Linear)
    )


def latencies(options: argparse.Namespace, names: list[str]) -> dict[str, tuple[float, float]]:
    """Return milliseconds by the clock for one sentence and for 32 in a call, by arm, each in processes of its own.

    Threads of one library spin for a while after a call and would slow down another one in the same process. The arms
    take turns, and the median of the turns counts.
    """
    found: dict[str, list[list[float]]] = {name: [] for name in names}
    same = ["--model", options.model, "--corpus", str(options.corpus), "--sentences", str(options.sentences)]
    for _ in range(LATENCY_TURNS):
        for name in names:
            command = [sys.executable, __file__, *same, "--latency", str(options.latency), "--alone", name]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found[name].append(json.loads(done.stdout.splitlines()[-1]))
    return {name: tuple(np.median(turns, axis=0).tolist()) for name, turns in found.items()}


def alone(options: argparse.Namespace) -> list[float]:
    """Return the medians of an arm's calls in milliseconds: with one sentence, and with 32."""
    text, name = sentences(options.corpus, options.sentences), options.alone
    if name == "sentence-transformers":
        encode: Callable[[Any], object] = SentenceTransformer(resolve_model(options.model), device="cpu").encode
    elif name.startswith("default"):
        encode = by_default(options.model, text[:256], export=name == "default").encode
    else:
        engine, precision = name.split()
        encode = load(options.model, device="cpu", engine=engine, precision=precision).encode
        encode(text[:256])
    medians = []
    for asked in (sorted(text, key=len)[len(text) // 2], text[:32]):
        seconds, calls = [], options.latency if isinstance(asked, str) else options.latency // 4
        for call in range(calls + 5):
            start = time.perf_counter()
            encode(asked)
            if call >= 5:
                seconds.append(time.perf_counter() - start)
        medians.append(1e3 * float(np.median(seconds)))
    return medians


def sentences(path: Path, count: int) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as file:
        return [line.rstrip("\n") for line in islice(file, count)]


def shapes(text: list[str]) -> Iterator[tuple[str, list[str]]]:
    yield "sentences", text
    yield "words", [" ".join(sentence.split()[:3]) for sentence in text]
    yield "paragraphs", [" ".join(text[i : i + 8]) for i in range(0, len(text) // 4, 8)]


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--model", default="bundled:minilm")
    found.add_argument("--pooling", default="own", choices=["own", "cls"])
    found.add_argument("--corpus", type=Path, default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    found.add_argument("--data", type=Path, help="SentEval's folder, for STS-B dev")
    found.add_argument("--sentences", type=int, default=1024)
    found.add_argument("--turns", type=int, default=2)
    found.add_argument("--engines", nargs="*", default=["torch fp32", "openvino fp32", "onnx fp32", "onnx int8"])
    found.add_argument("--shapes", action="store_true", help="short and long texts too")
    found.add_argument("--latency", type=int, default=0, help="calls with a single sentence")
    found.add_argument("--alone", help="print the latencies of this arm as JSON, and nothing else")
    with_claims(found)
    return found


def main() -> None:
    options = parser().parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.pooling == "cls":
            build_encoder(options.model, pooling="cls", head=False).save(folder, create_model_card=False)
            options.model = folder
        if options.alone:
            print(json.dumps(alone(options)))
        else:
            measure(options)


def measure(options: argparse.Namespace) -> None:
    what_pools = ", [CLS]" if options.pooling == "cls" else ""
    claims: list[Claim] = []
    text = sentences(options.corpus, options.sentences)
    ours = {}
    for name in options.engines:
        if name in ("default", "default-first"):
            ours[f"likewise {name}"] = by_default(options.model, text[:256], export=name == "default")
            continue
        engine, precision = name.split()
        ours[f"likewise {name}"] = load(options.model, device="cpu", engine=engine, precision=precision)
    folder = str(next(iter(ours.values())).loaded_from)
    theirs = SentenceTransformer(folder, device="cpu")
    arms: dict[str, Arm] = {"sentence-transformers": timed(theirs.encode)}
    arms |= {name: timed(model.encode) for name, model in ours.items()}

    there = [flag for flag in FLAGS if flag in processor.flags()]
    print(f"{options.model}, {machine()}, {torch.get_num_threads()} threads, {' '.join(there)}")
    rates = {kind: matrix_rate(kind) for kind in ("fp32", "int8", *(["bf16"] if processor.has_bf16() else []))}
    print("matrix product, 1e9 a second and core: " + ", ".join(f"{kind} {rate:.0f}" for kind, rate in rates.items()))

    # Exports are made and int8 is checked on the corpus, not on the handful of texts that warm up.
    refused: dict[str, str] = {}
    for name, arm in arms.items():
        try:
            arm(text[:64] if "sentence-transformers" in name else text[:256])
        except (EngineError, MissingExtraError) as reason:  # that an engine is refused for a model is a result too
            refused[name] = str(reason)
    arms = {name: arm for name, arm in arms.items() if name not in refused}
    ours = {name: model for name, model in ours.items() if name not in refused}
    for label, texts in shapes(text) if options.shapes else [("sentences", text)]:
        best: dict[str, tuple[float, float]] = {}
        wanted, far = None, {}
        for _ in range(options.turns):
            for name, arm in arms.items():
                found, wall, cpu = arm(texts)
                old = best.get(name, (wall, cpu))
                best[name] = min(old[0], wall), min(old[1], cpu)
                wanted = found if wanted is None else wanted
                cosines = (found * wanted).sum(1) / np.linalg.norm(found, axis=1) / np.linalg.norm(wanted, axis=1)
                far[name] = float(cosines.mean()), float(np.abs(found - wanted).max())
        tokens = sum(map(len, tokens_of(theirs)(texts)))
        work = 2 * weights_of(theirs) * tokens / 1e9
        print(f"\n{len(texts)} {label}, {tokens / len(texts):.0f} tokens each")
        print("| arm | a second | ratio | ratio by processor time | share of matrix rate | mean cosine | difference |")
        print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        base = best["sentence-transformers"]
        for name, (wall, cpu) in best.items():
            kind = "fp32" if "sentence-transformers" in name else name.split()[-1]
            if "default" in kind:
                kind = ours[name].last_engine.split()[-1]
            share = f"{work / cpu / rates[kind]:.0%}" if kind in rates else ""
            print(
                f"| {name} | {len(texts) / wall:.0f} | {base[0] / wall:.2f} | {base[1] / cpu:.2f} "
                f"| {share} | {far[name][0]:.4f} | {far[name][1]:.0e} |",
                flush=True,
            )
            if name.startswith("likewise"):
                what = (
                    f"encode{what_pools}, {label} of {tokens / len(texts):.0f} tokens, {name.removeprefix('likewise ')}"
                )
                claims.append(Claim(f"{what}: sentence-transformers", "/s", len(texts) / base[0], len(texts) / wall))
        for name, reason in refused.items():
            print(f"| {name} | refused: {reason} | | | | | |")

    if options.latency:
        print("\n| milliseconds in an own process | one sentence | 32 sentences in a call |\n| --- | ---: | ---: |")
        own = [name.removeprefix("likewise ") for name in ours]
        found = latencies(options, ["sentence-transformers", *own])
        for name, (one, several) in found.items():
            print(f"| {name} | {one:.1f} | {several:.1f} |")
        for place, what in enumerate(("one sentence", "32 sentences in a call")):
            reference = found["sentence-transformers"][place] / 1e3
            for name in own:
                claim = f"encode{what_pools}, {what}, {name}: sentence-transformers"
                claims.append(Claim(claim, "s", reference, found[name][place] / 1e3))

    if options.data:
        pairs = TASKS["sts-b-dev"].load(options.data)
        print("\nSTS-B dev, Spearman x 100")
        for name, arm in arms.items():
            a, b = arm(pairs.first)[0], arm(pairs.second)[0]
            cosines = (a * b).sum(1) / np.linalg.norm(a, axis=1) / np.linalg.norm(b, axis=1)
            print(f"{name} {100 * spearmanr(cosines, pairs.gold).statistic:.2f}", flush=True)
    finish(options, claims)


if __name__ == "__main__":
    main()
