"""Pairs a minute of the Origin similarity and of the plain double loop, in one run on the same pairs.

    python benchmarks/context/pairs_a_minute.py

The double loop is equation 4 as it stands: for each pair, for each context of both sentences, for each of the two
sentences, the three generators and the discriminator are run on this example alone. It does a few of the pairs; the
scores of both are compared. The pairs are those of a harvest's shard, so each sentence is in several of them. Weights
are random: the time does not depend on them. The discriminator is a stand-in of no cost on either side.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parent.parent))


from claims import Claim, finish, with_claims
from likewise.context.chunks import Context
from likewise.context.generators import Generators, batch_of
from likewise.context.harvest_pairs import PairSource
from likewise.context.options import LARGE, GeneratorOptions, HarvestOptions, ScoreOptions
from likewise.context.origin import pair_terms
from likewise.context.score import ContextScorer
from likewise.context.subwords import TASKS, Example, Vocabulary
from likewise.context.weights import similarities
from likewise.corpus import read_documents
from likewise.runs.provenance import machine

WEIGHTS = (0.1, 0.3, 0.3, 0.3)


class NoCost:
    def coherence(self, sentences, contexts):
        return np.full((len(sentences), len(contexts)), -0.7)


PRESETS = {"cpu": GeneratorOptions(reads="text", batch_size=16, epochs=1), "large": LARGE}


def double_loop(generators: Generators, pairs, contexts: dict[str, list[Context]]) -> list[float]:
    """Equation 4 as it stands."""
    found = []
    for one, other in pairs:
        vectors: tuple[list[float], list[float]] = ([], [])
        for context in [*contexts[one], *contexts[other]]:
            for sentence, vector in zip((one, other), vectors, strict=True):
                score = WEIGHTS[0] * NoCost().coherence([sentence], [context])[0, 0]
                for weight, task in zip(WEIGHTS[1:], TASKS, strict=True):
                    (pieces,) = generators.cutter.examples([Example(context.left, sentence, context.right)])
                    batch = batch_of([pieces], generators.vocabulary.pad)
                    last = generators.last_states(batch, task)[0]
                    score += weight * float(generators.network(task).log_probabilities(last, batch[task].ids[0]).mean())
                vector.append(score)
        a, b = np.array(vectors)
        found.append(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="../shared/data/wikipedia/articles.jsonl.gz")
    parser.add_argument("--contexts", type=int, default=20, help="contexts of a sentence")
    parser.add_argument("--pairs", type=int, default=100)
    parser.add_argument("--loop-pairs", type=int, default=2, help="pairs that the double loop does")
    parser.add_argument("--preset", default="cpu", choices=list(PRESETS))
    with_claims(parser)
    args = parser.parse_args()
    sentences, found = [], []
    for document in read_documents(args.corpus):
        text = document.sentences
        sentences += text
        found += [Context(len(found), i, text[i - 1 : i], text[i + 1 : i + 2]) for i in range(1, len(text) - 1)]
        if len(sentences) > 4000:
            break
    options: GeneratorOptions = PRESETS[args.preset]
    vocabulary = Vocabulary.train(sentences, options.vocabulary, lowercase=options.lowercase)
    torch.manual_seed(1)
    generators = Generators(options, vocabulary).eval()
    source = PairSource(sentences, HarvestOptions(near="words", pairs=args.pairs, anchors=max(2, args.pairs // 10)))
    pairs = [(pair.first, pair.second) for pair in source.shard(0)]
    rng = np.random.default_rng(1)
    texts = {text for pair in pairs for text in pair}
    sets = {text: [found[i] for i in rng.choice(len(found), args.contexts, replace=False)] for text in sorted(texts)}
    scorer = ContextScorer(generators, NoCost(), ScoreOptions(form="paper", weights=WEIGHTS))
    print(f"machine: {machine()}; bf16: {scorer.bf16}")
    print(f"{len(pairs)} pairs of {len(sets)} sentences, {args.contexts} contexts a sentence, preset {args.preset}")
    with torch.inference_mode():
        double_loop(generators, pairs[:1], {text: sets[text][:1] for text in pairs[0]})  # warm
        pair_terms(pairs[:2], sets, scorer)
        # Processor time as well: on a machine that is shared, the clock on the wall tells of the others too.
        clocks = (time.perf_counter(), time.process_time())
        slow = double_loop(generators, pairs[: args.loop_pairs], sets)
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
