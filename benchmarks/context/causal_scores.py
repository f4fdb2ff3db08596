"""Scores a minute of sentences in contexts by a pretrained language model, and by the plain double loop.

    python benchmarks/context/causal_scores.py

A score is a sentence in a context: the three terms of equation 3 as pointwise mutual information, of the sentences next
to the gap. The plain double loop is a whole forward pass for every probability: log p(s | l), log p(s), log p(r | s)
and log p(r) for each sentence and each context. It does the first --loop scores; both give the same to the model's
precision. Contexts and sentences are those of articles; every sentence meets every context.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from likewise.context.chunks import read_chunks
from likewise.context.pretrained import PretrainedGenerators
from likewise.corpus import read_documents
from likewise.corpus.downloads import data_folder
from likewise.runs.provenance import machine
from rows import ResultFile


@torch.inference_mode()
def whole_pass(model: PretrainedGenerators, before: str, text: str) -> float:
    """log p(text | before) by one forward pass over both."""
    scorer = model.scorer
    given, ids = [scorer.start, *scorer.ids(before)], scorer.ids(text)
    logits = scorer.causal.model(torch.tensor([given + ids]), use_cache=False).logits[0, len(given) - 1 : -1]
    return float(logits.float().log_softmax(dim=1).gather(1, torch.tensor(ids)[:, None]).sum())


def plain(model: PretrainedGenerators, sentence: str, left: str, right: str) -> list[float]:
    gained = whole_pass(model, left, sentence) - whole_pass(model, "", sentence)
    behind = whole_pass(model, sentence, right) - whole_pass(model, "", right)
    lengths = model.scorer.lengths([sentence, left, right])
    return [float(value) for value in np.array([gained, gained, behind]) / lengths]


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--model", default="bundled:smollm2")
    found.add_argument("--corpus", default=data_folder() / "wikipedia/articles.jsonl.gz")
    found.add_argument("--sentences", type=int, default=12)
    found.add_argument("--contexts", type=int, default=24)
    found.add_argument("--loop", type=int, default=24, help="scores of the plain double loop")
    found.add_argument("--table", default="context-pretrained", help="the result file")
    return found


def main() -> None:
    args = parser().parse_args()
    torch.set_num_threads(1)
    model = PretrainedGenerators(args.model, keep=False)
    chunks = list(read_chunks(read_documents(str(args.corpus)), 10, max_documents=args.sentences + args.contexts))
    by_document = {chunk.document: chunk.sentences for chunk in reversed(chunks)}
    texts = [by_document[number][:3] for number in sorted(by_document)]
    sentences = [one[1] for one in texts[: args.sentences]]
    lefts, rights = zip(*((one[0], one[2]) for one in texts[args.sentences :]), strict=True)
    cells = np.array([(s, c) for s in range(len(sentences)) for c in range(len(lefts))])
    plain(model, sentences[0], lefts[0], rights[0])  # warm
    model.of_texts(sentences[:1], lefts, rights, cells[:1])
    clocks = [(time.perf_counter(), time.process_time())]
    slow = np.array([plain(model, sentences[s], lefts[c], rights[c]) for s, c in cells[: args.loop]])
    clocks.append((time.perf_counter(), time.process_time()))
    fast = model.of_texts(sentences, lefts, rights, cells)
    clocks.append((time.perf_counter(), time.process_time()))
    difference = float(np.abs(fast[: args.loop] - slow).max())
    print(f"machine {machine()}, {model.scorer.causal.model.dtype}; largest difference of a term {difference:.3f}")
    print("| | scores | scores a minute | scores a minute of processor time |\n| --- | ---: | ---: | ---: |")
    rates = {}
    for name, count, begin, end in (
        ("plain double loop", len(slow), clocks[0], clocks[1]),
        ("likewise", len(cells), clocks[1], clocks[2]),
    ):
        rates[name] = [60 * count / (b - a) for a, b in zip(begin, end, strict=True)]
        print(f"| {name} | {count} | {rates[name][0]:,.0f} | {rates[name][1]:,.0f} |")
    factors = [b / a for a, b in zip(*rates.values(), strict=True)]
    print(f"| factor | | {factors[0]:.1f} | {factors[1]:.1f} |")
    found = {"part": "causal_scores", "model": args.model, "scores_a_minute": rates, "difference": difference}
    found |= {"sentences": len(sentences), "contexts": len(lefts), "loop": len(slow)}
    ResultFile(args.table).add(found)


if __name__ == "__main__":
    main()
