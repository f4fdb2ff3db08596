"""STS Benchmark in four languages that the base does not know.

    python benchmarks/languages.py --parts dev --arms "bags,whitened,less crowded"
    python benchmarks/languages.py --parts dev test --seeds 1 2

Arms: the untouched English base; a bag of characters (TF-IDF over n-grams of 2 to 4, in Chinese single ones) and BM25,
both fitted on 9,900 unlabelled sentences; the mean of word vectors that are learnt from these (gensim's skip-gram);
`likewise train characters`, a model for each seed; and its bags themselves, before they are made dense. Ideas that are
not in the library: the bag of characters whitened by the covariance of the sentences; and the whitened cosine of a pair
less half the mean of each sentence's cosines with its 50 nearest sentences, as in CSLS (Conneau et al. 2018).
The score is the Spearman correlation with people's ratings.
"""

from __future__ import annotations

import argparse
import gzip
import os
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

import likewise
from likewise.corpus.words import has_unspaced, with_blanks
from likewise.encoder.character_vectors import CharacterVectors, fit_character_vectors
from likewise.evaluation.bm25 import analyzer
from likewise.evaluation.pairs import correlations
from likewise.evaluation.tasks.rated_file import RatedFileTask
from rows import ResultFile

DATA = Path(os.environ.get("LIKEWISE_DATA") or Path(__file__).parents[2] / "shared" / "data") / "languages"
LANGUAGES = {"de": "german", "es": "spanish", "pl": "", "zh": ""}
"""Their stemmers, where there is one."""
BASE = "bundled:minilm"
ARMS = "characters,BM25,word vectors,train characters,base"
BY_CHANCE = ("word vectors", "train characters")
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


def bags(fitted: CharacterVectors, first: Sequence[str], second: Sequence[str]) -> np.ndarray:
    """Return the cosines of the bags of pairs, of which the vectors of `train characters` are made."""
    from sklearn.feature_extraction import DictVectorizer

    rows = []
    for text in (*first, *second):
        features = fitted.preprocess([text])
        weights = features["counts"] * fitted.idf[features["input_ids"]]
        rows.append(dict(zip(map(str, features["hashes"].tolist()), weights.tolist(), strict=True)))
    counts = DictVectorizer().fit_transform(rows)
    own, other = counts[: len(first)], counts[len(first) :]
    lengths = [np.sqrt(np.asarray(side.multiply(side).sum(axis=1)).ravel()) for side in (own, other)]
    return np.asarray(own.multiply(other).sum(axis=1)).ravel() / (lengths[0] * lengths[1])


def means_of_words(corpus: Sequence[str], first: Sequence[str], second: Sequence[str], seed: int) -> np.ndarray:
    """Return the cosines of pairs by the means of word vectors that are learnt from the corpus."""
    from gensim.models import Word2Vec

    def words_of(text: str) -> list[str]:
        return with_blanks(text.lower()).split()

    learnt = Word2Vec(
        [words_of(text) for text in corpus], vector_size=100, min_count=2, sg=1, epochs=10, seed=seed, workers=1
    ).wv
    sides = []
    for texts in (first, second):
        vectors = [[learnt[word] for word in words_of(text) if word in learnt] for text in texts]
        sides.append(np.array([np.mean(own, axis=0) if own else np.zeros(100) for own in vectors]))
    lengths = [np.maximum(np.linalg.norm(side, axis=1), 1e-12) for side in sides]
    return (sides[0] * sides[1]).sum(axis=1) / (lengths[0] * lengths[1])


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


@lru_cache(1)
def trained(language: str, seed: int, folder: str) -> Path:
    """Return the model that `train characters` makes of the unlabelled sentences of a language."""
    corpus = DATA / language / "sentences.txt.gz"
    return likewise.train_characters(corpus, out=folder, seed=seed, overwrite=True, quiet=True).path


def score_of(arm: str, language: str, part: str, seed: int, folder: str) -> float:
    """Return the score of an arm, through the door that a user takes if the arm is a model or a scorer."""
    path = DATA / language / f"sts-{part}.tsv"
    corpus, name = DATA / language / "sentences.txt.gz", f"pairs:{path}"
    if arm == "train characters":
        return float(likewise.evaluate(trained(language, seed, folder), name)[name].score)
    if arm in ("base", "characters"):
        return float(likewise.evaluate(BASE if arm == "base" else f"characters:{corpus}", name)[name].score)
    pairs = RatedFileTask.at("pairs", str(path)).load()
    first, second, texts = list(pairs.first), list(pairs.second), unlabelled(language)
    if arm == "BM25":
        scores = words(texts, first, second, LANGUAGES[language])
    elif arm == "word vectors":
        scores = means_of_words(texts, first, second, seed)
    elif arm == "bags":
        scores = bags(fit_character_vectors(texts, axes=0), first, second)
    else:
        bag = Whitened(texts)
        scores = bag.cosines(first, second)
        if arm == "less crowded":
            scores = scores - OF_NEAREST * (bag.crowding(first) + bag.crowding(second)) / 2
    return float(correlations(scores, np.asarray(pairs.gold))[0])


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--parts", nargs="+", choices=("dev", "test"), default=["dev"])
    found.add_argument("--arms", default=ARMS, help="arms with commas between them")
    found.add_argument("--languages", default=",".join(LANGUAGES), help="languages with commas between them")
    found.add_argument("--seeds", type=int, nargs="+", default=[1], help="of the arms that have chance in them")
    return found


def main() -> None:
    asked = parser().parse_args()
    results = ResultFile("languages")
    cases = [
        (arm, language, seed, part)
        for arm in asked.arms.split(",")
        for language in asked.languages.split(",")
        for seed in (asked.seeds if arm in BY_CHANCE else [1])
        for part in asked.parts
    ]
    with tempfile.TemporaryDirectory() as folder:
        for arm, language, seed, part in cases:
            row = {"arm": arm, "set": language, "part": part} | ({"seed": seed} if arm in BY_CHANCE else {})
            if not results.has(**row):
                results.add(row | {"score": (score := score_of(arm, language, part, seed, folder))})
                print(f"{part} {language} {arm} {seed}: {score:.2f}", flush=True)


if __name__ == "__main__":
    main()
