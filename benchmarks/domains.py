"""Encoders and free baselines on eight domains: retrieval, classes and pairs, in `SETS`.

    python benchmarks/domains.py
    python benchmarks/domains.py --model adapt=runs/adapt-{set} --model Origin=origin:runs/contexts-{set}

A cell is the main measure of one method on one set's dev or test part: nDCG@10 (retrieval), Spearman or average
precision (pairs), 10-nearest-neighbour accuracy (classes). Methods: the base as it is shipped; BM25; their hybrid, the
sum of both scores after each is brought to mean 0 and deviation 1 (of a query's scores; of all pairs); the base less
the mean vector of `corpus.txt.gz`; and the models of --model. Nothing is fitted on the test texts of pairs and classes.

What is in the result file is not done again; vectors are kept in --vectors. What
`likewise adapt` puts behind a base's modules runs on the base's kept vectors.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import json
import random
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from scipy.sparse import csr_matrix, diags

from likewise.evaluation import TaskResult, evaluate
from likewise.evaluation.pairs import cosines, pair_cosines
from likewise.evaluation.registry import resolve
from likewise.runs.cache import data_folder
from rows import ResultFile

SETS = {
    "aviation": "retrieval",
    "exclusion": "retrieval",
    "threats": "classes",
    "patents": "pairs",
    "biomedicine": "classes",
    "tweets": "pairs",
    "regulation": "retrieval",
    "banking": "classes",
}
SEVEN = [name for name in SETS if name != "banking"]  # which was kept back at first, so that some rows lack it
PARTS = ("dev", "test")
BASE, BM25, HYBRID, CENTRED = "base", "BM25", "hybrid of BM25 and base", "base, corpus mean taken off"
SAMPLE = 2000  # lines of the corpus that the mean is of
K1, B = 1.5, 0.75  # bm25s's defaults
BLOCK = 512


class Scores(Protocol):
    """Similarities of texts on the left with texts on the right."""

    def rows(self, block: slice) -> np.ndarray:
        """Those of some on the left with all on the right, (B, N)."""

    def pairs(self) -> np.ndarray:
        """Those of each on the left with the one beside it, (P,)."""


class Cosines:
    def __init__(self, left: np.ndarray, right: np.ndarray) -> None:
        self.left, self.right, self.rows = left, right, cosines(left, right)

    def pairs(self) -> np.ndarray:
        return pair_cosines(self.left, self.right)


@cache
def stem(word: str) -> str:
    from nltk.stem import SnowballStemmer

    return SnowballStemmer("english").stem(word)


def words(texts: Sequence[str]) -> list[list[str]]:
    """Lower-case stems without Lucene's 33 stop words."""
    import bm25s

    found = bm25s.tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)
    return [[stem(word) for word in text] for text in found]


class Bm25:
    """BM25 as bm25s computes it (Lucene's), with the frequencies of words in other texts than the ranked ones.

    bm25s takes them from the texts that it ranks, which for pairs would be the test's own.
    """

    def __init__(self, left: Sequence[str], right: Sequence[str], corpus: Sequence[str]) -> None:
        self.place: dict[str, int] = {}
        seen, self.left, self.right = (self._counts(words(texts)) for texts in (corpus, left, right))
        for counts in (seen, self.left, self.right):
            counts.resize(counts.shape[0], len(self.place))
        holding = np.bincount(seen.indices, minlength=len(self.place))
        self.idf = np.log(1 + (len(corpus) - holding + 0.5) / (holding + 0.5))
        self.usual = seen.sum() / len(corpus)
        self.weights = self._weights(self.right)

    def _counts(self, texts: list[list[str]]) -> csr_matrix:
        ids = [[self.place.setdefault(word, len(self.place)) for word in text] for text in texts]
        ends = np.cumsum([0, *map(len, ids)])
        flat = np.array([i for text in ids for i in text], dtype=np.int64)
        counts = csr_matrix((np.ones(len(flat)), flat, ends), shape=(len(ids), len(self.place)))
        counts.sum_duplicates()
        return counts

    def _weights(self, counts: csr_matrix) -> csr_matrix:
        lengths = np.asarray(counts.sum(axis=1)).ravel()
        found = counts.copy()
        room = np.repeat(K1 * (1 - B + B * lengths / self.usual), np.diff(counts.indptr))
        found.data = counts.data / (counts.data + room)
        return (found @ diags(self.idf)).tocsr()

    def rows(self, block: slice) -> np.ndarray:
        return (self.left[block] @ self.weights.T).toarray()

    def pairs(self) -> np.ndarray:
        """The mean of both directions."""
        there, back = self.left.multiply(self.weights), self._weights(self.left).multiply(self.right)
        return np.asarray((there + back).sum(axis=1)).ravel() / 2


class Hybrid:
    def __init__(self, *parts: Scores) -> None:
        self.parts = parts

    def rows(self, block: slice) -> np.ndarray:
        return sum(standard(part.rows(block)) for part in self.parts)

    def pairs(self) -> np.ndarray:
        return sum(standard(part.pairs()) for part in self.parts)


def standard(scores: np.ndarray) -> np.ndarray:
    """Scores with mean 0 and deviation 1 along the last axis; zeros where all are equal."""
    spread = scores.std(axis=-1, keepdims=True)
    return (scores - scores.mean(axis=-1, keepdims=True)) / np.where(spread > 0, spread, 1)


def by_scores(task: Any, scores_of: Callable[[list[str], list[str]], Scores]) -> TaskResult:
    """The result of a task from similarities that need not be of vectors."""
    ready = task.read(Path())
    if ready.score_rows:
        return ready.score_rows(scores_of(ready.sentences[ready.ranked :], ready.sentences[: ready.ranked]).rows)
    half = len(ready.sentences) // 2
    return ready.score_pairs(scores_of(ready.sentences[:half], ready.sentences[half:]).pairs())


def task_of(data: Path, name: str, part: str) -> Any:
    kind = SETS[name]
    place = f"{data / name}/pairs-{part}.tsv" if kind == "pairs" else f"{data / name}:{part}"
    return resolve([f"{kind}:{place}"])[0][0]


def corpus_of(data: Path, name: str) -> list[str]:
    with gzip.open(data / name / "corpus.txt.gz", "rt", encoding="utf-8") as file:
        return [line.strip() for line in file if line.strip()]


def sample_of(corpus: list[str]) -> list[str]:
    return random.Random(1).sample(corpus, min(SAMPLE, len(corpus)))


class Encoded:
    """The vectors of a model, kept on disk in pieces so that an interrupted run goes on."""

    def __init__(self, model: str, folder: Path, precision: str = "fp32") -> None:
        self.model, self.folder, self.found, self.precision = model, folder, {}, precision

    def __call__(self, texts: Sequence[str]) -> np.ndarray:
        new = sorted({text for text in texts if text not in self.found}, key=lambda text: (len(text), text))
        for start in range(0, len(new), BLOCK):
            piece = new[start : start + BLOCK]
            self.found |= zip(piece, self._encoded(piece), strict=True)
        return np.stack([self.found[text] for text in texts])

    def _encoded(self, texts: list[str]) -> np.ndarray:
        key = hashlib.sha256("\0".join([self.model, *texts]).encode()).hexdigest()[:24]
        path = self.folder / (f"{key}.npy" if self.precision == "fp32" else f"{key}-{self.precision}.npy")
        if not path.exists():
            from likewise.inference import encode

            self.folder.mkdir(parents=True, exist_ok=True)
            half = path.with_suffix(".half.npy")
            np.save(half, encode(opened(self.model, self.precision), texts))
            half.replace(path)
        return np.load(path)


class Adapted(Encoded):
    """The vectors of a model of `likewise adapt`, from those of its base."""

    def __init__(self, model: str, folder: Path, base: Encoded) -> None:
        super().__init__(model, folder)
        self.base = base

    def _encoded(self, texts: list[str]) -> np.ndarray:
        import torch

        own, shared = opened(self.model), len(opened(self.base.model))
        ids = own.tokenizer(texts, padding=True, truncation=True, max_length=own.max_seq_length, return_tensors="pt")
        features = {**ids, "sentence_embedding": torch.from_numpy(self.base(texts))}
        with torch.no_grad():
            for module in list(own)[shared:]:
                features = module(features)
        return features["sentence_embedding"].numpy()


def encoded(model: str, name: str, folder: Path) -> Encoded:
    """The vectors of a model on a set."""
    model = model.replace("{set}", name)
    path = Path(model) / "likewise.json"
    record = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    if record.get("recipe") == "adapt" and "first_stage" not in record:  # behind the base's own modules
        return Adapted(model, folder, Encoded(record["base"], folder))
    return Encoded(model, folder)


@cache
def opened(model: str, precision: str = "fp32") -> Any:
    from likewise.inference import load

    if precision == "bf16":
        return load(model, engine="torch", precision="bf16")
    return load(model, engine="onnx")  # torch's vectors up to rounding, twice as fast


def cells(name: str, parts: Sequence[str], arms: dict[str, str], args: argparse.Namespace) -> Any:
    """Yield (arm, part, function to its result) of one set."""
    corpus = corpus_of(args.data, name)
    vectors = {arm: encoded(model, name, args.vectors) for arm, model in arms.items()}
    base = vectors[BASE]
    for part in parts:
        task = task_of(args.data, name, part)
        statistics = [*task.load().documents.values()] if SETS[name] == "retrieval" else corpus

        def own(arm: str, task: Any = task) -> TaskResult:
            if arms[arm].startswith("origin:"):
                return evaluate(arms[arm].replace("{set}", name), task).results[0]
            ready = task.read(Path())
            return ready.score(vectors[arm](ready.sentences))

        def centred(task: Any = task) -> TaskResult:
            ready = task.read(Path())
            return ready.score(base(ready.sentences) - base(sample_of(corpus)).mean(axis=0))

        def words_alone(left: list[str], right: list[str], statistics: list[str] = statistics) -> Scores:
            return Bm25(left, right, statistics)

        def both(left: list[str], right: list[str], words_alone: Any = words_alone) -> Scores:
            return Hybrid(words_alone(left, right), Cosines(base(left), base(right)))

        yield BM25, part, lambda task=task, scores=words_alone: by_scores(task, scores)
        yield BASE, part, lambda own=own: own(BASE)
        yield HYBRID, part, lambda task=task, scores=both: by_scores(task, scores)
        yield CENTRED, part, centred
        for arm in arms:
            if arm != BASE:
                yield arm, part, lambda own=own, arm=arm: own(arm)


def read(results: ResultFile) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {(row["arm"], row["set"], row["part"]): row for row in results.rows()}


def table(done: dict[tuple[str, str, str], dict[str, Any]], part: str) -> str:
    """Markdown: a row for each method, a column for each set, and the mean of seven where no cell is missing."""
    arms = list(dict.fromkeys(arm for arm, _, _ in done))
    arms.sort(key=lambda arm: (BASE, BM25, HYBRID, CENTRED).index(arm) if arm in (BASE, BM25, HYBRID, CENTRED) else 4)
    lines = [
        f"| {part} | {' | '.join(SETS)} | mean of all but banking | exclusion, share of pairs |",
        f"| --- |{' ---: |' * (len(SETS) + 2)}",
    ]
    for arm in arms:
        rows = [done.get((arm, name, part)) for name in SETS]
        of = [row and row["score"] for name, row in zip(SETS, rows, strict=True) if name in SEVEN]
        mean = "" if None in of else f"**{np.mean(of):.2f}**"
        obeyed = (done.get((arm, "exclusion", part)) or {}).get("obeyed")
        shown = ["" if row is None else f"{row['score']:.2f}" for row in rows]
        lines.append(f"| {arm} | {' | '.join(shown)} | {mean} | {'' if obeyed is None else f'{obeyed:.1f}'} |")
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--data", type=Path, default=data_folder() / "domain")
    found.add_argument("--table", default="domains", help="the result file")
    found.add_argument("--vectors", type=Path, default=Path.home() / ".cache/likewise/benchmarks/domains")
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    found.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    found.add_argument("--model", action="append", default=[], metavar="NAME=PATTERN", help="{set} is the set's name")
    found.add_argument("--arms", nargs="+", help=f"methods of the table, as '{BM25}'; all of them if not given")
    return found


def main() -> None:
    args = parser().parse_args()
    if wrong := [model for model in args.model if "=" not in model]:
        parser().error(f"--model {wrong[0]}: write NAME=PATTERN, as adapt=runs/adapt-{{set}}")
    arms = {BASE: args.base, **dict(model.split("=", 1) for model in args.model)}
    results = ResultFile(args.table)
    for name in args.sets:
        for arm, part, result_of in cells(name, args.parts, arms, args):
            if results.has(arm=arm, set=name, part=part) or (args.arms and arm not in args.arms):
                continue
            result = result_of().to_dict()
            row = {"arm": arm, "set": name, "part": part, "model": arms.get(arm, args.base), **result}
            row["name"] = f"{SETS[name]}:{name}"  # without the folder of this machine
            results.add(row)
            print(f"{arm}, {name}, {part}: {result['score']:.2f} {result['metric']}", flush=True)
    print(*(table(read(results), part) for part in PARTS), sep="\n\n")


if __name__ == "__main__":
    main()
