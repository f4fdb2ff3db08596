"""The weights of a search chosen without labels, when an index is built."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from likewise.inference.deferred import DeferredEncoder
from likewise.retrieval.pipeline import Pipeline
from likewise.runs.progress import Progress
from likewise.searching.held_out import LEAST, RUN, Excerpt, HeldOut
from likewise.searching.index_update import Shared
from likewise.searching.table import Table
from likewise.searching.trial import RememberingIndex, Way, gain_interval, measure, trial_index

PASSAGES = 3000
"""Passages that are searched at most, neighbours in the text together."""
SHARES = (0.0, 0.2, 0.4, 0.5, 0.7, 0.8, 1.0)
"""Weights of the vectors that are tried; the words have the rest."""
OTHERS = {"neighbours": (0.0, 0.3), "tokens": (0.0, 1.0)}
"""Other weights that are tried, where the pipeline has them."""


def grid(default: Pipeline) -> Iterator[Pipeline]:
    """Yield the pipelines that are tried beside the default: each differs from it in one part."""
    for share in SHARES:
        yield default.updated(vectors=share, words=round(1 - share, 9))
    for name, values in OTHERS.items():
        for value in values if getattr(default, name, 0) or name == "neighbours" else ():
            if getattr(default, name) != value:
                yield default.updated(**{name: value})


def chosen_weights(
    shared: Shared, encoder: DeferredEncoder, default: Pipeline, work: Path, language: str, progress: Progress
) -> tuple[Pipeline, str]:
    """Choose the weights of a search by queries that are taken out of its passages, and say why in a sentence.

    Weights take the place of the default ones if they find the passages better by more than chance: if the 95 %
    interval of the gain, as wide as so many comparisons need (Bonferroni), is above 0.

    Args:
        shared: the passages, indexed.
        encoder: of their vectors.
        default: the weights that stay if nothing is better.
        work: a folder to work in.
    """
    held = HeldOut.of(excerpts_of(shared.table, PASSAGES), language=language.lower())
    if len(held.queries) < LEAST:
        return default, (
            f"the default weights stay, as only {len(held.queries)} queries could be taken out of the text, and "
            f"{LEAST} are needed to tell"
        )
    tried = list(grid(default))
    model = encoder.name or encoder.model
    trial = trial_index(held, work, model, language=language, pipeline=default, vectors_from=shared)
    opened = RememberingIndex(trial, model)
    base = measure(opened, held, Way("hybrid", default), progress, "default weights")
    each = [measure(opened, held, Way("hybrid", one), progress, described(one, default)).each for one in tried]
    place, count = better(base.each, each), f"{len(held.queries)} queries taken out of the text"
    if place is None:
        return default, f"the default weights stay: on {count} no others are better by more than chance"
    gain = (each[place] - base.each).mean()
    return tried[place], f"{described(tried[place], default)}: {gain:+.1f} points on {count}"


def better(default: np.ndarray, tried: Sequence[np.ndarray]) -> int | None:
    """Return which scores (Q,) are best, and better than the default ones by more than chance; None if none are."""
    gains = [each - default for each in tried]
    sure = [one for one, gain in enumerate(gains) if gain_interval(gain, sure=1 - 0.05 / len(gains))[0] > 0]
    return max(sure, key=lambda one: float(gains[one].mean()), default=None)


def described(one: Pipeline, default: Pipeline) -> str:
    """Return the weights that differ from the default, in words.

    >>> described(Pipeline(neighbours=0.2), Pipeline())
    'neighbours 0.2'
    """
    there = one.to_dict()
    return ", ".join(f"{name} {there[name]:g}" for name, usual in default.to_dict().items() if there[name] != usual)


def excerpts_of(table: Table, most: int) -> list[Excerpt]:
    """Return passages of a table, up to `most`, in evenly spaced runs that stand beside each other."""
    ids, _ = table.keys()
    runs = max(1, most // RUN)
    if len(ids) > most:
        starts = np.linspace(0, len(ids) - RUN, runs).astype(int)
        ids = ids[np.unique((starts[:, None] + np.arange(RUN)).ravel())]
    rows = table.passages(ids)
    return [Excerpt(str(i), row["text"], row["title"], row["file"]) for i, row in zip(ids, rows, strict=True)]
