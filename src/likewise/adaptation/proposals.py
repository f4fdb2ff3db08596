"""The candidates that are proposed for a text: those that need no training first."""

from __future__ import annotations

import copy

import numpy as np

from likewise.adaptation.choice import Contest
from likewise.adaptation.head import Head, HeadTrainingOptions, centred, softly_whitened, train_head
from likewise.encoder.word_part import WordPart

WEIGHTS = (0.5, 0.7, 1.0)
"""Weights of the part of words that are tried."""


def propose(contest: Contest, words: WordPart | None, negated: list[tuple[str, str]], seed: int) -> None:
    """Enter all candidates: centring, soft whitening, words, and what is trained on top of the best of these.

    Args:
        contest: scores them.
        words: the part of words of the corpus; None for none.
        negated: sentences and their negations, to learn from.
        seed: fixes the batches.
    """
    space, training = contest.space, contest.text.training
    pairs = space.rows([(pair.first, pair.second) for pair in training])  # (P, 2)
    vectors = space.vectors.numpy()[np.unique(pairs[:, 1])] if len(pairs) else space.vectors.numpy()
    size = vectors.shape[1]
    contest.enter("centred", centred(vectors))
    if len(vectors) > 4 * size:
        contest.enter("soft whitening", softly_whitened(vectors))
    start, first, trainings = Head(size), "", {"map": {"word_rate": 0.0}}
    if words is not None:
        entered = [contest.enter(f"words {weight}", Head(size, _weighted(words, weight))) for weight in WEIGHTS]
        best = contest.best_of(entered).name
        start, first, trainings["map and words"] = contest.heads[best], f"{best}, ", {}
    for what, changes in trainings.items():
        options = HeadTrainingOptions().updated(**changes)
        trained = train_head(start, space, pairs, options, seed, contest.progress, space.rows(negated))
        contest.enter(f"{first}trained {what}", trained)


def _weighted(words: WordPart, weight: float) -> WordPart:
    found = copy.deepcopy(words)
    found.weight = weight
    return found
