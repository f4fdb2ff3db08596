"""Held-out perplexity of the generators, a unigram and a trigram model of the same sub-words.

    python benchmarks/context/perplexity.py --tokens 1000000 --arm '' --arm networks=three --arm softmax=full

Trains on the first documents of the corpus that hold so many sub-words, for a given time: the number of steps is taken
from a few trial steps, and the learning rate falls to zero at the last. Prints a row a setting (a row for each --arm).
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import torch
from ngram import ngrams

from likewise.context.chunks import Chunk
from likewise.context.generator_training import fit_generators, split
from likewise.context.options import LARGE, GeneratorOptions
from likewise.context.subwords import Cutter, Vocabulary, examples_of
from likewise.corpus import read_documents
from likewise.runs.job import open_job
from likewise.runs.plan import Plan
from likewise.runs.progress import Progress
from likewise.runs.provenance import machine

PRESETS = {"cpu": GeneratorOptions(reads="text", batch_size=16, epochs=1), "large": LARGE}


def read(corpus: str, tokens: int) -> list[Chunk]:
    """Documents with so many words that about `tokens` sub-words come of them."""
    chunks, words = [], 0
    for i, document in enumerate(read_documents(corpus)):
        chunks.append(Chunk(i, document.sentences))
        words += sum(len(sentence.split()) for sentence in document.sentences)
        if words * 1.4 > tokens:  # sub-words a word at 8,000
            break
    return chunks


def changed(options: GeneratorOptions, given: str) -> GeneratorOptions:
    """Options from 'name=value,name=value'."""
    return options.updated_from_strings(dict(part.split("=", 1) for part in given.split(",") if part))


def fit(examples: list, folder: Path, options: GeneratorOptions, vocabulary: Vocabulary, quiet: bool = True) -> dict:
    """Train generators; returns the record."""
    with open_job(folder, Plan("perplexity", options.to_dict()), overwrite=True) as job:
        return job.finish(fit_generators(job, examples, options, vocabulary, Progress(quiet)))


def steps_in(minutes: float, examples: list, options: GeneratorOptions, vocabulary: Vocabulary) -> int:
    """How many updates fit in the time, from trial updates."""
    trial = 30
    with tempfile.TemporaryDirectory() as folder:
        few = options.updated(max_steps=trial, held_out=1, eval_steps=trial)
        started = time.perf_counter()
        fit(examples, Path(folder) / "trial", few.updated(max_steps=5), vocabulary)
        middle = time.perf_counter()
        fit(examples, Path(folder) / "trial2", few.updated(max_steps=5 + trial), vocabulary)
        seconds = (time.perf_counter() - middle) - (middle - started)
    return max(trial, int(minutes * 60 / (seconds / trial)))


def cells(found: dict[str, float]) -> str:
    return " | ".join(f"{found[task]:.1f}" for task in ("centre", "left", "right", "all"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="../shared/data/wikipedia/articles.jsonl.gz")
    parser.add_argument("--tokens", type=int, default=1_000_000)
    parser.add_argument("--minutes", type=float, default=8.0, help="training time of each arm")
    parser.add_argument("--steps", type=int, default=0, help="updates of each arm, instead of a time")
    parser.add_argument("--evaluations", type=int, default=4, help="looks at the held-out perplexity, in log.jsonl")
    parser.add_argument("--preset", default="cpu", choices=list(PRESETS))
    parser.add_argument("--arm", action="append", default=[], help="name=value,name=value of GeneratorOptions")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=None, help="keep the models here")
    args = parser.parse_args()
    chunks = read(args.corpus, args.tokens)
    examples = list(examples_of(chunks))
    text = list(dict.fromkeys(sentence for chunk in chunks for sentence in chunk.sentences))
    print(f"machine: {machine()}")
    print(f"{len(chunks):,} documents, {len(text):,} sentences, {len(examples):,} examples, seed {args.seed}")
    print("\n| setting | parameters | updates | epochs | seconds | centre | left | right | all |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    vocabularies: dict[tuple[int, bool], Vocabulary] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for i, arm in enumerate(args.arm or [""]):
            options = changed(PRESETS[args.preset], arm).updated(seed=args.seed)
            key = options.vocabulary, options.lowercase
            if key not in vocabularies:
                vocabularies[key] = Vocabulary.train(text, options.vocabulary, lowercase=options.lowercase)
                n = sum(map(len, vocabularies[key].encode_batch(text)))
                print(f"{n:,} tokens of a vocabulary of {options.vocabulary}", flush=True)
                training, held_out = split(examples, options.held_out, args.seed)
                cutter = Cutter(vocabularies[key], options.max_tokens, options.max_sentences)
                for name, found in ngrams(cutter, training, held_out).items():
                    print(f"| {name} ({options.vocabulary}) | | | | | {cells(found)} |", flush=True)
            steps = args.steps or steps_in(args.minutes, examples, options, vocabularies[key])
            options = options.updated(max_steps=steps, eval_steps=max(1, steps // args.evaluations))
            folder = (args.out or Path(temporary)) / f"arm{i}"
            record = fit(examples, folder, options, vocabularies[key], quiet=False)
            epochs = steps * options.batch_size / record["examples"]
            print(
                f"| {arm or args.preset} | {record['parameters']:,} | {steps} | {epochs:.2f} | {record['seconds']:.0f} "
                f"| {cells(record['perplexity'])} |",
                flush=True,
            )
    print(f"threads: {torch.get_num_threads()}")


if __name__ == "__main__":
    main()
