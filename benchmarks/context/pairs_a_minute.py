"""Pairs a minute of equation 4 and of the plain double loop, in one run on the same pairs.

    python benchmarks/context/pairs_a_minute.py

The generators are small Transformers (two layers of 128), trained for one step: the time does not depend on the
weights. The double loop is equation 4 as it stands: for each
pair, for each context of both sentences, for each of the two sentences, the three generators and the discriminator are
run on this example alone. It does a few of the pairs; the scores of both are compared. The pairs are those of a
harvest's shard, so each sentence is in several of them.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent))

from claims import Claim, finish, with_claims
from likewise.context import (
    DiscriminatorOptions,
    GeneratorOptions,
    IndexOptions,
    StatesOptions,
    build_index,
    read_states,
    train_discriminator,
    train_generators,
)
from likewise.context.generators import TASKS
from likewise.context.harvest_pairs import PairSource, tfidf
from likewise.context.origin import open_origin, pair_terms
from likewise.context.similarity import similarities
from likewise.context.stage_options import HarvestOptions, ScoreOptions
from likewise.context.terms import TermScorer
from likewise.corpus.downloads import data_folder
from likewise.runs.provenance import machine

WEIGHTS = (0.1, 0.3, 0.3, 0.3)


def double_loop(scorer: TermScorer, pairs: list[tuple[str, str]], contexts: dict[str, np.ndarray]) -> list[float]:
    """Equation 4 as it stands."""
    found, model, ranker = [], scorer.generators, scorer.ranker
    for one, other in pairs:
        vectors: tuple[list[float], list[float]] = ([], [])
        for number in [*contexts[one], *contexts[other]]:
            for sentence, vector in zip((one, other), vectors, strict=True):
                score = WEIGHTS[0] * float(ranker.scores(sentence, np.array([number]))[0])
                texts = scorer.states.sides(np.array([number])) | {"centre": [scorer.states.read([sentence])]}
                for weight, task in zip(WEIGHTS[1:], TASKS, strict=True):
                    memories = model.memories(task, texts)
                    score += weight * float(model.log_probabilities(task, memories, model.targets(texts[task])).mean())
                vector.append(score)
        a, b = np.array(vectors)
        found.append(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    return found


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--corpus", default=data_folder() / "wikipedia/articles.jsonl.gz")
    found.add_argument("--documents", type=int, default=200)
    found.add_argument("--contexts", type=int, default=20, help="contexts of a sentence")
    found.add_argument("--pairs", type=int, default=100)
    found.add_argument("--loop-pairs", type=int, default=2, help="pairs that the double loop does")
    with_claims(found)
    return found


def main() -> None:
    args = parser().parse_args()
    with TemporaryDirectory() as folder:
        run(args, small_workspace(Path(folder) / "work", args.corpus, args.documents))


def small_workspace(work: Path, corpus: str, documents: int) -> Path:
    """Make the stages of the preset `paper` at a small size."""
    read = {"quiet": True}
    build_index(work, corpus, IndexOptions(documents=documents), **read)
    read_states(work, StatesOptions(keep="pieces"), **read)
    train_discriminator(work, DiscriminatorOptions(reads="text", epochs=0), **read)
    sizes = {"width": 128, "heads": 4, "feed_forward": 512, "layers": 2, "batch_size": 8}
    train_generators(work, GeneratorOptions(reads="text", max_steps=1, held_out=10, **sizes), **read)
    return work


def run(args: argparse.Namespace, work: Path) -> None:
    origin = open_origin(work, ScoreOptions(form="paper", weights=WEIGHTS))
    scorer: TermScorer = origin.scorer
    states = origin.states
    options = HarvestOptions(pairs=args.pairs, anchors=max(2, args.pairs // 10))
    source = PairSource(scorer.states.store.texts(), options, tfidf(states.ids, states.starts, states.idf))
    pairs = [(pair["sentence1"], pair["sentence2"]) for pair in source.shard(0).to_pylist()]
    rng = np.random.default_rng(1)
    texts = sorted({text for pair in pairs for text in pair})
    sets = {text: rng.choice(scorer.states.store.n_contexts, args.contexts, replace=False) for text in texts}
    print(f"machine: {machine()}")
    print(f"{len(pairs)} pairs of {len(sets)} sentences, {args.contexts} contexts a sentence")
    with torch.inference_mode():
        double_loop(scorer, pairs[:1], {text: sets[text][:1] for text in pairs[0]})  # warm
        pair_terms(pairs[:2], sets, scorer)
        # Processor time as well: on a machine that is shared, the clock on the wall tells of the others too.
        clocks = (time.perf_counter(), time.process_time())
        slow = double_loop(scorer, pairs[: args.loop_pairs], sets)
        middle = (time.perf_counter(), time.process_time())
        fast = similarities(pair_terms(pairs, sets, scorer), WEIGHTS)
        last = (time.perf_counter(), time.process_time())
    print(f"largest difference of a similarity: {np.abs(fast[: len(slow)] - slow).max():.1e}")
    print("\n| | pairs | pairs a minute | pairs a minute of processor time |\n| --- | ---: | ---: | ---: |")
    rates = []
    for name, n, begin, end in (("double loop", len(slow), clocks, middle), ("likewise", len(pairs), middle, last)):
        rates.append([60 * n / (b - a) for a, b in zip(begin, end, strict=True)])
        print(f"| {name} | {n} | {rates[-1][0]:.1f} | {rates[-1][1]:.1f} |")
    print(f"| ratio | | {rates[1][0] / rates[0][0]:.1f} | {rates[1][1] / rates[0][1]:.1f} |")
    finish(args, [Claim("Origin's score, pairs: the plain double loop", "/s", rates[0][1] / 60, rates[1][1] / 60)])


if __name__ == "__main__":
    main()
