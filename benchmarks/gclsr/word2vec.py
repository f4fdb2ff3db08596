"""Word vectors of 300 dimensions, as the paper's have, for a machine without Google's: word2vec on the articles.

    python benchmarks/gclsr/word2vec.py runs/word2vec-300.bin
    python benchmarks/gclsr/sts.py --base runs/word2vec-300.bin

Continuous bags of words with negative sampling, as Google's vectors are; they have read 100 billion words, these 15
million, five times.
"""

from __future__ import annotations

import argparse
import gzip
import json
import time
from collections.abc import Iterator
from pathlib import Path

from likewise.encoder.word_vectors import word_tokenizer
from likewise.runs.cache import data_folder


class Paragraphs:
    """The words of each paragraph, cut as the encoder's are; they can be read more than once."""

    def __init__(self, path: Path) -> None:
        self.path = path
        backend = word_tokenizer((), lower=True).backend_tokenizer
        self.cleaner, self.cutter = backend.normalizer, backend.pre_tokenizer

    def __iter__(self) -> Iterator[list[str]]:
        with gzip.open(self.path, "rt", encoding="utf-8") as lines:
            for line in lines:
                for section in json.loads(line)["sections"]:
                    for text in section["paragraphs"]:
                        yield [word for word, _ in self.cutter.pre_tokenize_str(self.cleaner.normalize_str(text))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path, help="the file to write, .bin")
    parser.add_argument("--articles", type=Path, default=data_folder() / "wikipedia/articles.jsonl.gz")
    parser.add_argument("--dimension", type=int, default=300)
    parser.add_argument("--passes", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    from gensim.models import Word2Vec

    started = time.monotonic()
    sizes = {"vector_size": args.dimension, "window": 5, "min_count": 5, "negative": 10, "sample": 1e-4}
    model = Word2Vec(Paragraphs(args.articles), **sizes, sg=0, epochs=args.passes, workers=args.threads, seed=1)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    model.wv.save_word2vec_format(str(args.out), binary=True)
    print(f"{len(model.wv):,} words, {time.monotonic() - started:.0f} s; near 'river': ", end="")
    print(", ".join(word for word, _ in model.wv.most_similar("river", topn=8)))


if __name__ == "__main__":
    main()
