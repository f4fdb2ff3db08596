"""The papers' supervised score on argument facets: an encoder fine-tuned for each fold (SBERT, section 4.3).

    python benchmarks/facets.py --base bundled:minilm --data DATA --scheme topics

Ten folds over all pairs, or training on two topics and testing on the third; the score is the mean over the folds of
the correlation of the cosines with the ratings. It takes hours on a CPU.
"""

from __future__ import annotations

import argparse
import csv
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

import likewise
from likewise.evaluation import find_data
from likewise.evaluation.pairs import PairResult, RatedPairs, SubsetResult, correlations, pair_cosines
from likewise.evaluation.probe import FOLDS, SEED, Fold, folds
from likewise.evaluation.task import DataError
from likewise.evaluation.tasks.facets import FOLDER, SCALE, read_facets
from likewise.inference import encode

Scheme = Literal["folds", "topics"]
Fit = Callable[[list[str], list[str], list[float]], Any]
"""Trains a fresh encoder on first sentences, second sentences and ratings from 0 to 1."""


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


def fold_result(scheme: Scheme, pairs: RatedPairs, cut: Sequence[Fold], given: Sequence[np.ndarray]) -> PairResult:
    """Return the result from the predictions for the test pairs of each fold: the means over the folds."""
    parts = tuple(
        SubsetResult(fold.name, *correlations(scores, pairs.gold[fold.test]), n=len(fold.test))
        for fold, scores in zip(cut, given, strict=True)
    )
    spearman, pearson = (float(np.mean(found)) for found in zip(*((p.spearman, p.pearson) for p in parts), strict=True))
    return PairResult(
        f"afs-{scheme}-fine-tuned",
        f"AFS {scheme}, fine-tuned",
        "spearman",
        spearman,
        len(pairs.gold),
        spearman,
        pearson,
        parts,
    )


def fine_tuned(pairs: RatedPairs, scheme: Scheme, fit: Fit, encode: Callable[..., np.ndarray] = encode) -> PairResult:
    """Return the correlation of the cosines of an encoder that `fit` trains for each fold."""
    given = []
    cut = facet_folds(pairs, scheme)
    low, high = SCALE
    for fold in cut:
        rows = fold.train.tolist()
        ratings = [(float(pairs.gold[i]) - low) / (high - low) for i in rows]
        model = fit([pairs.first[i] for i in rows], [pairs.second[i] for i in rows], ratings)
        vectors = (encode(model, [side[i] for i in fold.test]) for side in (pairs.first, pairs.second))
        given.append(pair_cosines(*vectors))
    return fold_result(scheme, pairs, cut, given)


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    found.add_argument("--base", default="bundled:minilm")
    found.add_argument("--data", type=Path)
    found.add_argument("--scheme", choices=("folds", "topics"), default="topics")
    return found


def main() -> None:
    args = parser().parse_args()

    def fit(first: list[str], second: list[str], ratings: list[float]) -> Any:
        with tempfile.TemporaryDirectory() as folder:
            rows = Path(folder) / "rows.csv"
            with rows.open("w", encoding="utf-8", newline="") as file:
                writer = csv.writer(file)
                writer.writerow(("sentence1", "sentence2", "score"))
                writer.writerows(zip(first, second, ratings, strict=True))
            options = {"highest": 1.0, "select_by": "last"}
            return likewise.finetune("sts", rows, base=args.base, out=Path(folder) / "model", **options).model

    result = fine_tuned(read_facets(find_data(args.data)), args.scheme, fit)
    print(json.dumps(result.to_dict(), indent=1))


if __name__ == "__main__":
    main()
