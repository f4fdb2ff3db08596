"""Peak memory of a job, and of the same job in sentence-transformers alone, each in a process of its own, in MB.

    python benchmarks/memory.py
    python benchmarks/memory.py --jobs train evaluate --passages 10000

The peers: its trainer with MultipleNegativesRankingLoss on pairs of a sentence and itself for `train arccse`, and on
pairs of neighbouring sentences for `adapt`; its EmbeddingSimilarityEvaluator on the same pairs for `evaluate`; and for
`index` its `encode` of all passages, saved by numpy, which finds nothing by words. The steps of a training are the same
in number, size and length. The peak is the largest resident memory of the process, as the kernel counts it; it needs no
idle machine.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from claims import Claim, finish, with_claims
from likewise.data.bundled import resolve_model
from likewise.evaluation.registry import TASKS
from likewise.runs.cache import data_folder

STEPS, BATCH, LENGTH = 20, 64, 32
STS = ("sts12", "sts13", "sts14", "sts15", "sts16", "sts-b", "sick-r")
TRAIN = f"""
import sys
from datasets import Dataset
from sentence_transformers import SentenceTransformer, SentenceTransformerTrainer, SentenceTransformerTrainingArguments
from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss
model, corpus, out, shift = *sys.argv[1:4], int(sys.argv[4])
text = [line.strip() for line in open(corpus, encoding="utf-8")]
model = SentenceTransformer(model, device="cpu")
model.max_seq_length = {LENGTH}
arguments = SentenceTransformerTrainingArguments(
    output_dir=out, per_device_train_batch_size={BATCH}, max_steps={STEPS}, save_strategy="no", report_to="none",
    use_cpu=True,
)
pairs = Dataset.from_dict({{"anchor": text[: len(text) - shift], "positive": text[shift:]}})
SentenceTransformerTrainer(
    model=model, args=arguments, train_dataset=pairs, loss=MultipleNegativesRankingLoss(model)
).train()
model.save_pretrained(out)
"""
EVALUATE = """
import json, sys
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
model = SentenceTransformer(sys.argv[1], device="cpu")
for first, second, gold in json.load(open(sys.argv[2], encoding="utf-8")):
    print(EmbeddingSimilarityEvaluator(first, second, gold)(model))
"""
INDEX = """
import sys
import numpy as np
from sentence_transformers import SentenceTransformer
text = [line.strip() for line in open(sys.argv[2], encoding="utf-8")]
np.save(sys.argv[3], SentenceTransformer(sys.argv[1], device="cpu").encode(text, normalize_embeddings=True))
"""


def peak(command: list[str]) -> float:
    """Run a command, and return the largest resident memory of its process in MB."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if code := os.waitstatus_to_exitcode(status):
        sys.exit(f"{' '.join(command[:3])} ended with {code}")
    return usage.ru_maxrss / 1024


def jobs(args: argparse.Namespace, folder: Path) -> Iterator[tuple[str, str, list[str], list[str]]]:
    """Yield each job's name, its claim, and the commands of ours and of the peer."""
    own, model = [str(Path(sys.executable).with_name("likewise"))], resolve_model(args.model)
    text, pairs = written(args.corpus, folder / "sentences.txt", 20_000), folder / "pairs.json"
    base = ["--base", args.model, "--quiet"]
    size = ["--max-steps", str(STEPS), "--batch-size", str(BATCH), "--max-length", str(LENGTH)]
    if "train" in args.jobs:
        out = str(folder / "ours")
        ours = [*own, "train", "arccse", "--corpus", text, *base, *size, "--select-by", "last", "--out", out]
        peer = [sys.executable, "-c", TRAIN, model, text, str(folder / "theirs"), "0"]
        yield "train", "`train arccse`, 20 steps of 64: sentence-transformers' trainer", ours, peer
    if "adapt" in args.jobs:
        ours = [*own, "adapt", text, *base, "--out", str(folder / "adapted")]
        peer = [sys.executable, "-c", TRAIN, model, text, str(folder / "tuned"), "1"]
        yield "adapt", "`adapt` to 20,000 sentences: sentence-transformers' trainer, 20 steps of 64", ours, peer
    if "evaluate" in args.jobs:
        tasks = [TASKS[name].load(args.data) for name in STS]
        rows = [[list(task.first), list(task.second), [*map(float, task.gold)]] for task in tasks]
        pairs.write_text(json.dumps(rows), encoding="utf-8")
        ours = [*own, "evaluate", args.model, "--tasks", "sts", "--data", str(args.data)]
        peer = [sys.executable, "-c", EVALUATE, model, str(pairs)]
        yield "evaluate", "`evaluate --tasks sts`: sentence-transformers' evaluator", ours, peer
    if "index" in args.jobs:
        text = written(args.corpus, folder / "passages.txt", args.passages)
        ours = [*own, "index", text, "--model", args.model, "--out", str(folder / "index"), "--quiet"]
        peer = [sys.executable, "-c", INDEX, model, text, str(folder / "vectors.npy")]
        yield "index", f"`index` of {args.passages:,} passages: vectors by sentence-transformers", ours, peer


def written(corpus: Path, path: Path, count: int) -> str:
    """Write the first sentences of a corpus, a paragraph each, and return the path."""
    with gzip.open(corpus, "rt", encoding="utf-8") as lines:
        path.write_text("".join(islice(lines, count)), encoding="utf-8")
    return str(path)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--model", default="bundled:minilm")
    found.add_argument("--corpus", type=Path, default=data_folder() / "wikipedia/sentences-250k.txt.gz")
    found.add_argument("--data", type=Path, default=data_folder() / "senteval")
    found.add_argument("--passages", type=int, default=20_000)
    found.add_argument("--jobs", nargs="+", default=["train", "adapt", "evaluate", "index"])
    with_claims(found)
    return found


def main() -> None:
    args, claims = parser().parse_args(), list[Claim]()
    os.environ["LIKEWISE_EXPORTS"] = "never"  # an export is a job of its own
    with tempfile.TemporaryDirectory() as folder:
        for _, name, ours, peer in jobs(args, Path(folder)):
            claims.append(Claim(f"memory, {name}", "MB", peak(peer), peak(ours)))
            print(f"{claims[-1].name}: {claims[-1].peer:.0f} MB, likewise {claims[-1].ours:.0f} MB", flush=True)
    finish(args, claims)


if __name__ == "__main__":
    main()
