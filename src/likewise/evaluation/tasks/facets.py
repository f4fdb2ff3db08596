"""Argument facet similarity: pairs of arguments, rated by whether they make the same point (Misra et al. 2016).

The pairs are on three topics and rated from 0 to 5. `afs` takes the cosines as they are; `afs-folds` and `afs-topics`
are supervised, by cross-validation over all pairs, and by training on two topics and testing on the third.

The papers fine-tune the encoder for each fold, under the squared error of the cosine (Reimers and Gurevych 2019,
section 4.3, which 'Sentence Similarity Based on Contexts' follows). The two tasks train a ridge regression on frozen
vectors instead, which takes seconds where fine-tuning takes hours on a CPU, and is not comparable with those tables.
benchmarks/facets.py has the papers' way.

Letters of the shapes: P pairs, D embedding.
"""

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np

from likewise.errors import counted
from likewise.evaluation.data import find_file, is_number, read_rating
from likewise.evaluation.pairs import (
    PairResult,
    RatedPairs,
    SubsetResult,
    correlations,
    pair_features,
    prepare_pairs,
    score_pairs,
)
from likewise.evaluation.probe import FOLDS, SEED, Fold, folds
from likewise.evaluation.task import DataError, Prepared, Task, TaskResult

Scheme = Literal["folds", "topics"]

TOPICS = {"DP": "death penalty", "GC": "gun control", "GM": "gay marriage"}
FOLDER = "AFS"
SCALE = (0.0, 5.0)
_SCORE, _FIRST, _SECOND = 0, 9, 10
_RIDGES = tuple(10.0**power for power in range(-3, 4))
# The release holds curly quotes and dashes that went through two wrong encodings: three bytes for one sign.
_BROKEN = {0xAA: "'", 0xCF: '"', 0x9D: '"', 0xD2: "-", 0xD3: "-"}


def read_facets(data: Path) -> RatedPairs:
    """Read the file of each topic from the folder AFS in the data folder or next to it; the topics are subsets."""
    return RatedPairs.of(
        {name: _read(find_file(data, f"{FOLDER}/ArgPairs_{topic}.csv")) for topic, name in TOPICS.items()}
    )


def facet_folds(pairs: RatedPairs, scheme: Scheme, count: int = FOLDS, seed: int = SEED) -> tuple[Fold, ...]:
    """Return `count` folds with their share of each topic, or three that train on two topics and test on the third."""
    topic = pairs.subset_names
    if scheme == "topics":
        return tuple(
            Fold(np.flatnonzero(topic != name), np.flatnonzero(topic == name), name) for name, _ in pairs.subsets
        )
    least = min(len(topic[where]) for _, where in pairs.subsets)
    if least < count:
        raise DataError(
            f"A topic of {FOLDER} has {least} pairs, and {count} folds need one each. Put the whole files there."
        )
    cut = folds(topic, np.arange(len(topic)), count, seed)
    return tuple(replace(fold, name=f"fold {i}") for i, fold in enumerate(cut, start=1))


def regress(first: np.ndarray, second: np.ndarray, gold: np.ndarray, fold: Fold) -> np.ndarray:
    """Return the ratings that a ridge regression on |u - v| and u * v predicts for the test pairs of a fold.

    Its strength is chosen by leaving out one training pair.

    Args:
        first, second: (P, D) vectors of all pairs.
        gold: (P,) ratings.
    """
    from sklearn.linear_model import RidgeCV

    features = pair_features(first.astype(np.float64), second.astype(np.float64))  # (P, 2D)
    model = RidgeCV(alphas=_RIDGES).fit(features[fold.train], gold[fold.train])
    return np.asarray(model.predict(features[fold.test]))


def fold_result(task: Task, pairs: RatedPairs, cut: Sequence[Fold], given: Sequence[np.ndarray]) -> PairResult:
    """Return the result from the predictions for the test pairs of each fold: the means over the folds."""
    parts = tuple(
        SubsetResult(fold.name, *correlations(scores, pairs.gold[fold.test]), n=len(fold.test))
        for fold, scores in zip(cut, given, strict=True)
    )
    spearman, pearson = (float(np.mean(found)) for found in zip(*((p.spearman, p.pearson) for p in parts), strict=True))
    return PairResult(task.name, task.title, "spearman", spearman, len(pairs.gold), spearman, pearson, parts)


@dataclass(frozen=True)
class FacetTask(Task):
    """The task on all topics; with `scheme` None it is unsupervised, by the cosine, with topics as subsets."""

    scheme: Scheme | None
    seed: int = SEED

    def read(self, data: Path) -> Prepared:
        """Read the pairs for the suite."""
        pairs = read_facets(data)
        if self.scheme is None:
            return prepare_pairs(pairs, lambda scores: score_pairs(self, scores, pairs.gold, pairs.subsets))
        cut = facet_folds(pairs, self.scheme, seed=self.seed)

        def score(vectors: np.ndarray) -> TaskResult:
            first, second = np.split(vectors, 2)  # each (P, D)
            given = [regress(first, second, pairs.gold, fold) for fold in cut]
            return fold_result(self, pairs, cut, given)

        return Prepared([*pairs.first, *pairs.second], score)


def _read(path: Path) -> list[tuple[str, str, float]]:
    """Return the rows of a file; the first line is a header if its rating is not a number."""
    found = []
    reader = csv.reader(_text(path.read_bytes()).splitlines(keepends=True))
    for i, cells in enumerate(reader):
        where = f"{path}, line {reader.line_num}"
        if not cells:
            continue
        if len(cells) <= _SECOND:
            raise DataError(
                f"{where}: {counted(len(cells), 'column')}, and the sentences are in columns 9 and 10. "
                "Copy the file again."
            )
        if i == 0 and not is_number(cells[_SCORE]):
            continue
        rating = read_rating(cells[_SCORE], SCALE, where)
        found.append((" ".join(cells[_FIRST].split()), " ".join(cells[_SECOND].split()), rating))
    if not found:
        raise DataError(f"{path}: there is no rated pair. Copy the file again.")
    return found


def _text(raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError:
        fixed = re.sub(rb"\x89\xdb(.)", lambda m: _BROKEN.get(m[1][0], "").encode("ascii"), raw)
        return fixed.decode("mac_roman")


TASKS: tuple[FacetTask, ...] = (
    FacetTask("afs", "AFS", None),
    FacetTask("afs-folds", "AFS, ten folds", "folds"),
    FacetTask("afs-topics", "AFS, across topics", "topics"),
)
