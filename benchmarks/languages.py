"""STS Benchmark in four languages that the base does not know: what costs nothing.

    python benchmarks/languages.py --part dev
    python benchmarks/languages.py --part test   # once

Arms: the untouched English base, a bag of characters (TF-IDF over n-grams of 2 to 4, in Chinese single ones) and BM25,
both fitted on 9,900 unlabelled sentences. The score is the Spearman correlation with people's ratings.
"""

from __future__ import annotations

import argparse
import gzip
import os
from pathlib import Path

import numpy as np

import likewise
from likewise.evaluation.bm25 import analyzer
from likewise.evaluation.character_bag import CharacterBag
from likewise.evaluation.pairs import correlations
from likewise.evaluation.tasks.rated_file import RatedFileTask
from rows import ResultFile

DATA = Path(os.environ.get("LIKEWISE_DATA") or Path(__file__).parents[2] / "shared" / "data") / "languages"
LANGUAGES = {"de": "german", "es": "spanish", "pl": "", "zh": ""}
"""Their stemmers, where there is one."""
BASE = "bundled:minilm"


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=("dev", "test"), default="dev")
    parser.add_argument("--arms", default="characters,BM25,base", help="arms with commas between them")
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
                bag = CharacterBag.fitted(corpus).score_pairs if arm == "characters" else None
                scores = bag(first, second) if bag else words(corpus, first, second, stemmer)
                score = float(correlations(scores, np.asarray(pairs.gold))[0])
            results.add({"arm": arm, "set": language, "part": asked.part, "score": score})
            print(f"{asked.part} {language} {arm}: {score:.2f}", flush=True)


if __name__ == "__main__":
    main()
