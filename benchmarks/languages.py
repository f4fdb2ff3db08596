"""STS Benchmark in four languages that the base does not know: what costs nothing.

    python benchmarks/languages.py --part dev
    python benchmarks/languages.py --part test   # once

Arms: the untouched English base; a bag of characters (TF-IDF over n-grams of 2 to 4, in Chinese single ones) and BM25,
both fitted on 9,900 unlabelled sentences; the bag whitened by their covariance; and the whitened cosine of a pair less
half the mean of each sentence's cosines with its 50 nearest sentences of the text, as in CSLS (Conneau et al. 2018).
The score is the Spearman correlation with people's ratings. German and Chinese dev chose the constants of the last two.
"""

from __future__ import annotations

import argparse
import gzip
import os
from pathlib import Path
from typing import Any

import numpy as np

import likewise
from likewise.corpus.words import has_unspaced
from likewise.evaluation.bm25 import analyzer
from likewise.evaluation.character_bag import CharacterBag
from likewise.evaluation.pairs import correlations
from likewise.evaluation.tasks.rated_file import RatedFileTask
from rows import ResultFile

DATA = Path(os.environ.get("LIKEWISE_DATA") or Path(__file__).parents[2] / "shared" / "data") / "languages"
LANGUAGES = {"de": "german", "es": "spanish", "pl": "", "zh": ""}
"""Their stemmers, where there is one."""
BASE = "bundled:minilm"
KEPT, ADDED = 400, 30.0
"""Axes of the covariance that are whitened, and what is added to the variance (a sum over sentences) of each."""
NEAREST, OF_NEAREST = 50, 0.5


def unlabelled(language: str) -> list[str]:
    with gzip.open(DATA / language / "sentences.txt.gz", "rt", encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def words(corpus: list[str], first: list[str], second: list[str], stemmer: str) -> np.ndarray:
    """Return BM25 of each pair, the second sentence for the first, with the corpus's frequencies."""
    from sklearn.feature_extraction.text import CountVectorizer

    from likewise.evaluation.bm25 import K1, B

    counter = CountVectorizer(analyzer=analyzer(stemmer), dtype=np.float64)
    seen = counter.fit_transform(corpus)
    holding = np.bincount(seen.indices, minlength=seen.shape[1])
    idf = np.log(1 + (len(corpus) - holding + 0.5) / (holding + 0.5))
    asked, there = counter.transform(first), counter.transform(second)
    length = np.asarray(there.sum(axis=1)).ravel()
    room = K1 * (1 - B + B * length / seen.sum(axis=1).mean())
    there.data = there.data / (there.data + np.repeat(room, np.diff(there.indptr)))
    return np.asarray(asked.multiply(there.multiply(idf)).sum(axis=1)).ravel()


class Whitened:
    """A bag of character n-grams in the metric of (C + a I)^-1, where C is the sum of the outer products of the text.

    The n-grams stay within words, and have 2 to 5 characters; in a script without blanks they have 1 and 2.
    """

    def __init__(self, corpus: list[str]) -> None:
        from sklearn.feature_extraction.text import TfidfVectorizer
        from sklearn.utils.extmath import randomized_svd

        unspaced = 2 * sum(map(has_unspaced, corpus)) > len(corpus)
        kind, sizes = ("char", (1, 2)) if unspaced else ("char_wb", (2, 5))
        self.counter = TfidfVectorizer(analyzer=kind, ngram_range=sizes, min_df=2, dtype=np.float32)
        self.corpus = self.counter.fit_transform(corpus)
        _, strengths, self.axes = randomized_svd(self.corpus, KEPT, n_iter=2, random_state=0)
        self.shares = strengths**2 / (strengths**2 + ADDED)  # of each axis, what whitening takes off

    def of(self, texts: list[str]) -> tuple[Any, np.ndarray, np.ndarray]:
        """Return the n-grams of texts, their coordinates on the axes, and the lengths after whitening."""
        counts = self.counter.transform(texts)
        places = counts @ self.axes.T
        squares = np.asarray(counts.multiply(counts).sum(axis=1)).ravel() - (places**2) @ self.shares
        return counts, places, np.sqrt(np.maximum(squares, 1e-12))

    def cosines(self, first: list[str], second: list[str]) -> np.ndarray:
        (own, at, size), (other, there, length) = self.of(first), self.of(second)
        shared = np.asarray(own.multiply(other).sum(axis=1)).ravel() - (at * there) @ self.shares
        return shared / (size * length)

    def crowding(self, texts: list[str]) -> np.ndarray:
        """Return the mean cosine of each text with its nearest sentences of the corpus, copies of it left out."""
        counts, places, size = self.of(texts)
        squares = np.asarray(self.corpus.multiply(self.corpus).sum(axis=1)).ravel()
        there = self.corpus @ self.axes.T
        length = np.sqrt(np.maximum(squares - (there**2) @ self.shares, 1e-12))
        cosines = ((counts @ self.corpus.T).toarray() - (places * self.shares) @ there.T) / size[:, None] / length
        cosines[cosines > 0.999] = 0
        return np.partition(cosines, -NEAREST, axis=1)[:, -NEAREST:].mean(axis=1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("dev", "test"), default="dev")
    parser.add_argument(
        "--arms", default="characters,BM25,whitened,less crowded,base", help="arms with commas between them"
    )
    asked = parser.parse_args()
    results = ResultFile("languages")
    for arm in asked.arms.split(","):
        for language, stemmer in LANGUAGES.items():
            if results.has(arm=arm, set=language, part=asked.part):
                continue
            path = DATA / language / f"sts-{asked.part}.tsv"
            pairs = RatedFileTask.at("pairs", str(path)).load()
            first, second = list(pairs.first), list(pairs.second)
            if arm == "base":
                score = float(likewise.evaluate(BASE, name := f"pairs:{path}")[name].score)
            else:
                corpus = unlabelled(language)
                if arm == "characters":
                    scores = CharacterBag.fitted(corpus).score_pairs(first, second)
                elif arm == "BM25":
                    scores = words(corpus, first, second, stemmer)
                else:
                    bag = Whitened(corpus)
                    scores = bag.cosines(first, second)
                    if arm == "less crowded":
                        scores = scores - OF_NEAREST * (bag.crowding(first) + bag.crowding(second)) / 2
                score = float(correlations(scores, np.asarray(pairs.gold))[0])
            results.add({"arm": arm, "set": language, "part": asked.part, "score": score})
            print(f"{asked.part} {language} {arm}: {score:.2f}", flush=True)


if __name__ == "__main__":
    main()
